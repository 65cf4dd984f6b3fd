#include "base/error.h"

namespace base {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMalformed:
      return "malformed";
    case ErrorCode::kConnectFailed:
      return "connect_failed";
    case ErrorCode::kConnectionLost:
      return "connection_lost";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kNotIggy:
      return "not_iggy";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kCredentials:
      return "credentials";
    case ErrorCode::kPermission:
      return "permission";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kAlreadyExists:
      return "already_exists";
    case ErrorCode::kServerRefused:
      return "server_refused";
    case ErrorCode::kNotAccepted:
      return "not_accepted";
    case ErrorCode::kUncertain:
      return "uncertain";
    case ErrorCode::kInvalidRecord:
      return "invalid_record";
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kStateCorrupt:
      return "state_corrupt";
    case ErrorCode::kStateUnavailable:
      return "state_unavailable";
    case ErrorCode::kStateLocked:
      return "state_locked";
    case ErrorCode::kWrongLink:
      return "wrong_link";
    case ErrorCode::kStaleGeneration:
      return "stale_generation";
    case ErrorCode::kFenced:
      return "fenced";
    case ErrorCode::kStopped:
      return "stopped";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Retry default_retry(ErrorCode code) {
  switch (code) {
    case ErrorCode::kConnectFailed:
    case ErrorCode::kNotAccepted:
    case ErrorCode::kStateUnavailable:
      return Retry::kSameCall;
    case ErrorCode::kConnectionLost:
    case ErrorCode::kTimeout:
    case ErrorCode::kUncertain:
    case ErrorCode::kStaleGeneration:
    case ErrorCode::kMalformed:
      return Retry::kFromWatermark;
    case ErrorCode::kStopped:
      return Retry::kCancelled;
    case ErrorCode::kNotIggy:
    case ErrorCode::kUnsupported:
    case ErrorCode::kCredentials:
    case ErrorCode::kPermission:
    case ErrorCode::kNotFound:
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kServerRefused:
    case ErrorCode::kInvalidRecord:
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kStateCorrupt:
    case ErrorCode::kStateLocked:
    case ErrorCode::kWrongLink:
    case ErrorCode::kFenced:
    case ErrorCode::kInternal:
      return Retry::kNeedsOperator;
  }
  return Retry::kNeedsOperator;
}

std::string Error::to_string() const {
  std::string text = operation_;
  if (!object_.empty()) text += " " + object_;
  text += ": " + message_;
  if (wire_status_ != 0) text += " (status " + std::to_string(wire_status_) + ")";
  if (!hint_.empty()) text += "; " + hint_;
  return text;
}

}  // namespace base
