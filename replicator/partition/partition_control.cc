// What surrounds the loop: faults, back-off, the operator's commands, status.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "replicator/partition/partition_pipeline.h"

namespace replicator {

PartitionPipeline::PartitionPipeline(asio::io_context& io, base::Clock& clock, base::PartitionKey key,
                                     base::TopicName downstream, Source& source, Sink& sink, state::AsyncStore& store,
                                     Committer& committer, MemoryBudget& budget, PipelineOptions options,
                                     std::optional<state::PartitionRow> row)
    : io_(io),
      clock_(clock),
      key_(std::move(key)),
      downstream_(std::move(downstream)),
      source_(source),
      sink_(sink),
      store_(store),
      committer_(committer),
      budget_(budget),
      options_(options),
      turn_(io),
      resync_(key_, downstream_, source, sink, store, clock, turn_, options.resync),
      backoff_(options.retry, options.seed),
      row_(std::move(row)),
      stop_(io),
      wake_(io),
      stop_reading_(io),
      queue_changed_(io),
      room_(io),
      committed_(io),
      to_flush_(io),
      phase_changed_(io),
      progress_at_(clock.now()) {
  if (row_) {
    positions_.restart(row_->watermark);
    down_end_ = row_->down_end;
    caught_up_at_ = row_->caught_up_at;
  }
}

void PartitionPipeline::stop() {
  stop_.set();
  stop_reading_.set();
  wake_.set();
  room_.set();
  queue_changed_.set();
  committed_.set();
}

bool PartitionPipeline::caught_up() const {
  return idle_ && queue_.empty() && positions_.acked() == positions_.polled() &&
         (phase_ == Phase::kCopying || phase_ == Phase::kCaughtUp);
}

void PartitionPipeline::enter(Phase phase, std::string why) {
  if (phase_ != phase) phase_changed_.set();
  phase_ = phase;
  why_ = std::move(why);
  const bool worth_a_line = phase == Phase::kBehind || phase == Phase::kRetrying || phase == Phase::kPaused;
  if (worth_a_line && why_ != logged_) {
    logged_ = why_;
    spdlog::warn("[{}] {}: {}", key_.to_string(), to_string(phase), why_.empty() ? "by an operator" : why_);
  }
}

base::Error PartitionPipeline::changed(std::string what) const {
  base::Error error(base::ErrorCode::kMalformed, "copy", key_.to_string(), std::move(what));
  error.with_retry(base::Retry::kFromWatermark);
  return error;
}

state::EventRow PartitionPipeline::event(std::string kind, std::string actor, std::string detail) const {
  state::EventRow row;
  row.at = clock_.wall_micros();
  row.kind = std::move(kind);
  row.object = key_.to_string();
  row.actor = std::move(actor);
  row.detail = std::move(detail);
  return row;
}

base::Task<void> PartitionPipeline::wait_for_operator(Phase phase, std::string why) {
  enter(phase, std::move(why));
  auto waiting = wake_.wait();
  co_await std::move(waiting);
}

std::optional<FaultKind> PartitionPipeline::fault_of(const base::Error& error) const {
  constexpr std::uint32_t kTopicFull = 3009;
  if (error.wire_status() == kTopicFull) return FaultKind::kTargetFull;
  if (error.code() == base::ErrorCode::kInvalidRecord) return FaultKind::kInvalidRecord;
  if (error.code() == base::ErrorCode::kPermission) return FaultKind::kPermission;
  return std::nullopt;
}

// Durable with the next commit or fault: errors in a row without one are lost by a kill.
void PartitionPipeline::count_error(std::string cause) {
  state::Counters one;
  one.errors = 1;
  one.errors_by_cause[std::move(cause)] = 1;
  add(live_, one);
  add(uncounted_, one);
}

// After an error: a fault, or a delay and another look.
base::Task<void> PartitionPipeline::recover(base::Error error) {
  if (error.is_cancelled()) co_return;
  if (error.code() == base::ErrorCode::kStaleGeneration) stale_ = true;
  // A fault that stands already (its exit is under way) is not replaced by a lesser one.
  if (const auto kind = fault_of(error); kind && row_ && !row_->fault.active()) {
    auto raising = raise_fault({*kind, error.to_string(), positions_.acked(), positions_.acked() + 1, {}});
    co_await std::move(raising);
    co_return;
  }
  if (auto end = give_up(error)) {
    auto raising = raise_fault(*std::move(end));
    co_await std::move(raising);
    co_return;
  }
  // A change that was noticed is looked at again at once, but not twice without progress in between.
  const bool noticed_change = error.code() == base::ErrorCode::kMalformed && error.operation() == "copy";
  if (noticed_change && looked_again_at_ != positions_.acked()) {
    looked_again_at_ = positions_.acked();
    spdlog::info("[{}] {}; looking at both sides", key_.to_string(), error.message());
    co_return;
  }
  const base::Duration delay = backoff_.next();
  count_error(std::string(base::to_string(error.code())));
  enter(Phase::kRetrying, error.to_string());
  auto wait = base::wait_until(clock_, wake_, clock_.now() + delay);
  co_await std::move(wait);
}

// A refusal that stays, or more attempts than wanted. What the state file does is no failure of this partition; a read
// that fails inside a server is tried without end, because nothing but time or that server's operator mends it.
std::optional<Finding> PartitionPipeline::give_up(const base::Error& error) {
  const bool of_store =
      error.code() == base::ErrorCode::kStateUnavailable || error.code() == base::ErrorCode::kStaleGeneration;
  if (!row_ || row_->fault.active() || of_store) return std::nullopt;
  const std::pair refusal(error.wire_status(), positions_.acked());
  const bool refused = error.code() == base::ErrorCode::kServerRefused && error.wire_status() != 0 &&
                       !error.operation().starts_with("poll");
  const bool again = std::exchange(refusal_, refusal) == refusal;
  refusals_ = !refused ? 0 : again ? refusals_ + 1 : 1;
  if (refusals_ < kRefusalsMax && !out_of_attempts()) return std::nullopt;
  const std::string how = refusals_ >= kRefusalsMax
                              ? fmt::format("refused {} times in a row", refusals_)
                              : fmt::format("failed after {} retries (time.retry_max_attempts)", backoff_.attempts());
  refusals_ = 0;
  backoff_.reset();
  return Finding{FaultKind::kGaveUp,
                 fmt::format("upstream offset {}: {}: {}", positions_.acked(), how, error.to_string()),
                 positions_.acked(),
                 positions_.acked() + 1,
                 {}};
}

// Silence never makes a record invalid (a server with a full disk is silent too), but two sends that nobody answered,
// at an end that has not moved, need a person.
Finding PartitionPipeline::send_unanswered() {
  unanswered_ = 0;
  return {FaultKind::kSendUnanswered,
          fmt::format("two sends of upstream offset {} were not answered, and downstream still ends at {}",
                      row_->watermark, row_->down_end),
          row_->watermark,
          row_->watermark + 1,
          {}};
}

// What was acked becomes durable before anybody looks at the row again: a failing store is waited for, except when we
// are stopping.
base::Task<void> PartitionPipeline::save_acked() {
  auto last = flush_once();
  co_await std::move(last);
  while (true) {
    const base::TimePoint deadline = clock_.now() + std::chrono::seconds(5);
    auto flushing = committer_.flush(key_, deadline);
    const bool flushed = co_await std::move(flushing);
    if (flushed) co_return;
    if (stop_.is_set() || clock_.now() < deadline) break;
    enter(Phase::kRetrying, "the state file: " + committer_.error());
  }
  committer_.forget(key_);
}

// The state file holds another generation than we know of: it is right.
base::Task<void> PartitionPipeline::reload() {
  auto call = store_.partition(key_);
  auto stored = co_await std::move(call);
  if (stored) {
    row_ = std::move(*stored);
    stale_ = false;
    co_return;
  }
  enter(Phase::kRetrying, stored.error().to_string());
  auto wait = base::wait_until(clock_, wake_, clock_.now() + backoff_.next());
  co_await std::move(wait);
}

base::Task<base::Status> PartitionPipeline::apply(state::Transaction transaction) {
  auto call = store_.apply(std::move(transaction));
  auto applied = co_await std::move(call);
  CO_RETURN_IF_ERROR(applied);
  if (!applied->stale.empty()) {
    co_return base::Error(base::ErrorCode::kStaleGeneration, "commit", key_.to_string(),
                          "the state file holds a newer generation");
  }
  co_return base::ok();
}

base::Task<void> PartitionPipeline::raise_fault(Finding finding) {
  const FaultInfo& fault = info(finding.kind);
  auto recording = record_fault(finding);
  auto recorded = co_await std::move(recording);
  if (!recorded) {
    if (recorded.error().code() == base::ErrorCode::kStaleGeneration) stale_ = true;
    enter(Phase::kRetrying, recorded.error().to_string());
    auto wait = base::wait_until(clock_, wake_, clock_.now() + backoff_.next());
    co_await std::move(wait);
    co_return;
  }
  spdlog::error("[{}] FAULT {}: {}. Exits: iggy-replicate resolve {} --as {}", key_.to_string(), fault.name,
                finding.detail, key_.to_string(), fault.exits.empty() ? "retry" : to_string(fault.exits.front()));
}

base::Task<base::Status> PartitionPipeline::record_fault(Finding finding) {
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  const FaultInfo& fault = info(finding.kind);
  const bool stands = row_->fault.kind == fault.name;
  if (stands && row_->fault.detail == finding.detail && finding.gaps.empty()) co_return base::ok();
  state::PartitionNote note;
  note.key = key_;
  note.generation = row_->generation;
  note.fault = state::FaultRow{std::string(fault.name), finding.detail,
                               stands ? row_->fault.since : clock_.wall_micros(), finding.up_begin, finding.up_end};
  note.gaps = std::move(finding.gaps);
  state::Counters one;
  one.errors = 1;
  one.errors_by_cause[std::string(fault.name)] = 1;
  note.added = uncounted_;
  add(note.added, one);
  state::Transaction transaction;
  transaction.notes.push_back(note);
  transaction.events.push_back(event("fault", "appliance", fmt::format("{}: {}", fault.name, finding.detail)));
  auto applying = apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  row_->fault = *note.fault;
  add(live_, one);
  errors_counted(note.added);
  uncounted_ = {};
  co_return base::ok();
}

base::Task<base::Status> PartitionPipeline::set_desired(state::Desired desired, std::string actor) {
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  if (!row_)
    co_return base::Error(base::ErrorCode::kInvalidArgument, "pause", key_.to_string(),
                          "the partition has not started yet");
  if (row_->desired == desired) co_return base::ok();
  state::PartitionNote note;
  note.key = key_;
  note.generation = row_->generation;
  note.desired = desired;
  state::Transaction transaction;
  transaction.notes.push_back(std::move(note));
  transaction.events.push_back(event(desired == state::Desired::kPaused ? "pause" : "resume", std::move(actor), ""));
  auto applying = apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  row_->desired = desired;
  wake_.set();
  queue_changed_.set();
  co_return base::ok();
}

base::Task<base::Status> PartitionPipeline::reset(std::uint64_t up_offset, std::string actor) {
  if (!row_)
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reset", key_.to_string(),
                          "the partition has not started yet");
  if (row_->desired != state::Desired::kPaused) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reset", key_.to_string(), "the partition is running",
                          "pause it first: iggy-replicate pause " + key_.to_string());
  }
  // A send may still be in flight.
  const base::TimePoint deadline = clock_.now() + std::chrono::seconds(8);
  while (phase_ != Phase::kPaused) {
    if (clock_.now() >= deadline) {
      co_return base::Error(base::ErrorCode::kTimeout, "reset", key_.to_string(), "the partition is still pausing",
                            "nothing was changed; try again");
    }
    phase_changed_.reset();
    auto waiting = base::wait_until(clock_, phase_changed_, deadline);
    co_await std::move(waiting);
  }
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  if (row_->desired != state::Desired::kPaused) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reset", key_.to_string(), "the partition was resumed");
  }
  state::PartitionRow row = *row_;
  const std::uint64_t from = row.watermark;
  const auto observed = source_.observed();
  const std::uint64_t end = observed ? observed->view.end : from;
  if (up_offset > std::max(end, from)) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reset", key_.to_string(),
                          observed ? fmt::format("upstream ends at {}", end) : "the upstream's end is not known",
                          "name an offset up to there");
  }
  row.generation += 1;
  row.watermark = up_offset;
  row.caught_up_at = 0;
  if (up_offset < from) {
    row.incarnation += 1;  // the offset map is kept for what it is; what is copied once more begins its own
    row.anchor.reset();
  }
  row.fault = {};
  state::Transaction transaction;
  state::PartitionReplace replace;
  if (up_offset > from) {  // what is left out stands in the ledger
    state::GapRow gap;
    gap.key = key_;
    gap.incarnation = row.incarnation;
    gap.up_begin = from;
    gap.up_end = up_offset;
    gap.cause = "reset";
    gap.detail = "left out by an operator";
    gap.found_at = gap.resolved_at = clock_.wall_micros();
    gap.resolved_as = "reset";
    gap.resolved_by = actor;
    row.counters.skipped += up_offset - from;
    replace.gaps.push_back(std::move(gap));
  }
  replace.row = row;
  transaction.replaces.push_back(std::move(replace));
  transaction.events.push_back(
      event("reset", std::move(actor), fmt::format("watermark moved from {} to {}", from, up_offset)));
  auto applying = apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  row_ = row;
  positions_.restart(up_offset);
  co_return base::ok();
}

