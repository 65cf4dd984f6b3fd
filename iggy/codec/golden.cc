#include "iggy/codec/golden.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/digest.h"

namespace iggy::golden {

namespace {

using nlohmann::json;

constexpr std::uint64_t kT0 = 1'700'000'000'000'000;

json load(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("golden file is missing: " + path.string());
  return json::parse(file);
}

std::uint8_t digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  throw std::runtime_error(std::string("no hex digit: ") + c);
}

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? std::string() : found->get<std::string>();
}

std::uint32_t small(const json& value) { return static_cast<std::uint32_t>(number(value)); }

base::Bytes payload_of(const json& message) {
  if (const auto fill = message.find("payload_fill"); fill != message.end()) {
    if (fill->at("rule") != "byte i = (31*i + 7) mod 251") throw std::runtime_error("unknown payload rule");
    base::Bytes payload(fill->at("length").get<std::size_t>());
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>((31 * i + 7) % 251);
    return payload;
  }
  return from_hex(message.at("payload_hex").get<std::string>());
}

void add(Messages& to, base::MessageId id, std::uint64_t origin, const base::Bytes& payload,
         const base::Bytes& headers) {
  base::Bytes body = payload;
  body.insert(body.end(), headers.begin(), headers.end());
  base::Record record;
  record.id = id;
  record.origin_timestamp = origin;
  record.payload_length = static_cast<std::uint32_t>(payload.size());
  record.body = to.bodies.emplace_back(std::move(body));
  to.records.push_back(record);
}

}  // namespace

bool Vector::matches(base::ByteView actual) const {
  if (actual.size() != length) return false;
  if (bytes) return std::ranges::equal(actual, *bytes);
  return std::ranges::equal(actual.first(head.size()), head) && std::ranges::equal(actual.last(tail.size()), tail) &&
         base::xxh3_64(actual) == xxh3;
}

std::vector<Vector> load_vectors(const std::string& path) {
  std::vector<Vector> vectors;
  for (const json& entry : load(path)) {
    Vector& vector = vectors.emplace_back();
    vector.name = entry.at("name");
    vector.direction = entry.at("direction");
    vector.layer = entry.at("layer");
    vector.inputs = entry.at("inputs");
    vector.notes = text(entry, "notes");
    vector.length = entry.at("length");
    if (const auto command = entry.find("command"); command != entry.end() && command->is_object()) {
      const auto value = [&](const char* key) {
        return command->contains(key) && !command->at(key).is_null() ? small(command->at(key)) : 0U;
      };
      vector.code = value("code");
      vector.operation = value("operation");
    }
    if (!entry.at("bytes_hex").is_null()) {
      vector.bytes = from_hex(entry.at("bytes_hex").get<std::string>());
      continue;
    }
    vector.head = from_hex(entry.at("head_hex").get<std::string>());
    vector.tail = from_hex(entry.at("tail_hex").get<std::string>());
    vector.xxh3 = std::stoull(entry.at("xxh3_64_of_all_bytes").get<std::string>(), nullptr, 16);
  }
  return vectors;
}

std::vector<Recording> load_recordings(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Recording> recordings;
  for (const auto& path : paths) {
    Recording& recording = recordings.emplace_back();
    recording.file = path.filename().string();
    const json content = load(path);
    for (const json& entry : content.at("frames")) {
      RecordedFrame& frame = recording.frames.emplace_back();
      const std::string direction = entry.at("dir");
      if (direction == "c2s") frame.kind = RecordedFrame::Kind::kToServer;
      if (direction == "s2c") frame.kind = RecordedFrame::Kind::kToClient;
      frame.bytes = from_hex(text(entry, "hex"));
      frame.cut = entry.contains("total_bytes") && !entry.at("total_bytes").is_null();
      frame.note = text(entry, "note");
    }
  }
  return recordings;
}

base::Bytes from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) throw std::runtime_error("odd number of hex digits");
  base::Bytes bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
  return bytes;
}

std::string to_hex(base::ByteView bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    hex.push_back(kDigits[std::to_integer<std::size_t>(byte) / 16]);
    hex.push_back(kDigits[std::to_integer<std::size_t>(byte) % 16]);
  }
  return hex;
}

base::BufferPtr buffer_of(base::ByteView bytes) {
  auto buffer = std::make_shared<base::Buffer>(bytes.size());
  std::ranges::copy(bytes, buffer->data());
  return buffer;
}

std::uint64_t number(const json& value) {
  return value.is_string() ? std::stoull(value.get<std::string>()) : value.get<std::uint64_t>();
}

base::MessageId wide_number(const std::string& decimal) {
  base::MessageId id;
  for (const char c : decimal) {  // id = id · 10 + digit, in 32-bit limbs
    std::uint64_t carry = digit(c);
    for (std::uint64_t* half : {&id.low, &id.high}) {
      const std::uint64_t lower = (*half & 0xFFFFFFFFU) * 10 + carry;
      const std::uint64_t upper = (*half >> 32U) * 10 + (lower >> 32U);
      *half = (upper << 32U) | (lower & 0xFFFFFFFFU);
      carry = upper >> 32U;
    }
  }
  return id;
}

Ident ident(const json& value) {
  if (value.at("kind") == "numeric") return small(value.at("value"));
  return value.at("value").get<std::string>();
}

Consumer consumer(const json& value) {
  const std::string kind = value.at("kind");
  return {kind == "consumer"         ? ConsumerKind::kConsumer
          : kind == "consumer_group" ? ConsumerKind::kGroup
                                     : ConsumerKind::kExternalGroup,
          ident(value.at("id"))};
}

PollStrategy strategy(const json& value) {
  PollStrategy result;
  const std::string kind = value.at("kind");
  if (kind == "timestamp") result.kind = PollStrategy::Kind::kTimestamp;
  if (kind == "first") result.kind = PollStrategy::Kind::kFirst;
  if (kind == "last") result.kind = PollStrategy::Kind::kLast;
  if (kind == "next") result.kind = PollStrategy::Kind::kNext;
  if (value.contains("value")) result.value = number(value.at("value"));
  return result;
}

Partitioning partitioning(const json& value) {
  const std::string kind = value.at("kind");
  if (kind == "balanced") return {Partitioning::Kind::kBalanced, 0, {}};
  if (kind == "partition_id") return {Partitioning::Kind::kPartition, small(value.at("value")), {}};
  return {Partitioning::Kind::kKey, 0, from_hex(value.at("value_hex").get<std::string>())};
}

std::optional<std::uint32_t> optional_partition(const json& value) {
  if (value.is_null()) return std::nullopt;
  return small(value);
}

Messages messages(const json& inputs) {
  Messages result;
  if (inputs.contains("messages_rule")) {  // the only rule there is
    result.bodies.reserve(1000);
    for (std::uint32_t i = 0; i < 1000; ++i) {
      base::Bytes payload(sizeof(i));
      base::store(payload.data(), i);
      add(result, {1000U + i, 0}, kT0 + i, payload, {});
    }
    return result;
  }
  const json& list = inputs.at("messages");
  result.bodies.reserve(list.size());
  for (const json& message : list)
    add(result, wide_number(message.at("id")), number(message.at("origin_timestamp")), payload_of(message),
        from_hex(text(message, "user_headers_hex")));
  return result;
}

}  // namespace iggy::golden
