// Where one consumer goes on downstream: decided from the offset map alone. Pure.
#pragma once

#include <optional>
#include <string>

#include "replicator/model/consumer_status.h"
#include "state/offset_map.h"

namespace replicator {

struct ConsumerDecision {
  ConsumerState state = ConsumerState::kWaiting;
  std::optional<std::uint64_t> store;  // downstream offset to store; absent = leave it alone
  std::string detail;
};

// Stored offsets mean "last processed" in every dialect: the next one is the first not yet processed.
// `known`: what was recorded before, or null. Never moves `down_stored` back, never past what was committed.
ConsumerDecision decide(const state::OffsetMap& map, const state::ConsumerRow* known,
                        std::optional<std::uint64_t> up_stored, std::optional<std::uint64_t> down_stored);

}  // namespace replicator
