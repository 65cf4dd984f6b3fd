#include "replicator/partition/committer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace replicator {

Committer::Committer(asio::io_context& io, base::Clock& clock, state::AsyncStore& store, CommitterOptions options)
    : clock_(clock),
      store_(store),
      options_(options),
      backoff_(options.retry, options.seed),
      hurry_(io),
      progressed_(io),
      drain_(io) {}

void Committer::merge(state::PartitionCommit& into, state::PartitionCommit&& from) {
  base::check(from.generation == into.generation && from.watermark >= into.watermark,
              "acks of one generation come in order");
  into.watermark = from.watermark;
  into.down_end = from.down_end;
  if (from.anchor) into.anchor = from.anchor;
  for (state::RangeRow& range : from.ranges) {
    if (!into.ranges.empty()) {
      state::RangeRow& last = into.ranges.back();
      if (last.up_begin + last.length == range.up_begin && last.down_begin + last.length == range.down_begin &&
          last.confirmed == range.confirmed) {
        last.length += range.length;
        continue;
      }
    }
    into.ranges.push_back(range);
  }
  std::ranges::move(from.gaps, std::back_inserter(into.gaps));
  state::add(into.added, from.added);
  if (from.caught_up_at != 0) into.caught_up_at = from.caught_up_at;
}

void Committer::add(state::PartitionCommit commit, CommitListener& listener) {
  pending_messages_ += commit.added.copied;
  auto [entry, fresh] = pending_.try_emplace(commit.key);
  if (fresh) {
    entry->second = {std::move(commit), &listener};
  } else {
    merge(entry->second.commit, std::move(commit));
  }
  if (pending_messages_ >= options_.max_messages) hurry_.set();
}

base::Task<void> Committer::commit_once() {
  // What failed before is repeated unchanged; only when it is through does the next transaction gather.
  if (in_store_.empty()) {
    in_store_ = std::exchange(pending_, {});
    pending_messages_ = 0;
  }
  state::Transaction transaction;
  for (const auto& [key, pending] : in_store_) transaction.commits.push_back(pending.commit);
  auto call = store_.apply(std::move(transaction));
  auto applied = co_await std::move(call);
  if (!applied && applied.error().code() == base::ErrorCode::kInternal) {
    auto apart = commit_apart();
    applied = co_await std::move(apart);
  }
  if (!applied) {
    error_ = applied.error().to_string();
    const base::TimePoint again = clock_.now() + backoff_.next();
    auto pause = drain_.is_set() ? clock_.sleep_until(std::min(again, drain_deadline_))
                                 : base::wait_until(clock_, drain_, again);
    co_await std::move(pause);
    co_return;
  }
  error_.clear();
  backoff_.reset();
  const auto done = std::exchange(in_store_, {});
  for (const auto& [key, pending] : done) {
    if (pending.listener == nullptr) continue;
    if (std::ranges::find(applied->stale, key) != applied->stale.end()) {
      pending.listener->on_stale(key);
    } else {
      pending.listener->on_committed(pending.commit);
    }
  }
  progressed_.pulse();
}

// One entry contradicts the file: which? Each on its own; the refused ones are reported stale, so that their partitions
// begin again from what is durable.
base::Task<base::Result<state::Applied>> Committer::commit_apart() {
  for (auto entry = in_store_.begin(); entry != in_store_.end();) {
    state::Transaction transaction;
    transaction.commits.push_back(entry->second.commit);
    auto call = store_.apply(std::move(transaction));
    auto applied = co_await std::move(call);
    if (!applied && applied.error().code() != base::ErrorCode::kInternal) co_return std::move(applied).error();
    CommitListener* const listener = entry->second.listener;
    const state::PartitionCommit commit = std::move(entry->second.commit);
    entry = in_store_.erase(entry);  // what is through is not repeated when a later one fails
    if (listener == nullptr) continue;
    if (applied && applied->stale.empty()) {
      listener->on_committed(commit);
    } else {
      listener->on_stale(commit.key);
    }
  }
  co_return state::Applied{};
}

base::Task<void> Committer::run() {
  while (true) {
    if (pending_.empty() && in_store_.empty() && drain_.is_set()) break;
    if (drain_.is_set() && clock_.now() >= drain_deadline_) break;
    if (!drain_.is_set() && error_.empty()) {
      auto tick = base::wait_until(clock_, hurry_, clock_.now() + options_.interval);
      co_await std::move(tick);
    }
    hurry_.reset();
    if (pending_.empty() && in_store_.empty()) continue;
    auto commit = commit_once();
    co_await std::move(commit);
  }
  progressed_.set();
}

base::Task<bool> Committer::flush(base::PartitionKey key, base::TimePoint deadline) {
  while (pending_.contains(key) || in_store_.contains(key)) {
    if (clock_.now() >= deadline || progressed_.is_set()) co_return false;
    hurry_.set();
    auto wait = base::wait_until(clock_, progressed_, std::min(deadline, clock_.now() + options_.interval));
    co_await std::move(wait);
  }
  co_return true;
}

void Committer::forget(const base::PartitionKey& key) {
  pending_.erase(key);
  if (const auto under_way = in_store_.find(key); under_way != in_store_.end()) under_way->second.listener = nullptr;
}

void Committer::drain(base::TimePoint deadline) {
  drain_deadline_ = deadline;
  drain_.set();
  hurry_.set();
}

}  // namespace replicator
