// Ways out of a fault, taken by a person or by policy, and what becomes of messages that the target can never take.
#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "replicator/partition/partition_pipeline.h"

namespace replicator {

namespace {
constexpr std::string_view kPolicy = "policy";  // the actor of what was decided in the configuration
constexpr std::string_view kSkip = "skip", kReplaying = "replaying", kReplayed = "replayed";
}  // namespace

base::Task<base::Status> PartitionPipeline::resolve(Exit exit, std::string actor) {
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  if (!row_ || !row_->fault.active()) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "resolve", key_.to_string(), "the partition has no fault");
  }
  const auto kind = fault_from_name(row_->fault.kind);
  if (!kind)
    co_return base::Error(base::ErrorCode::kInternal, "resolve", key_.to_string(), "unknown fault " + row_->fault.kind);
  const std::span<const Exit> exits = info(*kind).exits;
  if (std::ranges::find(exits, exit) == exits.end()) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "resolve", key_.to_string(),
                          fmt::format("'{}' is no exit of {}", to_string(exit), row_->fault.kind));
  }
  if (exit == Exit::kRetry) {
    state::PartitionNote note;
    note.key = key_;
    note.generation = row_->generation;
    note.fault = state::FaultRow{};
    state::Transaction transaction;
    transaction.notes.push_back(std::move(note));
    transaction.events.push_back(event("resolve", actor, fmt::format("{} as retry", row_->fault.kind)));
    auto applying = apply(std::move(transaction));
    auto applied = co_await std::move(applying);
    CO_RETURN_IF_ERROR(applied);
    row_->fault = {};
  } else {
    // The exit is carried out by the next look, and only if it finds the same thing again.
    decision_ = Decision{*kind, exit, std::move(actor)};
  }
  wake_.set();
  co_return base::ok();
}

