#include "iggy/codec/send.h"

#define XXH_STATIC_LINKING_ONLY  // the hash state on the stack
#include <algorithm>
#include <limits>

#include <xxhash.h>

#include "base/check.h"
#include "base/digest.h"
#include "iggy/codec/codes.h"
#include "iggy/codec/legacy_message.h"
#include "iggy/codec/primitives.h"
#include "iggy/codec/vsr.h"

namespace iggy {

namespace {

using base::ByteView;
using base::Record;

constexpr std::size_t kMetadataLeast = 4 + 3 + 3 + 6 + 4;     // names of one byte
constexpr std::size_t kMetadataMost = 4 + 257 + 257 + 6 + 4;  // names of 255 bytes
constexpr std::size_t kLegacyMaxBytes = 64UL * 1024 * 1024;   // our own bound: the server has none
constexpr std::size_t kMaxRecords = 1'000'000;                // what the official clients send at once
constexpr std::uint64_t kMaxDelta = std::numeric_limits<std::uint32_t>::max();  // µs

// Frame bytes that belong to no record, without the metadata.
std::size_t fixed_size(Dialect dialect) {
  return dialect == Dialect::kLegacy ? legacy::kHeaderSize : vsr::kHeaderSize + vsr::kBatchHeaderSize;
}

std::uint32_t headers_length(const Record& record) {
  return static_cast<std::uint32_t>(record.body.size() - record.payload_length);
}

base::Error invalid(const Record& record, const std::string& reason) {
  return base::Error(base::ErrorCode::kInvalidRecord, "send",
                     "offset " + std::to_string(record.offset) + " (id " + record.id.to_string() + ")", reason);
}

base::Status sendable(Dialect dialect, const SendLimits& limits, const Record& record) {
  const auto too_big = [&](std::string_view what, std::size_t size, std::size_t limit) {
    return invalid(record, std::string(what) + " has " + std::to_string(size) + " bytes; " +
                               std::string(to_string(dialect)) + " takes at most " + std::to_string(limit));
  };
  if (record.payload_length > limits.max_payload) return too_big("payload", record.payload_length, limits.max_payload);
  if (record.body.size() - record.payload_length > limits.max_headers)
    return too_big("user header block", record.body.size() - record.payload_length, limits.max_headers);
  const std::size_t frame = fixed_size(dialect) + kMetadataLeast + wire_size(dialect, record);
  if (frame > limits.max_bytes) return too_big("frame", frame, limits.max_bytes);
  return base::ok();
}

// Collects a frame: bytes of our own go to the scratch block, others are gathered from where they are. The scratch
// block never moves, because its final size is bounded in advance.
class FrameBuilder {
 public:
  FrameBuilder(std::size_t scratch_bound, std::size_t pieces_bound) : bound_(scratch_bound) {
    send_.scratch.reserve(scratch_bound);
    send_.pieces.reserve(pieces_bound);
  }

  base::Bytes& scratch() { return send_.scratch; }
  // Position of `count` zero bytes.
  std::byte* extend(std::size_t count) {
    const std::size_t at = send_.scratch.size();
    send_.scratch.resize(at + count);
    return send_.scratch.data() + at;
  }
  void copy(ByteView bytes) { send_.scratch.insert(send_.scratch.end(), bytes.begin(), bytes.end()); }
  // Small ones are cheaper copied.
  void append(ByteView bytes) {
    if (bytes.size() < kCopyBelow) {
      copy(bytes);
      return;
    }
    close_scratch();
    add(bytes);
  }
  OutgoingSend finish() {
    close_scratch();
    base::check(send_.scratch.size() <= bound_, "the scratch block was moved while pieces viewed into it");
    return std::move(send_);
  }

 private:
  void close_scratch() {
    if (send_.scratch.size() > closed_) add(ByteView(send_.scratch).subspan(closed_));
    closed_ = send_.scratch.size();
  }
  void add(ByteView piece) {
    send_.pieces.push_back(piece);
    send_.bytes += piece.size();
  }

