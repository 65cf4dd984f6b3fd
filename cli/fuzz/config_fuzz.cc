// Any configuration is read or refused, each refusal is a sentence, no secret is shown, and what is accepted is printed
// in a form that is accepted again.
//
// Input: a TOML file; after a line `---`, one variable (IGGY_REPLICATE_…=value) or flag (section.key=value,value) per
// line.
#include <sstream>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/config_keys.h"
#include "cli/config_load.h"

namespace {

// A file of its own without a name on any disk.
std::string file_with(const std::string& text) {
  static const int descriptor = ::memfd_create("toml", 0);
  base::check(::ftruncate(descriptor, 0) == 0, "the file is emptied");
  base::check(::pwrite(descriptor, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()), "it is written");
  return "/proc/self/fd/" + std::to_string(descriptor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  // A path may name anything, an endless device too: then it is no test of ours.
  if (input.contains("/dev") || input.contains("/proc")) return 0;
  const std::size_t end = input.find("\n---\n");
  cli::ConfigSources sources;
  sources.file = file_with(input.substr(0, end));
  std::istringstream lines(end == std::string::npos ? "" : input.substr(end + 5));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = line.substr(0, equals);
    if (name.starts_with("IGGY_")) {
      sources.environment[name] = line.substr(equals + 1);
    } else if (cli::find_config_key(name) != nullptr) {  // the command line knows no others
      std::istringstream values(line.substr(equals + 1));
      for (std::string value; std::getline(values, value, ',');) sources.flags[name].push_back(value);
    }
  }

  const cli::LoadedConfig loaded = cli::load_config(sources);
  for (const std::string& problem : loaded.problems) base::check(problem.contains(": "), "a problem has a place");
  for (const replicator::Setting& setting : loaded.settings) {
    if (!cli::find_config_key(setting.key)->is_secret) continue;
    base::check(setting.effective.empty() || setting.effective.contains("***"), "a secret is replaced");
  }
  if (!loaded.problems.empty()) return 0;
  replicator::Config again;
  for (const cli::ConfigKey& key : cli::config_keys()) {
    const auto values = key.get(loaded.config);
    if (values.empty() || values.front().empty()) continue;
    base::check(!key.set(again, values), "what is printed is read");
    base::check(key.get(again) == values, "and is the same");
  }
  return 0;
}
