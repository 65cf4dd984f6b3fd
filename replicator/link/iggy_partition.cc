#include "replicator/link/iggy_partition.h"

#include <utility>

#include "base/digest.h"
#include "replicator/topics/rights.h"

namespace replicator {

namespace {

// Named so that an operator who looks at the server sees who polls; offsets are explicit and nothing is ever stored
// under it.
iggy::Consumer consumer() { return {iggy::ConsumerKind::kConsumer, std::string("iggy-replicate")}; }

iggy::PollStrategy at_offset(std::uint64_t offset) { return {iggy::PollStrategy::Kind::kOffset, offset}; }

}  // namespace

IggyReader::IggyReader(std::string_view side, iggy::Client& client, TopicWatcher& watcher, base::TopicName topic,
                       std::uint32_t partition, std::size_t room_bytes)
    : side_(side),
      client_(client),
      watcher_(watcher),
      topic_(std::move(topic)),
      partition_(partition),
      room_bytes_(room_bytes) {}

base::Error IggyReader::named(base::Error error, iggy::Access access) const {
  return name_right(std::move(error), side_, client_, access, topic_);
}

base::Task<base::Result<PartitionView>> IggyReader::view() {
  if (client_.server().nodes > 1) {
    auto asking = view_at_node();
    co_return co_await std::move(asking);
  }
  auto call = watcher_.fresh(partition_);
  auto view = co_await std::move(call);
  if (!view) co_return named(std::move(view).error(), iggy::Access::kReadTopic);
  co_return view;
}

// In a cluster: at the node whose messages are read, because others may show an old end.
base::Task<base::Result<PartitionView>> IggyReader::view_at_node() {
  auto call = client_.call(iggy::GetTopic{topic_.stream, topic_.topic}, iggy::Role::kPoll, partition_);
  auto reply = co_await std::move(call);
  if (!reply) co_return named(std::move(reply).error(), iggy::Access::kReadTopic);
  const auto* details = std::get_if<iggy::TopicDetails>(&*reply);
  if (details == nullptr || partition_ >= details->partitions.size()) {
    co_return base::Error(base::ErrorCode::kNotFound, "get_topic", topic_.to_string(),
                          "there is no partition " + std::to_string(partition_));
  }
  co_return view_from(details->topic, details->partitions[partition_]);
}

base::Task<base::Result<Polled>> IggyReader::poll(iggy::PollStrategy strategy, std::uint32_t count) {
  const bool from_newest = strategy.kind == iggy::PollStrategy::Kind::kOffset && strategy.value == newest_offset_;
  auto asking = ask(strategy, count, room_bytes_ + (from_newest ? newest_size_ : 0));
  auto polled = co_await std::move(asking);
  const bool too_much = !polled && polled.error().code() == base::ErrorCode::kMalformed && count > 1;
  // Twice in a row is no change of sizes, which are known by now.
  if (std::exchange(narrowed_, too_much) || !too_much) co_return polled;
  // Messages are larger than those before them: the first alone, then with the one behind it.
  auto first_call = ask(strategy, 1, room_bytes_);
  auto first = co_await std::move(first_call);
  if (!first || first->batch.empty()) co_return first;
  auto two_call = ask(strategy, 2, room_bytes_ + newest_size_);
  co_return co_await std::move(two_call);
}

base::Task<base::Result<Polled>> IggyReader::ask(iggy::PollStrategy strategy, std::uint32_t count,
                                                 std::uint64_t room_bytes) {
  iggy::PollMessages request;
  request.consumer = consumer();
  request.stream = topic_.stream;
  request.topic = topic_.topic;
  request.partition = partition_;
  request.strategy = strategy;
  request.count = count;
  request.room_bytes = room_bytes;
  auto call = client_.call(std::move(request), iggy::Role::kPoll, partition_);
  auto reply = co_await std::move(call);
  if (!reply) co_return named(std::move(reply).error(), iggy::Access::kPoll);
  auto* polled = std::get_if<iggy::PolledMessages>(&*reply);
  if (polled == nullptr) {
    co_return base::Error(base::ErrorCode::kMalformed, "poll", topic_.to_string(), "the answer to a poll is none");
  }
  if (!polled->batch.empty()) {
    newest_offset_ = polled->batch.records.back().offset;
    newest_size_ = polled->batch.records.back().size();
  }
  co_return Polled{std::move(polled->batch), polled->current_offset};
}

IggySource::IggySource(iggy::Client& client, TopicWatcher& watcher, base::PartitionKey key, std::size_t batch_bytes,
                       std::string mint_ids_for)
    : reader_("upstream", client, watcher, key.topic, key.partition, batch_bytes),
      key_(std::move(key)),
      mint_ids_for_(std::move(mint_ids_for)) {}

base::Task<base::Result<Polled>> IggySource::read(iggy::PollStrategy strategy, std::uint32_t count) {
  auto call = reader_.poll(strategy, count);
  auto polled = co_await std::move(call);
  if (polled && !mint_ids_for_.empty()) {
    for (base::Record& record : polled->batch.records) {
      if (record.id.is_zero()) record.id = base::mint_id(mint_ids_for_, key_, record.offset);
    }
  }
  co_return polled;
}

base::Task<base::Result<PartitionView>> IggySource::view() { return reader_.view(); }
base::Task<base::Result<Polled>> IggySource::poll(std::uint64_t from, std::uint32_t count) {
  return read(at_offset(from), count);
}
base::Task<base::Result<Polled>> IggySource::last() { return read({iggy::PollStrategy::Kind::kLast, 0}, 1); }
base::Task<base::Result<Polled>> IggySource::at_time(std::uint64_t micros) {
  return read({iggy::PollStrategy::Kind::kTimestamp, micros}, 1);
}
std::optional<Observed> IggySource::observed() const { return reader_.watcher().observed(reader_.partition()); }
base::Task<base::Result<PartitionView>> IggySource::wait_for_change(PartitionView seen, base::Duration at_most,
                                                                    base::Event& cancel) {
  auto call = reader_.watcher().wait_for_change(reader_.partition(), seen, at_most, cancel);
  auto view = co_await std::move(call);
  if (!view) co_return reader_.named(std::move(view).error(), iggy::Access::kReadTopic);
  co_return view;
}

IggySink::IggySink(base::Clock& clock, iggy::Client& client, TopicWatcher& watcher, base::TopicName topic,
                   std::uint32_t partition, std::size_t batch_bytes, base::Duration fence_timeout, Ack ack,
                   base::Provenance provenance, std::function<base::Status()> may_send)
    : clock_(clock),
      client_(client),
      reader_("downstream", client, watcher, topic, partition, batch_bytes),
      topic_(std::move(topic)),
      partition_(partition),
      batch_bytes_(batch_bytes),
      fence_timeout_(fence_timeout),
      ack_(ack),
      provenance_(std::move(provenance)),
      may_send_(std::move(may_send)) {}

base::Task<base::Result<PartitionView>> IggySink::view() { return reader_.view(); }
// The watcher asks the leader of the metadata. In a cluster that need not be the node which takes the sends; a tail
// that is lost there is lost with the leader.
std::optional<Observed> IggySink::observed() const {
  return client_.server().nodes > 1 ? std::nullopt : reader_.watcher().observed(partition_);
}
base::Task<base::Result<Polled>> IggySink::read(std::uint64_t from, std::uint32_t count) {
  return reader_.poll(at_offset(from), count);
}
base::Task<base::Result<Polled>> IggySink::last() { return reader_.poll({iggy::PollStrategy::Kind::kLast, 0}, 1); }

base::Result<std::size_t> IggySink::fit(std::span<const base::Record> records) const {
  return iggy::fit(client_.server().dialect, provenance_.is_on() ? provenance_.stamp(records) : records, batch_bytes_);
}

base::Task<base::Result<Acked>> IggySink::send(std::span<const base::Record> records) {
  if (may_send_) {
    auto allowed = may_send_();
    CO_RETURN_IF_ERROR(allowed);
  }
  if (provenance_.is_on()) records = provenance_.stamp(records);
  auto frame = iggy::encode_send(client_.server().dialect, topic_, partition_, records);
  CO_RETURN_IF_ERROR(frame);
  const auto count = static_cast<std::uint32_t>(records.size());
  auto call = client_.send(topic_, partition_, std::move(*frame), count, partition_, &trace_);
  auto ack = co_await std::move(call);
  if (!ack) co_return reader_.named(std::move(ack).error(), iggy::Access::kSend);
  co_return Acked{ack->end.value_or(0), ack->end.has_value()};
}

base::Task<base::Status> IggySink::open() {
  auto opening = client_.open_send(topic_, partition_);
  auto opened = co_await std::move(opening);
  CO_RETURN_IF_ERROR(opened);
  trace_ = *opened;
  co_return base::ok();
}

// On the connection that the sends went to: when it has answered and is still that one, the server that flushed is the
// server that acked.
base::Task<base::Status> IggySink::flush() {
  if (!flushes()) co_return base::ok();
  const base::Error lost(base::ErrorCode::kConnectionLost, "flush", topic_.to_string(),
                         "the connection that the sends went to was lost before they were flushed");
  if (!is_open()) co_return lost;
  auto call =
      client_.call(iggy::FlushUnsaved{topic_.stream, topic_.topic, partition_, true}, iggy::Role::kSend, partition_);
  auto reply = co_await std::move(call);
  if (!reply) co_return reader_.named(std::move(reply).error(), iggy::Access::kSend);
  if (!is_open()) co_return lost;
  co_return base::ok();
}

base::Task<base::Result<std::uint64_t>> IggySink::tail_end() {
  auto call = last();
  auto newest = co_await std::move(call);
  CO_RETURN_IF_ERROR(newest);
  co_return newest->batch.empty() ? 0 : newest->batch.records.back().offset + 1;
}

// The server executes what it has read, as late as it is slow, and lists the dead connection for as long. Observed on
// both dialects: once it is not listed, a tail read sent afterwards shows everything of it that ever landed.
base::Task<base::Status> IggySink::settle() {
  const base::TimePoint deadline = clock_.now() + fence_timeout_;
  // One that is still open has answered: nothing is left behind on it.
  while (!trace_.local_address.empty() && !client_.is_open(trace_) && clock_.now() < deadline) {
    auto call = client_.is_listed(trace_);
    auto listed = co_await std::move(call);
    if (!listed) {
      // Without read_servers, or at a node that is gone: two equal tail reads instead.
      if (listed.error().code() == base::ErrorCode::kPermission || listed.error().code() == base::ErrorCode::kNotFound)
        break;
      co_return std::move(listed).error();
    }
    if (!*listed) co_return base::ok();
    auto pause = clock_.sleep_for(std::chrono::milliseconds(50));
    co_await std::move(pause);
  }
  // A listed connection can be a leak of a 0.8 server with several shards: after the limit, two equal looks a second
  // apart.
  std::optional<std::uint64_t> before;
  while (true) {
    auto call = tail_end();
    auto end = co_await std::move(call);
    CO_RETURN_IF_ERROR(end);
    if (before == *end) co_return base::ok();
    before = *end;
    auto pause = clock_.sleep_for(std::chrono::seconds(1));
    co_await std::move(pause);
  }
}

}  // namespace replicator
