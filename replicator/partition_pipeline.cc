#include "replicator/partition_pipeline.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/check.h"

namespace replicator {

namespace {
constexpr std::uint64_t kFirstCount = 8;     // a poll has no byte limit on the wire: sizes are learned from small ones
constexpr std::uint64_t kCountMax = 10'000;  // more messages per request gain nothing (measured on both servers)
}  // namespace

base::Task<void> PartitionPipeline::run() {
  while (!stop_.is_set()) {
    if (row_ && row_->desired == state::Desired::kPaused) {
      auto waiting = wait_for_operator(Phase::kPaused, "");
      co_await std::move(waiting);
      continue;
    }
    if (row_ && row_->fault.active() && !decision_) {
      auto waiting = wait_for_operator(Phase::kFault, row_->fault.detail);
      co_await std::move(waiting);
      continue;
    }
    enter(Phase::kResync);
    auto looking = resync_.run(row_, uncertain_, decision_);
    auto outcome = co_await std::move(looking);
    if (!outcome) {
      auto recovering = recover(outcome.error());
      co_await std::move(recovering);
    } else if (auto* behind = std::get_if<Behind>(&*outcome)) {
      enter(Phase::kBehind, behind->why);
      auto wait = base::wait_until(clock_, wake_, clock_.now() + options_.behind_interval);
      co_await std::move(wait);
    } else if (auto* found = std::get_if<Finding>(&*outcome)) {
      decision_.reset();
      auto raising = raise_fault(std::move(*found));
      co_await std::move(raising);
    } else {
      decision_.reset();
      uncertain_ = false;
      if (!resync_.repair().empty()) spdlog::warn("[{}] {}", key_.to_string(), resync_.repair());
      auto copying = copy();
      co_await std::move(copying);
    }
  }
  enter(Phase::kStopped);
}

// One uninterrupted run of reading ahead and writing, from a known position to the first error.
base::Task<void> PartitionPipeline::copy() {
  positions_.restart(row_->watermark);
  down_end_ = row_->down_end;
  tail_ = row_->anchor && row_->anchor->up_offset + 1 == row_->watermark ? row_->anchor : std::nullopt;
  queue_.clear();
  read_error_.reset();
  next_count_ = kFirstCount;
  uncommitted_batches_ = 0;
  live_.copied = live_.copied_bytes = 0;
  idle_ = false;
  stale_ = false;
  stop_reading_.reset();
  enter(Phase::kCopying);

  base::TaskGroup reader(io_);
  reader.spawn(read_ahead());
  auto writing = write();
  base::Error ended = co_await std::move(writing);
  stop_reading_.set();
  auto closing = reader.close();
  co_await std::move(closing);
  queue_.clear();
  positions_.forget_unacked();
  // What was acked becomes durable before anybody looks at the row again.
  auto flushing = committer_.flush(key_, clock_.now() + std::chrono::seconds(5));
  const bool flushed = co_await std::move(flushing);
  if (!flushed) committer_.forget(key_);
  auto recovering = recover(std::move(ended));
  co_await std::move(recovering);
}

// Polls ahead of the writer, as far as the budget allows. Ends with read_error_, or when told to stop.
base::Task<void> PartitionPipeline::read_ahead() {
  PartitionView seen;
  bool have_seen = false;
  std::uint64_t average_bytes = 1024;
  while (!stop_reading_.is_set()) {
    if (idle_) {
      // Caught up: one get_topic per interval for the whole topic tells when there is more, instead of one poll per
      // partition.
      auto waiting = source_.wait_for_change(seen, std::chrono::seconds(1));
      auto view = co_await std::move(waiting);
      if (stop_reading_.is_set()) break;
      if (!view) {
        read_error_ = view.error();
        break;
      }
      const bool same_creation = source_.is_legacy() || view->created == row_->up_created;
      if (!same_creation || view->end < positions_.polled()) {
        read_error_ =
            changed(fmt::format("upstream ends at {} and we have read up to {}", view->end, positions_.polled()));
        break;
      }
      const bool more = view->end > positions_.polled() && (!have_seen || view->end != seen.end);
      seen = *view;
      have_seen = true;
      if (!more) continue;
    }
    auto acquiring =
        budget_.acquire(std::min<std::size_t>(next_count_ * average_bytes, options_.batch_bytes), stop_reading_);
    Permit permit = co_await std::move(acquiring);
    if (stop_reading_.is_set()) break;
    const std::uint64_t from = tail_ ? tail_->up_offset : positions_.polled();
    auto poll = source_.poll(from, static_cast<std::uint32_t>(next_count_ + 1));
    auto polled = co_await std::move(poll);
    if (stop_reading_.is_set()) break;
    if (!polled) {
      read_error_ = polled.error();
      break;
    }
    const std::size_t records = polled->batch.records.size();
    if (records > 0) average_bytes = std::max<std::uint64_t>(polled->batch.size() / records, 64);
    const bool full = records > next_count_;
    const std::uint64_t fitting = std::clamp<std::uint64_t>(options_.batch_bytes / average_bytes, 1, kCountMax);
    next_count_ = full ? std::min(fitting, next_count_ * 4) : std::min(fitting, std::max(next_count_, kFirstCount));
    const std::uint64_t before = positions_.polled();
    if (!take_polled(std::move(*polled), std::move(permit))) break;
    idle_ = positions_.polled() == before;
    queue_changed_.pulse();
  }
  queue_changed_.pulse();
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

// Sends what is queued, one batch after the other. Returns why it ended.
base::Task<base::Error> PartitionPipeline::write() {
  while (true) {
    if (stop_.is_set()) co_return base::Error(base::ErrorCode::kStopped, "copy", key_.to_string(), "asked to stop");
    if (row_->desired == state::Desired::kPaused || decision_) {
      co_return base::Error(base::ErrorCode::kStopped, "copy", key_.to_string(), "an operator's command came");
    }
    if (stale_)
      co_return base::Error(base::ErrorCode::kStaleGeneration, "commit", key_.to_string(), "the row was replaced");
    if (!queue_.empty() && uncommitted_batches_ >= options_.uncommitted_batches_max) {
      why_ = "the state file: " + (committer_.error().empty() ? std::string("commit under way") : committer_.error());
      auto waiting = base::wait_until(clock_, committed_, clock_.now() + std::chrono::seconds(1));
      co_await std::move(waiting);
      continue;
    }
    if (queue_.empty()) {
      if (read_error_) co_return *read_error_;
      if (caught_up()) {
        enter(Phase::kCaughtUp);
        caught_up_at_ = clock_.wall_micros();
        progress_at_ = clock_.now();
      }
      auto waiting = base::wait_until(clock_, queue_changed_, clock_.now() + std::chrono::seconds(1));
      co_await std::move(waiting);
      continue;
    }
    enter(Phase::kCopying);
    auto sending = send_batch();
    auto failed = co_await std::move(sending);
    if (failed) co_return std::move(*failed);
  }
}

// One send and its ack. Nothing when it was acked, or when it was certainly not accepted and may be tried again.
base::Task<std::optional<base::Error>> PartitionPipeline::send_batch() {
  outgoing_.clear();
  std::uint64_t bytes = 0;
  for (const Queued& queued : queue_) {
    for (std::size_t i = queued.taken; i < queued.batch.records.size() && (bytes == 0 || bytes < options_.batch_bytes);
         ++i) {
      outgoing_.push_back(queued.batch.records[i]);
      bytes += queued.batch.records[i].size();
    }
    if (bytes >= options_.batch_bytes) break;
  }
  auto count = sink_.fit(outgoing_);
  if (!count) co_return std::move(count).error();
  auto sending = sink_.send(std::span(outgoing_).first(*count));
  auto ack = co_await std::move(sending);
  if (!ack) {
    if (ack.error().retry() == base::Retry::kSameCall) {  // certainly not done
      enter(Phase::kRetrying, ack.error().to_string());
      auto delay = base::wait_until(clock_, wake_, clock_.now() + backoff_.next());
      co_await std::move(delay);
      co_return std::nullopt;
    }
    uncertain_ = ack.error().retry() != base::Retry::kNeedsOperator;
    co_return std::move(ack).error();
  }
  const std::uint64_t predicted = down_end_ + *count;
  if (!ack->known || ack->end != predicted) {
    co_return changed(ack->known
                          ? fmt::format("downstream ends at {} after a send, {} was predicted", ack->end, predicted)
                          : std::string("a send was accepted without saying where"));
  }
  acked(*count, predicted);
  backoff_.reset();
  unanswered_ = 0;
  co_return std::nullopt;
}

void PartitionPipeline::acked(std::size_t count, std::uint64_t end) {
  const base::Record& first = outgoing_.front();
  const base::Record& last = outgoing_[count - 1];
  state::PartitionCommit commit;
  commit.key = key_;
  commit.generation = row_->generation;
  commit.watermark = last.offset + 1;
  commit.down_end = end;
  commit.anchor = state::Anchor{last.offset, end - 1, last.id, base::digest_of(last)};
  commit.ranges.push_back({first.offset, down_end_, count, true});
  commit.added.copied = count;
  for (std::size_t i = 0; i < count; ++i) commit.added.copied_bytes += outgoing_[i].body.size();
  positions_.acked(commit.watermark);
  down_end_ = end;
  live_.copied += count;
  live_.copied_bytes += commit.added.copied_bytes;
  progress_at_ = clock_.now();
  if (idle_ && positions_.acked() == positions_.polled()) commit.caught_up_at = clock_.wall_micros();
  ++uncommitted_batches_;
  committer_.add(std::move(commit), *this);
  // The acked records leave the queue; their frames go with the last of each.
  while (count > 0) {
    Queued& front = queue_.front();
    const std::size_t step = std::min(count, front.batch.records.size() - front.taken);
    front.taken += step;
    count -= step;
    if (front.taken == front.batch.records.size()) queue_.pop_front();
  }
}

}  // namespace replicator
