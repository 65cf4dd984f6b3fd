#include "iggy/codec/legacy_message.h"

#include "base/digest.h"
#include "iggy/codec/primitives.h"

namespace iggy::legacy {

namespace {

constexpr std::uint32_t kStatusInvalidIdentifier = 6;
constexpr std::uint32_t kStatusInvalidMessagesCount = 4009;
constexpr std::uint32_t kStatusTooBigHeaders = 4017;
constexpr std::uint32_t kStatusTooBigPayload = 4022;
constexpr std::uint32_t kStatusNonZeroOffset = 4031;
constexpr std::uint32_t kStatusNonZeroTimestamp = 4032;
constexpr std::uint32_t kStatusMissingIndex = 4033;
constexpr std::uint32_t kStatusInvalidMessagesSize = 4036;
constexpr std::uint32_t kStatusInvalidOffset = 4100;
constexpr std::uint32_t kStatusIndexPosition = 10011;

base::Error refused(std::uint32_t status, std::string why) {
  return base::Error(base::ErrorCode::kMalformed, "decode", "send_messages", std::move(why)).with_status(status);
}
base::Error refused(std::uint32_t status, std::uint32_t message, std::string_view why) {
  return refused(status, "message " + std::to_string(message) + ": " + std::string(why));
}

// In the metadata every bad identifier is status 6, every bad partitioning 3.
base::Status read_metadata(base::ByteView metadata, SendMessages& send, std::uint32_t& count) {
  WireReader reader(metadata);
  send.stream = reader.ident();
  send.topic = reader.ident();
  if (!reader.ok()) return refused(kStatusInvalidIdentifier, "stream or topic is no identifier");
  send.partitioning = reader.partitioning();
  count = reader.u32();
  if (!reader.ok()) return refused(kStatusInvalidCommand, "partitioning or count does not parse");
  return base::ok();
}

}  // namespace

MessageHeader read_message_header(const std::byte* at) {
  base::ByteReader reader(base::ByteView(at, kMessageHeaderSize));
  MessageHeader header;
  header.checksum = reader.u64();
  header.id = reader.id();
  header.offset = reader.u64();
  header.timestamp = reader.u64();
  header.origin_timestamp = reader.u64();
  header.headers_length = reader.u32();
  header.payload_length = reader.u32();
  return header;
}

void write_message_header(std::byte* at, const MessageHeader& header) {
  base::store(at, header.checksum);
  base::store(at + 8, header.id.low);
  base::store(at + 16, header.id.high);
  base::store(at + 24, header.offset);
  base::store(at + 32, header.timestamp);
  base::store(at + 40, header.origin_timestamp);
  base::store(at + 48, header.headers_length);
  base::store(at + 52, header.payload_length);
  base::store(at + 56, std::uint64_t{0});
}

base::Record record_of(const MessageHeader& header, base::ByteView message) {
  base::Record record;
  record.offset = header.offset;
  record.id = header.id;
  record.timestamp = header.timestamp;
  record.origin_timestamp = header.origin_timestamp;
  record.payload_length = header.payload_length;
  record.body = message.subspan(kMessageHeaderSize);
  record.raw = message;
  return record;
}

MessageHeader header_to_send(const base::Record& record, std::uint64_t offset) {
  MessageHeader header;
  header.id = record.id;
  header.offset = offset;
  header.origin_timestamp = record.origin_timestamp;
  header.headers_length = static_cast<std::uint32_t>(record.body.size() - record.payload_length);
  header.payload_length = record.payload_length;
  return header;
}

void append_stored_message(base::Bytes& out, const base::Record& record) {
  MessageHeader header = header_to_send(record, record.offset);
  header.timestamp = record.timestamp;
  const std::size_t at = out.size();
  out.resize(at + kMessageHeaderSize);
  write_message_header(out.data() + at, header);
  out.insert(out.end(), record.body.begin(), record.body.end());
  base::store(out.data() + at, base::xxh3_64(base::ByteView(out).subspan(at + sizeof(header.checksum))));
}

base::Result<SendMessages> decode_send(base::ByteView payload) {
  SendMessages send;
  base::ByteReader reader(payload);
  const std::uint32_t metadata_length = reader.u32();
  const base::ByteView metadata = reader.bytes(metadata_length);
  if (!reader.ok()) return refused(kStatusInvalidCommand, "metadata is longer than the frame");
  std::uint32_t count = 0;
  RETURN_IF_ERROR(read_metadata(metadata, send, count));
  const base::ByteView index = reader.bytes(std::size_t{count} * kIndexEntrySize);
  if (!reader.ok()) return refused(kStatusInvalidCommand, "index is longer than the frame");
  if (count == 0) return refused(kStatusInvalidMessagesCount, "no messages");
  const base::ByteView area = reader.rest();
  send.batch = area;
  send.records.reserve(count);

  std::uint32_t start = 0;     // of this message; the last one ends with the area, whatever its index says
  std::uint32_t position = 0;  // as the previous index entry said
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::byte* entry = index.data() + std::size_t{i} * kIndexEntrySize;
    const auto says = base::load<std::uint32_t>(entry + 4);
    if (base::load<std::uint32_t>(entry) != 0) return refused(kStatusNonZeroOffset, i, "index offset is not 0");
    if (base::load<std::uint64_t>(entry + 8) != 0)
      return refused(kStatusNonZeroTimestamp, i, "index timestamp is not 0");
    const std::size_t end = i + 1 == count ? area.size() : says;
    if (start > end || end > area.size() || end - start < kMessageHeaderSize)
      return refused(kStatusMissingIndex, i, "the index does not span a message");
    const MessageHeader header = read_message_header(area.data() + start);
    if (header.size() > end - start) return refused(kStatusMissingIndex, i, "longer than its index says");
    if (header.payload_length > kMaxPayload) return refused(kStatusTooBigPayload, i, "payload too big");
    if (header.headers_length > kMaxHeaders) return refused(kStatusTooBigHeaders, i, "user headers too big");
    if (header.offset < offset) return refused(kStatusInvalidOffset, i, "offset decreases");
    if (says < position) return refused(kStatusIndexPosition, i, "index position decreases");
    send.records.push_back(record_of(header, area.subspan(start, header.size())));
    total += header.size();
    offset = header.offset;
    position = start = says;
  }
  if (total != area.size()) return refused(kStatusInvalidMessagesSize, "messages do not fill the area");
  return send;
}

}  // namespace iggy::legacy