  OutgoingSend send_;
  std::size_t bound_;
  std::size_t closed_ = 0;  // scratch bytes that are in a piece already
};

// true when `record` still has the stored form that `header` bytes precede, and its body is in it.
bool has_stored_form(const Record& record, std::size_t header) {
  return record.raw.size() == header + record.body.size() && record.body.data() == record.raw.data() + header;
}

class LegacyMessages {
 public:
  static constexpr std::size_t kHeader = legacy::kMessageHeaderSize;

  // The stored bytes can go out again: the server sets checksum, offset and timestamp anew. It only refuses an offset
  // below that of the message before.
  bool forwards(const Record& record) {
    if (!has_stored_form(record, kHeader)) return false;
    const legacy::MessageHeader header = legacy::read_message_header(record.raw.data());
    const bool same = header.id == record.id && header.origin_timestamp == record.origin_timestamp &&
                      header.payload_length == record.payload_length &&
                      header.headers_length == headers_length(record) && header.offset >= offset_;
    if (same) offset_ = header.offset;
    return same;
  }
  void write_header(std::byte* at, const Record& record) {
    legacy::write_message_header(at, legacy::header_to_send(record, offset_));
  }
  void seal(std::byte* /*header*/, const Record& /*record*/, bool /*body_follows*/) {}

 private:
  std::uint64_t offset_ = 0;  // of the message before
};

class VsrFrames {
 public:
  static constexpr std::size_t kHeader = vsr::kFrameHeaderSize;

  VsrFrames(std::span<const Record> records, std::size_t batch_length) : origin_(origin_of(records)) {
    std::byte head[44] = {};  // partition, base offset and base timestamp stay 0: the server sets them
    base::store(head + 24, origin_);
    base::store(head + 32, std::uint64_t{batch_length});
    base::store(head + 40, static_cast<std::uint32_t>(records.size()));
    XXH3_64bits_reset(&batch_);
    XXH3_64bits_update(&batch_, head, sizeof(head));
  }

  // Only a frame whose deltas stay what they are keeps its checksum.
  bool forwards(const Record& record) {
    if (!has_stored_form(record, kHeader)) return false;
    const std::byte* raw = record.raw.data();
    const bool same =
        base::load<std::uint64_t>(raw + 8) == record.id.low && base::load<std::uint64_t>(raw + 16) == record.id.high &&
        base::load<std::uint32_t>(raw + 24) == delta_ &&
        base::load<std::uint32_t>(raw + 28) == record.origin_timestamp - origin_ &&
        base::load<std::uint32_t>(raw + 32) == headers_length(record) &&
        base::load<std::uint32_t>(raw + 36) == record.payload_length && base::load<std::uint64_t>(raw + 40) == 0;
    if (same) count(base::load<std::uint64_t>(raw));
    return same;
  }
  void write_header(std::byte* at, const Record& record) {
    base::store(at + 8, record.id.low);
    base::store(at + 16, record.id.high);
    base::store(at + 24, delta_);
    base::store(at + 28, static_cast<std::uint32_t>(record.origin_timestamp - origin_));
    base::store(at + 32, headers_length(record));
    base::store(at + 36, record.payload_length);
  }
  // The checksum covers everything after itself, wherever the body is.
  void seal(std::byte* header, const Record& record, bool body_follows) {
    std::uint64_t checksum = 0;
    if (body_follows) {
      checksum = base::xxh3_64(ByteView(header + 8, kHeader - 8 + record.body.size()));
    } else {
      XXH3_64bits_reset(&frame_);
      XXH3_64bits_update(&frame_, header + 8, kHeader - 8);
      XXH3_64bits_update(&frame_, record.body.data(), record.body.size());
      checksum = XXH3_64bits_digest(&frame_);
    }
    base::store(header, checksum);
    count(checksum);
  }

  std::uint64_t origin() const { return origin_; }
  std::uint64_t batch_checksum() const { return XXH3_64bits_digest(&batch_); }

