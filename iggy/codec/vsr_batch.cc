// Batches: 256-byte header, then frames that tile it.
#define XXH_STATIC_LINKING_ONLY  // the size of the hash state
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include <xxhash.h>

#include "base/check.h"
#include "base/digest.h"
#include "iggy/codec/vsr.h"
#include "iggy/codec/vsr_layout.h"

namespace iggy::vsr {
namespace {

namespace field {
// Batch header.
constexpr std::size_t kPartition = 0, kBaseOffset = 8, kBaseTimestamp = 16, kOrigin = 24, kLength = 32, kChecksum = 40,
                      kCount = 48, kReserved = 52;
// Frame header.
constexpr std::size_t kFrameChecksum = 0, kId = 8, kOffsetDelta = 24, kTimestampDelta = 28, kHeadersLength = 32,
                      kPayloadLength = 36, kFrameReserved = 40;
}  // namespace field

base::Error malformed(std::string message) {
  return {base::ErrorCode::kMalformed, "decode batch", "", std::move(message)};
}

bool all_zero(base::ByteView bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// The frame at the front of `rest`; empty when it does not fit.
base::ByteView front_frame(base::ByteView rest) {
  if (rest.size() < kFrameHeaderSize) return {};
  const std::uint64_t size = std::uint64_t{kFrameHeaderSize} +
                             base::load<std::uint32_t>(rest.data() + field::kHeadersLength) +
                             base::load<std::uint32_t>(rest.data() + field::kPayloadLength);
  return size <= rest.size() ? rest.first(static_cast<std::size_t>(size)) : base::ByteView{};
}

// The batch checksum, fed with one frame checksum after the other.
class BatchHash {
 public:
  explicit BatchHash(const BatchHeader& header) {
    XXH3_64bits_reset(&state_);
    add(header.partition_id);
    add(header.base_offset);
    add(header.base_timestamp);
    add(header.origin_timestamp);
    add(header.batch_length);
    add(header.message_count);
  }
  template <class T>
  void add(T value) {
    XXH3_64bits_update(&state_, &value, sizeof(value));
  }
  std::uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace

base::Result<BatchHeader> read_batch_header(base::ByteView bytes) {
  base::check(bytes.size() >= kBatchHeaderSize, "a whole batch header is there");
  const std::byte* from = bytes.data();
  BatchHeader header;
  header.partition_id = base::load<std::uint64_t>(from + field::kPartition);
  header.base_offset = base::load<std::uint64_t>(from + field::kBaseOffset);
  header.base_timestamp = base::load<std::uint64_t>(from + field::kBaseTimestamp);
  header.origin_timestamp = base::load<std::uint64_t>(from + field::kOrigin);
  header.batch_length = base::load<std::uint64_t>(from + field::kLength);
  header.batch_checksum = base::load<std::uint64_t>(from + field::kChecksum);
  header.message_count = base::load<std::uint32_t>(from + field::kCount);
  if (header.batch_length < kBatchHeaderSize)
    return malformed("batch at offset " + std::to_string(header.base_offset) + " says a length of " +
                     std::to_string(header.batch_length));
  if (!all_zero(bytes.subspan(field::kReserved, kBatchHeaderSize - field::kReserved)))
    return malformed("batch at offset " + std::to_string(header.base_offset) + " uses reserved bytes of its header");
  return header;
}

void write_batch_header(std::byte* to, const BatchHeader& header) {
  std::fill_n(to, kBatchHeaderSize, std::byte{0});
  base::store(to + field::kPartition, header.partition_id);
  base::store(to + field::kBaseOffset, header.base_offset);
  base::store(to + field::kBaseTimestamp, header.base_timestamp);
  base::store(to + field::kOrigin, header.origin_timestamp);
  base::store(to + field::kLength, header.batch_length);
  base::store(to + field::kChecksum, header.batch_checksum);
  base::store(to + field::kCount, header.message_count);
}

base::Result<std::uint64_t> batch_checksum(const BatchHeader& header, base::ByteView frames) {
  BatchHash hash(header);
  for (base::ByteView rest = frames; !rest.empty();) {
    const base::ByteView frame = front_frame(rest);
    if (frame.empty()) return malformed("frames do not tile the batch");
    hash.add(base::load<std::uint64_t>(frame.data() + field::kFrameChecksum));
    rest = rest.subspan(frame.size());
  }
  return hash.value();
}

base::Status decode_batch(base::ByteView batch, std::vector<base::Record>& out, bool verify_checksums) {
  if (batch.size() < kBatchHeaderSize) return malformed("a batch of " + std::to_string(batch.size()) + " bytes");
  const auto read = read_batch_header(batch);
  if (!read) return read.error();
  const BatchHeader& header = *read;
  const auto named = [&](const std::string& what) {
    return malformed("batch at offset " + std::to_string(header.base_offset) + ": " + what);
  };
  if (header.batch_length != batch.size())
    return named("says " + std::to_string(header.batch_length) + " bytes, has " + std::to_string(batch.size()));
  if (header.message_count == 0) return named("has no messages");
  if (header.message_count > (batch.size() - kBatchHeaderSize) / kFrameHeaderSize)
    return named(std::to_string(header.message_count) + " messages cannot fit");

  const base::ByteView envelope = batch.first(kBatchHeaderSize);
  base::ByteView rest = batch.subspan(kBatchHeaderSize);
  BatchHash hash(header);
  for (std::uint32_t i = 0; i < header.message_count; ++i) {
    const base::ByteView frame = front_frame(rest);
    if (frame.empty()) return named("message " + std::to_string(i) + " runs over its end");
    const std::byte* from = frame.data();
    const auto delta = base::load<std::uint32_t>(from + field::kOffsetDelta);
    if (header.base_offset > std::numeric_limits<std::uint64_t>::max() - delta)
      return named("offset delta " + std::to_string(delta) + " overflows");
    const std::uint64_t offset = header.base_offset + delta;
    if (base::load<std::uint64_t>(from + field::kFrameReserved) != 0)
      return malformed("message at offset " + std::to_string(offset) + " uses reserved bytes of its header");
    if (verify_checksums) {
      const auto checksum = base::load<std::uint64_t>(from + field::kFrameChecksum);
      if (checksum != base::xxh3_64(frame.subspan(field::kId)))
        return malformed("message at offset " + std::to_string(offset) + " has a wrong checksum");
      hash.add(checksum);
    }
    out.push_back({
        .offset = offset,
        .id = {base::load<std::uint64_t>(from + field::kId), base::load<std::uint64_t>(from + field::kId + 8)},
        .timestamp = header.base_timestamp,
        .origin_timestamp = header.origin_timestamp + base::load<std::uint32_t>(from + field::kTimestampDelta),
        .payload_length = base::load<std::uint32_t>(from + field::kPayloadLength),
        .body = frame.subspan(kFrameHeaderSize),
        .raw = frame,
        .envelope = envelope,
    });
    rest = rest.subspan(frame.size());
  }
  if (!rest.empty()) return named(std::to_string(rest.size()) + " bytes behind its last message");
  if (verify_checksums && hash.value() != header.batch_checksum) return named("has a wrong batch checksum");
  return base::ok();
}

base::Bytes slice_batch(base::ByteView batch, std::uint32_t first, std::uint32_t count) {
  base::check(batch.size() >= kBatchHeaderSize && count > 0, "slice of at least one message of a batch");
  auto header = read_batch_header(batch);
  base::check(header.has_value(), "slice of a valid batch");
  base::ByteView rest = batch.subspan(kBatchHeaderSize);
  const auto skip = [&rest](std::uint32_t frames) {
    std::size_t bytes = 0;
    for (; frames > 0; --frames) {
      const base::ByteView frame = front_frame(rest.subspan(bytes));
      base::check(!frame.empty(), "slice inside its batch");
      bytes += frame.size();
    }
    return bytes;
  };
  rest = rest.subspan(skip(first));
  rest = rest.first(skip(count));

  header->batch_length = kBatchHeaderSize + rest.size();
  header->message_count = count;
  header->batch_checksum = batch_checksum(*header, rest).value();
  base::Bytes slice(kBatchHeaderSize + rest.size());
  write_batch_header(slice.data(), *header);
  std::ranges::copy(rest, slice.begin() + kBatchHeaderSize);
  return slice;
}

void append_records(const std::vector<base::Record>& records, std::uint32_t partition, base::Bytes& out) {
  for (std::size_t i = 0; i < records.size();) {
    const base::Record& first = records[i];
    const std::size_t start = out.size();
    out.resize(start + kBatchHeaderSize);
    BatchHeader header{.partition_id = partition,
                       .base_offset = first.offset,
                       .base_timestamp = first.timestamp,
                       .origin_timestamp = first.origin_timestamp};
    if (first.envelope.size() == kBatchHeaderSize) {
      const auto envelope = read_batch_header(first.envelope);
      base::check(envelope.has_value(), "stored batches are valid");
      header = *envelope;
      header.message_count = 0;
      for (; i < records.size() && records[i].envelope.data() == first.envelope.data(); ++i, ++header.message_count)
        out.insert(out.end(), records[i].raw.begin(), records[i].raw.end());
    } else {
      std::array<std::byte, kFrameHeaderSize> frame{};
      base::store(frame.data() + field::kId, first.id.low);
      base::store(frame.data() + field::kId + 8, first.id.high);
      base::store(frame.data() + field::kHeadersLength, static_cast<std::uint32_t>(first.headers().size()));
      base::store(frame.data() + field::kPayloadLength, first.payload_length);
      const std::size_t from = out.size();
      out.insert(out.end(), frame.begin(), frame.end());
      out.insert(out.end(), first.body.begin(), first.body.end());
      base::store(out.data() + from, base::xxh3_64(base::ByteView(out).subspan(from + field::kId)));
      header.message_count = 1;
      ++i;
    }
    header.batch_length = out.size() - start;
    const auto checksum = batch_checksum(header, base::ByteView(out).subspan(start + kBatchHeaderSize));
    base::check(checksum.has_value(), "records are whole frames");
    header.batch_checksum = *checksum;
    write_batch_header(out.data() + start, header);
  }
}

}  // namespace iggy::vsr
