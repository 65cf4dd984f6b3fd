// Dialect `legacy`: server 0.8.x. Codec without I/O, both directions.
//
//   request  | length u32 | code u32   | payload… |   length = 4 + payload
//   reply    | status u32 | length u32 | payload… |   length = payload; 0 on every error
//
// Little-endian. Answers come strictly in request order; there is no request number. Golden: iggy/codec/golden/legacy/.
// Source: apache/iggy tag server-0.8.0, core/binary_protocol/src/framing.rs and requests/, responses/.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "iggy/replies.h"
#include "iggy/requests.h"

namespace iggy::legacy {

inline constexpr std::size_t kHeaderSize = 8;

// --- frames
// ------------------------------------------------------------------------------------------------------------------

struct RequestHeader {
  std::uint32_t length = 0;  // 4 + payload; below 4 is malformed
  std::uint32_t code = 0;
};
struct ReplyHeader {
  std::uint32_t status = 0;
  std::uint32_t length = 0;
};
// REQUIRES: bytes.size() >= kHeaderSize.
RequestHeader read_request_header(base::ByteView bytes);
ReplyHeader read_reply_header(base::ByteView bytes);

// --- client
// ------------------------------------------------------------------------------------------------------------------

// A whole frame. kUnsupported when 0.8 has no such command, kInvalidArgument when a value can't be expressed (name of 0
// or more than 255 bytes, partition >= 2^20). SendMessages is copied as it is, with any partitioning, for tests and
// tools; the replicator uses codec/send.h.
base::Result<base::Bytes> encode_request(const Request& request);

// The payload of a successful reply to `request`. `frame` is the buffer that `payload` views into; polled records keep
// it alive. kMalformed when it does not parse to its end. REQUIRES: status was 0.
base::Result<Reply> decode_reply(const Request& request, base::ByteView payload, const base::BufferPtr& frame);

// --- server (test broker)
// ------------------------------------------------------------------------------------------------------

// The request of a frame with `code`. The error's wire_status is what a 0.8.0 server answers (3, 4, 4009, 4031 …).
// Trailing bytes are ignored, as the server does. SendMessages' records view into `payload`. What depends on more than
// the layout stays with the caller: lengths of credentials (43, 44, 50), counts (2015), client 0 (101), missing
// targets.
base::Result<Request> decode_request(std::uint32_t code, base::ByteView payload);

// Whole frames. Records of PolledMessages are written with their offset, timestamp, id and a fresh checksum.
base::Bytes encode_reply(const Reply& reply);
base::Bytes encode_error(std::uint32_t status);

// Message header and index layouts, used by codec/send.h and by the broker's storage.
inline constexpr std::size_t kMessageHeaderSize = 64;
inline constexpr std::size_t kIndexEntrySize = 16;
inline constexpr std::uint32_t kMaxPayload = 64'000'000;
inline constexpr std::uint32_t kMaxHeaders = 100'000;
inline constexpr std::uint32_t kPartitionLimit = 1U << 20U;  // the server masks partition ids: larger ones alias

// The 64-byte header and body of one stored message, appended to `out`; checksum = XXH3-64 over everything after
// itself.
void append_stored_message(base::Bytes& out, const base::Record& record);

}  // namespace iggy::legacy
