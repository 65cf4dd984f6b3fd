#include "replicator/model/consumer_status.h"

#include <array>

namespace replicator {

namespace {
constexpr std::array<std::string_view, 8> kNames = {"synced",   "ahead",   "none", "deleted",
                                                    "at_start", "waiting", "busy", "failed"};
}

std::string_view to_string(ConsumerState state) { return kNames.at(static_cast<std::size_t>(state)); }

ConsumerState consumer_state_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == name) return static_cast<ConsumerState>(i);
  }
  return ConsumerState::kFailed;
}

}  // namespace replicator
