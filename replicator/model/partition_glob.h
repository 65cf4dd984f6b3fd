// Globs of operators: over "stream/topic" (all its partitions) or "stream/topic/partition". The rules of rules.h apply:
// `*` and `?` stay within one name, a slash inside a name is written `\/`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "replicator/model/rules.h"

namespace replicator {

class PartitionGlob {
 public:
  // kInvalidArgument, naming the glob.
  static base::Result<PartitionGlob> compile(std::string_view text);
  bool matches(const base::PartitionKey& key) const;

 private:
  PartitionGlob(TopicPattern topic, std::optional<Glob> partition)
      : topic_(std::move(topic)), partition_(std::move(partition)) {}
  TopicPattern topic_;
  std::optional<Glob> partition_;  // none = all
};

// "stream/topic/partition" without `*` and `?`. kInvalidArgument.
base::Result<base::PartitionKey> parse_partition(std::string_view text);

// The text that parse_partition reads back.
std::string to_pattern(const base::PartitionKey& key);

}  // namespace replicator
