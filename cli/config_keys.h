// Every setting by name: one table behind the TOML file, IGGY_REPLICATE_* variables, flags and `status --settings`.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replicator/model/config.h"

namespace cli {

struct ConfigKey {
  std::string key;   // section.name as in the file: "copy.batch_bytes"
  std::string flag;  // "--batch-bytes"
  std::string help;  // one line: what, unit, range
  bool is_list = false;
  bool is_secret = false;  // never shown as written
  // Reads values (one, or any number of a list) into the configuration. What is wrong with them, one sentence, or
  // nothing.
  std::function<std::optional<std::string>(replicator::Config&, const std::vector<std::string>&)> set;
  // The value in use, in the form that set() reads.
  std::function<std::vector<std::string>(const replicator::Config&)> get;

  std::string section() const { return key.substr(0, key.find('.')); }
  // "IGGY_REPLICATE_COPY_BATCH_BYTES"
  std::string variable() const;
};

// In the order of config/iggy-replicate.toml.
std::span<const ConfigKey> config_keys();
// nullptr when there is none.
const ConfigKey* find_config_key(std::string_view key);

}  // namespace cli
