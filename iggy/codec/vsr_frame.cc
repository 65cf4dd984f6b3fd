// Headers, evictions and result sections.
#include <string>
#include <utility>

#include "base/check.h"
#include "iggy/codec/status.h"
#include "iggy/codec/vsr.h"
#include "iggy/codec/vsr_layout.h"

namespace iggy::vsr {
namespace {

constexpr std::uint8_t kHighestCommand = 29;

enum Reason : std::uint8_t {
  kNoSession = 1,
  kSessionTooLow = 7,
  kSessionReleaseMismatch = 8,
  kInvalidCredentials = 9,
  kInvalidToken = 10,
  kUserInactive = 11,
  kSessionError = 12,
  kStaleClient = 13,
  kIncompatibleProtocol = 14,
  kMalformedLogin = 15,
};

base::Error malformed(std::string message) {
  return {base::ErrorCode::kMalformed, "read header", "", std::move(message)};
}

base::MessageId load_id(const std::byte* at) {
  return {base::load<std::uint64_t>(at), base::load<std::uint64_t>(at + 8)};
}

void store_id(std::byte* at, const base::MessageId& id) {
  base::store(at, id.low);
  base::store(at + 8, id.high);
}

// Zeros with size and command, ready for the second half.
base::Bytes frame_of(Command command, std::size_t body) {
  base::Bytes frame(kHeaderSize + body);
  base::store(frame.data() + at::kSize, static_cast<std::uint32_t>(frame.size()));
  frame[at::kCommand] = static_cast<std::byte>(command);
  return frame;
}

}  // namespace

std::uint32_t status_of_eviction(std::uint8_t reason) {
  switch (reason) {
    case kNoSession:
    case kSessionTooLow:
    case kSessionReleaseMismatch:
    case kUserInactive:
    case kSessionError:
      return 40;
    case kInvalidCredentials:
      return 42;
    case kInvalidToken:
      return 53;
    case kStaleClient:
      return 30;
    case kIncompatibleProtocol:
      return 14003;
    case kMalformedLogin:
      return 4;
    default:
      return 3;
  }
}

base::Error error_of_eviction(const Eviction& eviction, std::string operation) {
  const auto name = [&]() -> std::string {
    switch (eviction.reason) {
      case kNoSession:
        return "no session";
      case kSessionTooLow:
        return "a newer login of the same client id exists";
      case kSessionReleaseMismatch:
        return "session of another release";
      case kInvalidCredentials:
        return "wrong user name or password";
      case kInvalidToken:
        return "wrong access token";
      case kUserInactive:
        return "the user is inactive";
      case kSessionError:
        return "the client id belongs to another user";
      case kStaleClient:
        return "heartbeats missed";
      case kIncompatibleProtocol:
        return "the server takes protocol words " + std::to_string(eviction.protocol_min) + " to " +
               std::to_string(eviction.protocol_max) + ", not " + std::to_string(kProtocolWord);
      case kMalformedLogin:
        return "malformed login";
      default:
        return "eviction with reason " + std::to_string(eviction.reason);
    }
  }();
  const std::uint32_t status = status_of_eviction(eviction.reason);
  const base::ErrorCode code =
      eviction.reason == kUserInactive ? base::ErrorCode::kCredentials : error_of_status(status, "").code();
  base::Error error(code, std::move(operation), "", name);
  error.with_status(status);
  return error;
}

base::Result<RequestHeader> read_request_header(base::ByteView bytes) {
  base::check(bytes.size() >= kHeaderSize, "a whole header was read");
  const std::byte* from = bytes.data();
  RequestHeader header;
  header.size = base::load<std::uint32_t>(from + at::kSize);
  header.command = base::load<std::uint8_t>(from + at::kCommand);
  header.client = load_id(from + at::kRequestClient);
  header.request_checksum = load_id(from + at::kRequestChecksum);
  header.request = base::load<std::uint64_t>(from + at::kRequestNumber);
  header.operation = base::load<std::uint8_t>(from + at::kRequestOperation);
  header.session = base::load<std::uint64_t>(from + at::kRequestSession);
  header.code = base::load<std::uint32_t>(from + at::kRequestCode);
  if (header.size < kHeaderSize || header.size > kMaxFrame)
    return malformed("a request of " + std::to_string(header.size) + " bytes");
  if (header.command > kHighestCommand) return malformed("command byte " + std::to_string(header.command));
  return header;
}

base::Result<std::variant<ReplyHeader, Eviction>> read_reply_header(base::ByteView bytes) {
  base::check(bytes.size() >= kHeaderSize, "a whole header was read");
  const std::byte* from = bytes.data();
  const auto size = base::load<std::uint32_t>(from + at::kSize);
  const auto command = base::load<std::uint8_t>(from + at::kCommand);
  if (size < kHeaderSize) return malformed("a reply of " + std::to_string(size) + " bytes");
  if (command == std::to_underlying(Command::kEviction)) {
    if (size != kHeaderSize) return malformed("an eviction of " + std::to_string(size) + " bytes");
    return Eviction{.protocol_max = base::load<std::uint32_t>(from + at::kEvictionMax),
                    .protocol_min = base::load<std::uint32_t>(from + at::kEvictionMin),
                    .reason = base::load<std::uint8_t>(from + at::kEvictionReason)};
  }
  if (command != std::to_underlying(Command::kReply))
    return malformed("command byte " + std::to_string(command) + " where a reply was expected");
  return ReplyHeader{.size = size,
                     .client = load_id(from + at::kReplyClient),
                     .commit = base::load<std::uint64_t>(from + at::kReplyCommit),
                     .request = base::load<std::uint64_t>(from + at::kReplyRequest),
                     .operation = base::load<std::uint8_t>(from + at::kReplyOperation),
                     .status = base::load<std::uint32_t>(from + at::kReplyStatus)};
}

void write_request_header(std::byte* to, const RequestHeader& header) {
  std::fill_n(to, kHeaderSize, std::byte{0});
  base::store(to + at::kSize, header.size);
  base::store(to + at::kCommand, header.command);
  store_id(to + at::kRequestClient, header.client);
  store_id(to + at::kRequestChecksum, header.request_checksum);
  base::store(to + at::kRequestNumber, header.request);
  base::store(to + at::kRequestOperation, header.operation);
  base::store(to + at::kRequestSession, header.session);
  base::store(to + at::kRequestCode, header.code);
}

base::Bytes reply_frame(const RequestHeader& header, Operation operation, std::uint32_t status, std::uint64_t commit,
                        base::ByteView body) {
  base::Bytes frame = frame_of(Command::kReply, body.size());
  std::byte* to = frame.data();
  store_id(to + at::kReplyChecksum, header.request_checksum);
  store_id(to + at::kReplyClient, header.client);
  base::store(to + at::kReplyOp, commit);
  base::store(to + at::kReplyCommit, commit);
  base::store(to + at::kReplyRequest, header.request);
  base::store(to + at::kReplyOperation, std::to_underlying(operation));
  base::store(to + at::kReplyStatus, status);
  std::ranges::copy(body, to + kHeaderSize);
  return frame;
}

Operation reply_operation(Operation operation) {
  switch (operation) {
    case Operation::kCreateTopic:
      return Operation::kCreateTopicReply;
    case Operation::kCreatePartitions:
      return Operation::kCreatePartitionsReply;
    case Operation::kDeleteSegments:
      return Operation::kDeleteSegmentsReply;
    default:
      return operation;
  }
}

bool is_result_framed(Operation operation) {
  switch (operation) {
    case Operation::kRead:
    case Operation::kLogout:
    case Operation::kSendMessages:
      return false;
    default:
      return true;
  }
}

base::Bytes encode_status(const RequestHeader& header, std::uint32_t status) {
  return reply_frame(header, static_cast<Operation>(header.operation), status, 0, {});
}

base::Bytes encode_result(const RequestHeader& header, std::uint32_t code) {
  base::Bytes body;
  base::ByteWriter out(body);
  out.u32(1);
  out.u32(0);
  out.u32(code);
  return reply_frame(header, reply_operation(static_cast<Operation>(header.operation)), 0, 0, body);
}

base::Bytes encode_eviction(const base::MessageId& client, const Eviction& eviction) {
  base::Bytes frame = frame_of(Command::kEviction, 0);
  store_id(frame.data() + at::kEvictionClient, client);
  base::store(frame.data() + at::kEvictionMax, eviction.protocol_max);
  base::store(frame.data() + at::kEvictionMin, eviction.protocol_min);
  base::store(frame.data() + at::kEvictionReason, eviction.reason);
  return frame;
}

base::Bytes encode_refusal(const RequestHeader& header, const base::Error& error) {
  if (error.wire_status() == 0) return {};
  const bool login = header.operation == std::to_underlying(Operation::kRegister) ||
                     (header.operation == std::to_underlying(Operation::kRead) && is_old_login(header.code));
  if (login && error.wire_status() == status_of_eviction(kIncompatibleProtocol))
    return encode_eviction(header.client, {kProtocolWord, kProtocolWord, kIncompatibleProtocol});
  if (login) return encode_eviction(header.client, {0, 0, kMalformedLogin});
  return encode_status(header, error.wire_status());
}

}  // namespace iggy::vsr
