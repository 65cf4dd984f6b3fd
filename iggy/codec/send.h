// Encodes send_messages to one explicit partition, in either dialect, from Records of either dialect, without copying
// large payloads.
//
// Same dialect: a record goes out in its stored form (Record::raw) when nothing in it has to change; neighbours in
// memory are one piece. legacy: the server sets offset, timestamp and checksum anew. vsr: a frame keeps its checksum
// when its two deltas stay what they are, which is so for every frame of a whole stored batch and of the beginning of
// one; only the batch header is written anew, with the server's fields 0. Every other record gets a new header, deltas
// counted from 0 and a new checksum; bodies below kCopyBelow bytes are copied into the scratch block, larger ones are
// gathered from where they are.
#pragma once

#include <span>
#include <vector>

#include "base/record.h"
#include "base/result.h"
#include "iggy/dialect.h"
#include "iggy/model.h"

namespace iggy {

inline constexpr std::size_t kCopyBelow = 8UL * 1024;

// What one send can hold. `max_bytes` counts the whole frame.
struct SendLimits {
  std::size_t max_bytes = 0;
  std::size_t max_records = 0;
  std::uint64_t max_origin_span = 0;  // µs between smallest and largest origin timestamp of a batch; ~0 = no limit
  std::uint32_t max_payload = 0;      // of one message
  std::uint32_t max_headers = 0;      // of one message
};
// legacy: 64,000,000 payload, 100,000 headers (enforced by the server), 64 MiB frame (our own bound: it has none).
// vsr: only the 64 MiB frame limits sizes; span 2^32 - 1 µs. Both: 1,000,000 records.
SendLimits send_limits(Dialect dialect);

// Bytes on the wire that `record` adds to a send.
std::size_t wire_size(Dialect dialect, const base::Record& record);

// How many of `records`, from the front, fit into one send of at most `target_bytes` (never more than the hard limits;
// at least one when the first is sendable). kInvalidRecord, naming offset, id and the reason, when records[0] can't be
// sent at all.
base::Result<std::size_t> fit(Dialect dialect, std::span<const base::Record> records, std::size_t target_bytes);

// A frame as pieces to be written in order. Pieces view into `scratch` or into the records' frames, which must outlive
// the write. vsr: client, session and request number are filled in by the connection at `scratch` (vsr header at offset
// 0).
struct OutgoingSend {
  base::Bytes scratch;
  std::vector<base::ByteView> pieces;
  std::size_t bytes = 0;  // sum of the pieces
};

// REQUIRES: !records.empty() and fit() allows all of them. The bytes are those of a validated batch: contiguous deltas,
// right checksums. kInvalidArgument when a name or the partition can't be expressed; kInvalidRecord when a single
// record is within some bytes of the frame limit and the names are too long for it (fit() does not know them).
base::Result<OutgoingSend> encode_send(Dialect dialect, const base::TopicName& topic, std::uint32_t partition,
                                       std::span<const base::Record> records);

}  // namespace iggy
