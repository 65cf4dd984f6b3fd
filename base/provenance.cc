#include "base/provenance.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace base {

namespace {

constexpr std::uint8_t kString = 2, kUint32 = 11, kUint64 = 12;  // kinds of user headers
constexpr std::array<std::string_view, 5> kKeys = {"iggy-replicate.cluster", "iggy-replicate.stream",
                                                   "iggy-replicate.topic", "iggy-replicate.partition",
                                                   "iggy-replicate.offset"};
constexpr std::array<std::uint8_t, 5> kKinds = {kString, kString, kString, kUint32, kUint64};
constexpr std::size_t kValueMax = 255;

void write_key(ByteWriter& writer, std::size_t index, std::size_t value_size) {
  writer.u8(kString);
  writer.text32(std::string(kKeys[index]));
  writer.u8(kKinds[index]);
  writer.u32(static_cast<std::uint32_t>(value_size));
}

Bytes key_of(std::size_t index, std::size_t value_size) {
  Bytes out;
  ByteWriter writer(out);
  write_key(writer, index, value_size);
  return out;
}

// The block and nothing else.
bool is_block(ByteView bytes) {
  ByteReader reader(bytes);
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    if (reader.u8() != kString || reader.text32() != kKeys[i] || reader.u8() != kKinds[i]) return false;
    const std::uint32_t size = reader.u32();
    if (size == 0 || size > kValueMax) return false;
    reader.skip(size);
  }
  return reader.ok() && reader.at_end();
}

}  // namespace

std::size_t provenance_size(ByteView headers) {
  static const Bytes last = key_of(4, sizeof(std::uint64_t));
  static const Bytes opening = [] {
    Bytes key = key_of(0, 0);
    key.resize(key.size() - sizeof(std::uint32_t));  // values differ in length
    return key;
  }();
  const std::size_t last_size = last.size() + sizeof(std::uint64_t);
  if (headers.size() < last_size || !std::ranges::equal(headers.subspan(headers.size() - last_size, last.size()), last))
    return 0;
  const auto first = std::find_end(headers.begin(), headers.end(), opening.begin(), opening.end());
  const auto size = static_cast<std::size_t>(headers.end() - first);
  return is_block(headers.last(size)) ? size : 0;
}

Provenance::Provenance(const std::string& cluster, const PartitionKey& origin) {
  if (cluster.empty()) return;
  ByteWriter writer(prefix_);
  const std::array<const std::string*, 3> names = {&cluster, &origin.topic.stream, &origin.topic.topic};
  for (std::size_t i = 0; i < names.size(); ++i) {
    write_key(writer, i, names[i]->size());
    for (const std::byte byte : as_bytes(*names[i])) prefix_.push_back(byte);
  }
  write_key(writer, 3, sizeof(origin.partition));
  writer.u32(origin.partition);
  write_key(writer, 4, sizeof(std::uint64_t));
}

std::span<const Record> Provenance::stamp(std::span<const Record> records) {
  const std::size_t block = prefix_.size() + sizeof(std::uint64_t);
  std::size_t total = 0;
  for (const Record& record : records) total += record.body.size() + block;
  bodies_.clear();
  bodies_.reserve(total);  // the views below stay where they are
  stamped_.assign(records.begin(), records.end());
  for (Record& record : stamped_) {
    if (provenance_size(record.headers()) > 0) continue;
    const std::size_t begin = bodies_.size();
    bodies_.insert(bodies_.end(), record.body.begin(), record.body.end());
    bodies_.insert(bodies_.end(), prefix_.begin(), prefix_.end());
    ByteWriter(bodies_).u64(record.offset);
    record.body = ByteView(bodies_).subspan(begin);
    record.raw = record.envelope = {};
  }
  return stamped_;
}

}  // namespace base