void PartitionPipeline::on_committed(const state::PartitionCommit& commit) {
  if (!row_ || row_->generation != commit.generation) return;
  row_->watermark = commit.watermark;
  row_->down_end = commit.down_end;
  if (commit.anchor) row_->anchor = commit.anchor;
  row_->counters.copied += commit.added.copied;
  row_->counters.copied_bytes += commit.added.copied_bytes;
  if (commit.caught_up_at != 0) row_->caught_up_at = commit.caught_up_at;
  live_.copied -= std::min(live_.copied, commit.added.copied);
  live_.copied_bytes -= std::min(live_.copied_bytes, commit.added.copied_bytes);
  errors_counted(commit.added);
  positions_.committed(commit.watermark);
  uncommitted_batches_ = 0;
  committed_.set();
}

// These errors are durable now.
void PartitionPipeline::errors_counted(const state::Counters& added) {
  state::Counters errors;
  errors.errors = added.errors;
  errors.errors_by_cause = added.errors_by_cause;
  add(row_->counters, errors);
  live_.errors -= std::min(live_.errors, errors.errors);
  for (const auto& [cause, count] : errors.errors_by_cause) {
    std::uint64_t& left = live_.errors_by_cause[cause];
    left -= std::min(left, count);
  }
}

void PartitionPipeline::on_stale(const base::PartitionKey&) {
  stale_ = true;
  committed_.set();
  queue_changed_.set();
}