 private:
  // Of the stored batch when all come from the same one, so that their frames keep their deltas; else the smallest.
  static std::uint64_t origin_of(std::span<const Record> records) {
    const auto by_origin = [](const Record& a, const Record& b) { return a.origin_timestamp < b.origin_timestamp; };
    const auto [least, most] = std::ranges::minmax(records, by_origin);
    const ByteView envelope = records.front().envelope;
    const auto from_it = [&](const Record& record) { return record.envelope.data() == envelope.data(); };
    if (envelope.size() == vsr::kBatchHeaderSize && std::ranges::all_of(records, from_it)) {
      const auto stored = base::load<std::uint64_t>(envelope.data() + 24);
      if (stored <= least.origin_timestamp && most.origin_timestamp - stored <= kMaxDelta) return stored;
    }
    return least.origin_timestamp;
  }
  void count(std::uint64_t checksum) {
    XXH3_64bits_update(&batch_, &checksum, sizeof(checksum));
    ++delta_;
  }

  std::uint64_t origin_;
  std::uint32_t delta_ = 0;  // of the next frame
  XXH3_state_t batch_;
  XXH3_state_t frame_;
};

// All records, in order. Stored forms that follow each other in memory are one piece.
template <class Format>
void write_records(FrameBuilder& frame, Format& format, std::span<const Record> records) {
  ByteView run;
  const auto flush = [&] {
    frame.append(run);
    run = {};
  };
  for (const Record& record : records) {
    if (format.forwards(record)) {
      if (run.data() + run.size() != record.raw.data()) flush();
      run = run.empty() ? record.raw : ByteView(run.data(), run.size() + record.raw.size());
      continue;
    }
    flush();
    std::byte* header = frame.extend(Format::kHeader);
    format.write_header(header, record);
    const bool body_follows = record.body.size() < kCopyBelow;
    if (body_follows) frame.copy(record.body);
    format.seal(header, record, body_follows);
    if (!body_follows) frame.append(record.body);
  }
  flush();
}

// What the scratch block can grow to, beside the fixed parts.
std::size_t scratch_of(std::span<const Record> records, std::size_t header) {
  std::size_t total = 0;
  for (const Record& record : records) total += header + (record.body.size() < kCopyBelow ? record.body.size() : 0);
  return total;
}

base::Status write_metadata(FrameBuilder& frame, const base::TopicName& topic, std::uint32_t partition,
                            std::size_t count) {
  WireWriter out(frame.scratch());
  out.send_metadata(topic.stream, topic.topic, {Partitioning::Kind::kPartition, partition, {}},
                    static_cast<std::uint32_t>(count));
  return out.status();
}

base::Result<OutgoingSend> encode_legacy(const base::TopicName& topic, std::uint32_t partition,
                                         std::span<const Record> records) {
  if (partition >= legacy::kPartitionLimit)
    return base::Error(base::ErrorCode::kInvalidArgument, "encode", topic.to_string(),
                       "partition " + std::to_string(partition) + " would alias a smaller one in the server");
  const std::size_t index_size = records.size() * legacy::kIndexEntrySize;
  FrameBuilder frame(legacy::kHeaderSize + kMetadataMost + index_size + scratch_of(records, LegacyMessages::kHeader),
                     2 * records.size() + 1);
  std::byte* head = frame.extend(legacy::kHeaderSize);
  RETURN_IF_ERROR(write_metadata(frame, topic, partition, records.size()));
  std::byte* index = frame.extend(index_size);
  std::uint32_t end = 0;
  for (const Record& record : records) {
    end += static_cast<std::uint32_t>(legacy::kMessageHeaderSize + record.body.size());
    base::store(index + 4, end);
    index += legacy::kIndexEntrySize;
  }
  LegacyMessages format;
  write_records(frame, format, records);
  OutgoingSend send = frame.finish();
  base::store(head, static_cast<std::uint32_t>(send.bytes - sizeof(std::uint32_t)));
  base::store(head + 4, code::kSendMessages);
  return send;
}

base::Result<OutgoingSend> encode_vsr(const base::TopicName& topic, std::uint32_t partition,
                                      std::span<const Record> records) {
  std::size_t batch_length = vsr::kBatchHeaderSize;
  for (const Record& record : records) batch_length += vsr::kFrameHeaderSize + record.body.size();
  FrameBuilder frame(vsr::kHeaderSize + kMetadataMost + vsr::kBatchHeaderSize + scratch_of(records, VsrFrames::kHeader),
                     2 * records.size() + 1);
  std::byte* head = frame.extend(vsr::kHeaderSize);
  RETURN_IF_ERROR(write_metadata(frame, topic, partition, records.size()));
  std::byte* batch = frame.extend(vsr::kBatchHeaderSize);
  VsrFrames format(records, batch_length);
  write_records(frame, format, records);
  base::store(batch + 24, format.origin());
  base::store(batch + 32, std::uint64_t{batch_length});
  base::store(batch + 40, format.batch_checksum());
  base::store(batch + 48, static_cast<std::uint32_t>(records.size()));
  OutgoingSend send = frame.finish();
  base::store(head + 48, static_cast<std::uint32_t>(send.bytes));
  head[60] = static_cast<std::byte>(vsr::Command::kRequest);
  head[176] = static_cast<std::byte>(vsr::Operation::kSendMessages);
  return send;
}

}  // namespace

SendLimits send_limits(Dialect dialect) {
  SendLimits limits;
  limits.max_records = kMaxRecords;
  if (dialect == Dialect::kLegacy) {
    limits.max_bytes = kLegacyMaxBytes;
    limits.max_origin_span = ~0ULL;
    limits.max_payload = legacy::kMaxPayload;
    limits.max_headers = legacy::kMaxHeaders;
  } else {
    limits.max_bytes = vsr::kMaxFrame;
    limits.max_origin_span = kMaxDelta;
    limits.max_payload = vsr::kMaxFrame;
    limits.max_headers = vsr::kMaxFrame;
  }
  return limits;
}

std::size_t wire_size(Dialect dialect, const Record& record) {
  const std::size_t head =
      dialect == Dialect::kLegacy ? legacy::kIndexEntrySize + legacy::kMessageHeaderSize : vsr::kFrameHeaderSize;
  return head + record.body.size();
}

base::Result<std::size_t> fit(Dialect dialect, std::span<const Record> records, std::size_t target_bytes) {
  base::check(!records.empty(), "fit() needs at least one record");
  const SendLimits limits = send_limits(dialect);
  RETURN_IF_ERROR(sendable(dialect, limits, records.front()));
  const std::size_t target = std::min(target_bytes, limits.max_bytes);
  std::size_t bytes = fixed_size(dialect) + kMetadataMost + wire_size(dialect, records.front());
  std::uint64_t least = records.front().origin_timestamp;
  std::uint64_t most = least;
  std::size_t count = 1;
  while (count < std::min(records.size(), limits.max_records)) {
    const Record& next = records[count];
    bytes += wire_size(dialect, next);
    least = std::min(least, next.origin_timestamp);
    most = std::max(most, next.origin_timestamp);
    if (bytes > target || most - least > limits.max_origin_span || !sendable(dialect, limits, next)) break;
    ++count;
  }
  return count;
}

base::Result<OutgoingSend> encode_send(Dialect dialect, const base::TopicName& topic, std::uint32_t partition,
                                       std::span<const Record> records) {
  base::check(!records.empty(), "a send has at least one record");
  auto send =
      dialect == Dialect::kLegacy ? encode_legacy(topic, partition, records) : encode_vsr(topic, partition, records);
  // Only a single record at the very limit can get here: fit() does not know how long the names are.
  const std::size_t limit = send_limits(dialect).max_bytes;
  if (send && send->bytes > limit)
    return invalid(records.front(), "frame has " + std::to_string(send->bytes) + " bytes; " +
                                        std::string(to_string(dialect)) + " takes at most " + std::to_string(limit));
  return send;
}

}  // namespace iggy
