// Dialect `vsr-0.11`: server 0.9.x. Codec without I/O, both directions.
//
//   | common header 128 | request or reply header 128 | body… |   size u32 at 48 = 256 + body, command u8 at 60
//   batch: | batch header 256 | frame | frame | … |              frame: | header 48 | payload | user headers |
//
// Little-endian. Replies are matched by request number, never by order. Golden: iggy/codec/golden/vsr/.
// Source: apache/iggy core/binary_protocol/src/{consensus,batch,requests,responses} at cc269ef (0.11.0-edge.4) and the
// released packages 0.11.0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/result.h"
#include "iggy/replies.h"
#include "iggy/requests.h"

namespace iggy::vsr {

inline constexpr std::size_t kHeaderSize = 256;
inline constexpr std::size_t kBatchHeaderSize = 256;
inline constexpr std::size_t kFrameHeaderSize = 48;
inline constexpr std::uint32_t kMaxFrame = 64U * 1024 * 1024;  // request, header included; replies have no such limit
inline constexpr std::uint32_t kProtocolWord = 0x2C00;         // 0.11.0

enum class Command : std::uint8_t { kRequest = 5, kReply = 8, kEviction = 13 };
enum class Operation : std::uint8_t {  // byte 176 of a request, 208 of a reply
  kRegister = 1,
  kRead = 2,
  kLogout = 3,
  kCreateTopicReply = 64,
  kCreatePartitionsReply = 65,
  kDeleteSegmentsReply = 68,
  kCreateStream = 128,
  kUpdateStream = 129,
  kDeleteStream = 130,
  kPurgeStream = 131,
  kCreateTopic = 132,
  kUpdateTopic = 133,
  kDeleteTopic = 134,
  kPurgeTopic = 135,
  kCreatePartitions = 136,
  kDeletePartitions = 137,
  kDeleteSegments = 138,
  kCreateGroup = 139,
  kDeleteGroup = 140,
  kCreateUser = 141,
  kUpdateUser = 142,
  kDeleteUser = 143,
  kChangePassword = 144,
  kUpdatePermissions = 145,
  kCreateToken = 146,
  kDeleteToken = 147,
  kJoinGroup = 148,
  kLeaveGroup = 149,
  kSendMessages = 160,
  kStoreConsumerOffset = 161,
  kDeleteConsumerOffset = 162,
};

// What a client puts into each request header besides the command itself.
struct RequestIdentity {
  base::MessageId client{};   // never 0
  std::uint64_t session = 0;  // from the login reply; 0 for login
  std::uint64_t request = 0;  // number; 0 for login; reads may use any
};

struct RequestHeader {
  std::uint32_t size = 0;
  std::uint8_t command = 0;
  base::MessageId client{};
  base::MessageId request_checksum{};  // 0 = not stamped
  std::uint64_t request = 0;
  std::uint8_t operation = 0;
  std::uint64_t session = 0;
  std::uint32_t code = 0;  // command code, operation kRead only
};
struct ReplyHeader {
  std::uint32_t size = 0;
  base::MessageId client{};
  std::uint64_t commit = 0;
  std::uint64_t request = 0;
  std::uint8_t operation = 0;
  std::uint32_t status = 0;
};
struct Eviction {
  std::uint32_t protocol_max = 0, protocol_min = 0;  // reason 14 only
  std::uint8_t reason = 0;
};
// SDK error code of an eviction reason (9 → 42, 14 → 14003 …).
std::uint32_t status_of_eviction(std::uint8_t reason);

// What an eviction means to the requests that were outstanding: the session is gone. 9, 10, 11 kCredentials; 14
// kUnsupported, with the server's window; 1, 7, 8, 12, 13 kConnectionLost (log in again, 12 with another client id);
// the others kServerRefused.
base::Error error_of_eviction(const Eviction& eviction, std::string operation);

// kMalformed when a server closes the connection: size outside 256..kMaxFrame, or a command byte above 29. Other
// commands than kRequest are ignored by servers, and refused with silence by decode_request(). REQUIRES: bytes.size()
// >= kHeaderSize.
base::Result<RequestHeader> read_request_header(base::ByteView bytes);
// kMalformed unless it is a reply or an eviction of a possible size. REQUIRES: bytes.size() >= kHeaderSize.
base::Result<std::variant<ReplyHeader, Eviction>> read_reply_header(base::ByteView bytes);

// --- client
// ------------------------------------------------------------------------------------------------------------------

// The operation and (for reads) command code of a request.
Operation operation_of(const Request& request);
std::uint32_t code_of(const Request& request);  // 0 unless it is a read
// A whole frame; metadata and session operations are stamped with the XXH3-64 of the body, as the official client does.
// SendMessages: use codec/send.h.
base::Result<base::Bytes> encode_request(const Request& request, const RequestIdentity& identity);
// The body alone, for golden vectors of layer `body`.
base::Result<base::Bytes> encode_body(const Request& request);

// A reply to `request`. The wire's three ways to refuse (status, result section, malformed) become: an Error with
// wire_status, or kMalformed. 57 → kUncertain, 58 → kNotAccepted. `frame` keeps polled records alive. Polled batches:
// every length is checked; checksums are verified when `verify_checksums` (a mismatch is kMalformed and names the
// offset).
base::Result<Reply> decode_reply(const Request& request, const ReplyHeader& header, base::ByteView body,
                                 const base::BufferPtr& frame, bool verify_checksums);
// The payload after the result section, for golden vectors of layer `payload`.
base::Result<Reply> decode_payload(const Request& request, base::ByteView payload, const base::BufferPtr& frame,
                                   bool verify_checksums);

// --- server (test broker)
// ------------------------------------------------------------------------------------------------------

// The error's wire_status is what the server answers, or 0 for "no answer at all" (0.9.0-edge.5 on a malformed batch).
base::Result<Request> decode_request(const RequestHeader& header, base::ByteView body);
// A whole frame. PolledMessages: records that share an envelope are written as one batch, sliced as needed.
base::Bytes encode_reply(const Request& request, const RequestHeader& header, const Reply& reply, std::uint64_t commit);
// The payload alone, for golden vectors of layer `payload`.
base::Bytes encode_payload(const Reply& reply);
// Before-commit refusal: status in the header, empty body.
base::Bytes encode_status(const RequestHeader& header, std::uint32_t status);
// Committed rejection: result section {0, code}; what the server uses for metadata operations ("name taken").
base::Bytes encode_result(const RequestHeader& header, std::uint32_t code);
base::Bytes encode_eviction(const base::MessageId& client, const Eviction& eviction);
// The answer to a request that decode_request() refused: a status, for logins an eviction (14 or 15), or no bytes at
// all.
base::Bytes encode_refusal(const RequestHeader& header, const base::Error& error);
// true for operations whose reply body starts with a result section.
bool is_result_framed(Operation operation);

// --- batches
// -----------------------------------------------------------------------------------------------------------------

struct BatchHeader {
  std::uint64_t partition_id = 0, base_offset = 0, base_timestamp = 0, origin_timestamp = 0, batch_length = 0,
                batch_checksum = 0;
  std::uint32_t message_count = 0;
};
// REQUIRES: bytes.size() >= kBatchHeaderSize. kMalformed when a reserved byte is not zero or batch_length < 256.
base::Result<BatchHeader> read_batch_header(base::ByteView bytes);
void write_batch_header(std::byte* at, const BatchHeader& header);  // 256 bytes, reserved zeroed
// XXH3-64 over the six header fields and the 8 checksum bytes of each frame, in order. `frames` = everything after the
// header.
base::Result<std::uint64_t> batch_checksum(const BatchHeader& header, base::ByteView frames);
// Records of one stored batch (header + frames). Offsets are base_offset + delta. Appends to `out`.
base::Status decode_batch(base::ByteView batch, std::vector<base::Record>& out, bool verify_checksums);
// Part of a stored batch [first, first + count) as a poll returns it: sliced, length, count and batch checksum
// recomputed.
base::Bytes slice_batch(base::ByteView batch, std::uint32_t first, std::uint32_t count);

}  // namespace iggy::vsr
