// The settings as flags, for the verbs that need the whole configuration: run, check, plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/config_load.h"

namespace cli {

struct ConfigFlags {
  std::string file;
  std::map<std::string, std::vector<std::string>> values;  // by key
};

// One flag per key, grouped by section, and --config. `only`: these keys; empty = all.
void add_config_flags(CLI::App& verb, ConfigFlags& flags, const std::vector<std::string>& only = {});

// Of what the flags say, now: the file and the environment are read at each call.
ConfigSources sources_of(const ConfigFlags& flags);

// None when something is wrong: all of it was printed, and the exit code set.
// `not_needed`: keys that the verb does without.
std::optional<LoadedConfig> load(Session& session, const ConfigFlags& flags,
                                 const std::vector<std::string>& not_needed = {});

}  // namespace cli
