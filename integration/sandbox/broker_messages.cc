// Polls, sends and stored offsets.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/digest.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/vsr.h"
#include "integration/sandbox/broker.h"
#include "integration/sandbox/contains.h"

namespace sandbox {
namespace {

constexpr std::uint32_t kResync = 0xFFFFFFFF;  // vsr: partition number of a group poll by a stranger

bool is_vsr(const Profile& profile) { return profile.dialect != iggy::Dialect::kLegacy; }

// UUIDv4 in UUID byte order, from 128 random bits.
base::MessageId uuid4(std::uint64_t a, std::uint64_t b) {
  std::array<std::byte, 16> bytes{};
  base::store(bytes.data(), a);
  base::store(bytes.data() + 8, b);
  bytes[6] = (bytes[6] & std::byte{0x0F}) | std::byte{0x40};
  bytes[8] = (bytes[8] & std::byte{0x3F}) | std::byte{0x80};
  return {base::load<std::uint64_t>(bytes.data()), base::load<std::uint64_t>(bytes.data() + 8)};
}

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

}  // namespace

std::string Broker::random_text(std::size_t length) {
  static constexpr std::string_view kLetters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
  std::string out;
  for (; length > 0; --length) out += kLetters[next_random(random_state_) % kLetters.size()];
  return out;
}

// --- polls

Outcome<std::uint32_t> Broker::member_partition(Caller& caller, TopicState& topic, std::uint32_t group_id,
                                                std::optional<std::uint32_t> wanted) {
  GroupState& group = topic.groups.at(group_id);
  const auto member = std::ranges::find(group.members, &caller, &GroupMember::caller);
  if (member == group.members.end()) return refuse(status::kNotMember);
  if (wanted) {
    if (!contains(member->partitions, *wanted)) return refuse(status::kNotResolvedConsumer);
    return *wanted;
  }
  if (member->partitions.empty()) return refuse(status::kNotResolvedConsumer);
  return member->partitions[member->turn++ % member->partitions.size()];
}

Outcome<PollResult> Broker::poll(Caller& caller, const iggy::PollMessages& request) {
  const Outcome<TopicState*> found = topic_of(request.stream, request.topic);
  if (!found) return refuse(found.error());
  TopicState& topic = **found;
  if (!may(caller, Access::kPoll, find_stream(request.stream)->id, topic.id)) return refuse(status::kUnauthorized);
  const Outcome<OffsetKey> key = offset_key(topic, request.consumer);
  if (!key)
    return is_vsr(profile()) ? Outcome<PollResult>(PollResult{.partition = kResync, .chunks = {}})
                             : refuse(key.error());

  std::uint32_t number = request.partition.value_or(0);
  if (request.consumer.kind == iggy::ConsumerKind::kGroup) {
    if (is_vsr(profile()) && !request.partition) return PollResult{};
    const Outcome<std::uint32_t> mine = member_partition(caller, topic, key->second, request.partition);
    if (!mine && is_vsr(profile())) return PollResult{.partition = kResync, .chunks = {}};
    if (!mine && mine.error() == status::kNotResolvedConsumer) return PollResult{};
    if (!mine) return refuse(mine.error());
    number = *mine;
  }
  if (number >= topic.partitions.size()) return refuse(status::kPartitionNotFound);
  PartitionState& partition = *topic.partitions[number];
  PollResult out{.partition = number, .current_offset = partition.log.current_offset(), .chunks = {}};
  if (request.count == 0) return out;

  std::uint64_t from = 0;
  switch (request.strategy.kind) {
    case iggy::PollStrategy::Kind::kOffset:
      from = request.strategy.value;
      break;
    case iggy::PollStrategy::Kind::kTimestamp:
      from = partition.log.offset_at(request.strategy.value);
      break;
    case iggy::PollStrategy::Kind::kFirst:
      break;
    case iggy::PollStrategy::Kind::kLast:
      from = partition.log.next_offset() - std::min<std::uint64_t>(request.count, partition.log.next_offset());
      break;
    case iggy::PollStrategy::Kind::kNext: {
      const auto stored = partition.offsets.find(*key);
      from = stored == partition.offsets.end() ? 0 : stored->second + 1;
      break;
    }
  }
  out.chunks = partition.log.read(from, request.count);
  for (const Chunk& chunk : out.chunks) out.count += chunk.count;
  if (request.auto_commit && out.count > 0) store_offset(partition, *key, out.chunks.back().end() - 1);
  return out;
}

// --- sends

Outcome<std::uint32_t> Broker::choose_partition(TopicState& topic, const iggy::Partitioning& partitioning) {
  const auto count = static_cast<std::uint32_t>(topic.partitions.size());
  switch (partitioning.kind) {
    case iggy::Partitioning::Kind::kPartition:
      if (partitioning.partition >= count) return refuse(status::kPartitionNotFound);
      return partitioning.partition;
    case iggy::Partitioning::Kind::kBalanced:
      if (count == 0) return refuse(status::kTopicNotFound);
      return topic.balanced++ % count;
    case iggy::Partitioning::Kind::kKey:
      if (count == 0) return refuse(status::kTopicNotFound);
      return base::xxh32(partitioning.key) % count;
  }
  return refuse(status::kInvalidCommand);
}

Chunk Broker::stamp(PartitionState& partition, std::uint32_t id, const iggy::SendMessages& request,
                    std::shared_ptr<base::Buffer> frame) {
  const std::uint64_t begin = partition.log.next_offset();
  const std::uint64_t time = std::max(now(), partition.log.last_timestamp());
  bool odd_deltas = false;
  std::byte* const area = frame->data() + (request.batch.data() - frame->data());
  if (is_vsr(profile())) {
    auto header = iggy::vsr::read_batch_header(request.batch);
    base::check(header.has_value(), "decoded batches are valid");
    for (std::size_t i = 0; i < request.records.size(); ++i)
      odd_deltas = odd_deltas || request.records[i].offset != header->base_offset + i;
    header->partition_id = id;
    header->base_offset = begin;
    header->base_timestamp = time;
    header->batch_checksum =
        iggy::vsr::batch_checksum(*header, request.batch.subspan(iggy::vsr::kBatchHeaderSize)).value();
    iggy::vsr::write_batch_header(area, *header);
  } else {
    std::uint64_t offset = begin;
    std::byte* at = area;
    for (const base::Record& record : request.records) {
      const std::size_t size = iggy::legacy::kMessageHeaderSize + record.body.size();
      if (record.id.is_zero()) {
        const base::MessageId fresh = uuid4(next_random(random_state_), next_random(random_state_));
        base::store(at + 8, fresh.low);
        base::store(at + 16, fresh.high);
      }
      base::store(at + 24, offset++);
      base::store(at + 32, time);
      base::store(at, base::xxh3_64({at + 8, size - 8}));
      at += size;
    }
  }
  return {.buffer = std::move(frame),
          .bytes = request.batch,
          .begin = begin,
          .count = static_cast<std::uint32_t>(request.records.size()),
          .timestamp = time,
          .odd_deltas = odd_deltas};
}

Outcome<SendResult> Broker::send(Caller& caller, const iggy::SendMessages& request, std::shared_ptr<base::Buffer> frame,
                                 std::uint64_t number) {
  const Outcome<TopicState*> found = topic_of(request.stream, request.topic);
  if (!found) return refuse(found.error());
  TopicState& topic = **found;
  const std::uint32_t stream = find_stream(request.stream)->id;
  if (!may(caller, Access::kSend, stream, topic.id)) return refuse(status::kUnauthorized);
  const Outcome<std::uint32_t> id = choose_partition(topic, request.partitioning);
  if (!id) return refuse(id.error());
  PartitionState& partition = *topic.partitions[*id];
  SendResult out{.stream = stream, .topic = topic.id, .partition = *id};
  if (is_duplicate(caller, partition, number)) {
    out.duplicate = true;
    return out;
  }
  if (disk_full_ && options_.profile.disk_full_kills_writer) {
    writer_dead_ = true;
    return refuse(0);
  }
  Chunk chunk = stamp(partition, *id, request, std::move(frame));
  out.base_offset = chunk.begin;
  const std::uint64_t end = chunk.end();
  if (options_.profile.offset_reservation != 0 && end > partition.reserved) {
    partition.reserved = end + options_.profile.offset_reservation;
    store(partition);
  }
  if (!partition.log.append(std::move(chunk))) return refuse(status::kWriteFailed);
  remember(caller, partition, number);
  return out;
}

bool Broker::is_duplicate(const Caller& caller, PartitionState& partition, std::uint64_t number) const {
  if (options_.profile.dedup_window == 0 || number == 0) return false;
  const auto at = partition.dedup.find({caller.vsr_client, caller.user.value_or(0)});
  if (at == partition.dedup.end() || number > at->second.newest) return false;
  const std::uint64_t back = at->second.newest - number;
  // A number below the window counts as executed long ago.
  return back >= options_.profile.dedup_window || at->second.seen.test(back);
}

void Broker::remember(const Caller& caller, PartitionState& partition, std::uint64_t number) {
  if (options_.profile.dedup_window == 0 || number == 0) return;
  DedupWindow& window = partition.dedup[{caller.vsr_client, caller.user.value_or(0)}];
  if (number > window.newest) {
    window.seen <<= std::min<std::uint64_t>(number - window.newest, window.seen.size());
    window.newest = number;
  }
  window.seen.set(window.newest - number);
}

// --- stored offsets

Outcome<OffsetKey> Broker::offset_key(TopicState& topic, const iggy::Consumer& consumer) {
  if (consumer.kind == iggy::ConsumerKind::kGroup) {
    const GroupState* group = find_group(topic, consumer.id);
    if (group == nullptr) return refuse(status::kGroupNotFound);
    return OffsetKey{consumer.kind, group->id};
  }
  if (const auto* id = std::get_if<std::uint32_t>(&consumer.id)) return OffsetKey{consumer.kind, *id};
  return OffsetKey{consumer.kind, base::xxh32(base::as_bytes(std::get<std::string>(consumer.id)))};
}

Outcome<void> Broker::check_owner(Caller& caller, TopicState& topic, const iggy::Consumer& consumer, OffsetKey key,
                                  std::uint32_t partition) {
  if (consumer.kind != iggy::ConsumerKind::kGroup) return {};
  const Outcome<std::uint32_t> mine = member_partition(caller, topic, key.second, partition);
  if (!mine) return refuse(is_vsr(profile()) ? status::kNotFound : mine.error());
  return {};
}

}  // namespace sandbox
