#include "integration/sandbox/stranger.h"

#include <algorithm>
#include <random>
#include <string>

#include "base/check.h"
#include "base/digest.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/vsr.h"

namespace sandbox {
namespace {

constexpr std::uint64_t kPerSend = 1000;

// One vsr batch of these records, in a buffer of its own.
base::Bytes vsr_batch(const std::vector<base::Record>& records) {
  base::Bytes out(iggy::vsr::kBatchHeaderSize);
  base::ByteWriter writer(out);
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    const std::size_t start = out.size();
    writer.u64(0);
    writer.id(records[i].id);
    writer.u32(i);
    writer.u32(static_cast<std::uint32_t>(records[i].origin_timestamp - records.front().origin_timestamp));
    writer.u32(static_cast<std::uint32_t>(records[i].headers().size()));
    writer.u32(records[i].payload_length);
    writer.u64(0);
    writer.bytes(records[i].body);
    base::store(out.data() + start, base::xxh3_64(base::ByteView(out).subspan(start + 8)));
  }
  iggy::vsr::BatchHeader header{.origin_timestamp = records.front().origin_timestamp,
                                .batch_length = out.size(),
                                .message_count = static_cast<std::uint32_t>(records.size())};
  header.batch_checksum =
      iggy::vsr::batch_checksum(header, base::ByteView(out).subspan(iggy::vsr::kBatchHeaderSize)).value();
  iggy::vsr::write_batch_header(out.data(), header);
  return out;
}

base::Bytes legacy_area(const std::vector<base::Record>& records) {
  base::Bytes out;
  for (const base::Record& record : records) iggy::legacy::append_stored_message(out, record);
  return out;
}

}  // namespace

void append_records(Broker& broker, const base::TopicName& topic, std::uint32_t partition,
                    const std::vector<base::Record>& records) {
  Caller root;
  root.user = 0;
  const bool legacy = broker.profile().dialect == iggy::Dialect::kLegacy;
  const base::Bytes batch = legacy ? legacy_area(records) : vsr_batch(records);
  auto frame = std::make_shared<base::Buffer>(batch.size());
  std::ranges::copy(batch, frame->data());
  const iggy::SendMessages request{
      .stream = topic.stream,
      .topic = topic.topic,
      .partitioning = {.kind = iggy::Partitioning::Kind::kPartition, .partition = partition, .key = {}},
      .records = records,
      .batch = frame->view()};
  const auto sent = broker.send(root, request, frame, 0);
  base::check(sent.has_value() || sent.error() != status::kUnauthorized, "the root user may send");
}

void append_as_stranger(Broker& broker, const base::TopicName& topic, std::uint32_t partition, std::uint64_t count) {
  std::mt19937_64 random(std::random_device{}());
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t size = std::min(kPerSend, count - done);
    std::vector<std::string> payloads;
    for (std::uint64_t i = 0; i < size; ++i) payloads.push_back("stranger " + std::to_string(done + i));
    std::vector<base::Record> records;
    const std::uint64_t now = broker.now();
    for (const std::string& payload : payloads)
      records.push_back({.id = {random(), random()},
                         .origin_timestamp = now,
                         .payload_length = static_cast<std::uint32_t>(payload.size()),
                         .body = base::as_bytes(payload),
                         .raw = {},
                         .envelope = {}});
    append_records(broker, topic, partition, records);
    done += size;
  }
}

}  // namespace sandbox
