#include "integration/sandbox/corrupt.h"

#include <algorithm>

#include "base/check.h"
#include "iggy/codec/legacy_message.h"
#include "iggy/codec/vsr.h"
#include "integration/sandbox/stranger.h"

namespace sandbox {
namespace {

constexpr std::size_t kPerSend = 1000;
constexpr std::uint64_t kSpanMax = 60ULL * 60 * 1'000'000;  // µs that origin times of one vsr batch may span

void decode(iggy::Dialect dialect, base::ByteView bytes, std::vector<base::Record>& out) {
  if (dialect != iggy::Dialect::kLegacy) {
    base::check(iggy::vsr::decode_batch(bytes, out, false).has_value(), "a stored batch is whole");
    return;
  }
  while (!bytes.empty()) {
    const iggy::legacy::MessageHeader header = iggy::legacy::read_message_header(bytes.data());
    out.push_back(iggy::legacy::record_of(header, bytes.first(header.size())));
    bytes = bytes.subspan(header.size());
  }
}

}  // namespace

bool corrupt(Broker& broker, PartitionState& state, const base::TopicName& topic, std::uint32_t partition,
             std::uint64_t offset, Damage damage) {
  const std::vector<Chunk> chunks = state.log.read(offset, ~std::uint64_t{0});  // keeps what the records view into
  std::vector<base::Record> records;
  for (const Chunk& chunk : chunks) decode(broker.profile().dialect, chunk.bytes, records);
  const bool here = !records.empty() && records.front().offset == offset;
  if (!here && !(damage == Damage::kInsert && records.empty())) return false;
  if (damage == Damage::kSwap && records.size() < 2) return false;
  broker.lose_tail(state, records.size());
  static constexpr std::string_view kStranger = "inserted by hand";
  base::Bytes flipped;
  switch (damage) {
    case Damage::kFlipByte:
      flipped.assign(records.front().body.begin(), records.front().body.end());
      base::check(!flipped.empty(), "a message has a body");
      flipped[flipped.size() / 2] ^= std::byte{1};
      records.front().body = flipped;
      break;
    case Damage::kDrop:
      records.erase(records.begin());
      break;
    case Damage::kDuplicate:
      records.insert(records.begin(), base::Record(records.front()));
      break;
    case Damage::kSwap:
      std::swap(records[0], records[1]);
      break;
    case Damage::kInsert: {
      base::Record record;
      record.id = {offset + 1, ~std::uint64_t{0}};
      record.origin_timestamp = records.empty() ? broker.now() : records.front().origin_timestamp;
      record.payload_length = kStranger.size();
      record.body = base::as_bytes(kStranger);
      records.insert(records.begin(), record);
      break;
    }
  }
  for (std::size_t begin = 0; begin < records.size();) {
    std::size_t end = begin;
    while (end < records.size() && end - begin < kPerSend &&
           (end == begin || (records[end].origin_timestamp >= records[end - 1].origin_timestamp &&
                             records[end].origin_timestamp - records[begin].origin_timestamp < kSpanMax))) {
      ++end;
    }
    append_records(
        broker, topic, partition,
        {records.begin() + static_cast<std::ptrdiff_t>(begin), records.begin() + static_cast<std::ptrdiff_t>(end)});
    begin = end;
  }
  return true;
}

}  // namespace sandbox
