// Who goes first when several partitions want the same thing.
#pragma once

#include <cstdint>

namespace replicator {

enum class Urgency : std::uint8_t {
  kLive,     // the next poll reaches the end that is known
  kCatchUp,  // far behind: yields
};

}  // namespace replicator
