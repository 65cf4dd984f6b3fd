// One message and a run of messages, as views into the frame they arrived in. Independent of the dialect: what a
// pipeline copies, what resync compares, what the codecs decode to and encode from.
//
// Ownership: a Record owns nothing. A RecordBatch keeps its frame alive; a Record copied out of it is valid as long as
// some copy of `frame` is held.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace base {

struct Record {
  std::uint64_t offset = 0;            // in the partition it was read from; ignored when sent
  MessageId id;                        // as stored; 0 is possible on vsr
  std::uint64_t timestamp = 0;         // server append time, µs since the epoch; ignored when sent
  std::uint64_t origin_timestamp = 0;  // producer's clock, µs since the epoch; copied
  std::uint32_t payload_length = 0;
  // Payload, then the raw user-header block: contiguous in this order in every dialect.
  ByteView body;
  // The stored form as it arrived: legacy 64-byte header + body, vsr 48-byte frame header + body. Empty when the record
  // was made here. An encoder of the same dialect forwards these bytes instead of rebuilding them.
  ByteView raw;
  // vsr: the 256-byte header of the batch record that it arrived in (shared by all records of that batch). Empty in
  // legacy.
  ByteView envelope;

  ByteView payload() const { return body.first(payload_length); }
  ByteView headers() const { return body.subspan(payload_length); }
  // Bytes that count towards budgets and batch limits: body plus the larger of the two header sizes.
  std::size_t size() const { return body.size() + 64; }
};

struct RecordBatch {
  BufferPtr frame;  // keeps every view in `records` alive
  std::vector<Record> records;

  bool empty() const { return records.empty(); }
  std::size_t size() const {
    std::size_t total = 0;
    for (const Record& record : records) total += record.size();
    return total;
  }
};

}  // namespace base
