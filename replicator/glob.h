// Globs over "stream/topic" and "stream/topic/partition". `*` stands for any text without `/`, also none; everything
// else for itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace replicator {

// What is wrong with a rule over stream/topic, one sentence; nothing when it is well formed.
std::optional<std::string> topic_glob_problem(std::string_view glob);
// The same for a glob that may also name a partition: "orders/*", "orders/events/3", "orders/*/0".
std::optional<std::string> partition_glob_problem(std::string_view glob);

bool glob_matches(std::string_view glob, std::string_view text);
// A glob without a partition part matches all partitions of the topics it matches.
bool glob_matches(std::string_view glob, const base::PartitionKey& key);

}  // namespace replicator
