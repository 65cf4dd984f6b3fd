#include "iggy/codec/primitives.h"

#include <algorithm>

namespace iggy {

namespace {

constexpr std::size_t kMaxShort = 255;
constexpr std::uint8_t kNumber = 1;
constexpr std::uint8_t kName = 2;
constexpr std::uint8_t kStringKind = 2;

base::Bytes copy_of(base::ByteView view) { return {view.begin(), view.end()}; }

}  // namespace

void WireReader::refuse(std::uint32_t status) {
  if (!ok()) return;
  status_ = status;
  fail();
}

std::string WireReader::utf8(std::size_t length) {
  const base::ByteView view = bytes(length);
  if (!is_utf8(view)) refuse(kStatusInvalidCommand);
  return std::string(base::as_text(view));
}

std::string WireReader::name() {
  const std::uint8_t length = u8();
  if (ok() && length == 0) refuse(kStatusInvalidFormat);
  return utf8(length);
}

// The server reads the value before it looks at kind and length.
Ident WireReader::ident() {
  const std::uint8_t kind = u8();
  const std::uint8_t length = u8();
  const base::ByteView value = bytes(length);
  if (kind == kNumber) {
    if (length != sizeof(std::uint32_t)) refuse(kStatusInvalidFormat);
    return ok() ? base::load<std::uint32_t>(value.data()) : 0;
  }
  if (kind != kName || !is_utf8(value)) refuse(kStatusInvalidCommand);
  if (length == 0) refuse(kStatusInvalidFormat);
  return std::string(base::as_text(value));
}

Consumer WireReader::consumer() {
  Consumer value;
  const std::uint8_t kind = u8();
  if (kind != 1 && kind != 2) refuse(kStatusInvalidCommand);
  value.kind = kind == 2 ? ConsumerKind::kGroup : ConsumerKind::kConsumer;
  value.id = ident();
  return value;
}

PollStrategy WireReader::strategy() {
  PollStrategy value;
  const std::uint8_t kind = u8();
  if (kind < 1 || kind > 5) {
    refuse(kStatusInvalidCommand);
    return value;
  }
  value.kind = static_cast<PollStrategy::Kind>(kind);
  value.value = u64();
  return value;
}

Partitioning WireReader::partitioning() {
  Partitioning value;
  const std::uint8_t kind = u8();
  const std::uint8_t length = u8();
  switch (kind) {
    case 1:
      value.kind = Partitioning::Kind::kBalanced;
      if (length != 0) refuse(kStatusInvalidFormat);
      break;
    case 2:
      value.kind = Partitioning::Kind::kPartition;
      if (length != sizeof(std::uint32_t)) refuse(kStatusInvalidFormat);
      value.partition = u32();
      break;
    case 3:
      value.kind = Partitioning::Kind::kKey;
      if (length == 0) refuse(kStatusInvalidFormat);
      value.key = copy_of(bytes(length));
      break;
    default:
      refuse(kStatusInvalidCommand);
  }
  return value;
}

std::optional<std::uint32_t> WireReader::optional_partition() {
  const std::uint8_t flag = u8();
  const std::uint32_t partition = u32();
  if (flag != 1) return std::nullopt;
  return partition;
}

TlvItem WireReader::tlv_item() {
  TlvItem item;
  item.kind = u8();
  const std::uint32_t length = u32();
  if (item.kind == 0 || length == 0 || length > kMaxShort) refuse(kStatusInvalidCommand);
  item.data = bytes(length);
  return item;
}

std::vector<Option> WireReader::options(std::size_t length) {
  std::vector<Option> values;
  const base::ByteView block = bytes(length);
  if (block.size() > kMaxOptionBytes) refuse(kStatusInvalidCommand);
  WireReader reader(block);
  while (ok() && !reader.at_end()) {
    const TlvItem key = reader.tlv_item();
    const TlvItem value = reader.tlv_item();
    const auto has_key = [&](const Option& option) { return option.key == base::as_text(key.data); };
    if (!reader.ok() || key.kind != kStringKind || values.size() == kMaxOptions ||
        std::ranges::any_of(values, has_key)) {
      refuse(kStatusInvalidCommand);
      break;
    }
    values.push_back({std::string(base::as_text(key.data)), value.kind, copy_of(value.data)});
  }
  if (!reader.ok()) refuse(kStatusInvalidCommand);
  return values;
}

Permissions WireReader::permissions() {
  Permissions value;
  for (bool* flag :
       {&value.manage_servers, &value.read_servers, &value.manage_users, &value.read_users, &value.manage_streams,
        &value.read_streams, &value.manage_topics, &value.read_topics, &value.poll_messages, &value.send_messages})
    *flag = boolean();
  if (!boolean()) return value;
  do {
    Permissions::OfStream& stream = value.streams.emplace_back();
    stream.id = u32();
    for (bool* flag : {&stream.manage_stream, &stream.read_stream, &stream.manage_topics, &stream.read_topics,
                       &stream.poll_messages, &stream.send_messages})
      *flag = boolean();
    if (!boolean()) continue;
    do {
      Permissions::OfTopic& topic = stream.topics.emplace_back();
      topic.id = u32();
      for (bool* flag : {&topic.manage_topic, &topic.read_topic, &topic.poll_messages, &topic.send_messages})
        *flag = boolean();
    } while (boolean());
  } while (boolean());
  return value;
}

std::optional<Permissions> WireReader::optional_permissions() {
  if (!boolean()) return std::nullopt;
  const std::uint32_t length = u32();
  WireReader block(bytes(length));
  Permissions value = block.permissions();
  if (!block.ok()) refuse(kStatusInvalidCommand);
  return value;
}

void WireWriter::refuse(std::string_view what, std::string_view why) {
  if (!status_) return;
  status_ = base::Error(base::ErrorCode::kInvalidArgument, "encode", std::string(what), std::string(why));
}

void WireWriter::name(std::string_view value, std::string_view what) {
  if (value.empty()) refuse(what, "a name must have at least one byte");
  short_text(value, what);
}

void WireWriter::short_text(std::string_view value, std::string_view what) {
  if (value.size() > kMaxShort) {
    refuse(what, "has " + std::to_string(value.size()) + " bytes, at most 255 can be sent");
    return;
  }
  text8(value);
}

void WireWriter::ident(const Ident& value, std::string_view what) {
  if (const auto* number = std::get_if<std::uint32_t>(&value)) {
    u8(kNumber);
    u8(sizeof(std::uint32_t));
    u32(*number);
    return;
  }
  u8(kName);
  name(std::get<std::string>(value), what);
}

void WireWriter::consumer(const Consumer& value) {
  u8(static_cast<std::uint8_t>(value.kind));
  ident(value.id, "consumer");
}

void WireWriter::strategy(const PollStrategy& value) {
  u8(static_cast<std::uint8_t>(value.kind));
  u64(value.value);
}

void WireWriter::partitioning(const Partitioning& value) {
  u8(static_cast<std::uint8_t>(value.kind));
  switch (value.kind) {
    case Partitioning::Kind::kBalanced:
      u8(0);
      break;
    case Partitioning::Kind::kPartition:
      u8(sizeof(std::uint32_t));
      u32(value.partition);
      break;
    case Partitioning::Kind::kKey:
      name(base::as_text(value.key), "partitioning key");
      break;
  }
}

void WireWriter::optional_partition(const std::optional<std::uint32_t>& value) {
  boolean(value.has_value());
  u32(value.value_or(0));
}

void WireWriter::send_metadata(const Ident& stream, const Ident& topic, const Partitioning& how, std::uint32_t count) {
  base::Bytes metadata;
  metadata.reserve(kMaxSendMetadata);
  WireWriter fields(metadata);
  fields.ident(stream, "stream");
  fields.ident(topic, "topic");
  fields.partitioning(how);
  fields.u32(count);
  if (status_ && !fields.status_) status_ = fields.status_;
  u32(static_cast<std::uint32_t>(metadata.size()));
  bytes(metadata);
}

void WireWriter::tlv_item(std::uint8_t kind, base::ByteView data) {
  if (kind == 0) refuse("option", "kind 0 does not exist");
  if (data.empty() || data.size() > kMaxShort) refuse("option", "keys and values have 1 to 255 bytes");
  u8(kind);
  u32(static_cast<std::uint32_t>(data.size()));
  bytes(data);
}

void WireWriter::options(const std::vector<Option>& values) {
  const std::size_t start = size();
  for (const Option& option : values) {
    tlv_item(kStringKind, base::as_bytes(option.key));
    tlv_item(option.kind, option.value);
  }
  if (values.size() > kMaxOptions || size() - start > kMaxOptionBytes)
    refuse("options", "at most 1024 options in 100,000 bytes can be sent");
}

void WireWriter::permissions(const Permissions& value) {
  for (bool flag :
       {value.manage_servers, value.read_servers, value.manage_users, value.read_users, value.manage_streams,
        value.read_streams, value.manage_topics, value.read_topics, value.poll_messages, value.send_messages})
    boolean(flag);
  boolean(!value.streams.empty());
  for (const Permissions::OfStream& stream : value.streams) {
    u32(stream.id);
    for (bool flag : {stream.manage_stream, stream.read_stream, stream.manage_topics, stream.read_topics,
                      stream.poll_messages, stream.send_messages})
      boolean(flag);
    boolean(!stream.topics.empty());
    for (const Permissions::OfTopic& topic : stream.topics) {
      u32(topic.id);
      for (bool flag : {topic.manage_topic, topic.read_topic, topic.poll_messages, topic.send_messages}) boolean(flag);
      boolean(&topic != &stream.topics.back());
    }
    boolean(&stream != &value.streams.back());
  }
}

void WireWriter::optional_permissions(const std::optional<Permissions>& value) {
  boolean(value.has_value());
  if (!value) return;
  base::Bytes block;
  WireWriter(block).permissions(*value);
  u32(static_cast<std::uint32_t>(block.size()));
  bytes(block);
}

void WireWriter::reply_permissions(const std::optional<Permissions>& value) {
  if (value) {
    optional_permissions(value);
  } else {
    u32(0);
  }
}

bool is_utf8(base::ByteView bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto lead = std::to_integer<std::uint8_t>(bytes[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || more >= bytes.size() - at) return false;
    std::uint32_t point = lead & (0x3FU >> more);
    for (std::size_t i = 1; i <= more; ++i) {
      const auto next = std::to_integer<std::uint8_t>(bytes[at + i]);
      if ((next & 0xC0U) != 0x80U) return false;
      point = (point << 6U) | (next & 0x3FU);
    }
    const std::uint32_t least = more == 1 ? 0x80U : more == 2 ? 0x800U : 0x10000U;
    if (point < least || point > 0x10FFFFU || (point >= 0xD800U && point < 0xE000U)) return false;
    at += more + 1;
  }
  return true;
}

bool is_tlv_block(base::ByteView block) {
  WireReader reader(block);
  while (!reader.at_end()) {
    reader.tlv_item();
    reader.tlv_item();
  }
  return reader.ok();
}

}  // namespace iggy
