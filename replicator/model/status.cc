#include "replicator/model/status.h"

namespace replicator {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kResync:
      return "resync";
    case Phase::kCopying:
      return "copying";
    case Phase::kCaughtUp:
      return "caught_up";
    case Phase::kBehind:
      return "behind";
    case Phase::kRetrying:
      return "retrying";
    case Phase::kStuck:
      return "stuck";
    case Phase::kPaused:
      return "paused";
    case Phase::kFault:
      return "fault";
    case Phase::kStopped:
      return "stopped";
  }
  return "unknown";
}

}  // namespace replicator
