// What a supervisor asks of the machine that it runs on. A simulation brings its own; everything else about a run is
// decided by configuration, clusters, clock and state file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "iggy/client.h"
#include "replicator/model/reading.h"

namespace replicator {

struct Surroundings {
  std::function<std::unique_ptr<iggy::Client>(iggy::ConnectionString, iggy::ClientOptions)> connect;
  std::function<std::string()> random_hex;  // 32 digits
  std::string host;
  std::string pid;
  // Whether the process "<hex>@host:pid" of this host runs, and runs this program.
  std::function<bool(std::string_view process)> still_runs;
  // Reads flags, environment and file again. Any thread; blocks on small files. Empty: there is nothing to read again.
  std::function<ConfigReading()> read_configuration = {};
};

// The real ones. `io` and `clock` must outlive what connect() makes.
Surroundings this_machine(asio::io_context& io, base::Clock& clock);

}  // namespace replicator
