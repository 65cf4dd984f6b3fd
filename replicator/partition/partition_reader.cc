// The reading half of the loop: polls ahead of the writer, each poll from the message that the last one ended with.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "replicator/partition/partition_pipeline.h"

namespace replicator {

namespace {
constexpr std::uint64_t kCountMax = 10'000;  // more messages per request gain nothing (measured on both servers)
// A change, an error and a stop end the wait by themselves.
constexpr base::Duration kIdleLookInterval = std::chrono::seconds(30);
}  // namespace

// Polls ahead of the writer, as far as the budget allows. Ends with read_error_, or when told to stop.
base::Task<void> PartitionPipeline::read_ahead() {
  PartitionView seen;
  average_bytes_ = 1024;
  contradicted_since_.reset();
  while (!stop_reading_.is_set()) {
    room_.reset();
    if (queued_bytes() >= options_.read_ahead_batches * options_.batch_bytes) {
      auto waiting = room_.wait();
      co_await std::move(waiting);
      continue;
    }
    if (idle_) {
      auto waiting = wait_for_more(seen);
      const bool more = co_await std::move(waiting);
      if (read_error_) break;
      if (!more) continue;
    }
    const std::uint64_t count = count_at_once();
    auto holding = wait_for_throttles(count);
    if (!co_await std::move(holding)) break;
    auto acquiring =
        budget_.acquire(std::min<std::size_t>(count * average_bytes_, options_.batch_bytes), stop_reading_, urgency());
    Permit permit = co_await std::move(acquiring);
    if (stop_reading_.is_set()) break;
    const std::uint64_t from = tail_ ? tail_->up_offset : positions_.polled();
    auto poll = source_.poll(from, static_cast<std::uint32_t>(count + 1));
    auto polled = co_await std::move(poll);
    correct_throttles(count, polled);
    if (stop_reading_.is_set()) break;
    if (!polled) {
      read_error_ = polled.error();
      break;
    }
    const std::size_t records = polled->batch.records.size();
    if (records > 0) average_bytes_ = std::max<std::uint64_t>(polled->batch.size() / records, 64);
    const bool full = records > count;
    const std::uint64_t fitting = std::clamp<std::uint64_t>(options_.batch_bytes / average_bytes_, 1, kCountMax);
    next_count_ = full ? std::min(fitting, next_count_ * 4) : std::min(fitting, std::max(next_count_, kFirstCount));
    const std::uint64_t before = positions_.polled();
    if (!take_polled(std::move(*polled), std::move(permit))) break;
    idle_ = positions_.polled() == before;
    if (idle_) hollow_end_ = seen.end;
    if (idle_ && source_.is_legacy() && seen.end > before) {
      read_error_ =
          changed(fmt::format("upstream says that it ends at {} and gives nothing from {} on", seen.end, before));
      break;
    }
    queue_changed_.set();
  }
  queue_changed_.set();
}

// Less than one send is missing, as far as is known: one of those that catch up waits for it.
Urgency PartitionPipeline::urgency() const {
  const auto observed = source_.observed();
  if (!observed || observed->view.end > positions_.polled() + options_.batch_bytes / average_bytes_)
    return Urgency::kCatchUp;
  return Urgency::kLive;
}

// Messages to ask for now: throttled, so many that the flow is even.
std::uint64_t PartitionPipeline::count_at_once() const {
  std::uint64_t count = next_count_;
  for (const Throttle* throttle : options_.throttles) {
    count = std::min(
        {count, throttle->messages_at_once(), std::max<std::uint64_t>(throttle->bytes_at_once() / average_bytes_, 1)});
  }
  return count;
}

// false: told to stop.
base::Task<bool> PartitionPipeline::wait_for_throttles(std::uint64_t count) {
  for (Throttle* throttle : options_.throttles) {
    if (!throttle->limits()) continue;
    held_by_ = throttle->name();
    auto taking = throttle->take(count * average_bytes_, count, urgency(), stop_reading_);
    const bool taken = co_await std::move(taking);
    held_by_.clear();
    if (!taken) co_return false;
  }
  co_return true;
}

// Bytes as they were read; of the messages the first is not new.
void PartitionPipeline::correct_throttles(std::uint64_t count, const base::Result<Polled>& polled) {
  const std::size_t bytes = polled ? polled->batch.size() : 0;
  std::size_t messages = polled ? polled->batch.records.size() : 0;
  if (tail_ && messages > 0) --messages;
  for (Throttle* throttle : options_.throttles) {
    throttle->correct(static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(count * average_bytes_),
                      static_cast<std::int64_t>(messages) - static_cast<std::int64_t>(count));
  }
}

// Caught up: metadata of the whole topic tells when there is more, instead of one poll per partition. A view can be
// older than our newest poll: it contradicts only when the contradiction lasts.
base::Task<bool> PartitionPipeline::wait_for_more(PartitionView& seen) {
  auto waiting = source_.wait_for_change(seen, contradicted_since_ ? kLookInterval : kIdleLookInterval, stop_reading_);
  auto view = co_await std::move(waiting);
  if (stop_reading_.is_set()) co_return false;
  if (!view) {
    read_error_ = view.error();
    co_return false;
  }
  seen = *view;
  const bool same_creation = source_.is_legacy() || seen.created == row_->up_created;
  if (same_creation && seen.end >= positions_.polled()) {
    contradicted_since_.reset();
    co_return seen.end > positions_.polled();
  }
  if (!contradicted_since_) contradicted_since_ = clock_.now();
  if (clock_.now() - *contradicted_since_ >= kLookInterval) {
    read_error_ = changed(
        same_creation ? fmt::format("upstream ends at {} and we have read up to {}", seen.end, positions_.polled())
                      : fmt::format("upstream was created at {} µs, recorded is {} µs", seen.created.partition,
                                    row_->up_created.partition));
  }
  co_return false;
}

// Puts what was polled into the queue. false (with read_error_) when it does not continue what was polled before.
bool PartitionPipeline::take_polled(Polled polled, Permit permit) {
  std::vector<base::Record>& records = polled.batch.records;
  if (tail_) {
    const bool here = !records.empty() && records.front().offset == tail_->up_offset;
    if (!here || base::digest_of(records.front()) != tail_->digest) {
      read_error_ =
          changed(fmt::format("upstream offset {} no longer holds the message that was read there", tail_->up_offset));
      return false;
    }
    records.erase(records.begin());
  }
  std::uint64_t expected = positions_.polled();
  std::size_t contiguous = 0;
  while (contiguous < records.size() && records[contiguous].offset == expected + contiguous) ++contiguous;
  if (contiguous < records.size()) {
    read_error_ =
        changed(fmt::format("upstream offset {} follows {}", records[contiguous].offset, expected + contiguous));
    records.resize(contiguous);  // what stands before the gap is good
  }
  if (!records.empty()) {
    const base::Record& last = records.back();
    tail_ = state::Anchor{last.offset, 0, last.id, base::digest_of(last)};
    positions_.polled(last.offset + 1);
    permit.resize(polled.batch.size());
    queue_.push_back({std::move(polled.batch), std::move(permit), 0});
  }
  return !read_error_.has_value();
}

std::uint64_t PartitionPipeline::queued_bytes() const {
  std::uint64_t bytes = 0;
  for (const Queued& queued : queue_) bytes += queued.permit.bytes();
  return bytes;
}

}  // namespace replicator
