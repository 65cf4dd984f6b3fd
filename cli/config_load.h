// Configuration from four places: flag > environment > file > default. Everything that is wrong is found at once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replicator/model/reading.h"

namespace cli {

struct ConfigSources {
  std::optional<std::string> file;                        // path of the TOML file
  std::map<std::string, std::string> environment;         // all variables; others than IGGY_REPLICATE_* are ignored
  std::map<std::string, std::vector<std::string>> flags;  // by key: "copy.batch_bytes"
};

using LoadedConfig = replicator::ConfigReading;

// Reads the TOML file and the files that hold secrets, then validate().
LoadedConfig load_config(const ConfigSources& sources);

// IGGY_REPLICATE_CONFIG, _ADMIN, _ADMIN_CA: read by the command line itself, no keys.
bool is_command_line_variable(std::string_view name);

std::map<std::string, std::string> process_environment();

}  // namespace cli