// Takes the exit that the configuration names for this fault: once per fault, and kPolicyTimes in an hour (the events
// count, so that a restart does not begin anew). true: a decision was made.
base::Task<bool> PartitionPipeline::choose_by_policy() {
  const auto kind = fault_from_name(row_->fault.kind);
  const auto policy = kind ? options_.policies.find(*kind) : options_.policies.end();
  if (policy == options_.policies.end() || policy_tried_ == row_->fault.since) co_return false;
  auto events_call = store_.events(10'000);
  auto events = co_await std::move(events_call);
  if (!events) {
    auto wait = base::wait_until(clock_, wake_, clock_.now() + backoff_.next());
    co_await std::move(wait);
    co_return true;
  }
  if (decision_ || !row_->fault.active()) co_return true;
  constexpr std::uint64_t kHour = 3'600'000'000;
  const std::uint64_t now = clock_.wall_micros();
  const auto lately = std::ranges::count_if(*events, [&](const state::EventRow& row) {
    return row.kind == "resolve" && row.actor == kPolicy && row.object == key_.to_string() && row.at + kHour > now;
  });
  policy_tried_ = row_->fault.since;
  if (static_cast<std::size_t>(lately) >= kPolicyTimes) {
    policy_note_ = fmt::format("; its policy was carried out {} times within an hour, and waits for a person", lately);
    spdlog::error("[{}] {}{}", key_.to_string(), row_->fault.kind, policy_note_);
    co_return false;
  }
  policy_note_.clear();
  spdlog::warn("[{}] {} as {} by policy", key_.to_string(), row_->fault.kind, to_string(policy->second));
  decision_ = Decision{*kind, policy->second, std::string(kPolicy)};
  co_return true;
}

// What a person wants to know before deciding. Nobody else calls source and sink while a fault stands.
base::Task<void> PartitionPipeline::count_both_sides() {
  up_seen_.reset();
  down_seen_.reset();
  auto up_call = source_.view();
  auto up = co_await std::move(up_call);
  if (up) up_seen_ = *up;
  auto down_call = sink_.view();
  auto down = co_await std::move(down_call);
  if (down) down_seen_ = *down;
}

FaultCounts PartitionPipeline::fault_counts() const {
  FaultCounts counts;
  if (up_seen_) counts.up_messages = up_seen_->messages_count;
  if (down_seen_) {
    counts.down_messages = down_seen_->messages_count;
    counts.down_end = down_seen_->end;
  }
  counts.watermark = row_->watermark;
  counts.recorded_down_end = row_->down_end;
  counts.up_begin = row_->fault.up_begin;
  counts.up_end = row_->fault.up_end;
  return counts;
}

// The exit `skip`: only if the message at the watermark is still one that the target does not take.
base::Task<void> PartitionPipeline::leave_out(Decision decision) {
  auto poll = source_.poll(row_->watermark, 1);
  auto polled = co_await std::move(poll);
  if (!polled) {
    decision_ = std::move(decision);
    auto recovering = recover(polled.error());
    co_await std::move(recovering);
    co_return;
  }
  std::string reason;
  if (!polled->batch.empty() && polled->batch.records.front().offset == row_->watermark) {
    auto fits = sink_.fit(polled->batch.records);
    if (!fits && fits.error().code() == base::ErrorCode::kInvalidRecord) reason = fits.error().to_string();
    if (fits && refused_ && refused_->first == row_->watermark) reason = refused_->second;
  }
  base::Status done = base::ok();
  if (!reason.empty()) {
    auto skipping = skip_record(polled->batch.records.front(), std::move(reason), decision);
    done = co_await std::move(skipping);
  } else {
    auto taking = turn_.take();
    const auto held = co_await std::move(taking);
    state::Transaction transaction;
    state::PartitionNote note;
    note.key = key_;
    note.generation = row_->generation;
    note.fault = state::FaultRow{};
    transaction.notes.push_back(std::move(note));
    transaction.events.push_back(event("resolve", decision.actor,
                                       fmt::format("{} as skip by {}: nothing of it is found any more, nothing was "
                                                   "changed",
                                                   info(decision.kind).name, decision.actor)));
    auto applying = apply(std::move(transaction));
    done = co_await std::move(applying);
    if (done) row_->fault = {};
  }
  if (done) co_return;
  decision_ = std::move(decision);
  auto recovering = recover(done.error());
  co_await std::move(recovering);
}

// The message at the watermark is left out: its bytes first (when asked), then the ledger row and the new watermark in
// one transaction. As an exit (`decision`) it is a new generation. REQUIRES: nothing acked is uncommitted.
base::Task<base::Status> PartitionPipeline::skip_record(base::Record record, std::string reason,
                                                        std::optional<Decision> decision) {
  const std::string actor = decision ? decision->actor : std::string(kPolicy);
  state::GapRow gap;
  gap.key = key_;
  gap.up_begin = record.offset;
  gap.up_end = record.offset + 1;
  gap.cause = info(FaultKind::kInvalidRecord).name;
  gap.detail = fmt::format("message {}: {}", record.id.to_string(), reason);
  gap.resolved_as = kSkip;
  gap.resolved_by = actor;
  gap.digest = base::digest_of(record);
  if (!options_.invalid_records.folder.empty()) {
    auto saving = store_.save_record(options_.invalid_records.folder, key_, record);
    auto saved = co_await std::move(saving);
    CO_RETURN_IF_ERROR(saved);
    gap.file = std::move(*saved);
  }
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  gap.incarnation = row_->incarnation;
  gap.found_at = gap.resolved_at = clock_.wall_micros();
  state::PartitionRow next = *row_;
  next.watermark = gap.up_end;
  next.counters.skipped += 1;
  state::Transaction transaction;
  if (decision) {
    next.generation += 1;
    next.fault = {};
    state::PartitionReplace& replace = transaction.replaces.emplace_back();
    replace.row = next;
    replace.gaps.push_back(gap);
    transaction.events.push_back(
        event("resolve", actor,
              fmt::format("{} as skip by {}: upstream offset {}, {}", gap.cause, actor, gap.up_begin, gap.detail)));
  } else {
    state::PartitionCommit& commit = transaction.commits.emplace_back();
    commit.key = key_;
    commit.generation = next.generation;
    commit.watermark = next.watermark;
    commit.down_end = next.down_end;
    commit.gaps.push_back(gap);
    commit.added.skipped = 1;
    transaction.events.push_back(
        event("invalid_record_skipped", actor, fmt::format("upstream offset {}, {}", gap.up_begin, gap.detail)));
  }
  auto applying = apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  row_ = std::move(next);
  refused_.reset();
  spdlog::warn("[{}] left out: upstream offset {}, {}", key_.to_string(), gap.up_begin, gap.detail);
  co_return base::ok();
}

// Leaves out the first queued message while copying, and goes on. Nothing when that is done or may be tried again.
base::Task<std::optional<base::Error>> PartitionPipeline::skip_first(std::string reason) {
  // The watermark moves over it: what stands below must be durable first, and flushed where that was promised.
  if (positions_.committed() != positions_.acked()) {
    auto waiting = base::wait_until(clock_, committed_, clock_.now() + kLookInterval);
    co_await std::move(waiting);
    co_return std::nullopt;
  }
  const base::Record record = outgoing_.front();
  auto skipping = skip_record(record, std::move(reason), std::nullopt);
  auto skipped = co_await std::move(skipping);
  if (!skipped) {
    if (skipped.error().code() == base::ErrorCode::kStaleGeneration) co_return std::move(skipped).error();
    enter(Phase::kRetrying, skipped.error().to_string());
    auto delay = base::wait_until(clock_, wake_, clock_.now() + backoff_.next());
    co_await std::move(delay);
    co_return std::nullopt;
  }
  positions_.acked(record.offset + 1);
  positions_.committed(record.offset + 1);
  progress_at_ = clock_.now();
  backoff_.reset();
  drop_front(1);
  co_return std::nullopt;
}

base::Task<base::Status> PartitionPipeline::replay(std::vector<state::GapRow> gaps, std::string actor) {
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  if (!row_)
    co_return base::Error(base::ErrorCode::kInvalidArgument, "replay", key_.to_string(),
                          "the partition has not started yet");
  state::PartitionNote note;
  note.key = key_;
  note.generation = row_->generation;
  std::string offsets;
  for (const state::GapRow& gap : gaps) {
    if (gap.incarnation != row_->incarnation) {
      co_return base::Error(base::ErrorCode::kInvalidArgument, "replay", key_.to_string(),
                            fmt::format("ledger row {} is of incarnation {}, the partition is in {}", gap.id,
                                        gap.incarnation, row_->incarnation),
                            "what was left out of an earlier history is not sent into a new one");
    }
    // Not below the end that is recorded now: the intent is durable before the send.
    note.gap_changes.push_back({gap.id, std::string(kReplaying), actor, clock_.wall_micros(), row_->down_end});
    offsets += (offsets.empty() ? "" : ", ") + std::to_string(gap.up_begin);
  }
  state::Transaction transaction;
  transaction.notes.push_back(std::move(note));
  transaction.events.push_back(event("replay", std::move(actor), "of upstream offsets " + offsets));
  auto applying = apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  replays_ = true;
  wake_.set();
  queue_changed_.set();
  co_return base::ok();
}

// Sends every message that waits for it, one after the other. REQUIRES: both sides were looked at, nothing is
// unresolved.
base::Task<base::Status> PartitionPipeline::replay_all() {
  replays_ = false;
  down_end_ = row_->down_end;
  auto gaps_call = store_.gaps();
  auto gaps = co_await std::move(gaps_call);
  if (!gaps) {
    replays_ = true;
    co_return std::move(gaps).error();
  }
  for (const state::GapRow& gap : *gaps) {
    if (gap.key != key_ || gap.resolved_as != kReplaying) continue;
    if (stop_.is_set() || row_->desired == state::Desired::kPaused) {
      replays_ = true;
      co_return base::ok();
    }
    auto sending = replay_one(gap);
    auto sent = co_await std::move(sending);
    if (!sent) {
      replays_ = true;  // the next look tells whether it landed
      co_return sent;
    }
  }
  co_return base::ok();
}

// From the upstream where it still stands, else from the export; the digest says that it is the same.
base::Task<base::Result<base::RecordBatch>> PartitionPipeline::left_out_record(const state::GapRow& gap) {
  auto poll = source_.poll(gap.up_begin, 1);
  auto polled = co_await std::move(poll);
  if (!polled && polled.error().code() != base::ErrorCode::kServerRefused) co_return std::move(polled).error();
  if (polled && !polled->batch.empty() && base::digest_of(polled->batch.records.front()) == gap.digest)
    co_return std::move(polled->batch);
  if (gap.file.empty()) co_return base::RecordBatch{};
  auto loading = store_.load_record(gap.file);
  auto loaded = co_await std::move(loading);
  if (!loaded || base::digest_of(loaded->records.front()) != gap.digest) co_return base::RecordBatch{};
  co_return std::move(*loaded);
}

base::Task<base::Status> PartitionPipeline::replay_one(state::GapRow gap) {
  auto finding = left_out_record(gap);
  auto found = co_await std::move(finding);
  CO_RETURN_IF_ERROR(found);
  if (found->empty()) {
    auto giving_up = give_up_replay(
        gap, gap.file.empty() ? "the upstream no longer holds it, and it was not exported"
                              : "the upstream no longer holds it, and its export " + gap.file + " can't be used");
    co_return co_await std::move(giving_up);
  }
  const base::Record record = found->records.front();
  outgoing_.assign(1, record);
  auto count = sink_.fit(outgoing_);
  std::optional<base::Error> failed;
  if (!count) {
    failed = count.error();
  } else {
    auto sending = send_out(1);
    failed = co_await std::move(sending);
  }
  if (failed && failed->code() == base::ErrorCode::kInvalidRecord) {
    auto giving_up = give_up_replay(gap, failed->to_string());
    co_return co_await std::move(giving_up);
  }
  if (failed) co_return std::move(*failed);
  auto flushing = sink_.flush();
  auto flushed = co_await std::move(flushing);
  CO_RETURN_IF_ERROR(flushed);
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  state::Transaction transaction;
  state::PartitionCommit& commit = transaction.commits.emplace_back();
  commit.key = key_;
  commit.generation = row_->generation;
  commit.watermark = row_->watermark;
  commit.down_end = down_end_ + 1;
  commit.gap_changes.push_back({gap.id, std::string(kReplayed), gap.resolved_by, clock_.wall_micros(), down_end_});
  commit.added.copied = 1;
  commit.added.copied_bytes = record.body.size();
  transaction.events.push_back(event(
      "replayed", gap.resolved_by,
      fmt::format("upstream offset {}, left out before, stands at downstream offset {}", gap.up_begin, down_end_)));
  auto applying = apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  row_->down_end = ++down_end_;
  row_->counters.copied += 1;
  row_->counters.copied_bytes += record.body.size();
  co_return base::ok();
}

base::Task<base::Status> PartitionPipeline::give_up_replay(const state::GapRow& gap, std::string why) {
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  state::Transaction transaction;
  state::PartitionNote& note = transaction.notes.emplace_back();
  note.key = key_;
  note.generation = row_->generation;
  note.gap_changes.push_back({gap.id, std::string(kSkip), gap.resolved_by, clock_.wall_micros(), std::nullopt});
  transaction.events.push_back(
      event("replay_failed", gap.resolved_by, fmt::format("upstream offset {}: {}", gap.up_begin, why)));
  spdlog::error("[{}] upstream offset {} is not replayed: {}", key_.to_string(), gap.up_begin, why);
  auto applying = apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  co_return applied;
}

}  // namespace replicator
