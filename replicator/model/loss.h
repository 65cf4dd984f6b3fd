// What a downstream would lack if its link ended now, per topic, and how old that knowledge is. Unknown is said as
// unknown: a partition whose upstream end was never seen counts as `unknown`, never as 0.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replicator/model/status.h"

namespace replicator {

struct TopicLoss {
  base::TopicName topic;  // upstream name
  std::uint32_t partitions = 0;
  std::uint32_t unknown = 0;            // partitions of which nothing is known
  std::uint64_t messages = 0;           // of the others; an upper bound, from offsets
  std::optional<std::uint64_t> micros;  // at most so much of the newest time is missing; absent = unknown
  std::uint64_t known_at = 0;           // wall clock µs of the oldest view that this rests on; 0 = none
  std::uint64_t unseen = 0;             // estimate: what the upstream took since, at its rate before
};

struct Loss {
  std::vector<TopicLoss> topics;  // sorted by name
  std::uint32_t partitions = 0, unknown = 0;
  std::uint64_t messages = 0;
  std::optional<std::uint64_t> micros;
  std::uint64_t known_at = 0;
  std::uint64_t unseen = 0;
  std::string worst_partition;  // with the most messages; empty = none lacks any
  std::uint64_t worst_messages = 0;
  std::uint64_t taken_at = 0;  // wall clock µs

  bool is_none() const { return messages == 0 && unknown == 0; }
};

// From what a running link has seen. What it saw last stays known when the upstream is gone; its age grows. `until`:
// when the upstream was there last, µs: what it took between the look and then is estimated from its rate.
Loss loss_of(const std::vector<PartitionStatus>& partitions, std::uint64_t taken_at, std::uint64_t until);
// From a state file alone: it holds what was copied, not what there was. All unknown.
Loss loss_of(const std::vector<state::PartitionRow>& rows, std::uint64_t taken_at);

// "137 messages in 3 of 8 partitions, at most the newest 2.1 s, as of 3.0 s ago", for logs and the audit trail.
std::string in_words(const Loss& loss);

}  // namespace replicator
