#include "replicator/partition/partition_pipeline.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/check.h"

namespace replicator {

base::Task<void> PartitionPipeline::run() {
  while (!stop_.is_set()) {
    wake_.reset();
    if (stale_) {
      auto reloading = reload();
      co_await std::move(reloading);
      continue;
    }
    if (row_ && row_->desired == state::Desired::kPaused) {
      auto waiting = wait_for_operator(Phase::kPaused, "");
      co_await std::move(waiting);
      continue;
    }
    if (row_ && row_->fault.active() && !decision_) {
      auto choosing = choose_by_policy();
      if (co_await std::move(choosing)) continue;
      enter(Phase::kFault, row_->fault.detail + policy_note_);  // counting may have to wait for an end
      auto counting = count_both_sides();
      co_await std::move(counting);
      auto waiting = wait_for_operator(Phase::kFault, row_->fault.detail + policy_note_);
      co_await std::move(waiting);
      continue;
    }
    enter(Phase::kResync);
    auto looking = resync_.run(row_, uncertain_, decision_);
    auto outcome = co_await std::move(looking);
    if (!outcome) {
      auto recovering = recover(outcome.error());
      co_await std::move(recovering);
      continue;
    }
    uncertain_ = false;
    replays_ = replays_ || resync_.reopened_replays();
    if (!resync_.repair().empty()) {
      spdlog::warn("[{}] {}", key_.to_string(), resync_.repair());
      tally_.repaired = tally_.repaired || tally_.copied > 0;
    }
    if (auto* behind = std::get_if<Behind>(&*outcome)) {
      enter(Phase::kBehind, behind->why);
      auto wait = base::wait_until(clock_, wake_, clock_.now() + options_.behind_interval);
      co_await std::move(wait);
      continue;
    }
    std::optional<Decision> decided = std::exchange(decision_, std::nullopt);
    if (auto* found = std::get_if<Finding>(&*outcome)) {
      auto raising = raise_fault(std::move(*found));
      co_await std::move(raising);
    } else if (auto* ready = std::get_if<Ready>(&*outcome)) {
      if (unanswered_ >= 2 && row_->down_end == unanswered_end_) {
        auto raising = raise_fault(send_unanswered());
        co_await std::move(raising);
        continue;
      }
      if (decided && decided->kind == FaultKind::kInvalidRecord) {
        auto leaving = leave_out(std::move(*decided));
        co_await std::move(leaving);
        continue;
      }
      if (replays_) {
        auto replaying = replay_all();
        auto replayed = co_await std::move(replaying);
        if (!replayed) {
          auto recovering = recover(replayed.error());
          co_await std::move(recovering);
          continue;
        }
      }
      auto copying = copy(ready->anchored);
      co_await std::move(copying);
    }
  }
  enter(Phase::kStopped);
}

// One uninterrupted run of reading ahead and writing, from a known position to the first error.
base::Task<void> PartitionPipeline::copy(bool anchored) {
  positions_.restart(row_->watermark);
  down_end_ = row_->down_end;
  acked_at_ = clock_.now();
  tail_ = anchored ? row_->anchor : std::nullopt;
  queue_.clear();
  read_error_.reset();
  next_count_ = kFirstCount;
  uncommitted_batches_ = 0;
  unflushed_.reset();
  flush_error_.reset();
  live_.copied = live_.copied_bytes = 0;
  idle_ = false;
  stop_reading_.reset();
  enter(Phase::kCopying);

  base::TaskGroup reader(io_);
  reader.spawn(read_ahead());
  if (sink_.flushes()) reader.spawn(flush_acked());
  auto writing = write();
  base::Error ended = co_await std::move(writing);
  stop_reading_.set();
  room_.set();
  to_flush_.set();
  auto closing = reader.close();
  co_await std::move(closing);
  queue_.clear();
  idle_ = false;
  positions_.forget_unacked();
  auto saving = save_acked();
  co_await std::move(saving);
  auto recovering = recover(std::move(ended));
  co_await std::move(recovering);
}

// Sends what is queued, one batch after the other. Returns why it ended.
base::Task<base::Error> PartitionPipeline::write() {
  while (true) {
    wake_.reset();
    queue_changed_.reset();
    committed_.reset();
    if (stop_.is_set()) co_return base::Error(base::ErrorCode::kStopped, "copy", key_.to_string(), "asked to stop");
    if (row_->desired == state::Desired::kPaused || decision_ || replays_) {
      co_return base::Error(base::ErrorCode::kStopped, "copy", key_.to_string(), "an operator's command came");
    }
    if (stale_)
      co_return base::Error(base::ErrorCode::kStaleGeneration, "commit", key_.to_string(), "the row was replaced");
    if (flush_error_) co_return *flush_error_;
    if (!queue_.empty() && uncommitted_batches_ >= options_.uncommitted_batches_max) {
      why_ = "the state file: " + (committer_.error().empty() ? std::string("commit under way") : committer_.error());
      auto waiting = base::wait_until(clock_, committed_, clock_.now() + kLookInterval);
      co_await std::move(waiting);
      continue;
    }
    if (queue_.empty()) {
      if (read_error_) co_return *read_error_;
      if (!sink_.is_open()) co_return changed("the connection to the downstream was lost while idle");
      if (auto lost = downstream_ends_below()) co_return changed(*std::move(lost));
      if (caught_up()) {
        enter(Phase::kCaughtUp);
        caught_up_at_ = clock_.wall_micros();
        backoff_.reset();
        progress_at_ = clock_.now();
      }
      auto waiting = base::wait_until(clock_, queue_changed_, clock_.now() + kLookInterval);
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
  if (!count) {
    if (!options_.invalid_records.skip || count.error().code() != base::ErrorCode::kInvalidRecord)
      co_return std::move(count).error();
    auto skipping = skip_first(count.error().to_string());
    co_return co_await std::move(skipping);
  }
  if (outgoing_.front().offset < single_until_) *count = 1;
  auto sending = send_out(*count);
  auto failed = co_await std::move(sending);
  if (failed && failed->code() == base::ErrorCode::kInvalidRecord) {
    // Refused by the server, certainly: which of them?
    single_until_ = outgoing_[*count - 1].offset + 1;
    if (*count > 1) co_return std::nullopt;
    refused_ = {outgoing_.front().offset, failed->to_string()};
    if (!options_.invalid_records.skip) co_return failed;
    auto skipping = skip_first(failed->to_string());
    co_return co_await std::move(skipping);
  }
  if (failed && failed->retry() == base::Retry::kSameCall && !out_of_attempts()) {  // certainly not done
    enter(Phase::kRetrying, failed->to_string());
    auto delay = base::wait_until(clock_, wake_, clock_.now() + backoff_.next());
    co_await std::move(delay);
    co_return std::nullopt;
  }
  if (failed) co_return failed;
  acked(*count, down_end_ + *count);
  backoff_.reset();
  co_return std::nullopt;
}

// Sends the first `count` of outgoing_. Nothing when they were acked at the predicted end.
base::Task<std::optional<base::Error>> PartitionPipeline::send_out(std::size_t count) {
  auto sending = sink_.send(std::span(outgoing_).first(count));
  auto ack = co_await std::move(sending);
  if (!ack) {
    if (ack.error().retry() == base::Retry::kSameCall) co_return std::move(ack).error();
    uncertain_ = ack.error().retry() != base::Retry::kNeedsOperator;
    if (ack.error().code() == base::ErrorCode::kTimeout) {
      unanswered_ = unanswered_end_ == down_end_ ? unanswered_ + 1 : 1;
      unanswered_end_ = down_end_;
    }
    co_return std::move(ack).error();
  }
  const std::uint64_t predicted = down_end_ + count;
  if (!ack->known || ack->end != predicted) {
    co_return changed(ack->known
                          ? fmt::format("downstream ends at {} after a send, {} was predicted", ack->end, predicted)
                          : std::string("a send was accepted without saying where"));
  }
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
  commit.added = std::exchange(uncounted_, {});
  commit.added.copied = count;
  if (!tally_.first) tally_.first = first.offset;
  tally_.copied += count;
  for (std::size_t i = 0; i < count; ++i) {
    commit.added.copied_bytes += outgoing_[i].body.size();
    if (options_.tally_digest) tally_.digest = base::chain(tally_.digest, base::digest_of(outgoing_[i]));
  }
  tally_.copied_bytes += commit.added.copied_bytes;
  positions_.acked(commit.watermark);
  down_end_ = end;
  live_.copied += count;
  live_.copied_bytes += commit.added.copied_bytes;
  progress_at_ = acked_at_ = clock_.now();
  if (const auto seen = source_.observed(); seen && seen->view.end <= positions_.acked()) {
    // As of when the upstream was seen: a view may be old.
    commit.caught_up_at = clock_.wall_micros() - static_cast<std::uint64_t>((clock_.now() - seen->at).count());
  }
  ++uncommitted_batches_;
  confirm(std::move(commit));
  drop_front(count);
}

// Acked records leave the queue; their frames go with the last of each.
void PartitionPipeline::drop_front(std::size_t count) {
  while (count > 0) {
    Queued& front = queue_.front();
    const std::size_t step = std::min(count, front.batch.records.size() - front.taken);
    front.taken += step;
    count -= step;
    if (front.taken == front.batch.records.size()) queue_.pop_front();
  }
  room_.set();
}

}  // namespace replicator
