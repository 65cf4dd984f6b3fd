#include "replicator/testing/sim_cluster.h"

#include <algorithm>

#include "base/digest.h"

namespace replicator::testing {

namespace {

constexpr std::uint64_t kReservation = 1000;

base::Error stopped(const char* operation) { return {base::ErrorCode::kStopped, operation, "", "killed"}; }

base::Error lost(const char* operation) {
  return {base::ErrorCode::kConnectionLost, operation, "", "connection reset"};
}

Polled to_polled(const std::vector<SimMessage>& messages, std::uint64_t current_offset) {
  std::size_t bytes = 0;
  for (const SimMessage& message : messages) bytes += message.body.size();
  auto frame = std::make_shared<base::Buffer>(bytes);
  Polled polled;
  polled.current_offset = current_offset;
  std::size_t at = 0;
  for (const SimMessage& message : messages) {
    std::ranges::copy(base::as_bytes(message.body), frame->data() + at);
    base::Record record;
    record.offset = message.offset;
    record.id = message.id;
    record.timestamp = message.timestamp;
    record.origin_timestamp = message.origin_timestamp;
    record.payload_length = static_cast<std::uint32_t>(message.body.size());
    record.body = frame->view().subspan(at, message.body.size());
    polled.batch.records.push_back(record);
    at += message.body.size();
  }
  polled.batch.frame = std::move(frame);
  return polled;
}

// The way to the server. An error when it does not get there; `epoch` is the connection's.
base::Task<base::Status> go(SimLine& line, SimCluster& cluster, std::uint64_t& epoch, const char* operation,
                            bool may_connect) {
  ++line.calls;
  if (line.dead) co_return stopped(operation);
  auto way = cluster.clock().sleep_for(line.latency);
  co_await std::move(way);
  cluster.tick();
  if (line.dead) co_return stopped(operation);
  if (cluster.down()) {
    epoch = 0;
    co_return base::Error(base::ErrorCode::kConnectFailed, operation, "", "connection refused");
  }
  if (epoch != cluster.epoch()) {
    const bool was_open = epoch != 0;
    epoch = may_connect ? cluster.epoch() : 0;
    if (was_open || !may_connect) co_return lost(operation);
  }
  if (!line.errors.empty()) {
    base::Error error = std::move(line.errors.front());
    line.errors.pop_front();
    if (error.code() == base::ErrorCode::kConnectionLost || error.code() == base::ErrorCode::kTimeout) epoch = 0;
    if (error.code() == base::ErrorCode::kTimeout) {
      auto patience = cluster.clock().sleep_for(std::chrono::seconds(30));
      co_await std::move(patience);
    }
    co_return error;
  }
  if (!line.permission)
    co_return base::Error(base::ErrorCode::kPermission, operation, "", "not allowed").with_status(41);
  co_return base::ok();
}

base::Task<base::Status> come_back(SimLine& line, SimCluster& cluster, const char* operation) {
  auto way = cluster.clock().sleep_for(line.latency);
  co_await std::move(way);
  cluster.tick();
  if (line.dead) co_return stopped(operation);
  co_return base::ok();
}

base::Task<base::Result<PartitionView>> get_view(SimLine& line, SimCluster& cluster, std::uint64_t& epoch,
                                                 std::uint32_t partition) {
  auto going = go(line, cluster, epoch, "view", true);
  auto gone = co_await std::move(going);
  CO_RETURN_IF_ERROR(gone);
  const PartitionView view = cluster.view(partition);
  auto coming = come_back(line, cluster, "view");
  auto came = co_await std::move(coming);
  CO_RETURN_IF_ERROR(came);
  co_return view;
}

enum class What : std::uint8_t { kOffset, kLast, kTime };

base::Task<base::Result<Polled>> get_messages(SimLine& line, SimCluster& cluster, std::uint64_t& epoch,
                                              std::uint32_t partition, What what, std::uint64_t from,
                                              std::uint32_t count) {
  auto going = go(line, cluster, epoch, "poll", true);
  auto gone = co_await std::move(going);
  CO_RETURN_IF_ERROR(gone);
  bool refused = false;
  std::vector<SimMessage> messages;
  if (line.empty_reads > 0) {
    --line.empty_reads;
  } else if (what == What::kLast) {
    messages = cluster.last(partition);
  } else if (what == What::kTime) {
    for (const SimMessage& message : cluster.at(partition).log) {
      if (message.timestamp >= from && messages.empty()) messages.push_back(message);
    }
  } else {
    messages = cluster.read(partition, from, count, refused);
  }
  const std::uint64_t end = cluster.view(partition).end;
  auto coming = come_back(line, cluster, "poll");
  auto came = co_await std::move(coming);
  CO_RETURN_IF_ERROR(came);
  if (refused) {
    co_return base::Error(base::ErrorCode::kServerRefused, "poll", "", "cannot read").with_status(4100);
  }
  co_return to_polled(messages, end == 0 ? 0 : end - 1);
}

}  // namespace

SimCluster::SimCluster(base::testing::SimClock& clock, Flavour flavour, std::string name, std::size_t partitions)
    : clock_(clock), flavour_(flavour), name_(std::move(name)), partitions_(partitions) {
  const std::uint64_t now = clock_.wall_micros();
  for (SimPartition& partition : partitions_) partition.created = {now, now + 10, now + 20};
}

void SimCluster::note(std::string_view what, std::uint64_t a, std::uint64_t b) {
  base::Bytes bytes;
  base::ByteWriter writer(bytes);
  writer.u64(trace_);
  writer.u64(static_cast<std::uint64_t>(clock_.now().time_since_epoch().count()));
  writer.u64(a);
  writer.u64(b);
  writer.text(what);
  trace_ = base::xxh3_64(bytes);
}

void SimCluster::produce(std::size_t partition, std::size_t count, std::size_t bytes) {
  std::vector<SimMessage> messages;
  for (std::size_t i = 0; i < count; ++i) {
    SimMessage message;
    const std::uint64_t number = ++produced_;
    message.id = {number, base::xxh3_64(base::as_bytes(name_))};
    message.origin_timestamp = clock_.wall_micros() - 7;
    message.body = name_ + "-" + std::to_string(partition) + "-" + std::to_string(number);
    message.body.resize(std::max(bytes, message.body.size()), '.');
    messages.push_back(std::move(message));
  }
  append(partition, std::move(messages));
}

std::uint64_t SimCluster::append(std::size_t partition, std::vector<SimMessage> messages) {
  SimPartition& to = at(partition);
  const std::uint64_t base = to.next;
  for (SimMessage& message : messages) {
    message.offset = to.next++;
    message.timestamp = clock_.wall_micros();
    to.log.push_back(std::move(message));
  }
  note("append", partition, to.next);
  return base;
}

void SimCluster::lose_tail() {
  late_.clear();
  for (SimPartition& partition : partitions_) {
    const bool lost_some = !partition.log.empty() && partition.log.back().offset >= partition.saved;
    std::erase_if(partition.log, [&](const SimMessage& message) { return message.offset >= partition.saved; });
    if (flavour_ == Flavour::kVsrReserving) {
      if (lost_some || partition.next > partition.saved) {
        partition.next = (partition.next / kReservation + 1) * kReservation;
      }
    } else {
      partition.next = std::min(partition.next, partition.saved);
    }
    partition.saved = std::min(partition.saved, partition.next);
    partition.old_end.reset();
  }
  note("lose_tail");
}

void SimCluster::crash() {
  ++epoch_;
  lose_tail();
  for (SimPartition& partition : partitions_) {
    if (is_legacy() && !restarted_) {
      partition.created.stream += 20;
      partition.created.topic += 12'000;
      partition.created.partition += 1'200'000;
    }
  }
  restarted_ = true;
  note("crash");
}

void SimCluster::purge(std::size_t partition) {
  SimPartition& purged = at(partition);
  purged.log.clear();
  purged.expired.clear();
  purged.unreadable.clear();
  purged.next = purged.saved = 0;
  note("purge", partition);
}

void SimCluster::recreate(std::size_t partition) {
  purge(partition);
  const std::uint64_t now = clock_.wall_micros();
  at(partition).created = {at(partition).created.stream, now, now + 5};
  note("recreate", partition);
}

void SimCluster::expire(std::size_t partition, std::uint64_t floor) {
  SimPartition& from = at(partition);
  const auto kept = std::ranges::find_if(from.log, [floor](const SimMessage& m) { return m.offset >= floor; });
  std::move(from.log.begin(), kept, std::back_inserter(from.expired));
  from.log.erase(from.log.begin(), kept);
  from.saved = std::max(from.saved, std::min(floor, from.next));
  note("expire", partition, floor);
}

void SimCluster::answer_old_end(std::size_t partition, std::uint64_t end, base::Duration how_long) {
  at(partition).old_end = {clock_.now() + how_long, end};
  note("old end", partition, end);
}

void SimCluster::append_later(std::size_t partition, std::vector<SimMessage> messages, base::TimePoint due) {
  late_.push_back({partition, std::move(messages), due});
}

bool SimCluster::has_late(std::size_t partition) const {
  return std::ranges::any_of(late_, [partition](const Late& late) { return late.partition == partition; });
}

void SimCluster::settle(std::size_t partition) {
  for (Late& late : late_) {
    if (late.partition == partition) late.due = clock_.now();
  }
  tick();
}

void SimCluster::tick() {
  for (std::size_t i = 0; i < late_.size();) {
    if (late_[i].due > clock_.now()) {
      ++i;
      continue;
    }
    Late late = std::move(late_[i]);
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
    append(late.partition, std::move(late.messages));
  }
}

std::uint64_t SimCluster::visible_end(const SimPartition& partition) const {
  if (partition.old_end && clock_.now() < partition.old_end->first) {
    return std::min(partition.old_end->second, partition.next);
  }
  return partition.next;
}

PartitionView SimCluster::view(std::size_t partition) {
  const SimPartition& from = at(partition);
  PartitionView view;
  view.created = from.created;
  view.end = visible_end(from);
  for (const SimMessage& message : from.log) {
    if (message.offset < view.end) ++view.messages_count;
  }
  view.has_retention = from.has_retention;
  view.expiry_micros = from.expiry_micros;
  return view;
}

std::vector<SimMessage> SimCluster::read(std::size_t partition, std::uint64_t from, std::uint32_t count,
                                         bool& refused) {
  const SimPartition& log = at(partition);
  const std::uint64_t end = visible_end(log);
  std::vector<SimMessage> messages;
  for (const SimMessage& message : log.log) {
    if (message.offset < from || message.offset >= end) continue;
    if (messages.size() == count) break;
    const auto hidden = std::ranges::find_if(log.unreadable, [&](const SimPartition::Unreadable& range) {
      return message.offset >= range.begin && message.offset < range.end;
    });
    if (hidden != log.unreadable.end()) {
      refused = messages.empty() && hidden->refused;
      break;
    }
    messages.push_back(message);
  }
  return messages;
}

std::vector<SimMessage> SimCluster::last(std::size_t partition) {
  const SimPartition& log = at(partition);
  const std::uint64_t end = visible_end(log);
  std::vector<SimMessage> messages;
  for (const SimMessage& message : log.log) {
    if (message.offset < end) messages.assign(1, message);
  }
  return messages;
}

base::Task<base::Result<PartitionView>> SimSource::view() {
  auto getting = get_view(line, cluster_, epoch_, partition_);
  auto view = co_await std::move(getting);
  if (view) observed_ = Observed{*view, cluster_.clock().now()};
  co_return view;
}

base::Task<base::Result<Polled>> SimSource::poll(std::uint64_t from, std::uint32_t count) {
  ++polls;
  return get_messages(line, cluster_, epoch_, partition_, What::kOffset, from, count);
}

base::Task<base::Result<Polled>> SimSource::last() {
  return get_messages(line, cluster_, epoch_, partition_, What::kLast, 0, 1);
}

base::Task<base::Result<Polled>> SimSource::at_time(std::uint64_t micros) {
  return get_messages(line, cluster_, epoch_, partition_, What::kTime, micros, 1);
}

base::Task<base::Result<PartitionView>> SimSource::wait_for_change(PartitionView seen, base::Duration at_most,
                                                                   base::Event& cancel) {
  const auto differs = [&seen](const PartitionView& now) {
    return now.created != seen.created || now.end != seen.end || now.messages_count != seen.messages_count;
  };
  // The watcher's newest view, as old as it is.
  if (observed_ && differs(observed_->view)) co_return observed_->view;
  const base::TimePoint deadline = cluster_.clock().now() + at_most;
  while (true) {
    auto tick = base::wait_until(cluster_.clock(), cancel, cluster_.clock().now() + poll_interval);
    co_await std::move(tick);
    auto looking = view();
    auto now = co_await std::move(looking);
    CO_RETURN_IF_ERROR(now);
    if (differs(*now) || cancel.is_set() || cluster_.clock().now() >= deadline) co_return now;
  }
}

// As a watcher that asks all the time.
std::optional<Observed> SimSink::observed() const {
  if (line.dead || cluster_.down() || epoch_ != cluster_.epoch()) return std::nullopt;
  return Observed{cluster_.view(partition_), cluster_.clock().now()};
}
base::Task<base::Result<PartitionView>> SimSink::view() { return get_view(line, cluster_, epoch_, partition_); }

base::Task<base::Result<Polled>> SimSink::read(std::uint64_t from, std::uint32_t count) {
  return get_messages(line, cluster_, epoch_, partition_, What::kOffset, from, count);
}

base::Task<base::Result<Polled>> SimSink::last() {
  return get_messages(line, cluster_, epoch_, partition_, What::kLast, 0, 1);
}

base::Result<std::size_t> SimSink::fit(std::span<const base::Record> records) const {
  std::size_t count = 0;
  for (const base::Record& record : records) {
    if (count == batch_max) break;
    if (!invalid.empty() && base::as_text(record.body) == invalid) {
      if (count > 0) break;
      return base::Error(base::ErrorCode::kInvalidRecord, "send", "", "too large for the target");
    }
    ++count;
  }
  return count;
}

base::Task<base::Result<Acked>> SimSink::send(std::span<const base::Record> records) {
  ++sends;
  if (refusals.first > 0) {
    --refusals.first;
    co_return *refusals.second;
  }
  SendFault fault = SendFault::kNone;
  if (!faults.empty()) {
    fault = faults.front();
    faults.pop_front();
  }
  std::vector<SimMessage> messages;
  for (const base::Record& record : records) {
    SimMessage message;
    message.id = record.id;
    message.origin_timestamp = record.origin_timestamp;
    message.body = base::as_text(record.body);
    messages.push_back(std::move(message));
  }
  auto going = go(line, cluster_, epoch_, "send", false);
  auto gone = co_await std::move(going);
  CO_RETURN_IF_ERROR(gone);
  cluster_.note("send", messages.size(), static_cast<std::uint64_t>(fault));
  if (!refused.empty() &&
      std::ranges::any_of(messages, [this](const SimMessage& one) { return one.body == refused; })) {
    co_return base::Error(base::ErrorCode::kInvalidRecord, "send", "", "invalid header value").with_status(4019);
  }
  const auto silence = [] { return base::Error(base::ErrorCode::kTimeout, "send", "", "no answer"); };
  switch (fault) {
    case SendFault::kNotAccepted:
      co_return base::Error(base::ErrorCode::kNotAccepted, "send", "", "not accepted").with_status(58);
    case SendFault::kRefused:
      co_return base::Error(base::ErrorCode::kServerRefused, "send", "", "topic full").with_status(3009);
    case SendFault::kSilence: {
      auto patience = cluster_.clock().sleep_for(std::chrono::seconds(30));
      co_await std::move(patience);
      epoch_ = 0;
      co_return silence();
    }
    case SendFault::kCutBefore:
      epoch_ = 0;
      co_return lost("send");
    case SendFault::kLandsLate:
      cluster_.append_later(partition_, std::move(messages), cluster_.clock().now() + late_by);
      epoch_ = 0;
      co_return lost("send");
    case SendFault::kForeignBefore: {
      SimMessage stranger;
      stranger.id = {42, sends};
      stranger.body = "stranger";
      cluster_.append(partition_, {stranger});
      break;
    }
    default:
      break;
  }
  const std::uint64_t end = cluster_.append(partition_, messages) + messages.size();
  const std::uint64_t epoch = epoch_;
  if (fault == SendFault::kAckLost) {
    epoch_ = 0;
    co_return lost("send");
  }
  if (fault == SendFault::kAckSilent) {
    auto patience = cluster_.clock().sleep_for(std::chrono::seconds(30));
    co_await std::move(patience);
    epoch_ = 0;
    co_return silence();
  }
  auto coming = come_back(line, cluster_, "send");
  auto came = co_await std::move(coming);
  CO_RETURN_IF_ERROR(came);
  if (cluster_.epoch() != epoch) {
    epoch_ = 0;
    co_return lost("send");
  }
  co_return Acked{end, fault != SendFault::kAckWithoutOffset};
}

base::Task<base::Status> SimSink::flush() {
  if (!flushes_acks) co_return base::ok();
  ++flush_count;
  if (on_flush) on_flush();
  auto going = go(line, cluster_, epoch_, "flush", false);
  auto gone = co_await std::move(going);
  CO_RETURN_IF_ERROR(gone);
  if (auto fault = std::exchange(flush_fault, std::nullopt)) co_return *fault;
  cluster_.at(partition_).saved = cluster_.at(partition_).next;
  co_return base::ok();
}

base::Task<base::Status> SimSink::settle() {
  if (line.dead) co_return stopped("settle");
  auto wait = cluster_.clock().sleep_for(std::chrono::seconds(1));
  co_await std::move(wait);
  if (line.dead) co_return stopped("settle");
  if (settles) cluster_.settle(partition_);
  co_return base::ok();
}

}  // namespace replicator::testing