Lag PartitionPipeline::lag() const {
  Lag lag;
  const auto observed = source_.observed();
  if (!observed) return lag;
  const base::Duration age = clock_.now() - observed->at;
  const std::uint64_t wall = clock_.wall_micros();
  lag.observed_at = wall - static_cast<std::uint64_t>(age.count());
  lag.seen_end = std::max(readable_end(observed->view), positions_.polled());
  if (age > options_.unknown_after || !row_) return lag;
  if (phase_ == Phase::kBehind && observed->view.end < positions_.acked())
    return lag;  // new ones can't be told from old
  const std::uint64_t end = std::max(readable_end(observed->view), positions_.polled());
  lag.messages = end - std::min(end, positions_.acked());
  if (*lag.messages == 0) {
    lag.micros = 0;
  } else if (!queue_.empty()) {
    const std::uint64_t oldest = queue_.front().batch.records[queue_.front().taken].timestamp;
    lag.micros = wall > oldest ? wall - oldest : 0;
  }
  return lag;
}

// On vsr the end that metadata says may stand in an unused reservation: a poll up to it has given nothing.
std::uint64_t PartitionPipeline::readable_end(const PartitionView& view) const {
  const bool hollow = !source_.is_legacy() && caught_up() && view.end == hollow_end_;
  return hollow ? positions_.polled() : view.end;
}

