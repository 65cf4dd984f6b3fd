#include "replicator/link/surroundings.h"

#include <array>
#include <fstream>
#include <utility>

#include <unistd.h>

#include "replicator/marker/process.h"

namespace replicator {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// A number alone may have found another owner: the program's name must be ours too.
bool still_runs(std::string_view process) {
  const std::string pid(process.substr(process.rfind(':') + 1));
  if (pid == std::to_string(getpid())) return false;
  const auto name_of = [](const std::string& of) {
    std::string name;
    std::ifstream file("/proc/" + of + "/comm");
    std::getline(file, name);
    return name;
  };
  const std::string name = name_of(pid);
  return !name.empty() && name == name_of("self");
}

}  // namespace

Surroundings this_machine(asio::io_context& io, base::Clock& clock) {
  return {.connect =
              [&io, &clock](iggy::ConnectionString target, iggy::ClientOptions options) {
                return iggy::make_client(io, clock, std::move(target), options);
              },
          .random_hex = random_hex,
          .host = host_name(),
          .pid = std::to_string(getpid()),
          .still_runs = still_runs};
}

}  // namespace replicator
