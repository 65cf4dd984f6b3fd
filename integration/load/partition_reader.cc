#include "integration/load/partition_reader.h"

#include <algorithm>

namespace load {

base::Result<base::RecordBatch> PartitionReader::next() {
  constexpr std::uint64_t kReplyBytes = 8 * 1024 * 1024;
  auto reply = client_.call(iggy::PollMessages{.consumer = {iggy::ConsumerKind::kConsumer, "iggy-load"},
                                               .stream = topic_.stream,
                                               .topic = topic_.topic,
                                               .partition = partition_,
                                               .strategy = {iggy::PollStrategy::Kind::kOffset, next_offset_},
                                               .count = count_});
  if (!reply) return reply.error();
  auto& polled = std::get<iggy::PolledMessages>(*reply);
  for (const base::Record& record : polled.batch.records) {
    if (record.offset < next_offset_)
      return base::Error(
          base::ErrorCode::kMalformed, "poll", topic_.to_string() + "/" + std::to_string(partition_),
          "offset " + std::to_string(record.offset) + " where " + std::to_string(next_offset_) + " or more was due");
    next_offset_ = record.offset + 1;
  }
  if (!polled.batch.records.empty()) {
    const std::uint64_t average = std::max<std::uint64_t>(1, polled.batch.size() / polled.batch.records.size());
    count_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kReplyBytes / average, 1, 10'000));
  }
  return std::move(polled.batch);
}

base::Result<std::uint32_t> partitions_of(BlockingClient& client, const base::TopicName& topic) {
  auto reply = client.call(iggy::GetTopic{.stream = topic.stream, .topic = topic.topic});
  if (!reply) return reply.error();
  const auto* details = std::get_if<iggy::TopicDetails>(&*reply);
  if (details == nullptr) return base::Error(base::ErrorCode::kNotFound, "get_topic", topic.to_string(), "not there");
  return details->topic.partitions_count;
}

}  // namespace load
