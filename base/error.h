// One error type for the whole program. `retry` says what the caller should do; the pipeline switches on it, not on
// `code`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace base {

enum class ErrorCode : std::uint8_t {
  kMalformed,         // bytes from a peer or a file do not parse
  kConnectFailed,     // resolve, connect or TLS handshake failed
  kConnectionLost,    // an established connection ended
  kTimeout,           // no answer within the time-out; the connection has been closed
  kNotIggy,           // the port answers, but not as an Iggy server that we speak to
  kUnsupported,       // the peer's dialect or version has no such command
  kCredentials,       // user, password or token refused
  kPermission,        // status 41
  kNotFound,          // stream, topic, partition or group is not there
  kAlreadyExists,     // on create: treat as success after looking
  kServerRefused,     // any other status; see wire_status()
  kNotAccepted,       // status 58: certainly not done, try again or elsewhere
  kUncertain,         // may or may not have been done (57, cut, time-out after a write, I/O status)
  kInvalidRecord,     // a message that the target can never take
  kInvalidArgument,   // bad configuration, flag, URL, glob or operator input
  kStateCorrupt,      // the state file is damaged
  kStateUnavailable,  // the state file can't be written now (full, read-only, busy)
  kStateLocked,       // another process has it
  kWrongLink,         // the state file or the marker belongs to another link
  kStaleGeneration,   // a commit of an older generation: nothing was changed
  kFenced,            // the marker downstream says that somebody else writes, or that the link is promoted
  kStopped,           // asked to stop; not a failure
  kInternal,          // a bug of ours that was caught at an edge
};

// Text of the code in snake_case, for logs, JSON and metric labels ("connection_lost").
std::string_view to_string(ErrorCode code);

enum class Retry : std::uint8_t {
  kSameCall,       // repeat the same call later (network blip, server busy)
  kFromWatermark,  // reconnect and recover the position first (outcome unknown)
  kNeedsOperator,  // only a person can resolve it
  kCancelled,      // we were asked to stop: no log, no counter
};

// The default class of a code; tested to cover every code.
Retry default_retry(ErrorCode code);

class Error {
 public:
  // `operation`: verb that failed ("poll"). `object`: what it was done to ("orders/events/3"). `message`: what
  // happened, one line. `hint`: what the reader can do, may be empty.
  Error(ErrorCode code, std::string operation, std::string object, std::string message, std::string hint = {})
      : code_(code),
        retry_(default_retry(code)),
        operation_(std::move(operation)),
        object_(std::move(object)),
        message_(std::move(message)),
        hint_(std::move(hint)) {}

  ErrorCode code() const { return code_; }
  Retry retry() const { return retry_; }
  const std::string& operation() const { return operation_; }
  const std::string& object() const { return object_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  // Iggy status when a server gave one, else 0.
  std::uint32_t wire_status() const { return wire_status_; }

  Error& with_retry(Retry retry) {
    retry_ = retry;
    return *this;
  }
  Error& with_status(std::uint32_t status) {
    wire_status_ = status;
    return *this;
  }
  Error& with_object(std::string object) {
    object_ = std::move(object);
    return *this;
  }
  Error& with_hint(std::string hint) {
    hint_ = std::move(hint);
    return *this;
  }

  bool is_cancelled() const { return retry_ == Retry::kCancelled; }

  // "poll orders/events/3: connection reset (hint)". One line, no secrets.
  std::string to_string() const;

 private:
  ErrorCode code_;
  Retry retry_;
  std::uint32_t wire_status_ = 0;
  std::string operation_;
  std::string object_;
  std::string message_;
  std::string hint_;
};

}  // namespace base
