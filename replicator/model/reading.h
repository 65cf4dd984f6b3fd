// A configuration as it was read: at the start, and again at a reload.
#pragma once

#include <string>
#include <vector>

#include "replicator/model/config.h"
#include "replicator/model/status.h"

namespace replicator {

struct ConfigReading {
  Config config;
  std::vector<Setting> settings;      // every key, as set and as effective, without secrets
  std::vector<std::string> problems;  // "copy.batch_bytes: ..."; empty = usable
};

}  // namespace replicator
