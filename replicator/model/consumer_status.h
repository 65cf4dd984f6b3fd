// Where a consumer of the upstream goes on downstream: one row per consumer or group and partition.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "state/store.h"

namespace replicator {

enum class ConsumerState : std::uint8_t {
  kSynced,   // the downstream's stored offset is the translated one
  kAhead,    // the downstream's stored offset is further: left alone, never moved back
  kNone,     // nothing is stored upstream
  kDeleted,  // was stored upstream and is no longer; the downstream's is left alone
  kAtStart,  // the first message not yet processed is the downstream's first: nothing can be stored for that
  kWaiting,  // nothing of what it processed is known downstream yet, or only through an assumed range
  kBusy,     // somebody is in the group downstream
  kFailed,   // a server refused; `detail` says what
};
std::string_view to_string(ConsumerState state);                // snake_case
ConsumerState consumer_state_from_name(std::string_view name);  // kFailed for an unknown one

}  // namespace replicator