// A downstream that lost its tail while nothing is sent: its metadata, asked for after our newest ack, ends below it.
// The answer may be older than it came, so the same contradiction is looked at once.
std::optional<std::string> PartitionPipeline::downstream_ends_below() {
  const auto seen = sink_.observed();
  if (!seen || seen->view.end >= down_end_ || seen->at <= acked_at_) return std::nullopt;
  const std::pair contradiction(seen->view.end, down_end_);
  if (std::exchange(looked_below_, contradiction) == contradiction) return std::nullopt;
  return fmt::format("downstream says that it ends at {} and we have written up to {}", seen->view.end, down_end_);
}

PartitionStatus PartitionPipeline::status() const {
  PartitionStatus status;
  status.key = key_;
  status.downstream = downstream_;
  status.phase = phase_;
  status.waits_for = why_;
  status.committed = positions_.committed();
  status.acked = positions_.acked();
  status.polled = positions_.polled();
  status.lag = lag();
  if (const auto observed = source_.observed(); observed && clock_.now() - observed->at <= options_.unknown_after) {
    status.upstream_end = readable_end(observed->view);
  }
  status.downstream_end = down_end_;
  status.caught_up_at = caught_up_at_;
  status.queued_bytes = queued_bytes();
  if (row_) {
    status.generation = row_->generation;
    status.incarnation = row_->incarnation;
    status.fault = row_->fault;
    status.counters = row_->counters;
    status.desired = row_->desired;
    status.durability = row_->durability;
    if (row_->fault.active()) {
      if (const auto kind = fault_from_name(row_->fault.kind)) {
        const FaultCounts counts = fault_counts();
        for (const Exit exit : info(*kind).exits) status.consequences[exit] = consequence(*kind, exit, counts);
      }
    }
  }
  if (const auto observed = source_.observed(); observed && observed->view.expiry_micros != 0) {
    status.expiry_micros = observed->view.expiry_micros;
    if (status.lag.micros) {
      status.retention_left_micros =
          static_cast<std::int64_t>(observed->view.expiry_micros) - static_cast<std::int64_t>(*status.lag.micros);
    }
  }
  add(status.counters, live_);
  std::erase_if(status.counters.errors_by_cause, [](const auto& cause) { return cause.second == 0; });
  // Resolved while both sides were counted: the next look is due.
  if (status.phase == Phase::kFault && !status.fault.active()) status.phase = Phase::kResync;
  const bool working = phase_ == Phase::kCopying || phase_ == Phase::kRetrying || phase_ == Phase::kBehind;
  if (!held_by_.empty() && queue_.empty()) status.waits_for = "its turn: the throttle of the " + held_by_;
  if (working && held_by_.empty() && clock_.now() - progress_at_ > options_.stuck_after &&
      status.lag.messages.value_or(1) > 0) {
    status.phase = Phase::kStuck;
    if (status.waits_for.empty())
      status.waits_for = queue_.empty() ? "the upstream's answer to a poll" : "the downstream's answer to a send";
  }
  return status;
}

}  // namespace replicator
