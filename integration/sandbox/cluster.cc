#include "integration/sandbox/cluster.h"

#include <algorithm>
#include <utility>

namespace sandbox {
namespace {

template <class Each>
void for_all_partitions(const Broker& broker, Each each) {
  for (const auto& [stream_id, stream] : broker.streams()) {
    for (const auto& [topic_id, topic] : stream.topics) {
      for (const auto& partition : topic.partitions) each(*partition);
    }
  }
}

}  // namespace

void Cluster::lead(std::size_t node) {
  leader_ = node;
  for_all_partitions(broker_, [&](PartitionState& partition) {
    const std::uint64_t next = partition.log.next_offset();
    if (const std::uint64_t end = end_at(node, partition); end < next) broker_.lose_tail(partition, next - end);
  });
  old_ends_[node].reset();
}

void Cluster::lag(std::size_t node, bool on) {
  old_ends_[node].reset();
  if (!on) return;
  auto& ends = old_ends_[node].emplace();
  for_all_partitions(broker_, [&](PartitionState& partition) { ends[partition.uid] = partition.log.next_offset(); });
}

std::uint64_t Cluster::end_at(std::size_t node, const PartitionState& partition) const {
  const std::uint64_t next = partition.log.next_offset();
  if (!old_ends_[node]) return next;
  const auto found = old_ends_[node]->find(partition.uid);
  return found == old_ends_[node]->end() ? 0 : std::min(found->second, next);
}

Outcome<PollResult> Cluster::poll(std::size_t node, Caller& caller, iggy::PollMessages request) const {
  const auto partition = broker_.partition_of(request.stream, request.topic, request.partition.value_or(0));
  if (!old_ends_[node] || !partition) return broker_.poll(caller, request);
  const std::uint64_t end = end_at(node, **partition);
  if (request.strategy.kind == iggy::PollStrategy::Kind::kLast) {
    request.strategy = {iggy::PollStrategy::Kind::kOffset, end - std::min<std::uint64_t>(request.count, end)};
  }
  Outcome<PollResult> polled = broker_.poll(caller, request);
  if (!polled) return polled;
  polled->current_offset = end == 0 ? 0 : end - 1;
  polled->count = 0;
  std::vector<Chunk> all = std::exchange(polled->chunks, {});
  for (const Chunk& chunk : all) {
    if (chunk.begin >= end) break;
    const auto kept = static_cast<std::uint32_t>(std::min<std::uint64_t>(chunk.count, end - chunk.begin));
    polled->chunks.push_back(kept == chunk.count ? chunk : cut(broker_.profile().dialect, chunk, 0, kept));
    polled->count += kept;
  }
  return polled;
}

void Cluster::shorten(std::size_t node, const iggy::GetTopic& request, iggy::TopicDetails& details) const {
  for (iggy::Partition& shown : details.partitions) {
    const auto partition = broker_.partition_of(request.stream, request.topic, shown.id);
    if (!partition) continue;
    const std::uint64_t end = end_at(node, **partition);
    const std::uint64_t hidden = (*partition)->log.next_offset() - end;
    if (hidden == 0) continue;
    shown.current_offset = end == 0 ? 0 : end - 1;
    shown.messages_count -= std::min(shown.messages_count, hidden);
  }
}

}  // namespace sandbox
