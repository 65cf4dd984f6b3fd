#include "cli/commands/config_flags.h"

#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "cli/config_keys.h"
#include "cli/output.h"

namespace cli {

void add_config_flags(CLI::App& verb, ConfigFlags& flags, const std::vector<std::string>& only) {
  verb.add_option("--config", flags.file, "TOML file; see config/iggy-replicate.toml")
      ->envname("IGGY_REPLICATE_CONFIG");
  const replicator::Config defaults;
  for (const ConfigKey& key : config_keys()) {
    if (!only.empty() && std::ranges::find(only, key.key) == only.end()) continue;
    const std::string value = fmt::format("{}", fmt::join(key.get(defaults), ", "));
    CLI::Option* const option = verb.add_option(key.flag, flags.values[key.key],
                                                value.empty() ? key.help : fmt::format("{} [{}]", key.help, value));
    option->type_name("")->group(key.section());
    if (key.is_list) {
      option->expected(1, -1);
    } else {
      option->expected(1);
    }
  }
}

ConfigSources sources_of(const ConfigFlags& flags) {
  ConfigSources sources;
  if (!flags.file.empty()) sources.file = flags.file;
  sources.environment = process_environment();
  for (const auto& [key, values] : flags.values) {
    if (!values.empty()) sources.flags.emplace(key, values);
  }
  return sources;
}

std::optional<LoadedConfig> load(Session& session, const ConfigFlags& flags,
                                 const std::vector<std::string>& not_needed) {
  LoadedConfig loaded = load_config(sources_of(flags));
  std::erase_if(loaded.problems, [&](const std::string& problem) {
    return std::ranges::any_of(not_needed, [&](const std::string& key) { return problem.starts_with(key + ":"); });
  });
  if (loaded.problems.empty()) return loaded;
  session.streams.err << fmt::format("iggy-replicate: the configuration has {} problem{}\n", loaded.problems.size(),
                                     loaded.problems.size() == 1 ? "" : "s");
  for (const std::string& problem : loaded.problems) session.streams.err << wrap(problem, "    ", "  ");
  session.code = ExitCode::kUsage;
  return std::nullopt;
}

}  // namespace cli
