#include "replicator/consumers/decide.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace replicator {

namespace {

// While one of these stands, an upstream offset may be of another history than the map, or the map of another log.
bool breaks_the_map(const std::string& fault) {
  constexpr std::array<std::string_view, 4> kFaults = {"upstream_rewound", "upstream_recreated", "downstream_recreated",
                                                       "downstream_not_empty"};
  return std::ranges::find(kFaults, fault) != kFaults.end();
}

}  // namespace

ConsumerDecision decide(const state::OffsetMap& map, const state::ConsumerRow* known,
                        std::optional<std::uint64_t> up_stored, std::optional<std::uint64_t> down_stored) {
  if (!up_stored) {
    const bool was_there = known != nullptr && (known->up_offset || known->state == to_string(ConsumerState::kDeleted));
    if (!was_there) return {ConsumerState::kNone, std::nullopt, "nothing is stored upstream"};
    return {ConsumerState::kDeleted, std::nullopt, "no longer stored upstream; what stands downstream is left alone"};
  }
  const auto waiting = [](std::string why) { return ConsumerDecision{ConsumerState::kWaiting, std::nullopt, why}; };
  if (breaks_the_map(map.row().fault.kind)) {
    return waiting(fmt::format("the partition has the fault {}", map.row().fault.kind));
  }
  const state::Translation next = map.translate(state::Side::kUpstream, *up_stored + 1);
  const bool claims_nothing = next.mapping == state::Mapping::kBelow && map.down_begin() > 0;
  if (next.mapping == state::Mapping::kEarlier || claims_nothing) {
    return waiting(fmt::format("upstream offset {} is {}", *up_stored + 1, next.text));
  }
  if (!next.next) return waiting(fmt::format("where upstream offset {} went is not confirmed", *up_stored + 1));
  const std::uint64_t first = *next.next;  // not yet processed
  if (down_stored && *down_stored + 1 > first) {
    return {ConsumerState::kAhead, std::nullopt,
            fmt::format("stands at {} downstream, beyond {}: never moved back", *down_stored,
                        first == 0 ? "the beginning" : std::to_string(first - 1))};
  }
  if (first == 0) {
    return {ConsumerState::kAtStart, std::nullopt, "goes on at the first message downstream, as without an offset"};
  }
  if (down_stored == first - 1) return {ConsumerState::kSynced, std::nullopt, ""};
  return {ConsumerState::kSynced, first - 1, ""};
}

}  // namespace replicator
