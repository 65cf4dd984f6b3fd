#include "replicator/link/iggy_verify.h"

#include <utility>

#include "base/digest.h"
#include "replicator/link/topic_watcher.h"

namespace replicator {

base::Task<base::Result<Polled>> IggyVerifySide::read(std::uint64_t from, std::uint32_t count) {
  iggy::PollMessages request;
  request.consumer = {iggy::ConsumerKind::kConsumer, std::string("iggy-replicate")};
  request.stream = topic_.stream;
  request.topic = topic_.topic;
  request.partition = key_.partition;
  request.strategy = {iggy::PollStrategy::Kind::kOffset, from};
  request.count = count;
  auto call = client_.call(std::move(request), iggy::Role::kPoll);
  auto reply = co_await std::move(call);
  CO_RETURN_IF_ERROR(reply);
  auto* polled = std::get_if<iggy::PolledMessages>(&*reply);
  if (polled == nullptr) {
    co_return base::Error(base::ErrorCode::kMalformed, "poll", topic_.to_string(), "the answer to a poll is none");
  }
  if (!mint_ids_for_.empty()) {
    for (base::Record& record : polled->batch.records) {
      if (record.id.is_zero()) record.id = base::mint_id(mint_ids_for_, key_, record.offset);
    }
  }
  co_return Polled{std::move(polled->batch), polled->current_offset};
}

base::Task<base::Result<PartitionView>> IggyVerifySide::view() {
  auto call = client_.call(iggy::GetTopic{topic_.stream, topic_.topic});
  auto reply = co_await std::move(call);
  CO_RETURN_IF_ERROR(reply);
  if (const auto* details = std::get_if<iggy::TopicDetails>(&*reply)) {
    for (const iggy::Partition& partition : details->partitions) {
      if (partition.id == key_.partition) co_return view_from(details->topic, partition);
    }
  }
  co_return base::Error(base::ErrorCode::kNotFound, "get_topic", topic_.to_string(), "the partition is not there");
}

}  // namespace replicator
