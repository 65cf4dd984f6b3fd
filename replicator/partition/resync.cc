#include "replicator/partition/resync.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace replicator {

Resync::Resync(base::PartitionKey key, base::TopicName downstream, Source& source, Sink& sink, state::AsyncStore& store,
               base::Clock& clock, Turn& turn, ResyncOptions options)
    : key_(std::move(key)),
      downstream_(std::move(downstream)),
      source_(source),
      sink_(sink),
      store_(store),
      clock_(clock),
      turn_(turn),
      options_(options) {}

base::Task<base::Result<ResyncOutcome>> Resync::run(std::optional<state::PartitionRow>& row, bool after_uncertain,
                                                    std::optional<Decision> decision) {
  decision_ = std::move(decision);
  fresh_ = !row.has_value();
  durable_ = row.value_or(state::PartitionRow{});
  next_ = durable_;
  next_.durability = options_.durability;
  rewinds_ = false;
  carried_out_ = false;
  gaps_.clear();
  ranges_.clear();
  events_.clear();
  close_gaps_.clear();
  gap_changes_.clear();
  replaying_.reset();
  reopened_replays_ = false;
  added_ = {};
  recent_.clear();
  recent_read_ = false;
  absences_.clear();
  read_count_ = kFirstReadCount;
  repair_.clear();

  if (after_uncertain) {
    auto settling = sink_.settle();
    auto settled = co_await std::move(settling);
    CO_RETURN_IF_ERROR(settled);
  }
  auto opening = sink_.open();
  auto opened = co_await std::move(opening);
  CO_RETURN_IF_ERROR(opened);
  auto up_call = source_.view();
  auto up = co_await std::move(up_call);
  CO_RETURN_IF_ERROR(up);
  up_ = *up;
  auto up_end_call = readable_end(source_, up_, "upstream");
  auto up_end = co_await std::move(up_end_call);
  CO_RETURN_IF_ERROR(up_end);
  auto down_call = sink_.view();
  auto down = co_await std::move(down_call);
  CO_RETURN_IF_ERROR(down);
  down_ = *down;
  auto down_end_call = readable_end(sink_, down_, "downstream");
  auto down_end = co_await std::move(down_end_call);
  CO_RETURN_IF_ERROR(down_end);
  if (!*up_end || !*down_end) {
    keep_evidence(false);
    co_return ResyncOutcome(Behind{fmt::format("{} says that it ends at {} and gives nothing of that",
                                               *up_end ? "downstream" : "upstream", *up_end ? down_.end : up_.end)});
  }
  up_.end = **up_end;
  down_.end = **down_end;

  // Each step either goes on (Ready) or ends the run with what it found.
  if (fresh_ || durable_.fault.kind == info(FaultKind::kDownstreamNotEmpty).name) {
    auto step = first();
    auto outcome = co_await std::move(step);
    if (!outcome || !std::holds_alternative<Ready>(*outcome)) {
      if (outcome && fresh_ && std::holds_alternative<Finding>(*outcome)) row = next_;
      keep_evidence(false);
      co_return outcome;
    }
  } else {
    using Member = Step (Resync::*)();
    for (const Member member :
         {&Resync::check_upstream, &Resync::check_watermark, &Resync::check_downstream, &Resync::match_tail}) {
      auto step = (this->*member)();
      auto outcome = co_await std::move(step);
      if (!outcome || !std::holds_alternative<Ready>(*outcome)) {
        // A verdict ends the evidence: whoever looks again (after a retry, hours later) begins anew.
        keep_evidence(outcome && std::holds_alternative<Finding>(*outcome));
        co_return outcome;
      }
      if (rewinds_) break;  // the rest is looked at again from the new position, by the next run
    }
  }
  if (decision_ && decision_->kind != FaultKind::kInvalidRecord && !carried_out_) {
    event("resolve", fmt::format("{} as {} by {}: nothing of it is found any more, nothing was changed",
                                 info(decision_->kind).name, to_string(decision_->exit), decision_->actor));
  }
  keep_evidence(true);
  lowest_up_end_.reset();
  lost_reported_ = false;
  // What was found is committed as if it had been acked now.
  if (next_.down_end != durable_.down_end || next_.anchor != durable_.anchor) {
    auto flushing = sink_.flush();
    auto flushed = co_await std::move(flushing);
    CO_RETURN_IF_ERROR(flushed);
  }
  auto saving = save(row);
  auto saved = co_await std::move(saving);
  CO_RETURN_IF_ERROR(saved);
  if (rewinds_) co_return ResyncOutcome(Repaired{});
  const bool at_anchor = next_.anchor && next_.anchor->up_offset + 1 == next_.watermark;
  const bool seen = next_.anchor != durable_.anchor || anchor_upstream_ == Content::kSame;  // adopted, or looked at
  co_return ResyncOutcome(Ready{at_anchor && seen});
}

// One transaction with everything that this run decided; then `row` is what is durable.
base::Task<base::Status> Resync::save(std::optional<state::PartitionRow>& row) {
  auto taking = turn_.take();
  const auto held = co_await std::move(taking);
  if (row) next_.desired = row->desired;  // an operator's word that came while we looked
  state::Transaction transaction;
  transaction.events = events_;
  if (rewinds_) {
    state::add(next_.counters, added_);
    next_.generation = durable_.generation + (fresh_ ? 0 : 1);
    next_.fault = {};
    transaction.replaces.push_back({.row = next_,
                                    .gaps = gaps_,
                                    .ranges = ranges_,
                                    .gap_changes = gap_changes_,
                                    .close_gaps = close_gaps_,
                                    .resolved_as = decision_ ? std::string(to_string(decision_->exit)) : "",
                                    .resolved_by = decision_ ? decision_->actor : "",
                                    .resolved_at = decision_ ? clock_.wall_micros() : 0});
  } else {
    const bool moved_forward =
        next_.watermark != durable_.watermark || next_.down_end != durable_.down_end || !gaps_.empty();
    if (moved_forward) {
      transaction.commits.push_back({.key = key_,
                                     .generation = durable_.generation,
                                     .watermark = next_.watermark,
                                     .down_end = next_.down_end,
                                     .anchor = next_.anchor,
                                     .ranges = ranges_,
                                     .gaps = gaps_,
                                     .gap_changes = gap_changes_,
                                     .added = added_,
                                     .caught_up_at = 0});
      state::add(next_.counters, added_);
    }
    // A message that is to be left out is not looked at here: its fault stands until that is done.
    const bool clears = durable_.fault.active() && !(decision_ && decision_->kind == FaultKind::kInvalidRecord);
    if (next_.up_created != durable_.up_created || next_.down_created != durable_.down_created ||
        next_.durability != durable_.durability || clears) {
      state::PartitionNote note;
      note.key = key_;
      note.generation = durable_.generation;
      note.up_created = next_.up_created;
      note.down_created = next_.down_created;
      note.durability = next_.durability;
      if (clears) note.fault = state::FaultRow{};
      transaction.notes.push_back(std::move(note));
      if (clears) next_.fault = {};
    }
  }
  if (transaction.empty()) {
    row = next_;
    co_return base::ok();
  }
  auto apply = store_.apply(std::move(transaction));
  auto applied = co_await std::move(apply);
  CO_RETURN_IF_ERROR(applied);
  if (!applied->stale.empty()) {
    co_return base::Error(base::ErrorCode::kStaleGeneration, "resync", key_.to_string(),
                          "the state file holds a newer generation of this partition");
  }
  row = next_;
  co_return base::ok();
}

// No record of this partition: fix where it starts, durably, before the first message is copied.
Resync::Step Resync::first() {
  const bool not_empty = down_.messages_count > 0;
  if (not_empty && !decided(FaultKind::kDownstreamNotEmpty, Exit::kRestart)) {
    std::string detail =
        fmt::format("there is no record of this partition, and {}/{} holds {} messages (next offset {})",
                    downstream_.to_string(), key_.partition, down_.messages_count, down_.end);
    if (decided(FaultKind::kDownstreamNotEmpty, Exit::kAdopt)) {
      auto adopting = adopt_copy(std::move(detail));
      co_return co_await std::move(adopting);
    }
    if (fresh_) {
      // The fault needs a row to stand in. It claims nothing: this branch is taken again until it is resolved.
      next_.key = key_;
      next_.downstream = downstream_;
      next_.up_created = up_.created;
      next_.down_created = down_.created;
      next_.down_end = down_.end;
      next_.fault.kind = info(FaultKind::kDownstreamNotEmpty).name;
      next_.fault.detail = detail;
      next_.fault.since = clock_.wall_micros();
      state::Transaction transaction;
      state::PartitionReplace replace;
      replace.row = next_;
      transaction.replaces.push_back(std::move(replace));
      event("fault", fmt::format("{}: {}", next_.fault.kind, detail));
      transaction.events = std::exchange(events_, {});
      auto apply = store_.apply(std::move(transaction));
      auto applied = co_await std::move(apply);
      CO_RETURN_IF_ERROR(applied);
    }
    co_return finding(FaultKind::kDownstreamNotEmpty, std::move(detail));
  }
  auto floor_call = floor();
  auto oldest = co_await std::move(floor_call);
  CO_RETURN_IF_ERROR(oldest);
  if (!*oldest) co_return ResyncOutcome(Behind{"upstream says that it holds messages and gives none"});
  std::uint64_t watermark = **oldest;
  switch (options_.start.start) {
    case Start::kEarliest:
      break;
    case Start::kLatest:
      watermark = up_.end;
      break;
    case Start::kOffset:
      watermark = std::clamp(options_.start.value, **oldest, std::max(**oldest, up_.end));
      break;
    case Start::kTimestamp: {
      auto poll = source_.at_time(options_.start.value);
      auto found = co_await std::move(poll);
      CO_RETURN_IF_ERROR(found);
      watermark = found->batch.empty() ? up_.end : found->batch.records.front().offset;
      break;
    }
  }
  if (not_empty)
    carried_out(fmt::format("appending after downstream offset {}, from upstream offset {}", down_.end, watermark));
  next_.key = key_;
  next_.downstream = downstream_;
  next_.up_created = up_.created;
  next_.down_created = down_.created;
  next_.watermark = watermark;
  next_.down_end = down_.end;
  next_.anchor.reset();
  rewinds_ = true;
  event("start", fmt::format("copying starts at upstream offset {}, downstream offset {}", watermark, down_.end));
  co_return ResyncOutcome(Ready{});
}

// A new history: from the upstream's first kept message, after what is there downstream.
Resync::Step Resync::restart() {
  auto floor_call = floor();
  auto oldest = co_await std::move(floor_call);
  CO_RETURN_IF_ERROR(oldest);
  if (!*oldest) co_return ResyncOutcome(Behind{"upstream says that it holds messages and gives none"});
  next_.up_created = up_.created;
  next_.down_created = down_.created;
  next_.caught_up_at = 0;  // what is copied from here on is older than that
  next_.watermark = **oldest;
  next_.down_end = down_.end;
  next_.anchor.reset();
  next_.incarnation = durable_.incarnation + 1;
  rewinds_ = true;
  repair_ = fmt::format("restarted at upstream offset {} by {}", next_.watermark, decision_->actor);
  carried_out(fmt::format("incarnation {} starts at upstream offset {}, downstream offset {}", next_.incarnation,
                          next_.watermark, down_.end));
  co_return ResyncOutcome(Ready{});
}

base::Result<Resync::Look> Resync::judge(base::Result<Polled> polled, std::uint64_t offset) {
  Look look;
  if (!polled) {
    // A server that answers, but not with messages (4100, 4027, a checksum that does not match), refuses this place;
    // everything else is an error of the connection.
    const base::ErrorCode code = polled.error().code();
    if (code != base::ErrorCode::kServerRefused && code != base::ErrorCode::kMalformed)
      return std::move(polled).error();
    look.what = Look::What::kRefused;
    look.refusal = polled.error().to_string();
    return look;
  }
  look.batch = std::move(polled->batch);
  if (look.batch.empty()) return look;
  look.what = look.batch.records.front().offset == offset ? Look::What::kHere : Look::What::kAbove;
  return look;
}

base::Task<base::Result<Resync::Look>> Resync::look(Source& side, std::uint64_t offset) {
  auto poll = side.poll(offset, 1);
  auto polled = co_await std::move(poll);
  co_return judge(std::move(polled), offset);
}

base::Task<base::Result<Resync::Look>> Resync::look(Sink& side, std::uint64_t offset) {
  auto read = side.read(offset, 1);
  auto polled = co_await std::move(read);
  co_return judge(std::move(polled), offset);
}

// The next offset after the newest readable message. vsr's current_offset may stand in an unused reservation, and
// `last` then gives nothing. Nothing when that was not seen for long enough: an empty answer may also be a read that
// failed.
template <class Side>
base::Task<base::Result<std::optional<std::uint64_t>>> Resync::readable_end(Side& side, PartitionView view,
                                                                            std::string name) {
  using End = std::optional<std::uint64_t>;
  if (side.is_legacy() || view.messages_count == 0) co_return End(view.end);
  auto read = side.last();
  auto newest = co_await std::move(read);
  CO_RETURN_IF_ERROR(newest);
  if (!newest->batch.empty()) co_return End(newest->batch.records.back().offset + 1);
  if (!persists(fmt::format("{}: nothing readable at its end {}", name, view.end))) co_return End();
  // From an offset at or below the newest message a poll gives something, from one above it nothing: halve.
  End end;
  std::uint64_t readable = 0;
  std::uint64_t nothing = view.end;
  while (readable < nothing) {
    const std::uint64_t middle = readable + (nothing - readable) / 2;
    auto looking = look(side, middle);
    auto found = co_await std::move(looking);
    CO_RETURN_IF_ERROR(found);
    if (found->what == Look::What::kHere || found->what == Look::What::kAbove) {
      end = found->record().offset + 1;
      readable = std::max(middle, found->record().offset) + 1;
    } else {
      nothing = middle;
    }
  }
  if (!end || !persists(fmt::format("{}: newest readable message is {} of {}", name, *end - 1, view.end)))
    co_return End();
  co_return end;
}

// The oldest offset that the upstream still gives, or its end when it holds nothing. Nothing when it says that it holds
// messages and gives none: absence is no evidence. A 0.8 server's counters tell what it should give.
base::Task<base::Result<std::optional<std::uint64_t>>> Resync::floor() {
  using Floor = std::optional<std::uint64_t>;
  auto looking = look(source_, 0);
  auto oldest = co_await std::move(looking);
  CO_RETURN_IF_ERROR(oldest);
  if (oldest->what == Look::What::kHere || oldest->what == Look::What::kAbove) co_return Floor(oldest->record().offset);
  if (up_.messages_count == 0) co_return Floor(up_.end);
  if (!source_.is_legacy() || !persists("upstream gives nothing from its beginning")) co_return Floor();
  co_return Floor(up_.end - std::min(up_.end, up_.messages_count));
}

void Resync::keep_evidence(bool verdict) {
  std::erase_if(absent_since_, [&](const auto& absence) { return verdict || !absences_.contains(absence.first); });
}

bool Resync::persists(const std::string& absence) {
  absences_.insert(absence);
  const base::TimePoint since = absent_since_.try_emplace(absence, clock_.now()).first->second;
  return clock_.now() - since >= options_.confirm_for;
}

// A 0.8 server's first restart moves created_at, by seconds on large topics: only more than that is another creation.
bool Resync::moved(const state::Incarnation& now, const state::Incarnation& recorded, bool legacy) const {
  if (recorded == state::Incarnation{}) return false;
  if (!legacy) return now != recorded;
  constexpr std::uint64_t kRestartShift = 10'000'000;
  const auto differs = [](std::uint64_t a, std::uint64_t b) { return (a > b ? a - b : b - a) > kRestartShift; };
  return differs(now.stream, recorded.stream) || differs(now.topic, recorded.topic) ||
         differs(now.partition, recorded.partition);
}

ResyncOutcome Resync::finding(FaultKind kind, std::string detail, std::uint64_t up_begin, std::uint64_t up_end) {
  std::erase_if(gaps_, [](const state::GapRow& row) { return !row.resolved_as.empty(); });  // go with positions
  return Finding{kind, std::move(detail), up_begin, up_end, std::exchange(gaps_, {})};
}

state::GapRow Resync::gap(std::uint64_t up_begin, std::uint64_t up_end, std::string cause, std::string detail) const {
  state::GapRow row;
  row.key = key_;
  row.incarnation = next_.incarnation;
  row.up_begin = up_begin;
  row.up_end = up_end;
  row.cause = std::move(cause);
  row.detail = std::move(detail);
  row.found_at = clock_.wall_micros();
  return row;
}

void Resync::close(state::GapRow& row, std::string_view resolved_as) const {
  row.resolved_as = resolved_as;
  row.resolved_by = decision_ ? decision_->actor : "appliance";
  row.resolved_at = row.found_at;
}

void Resync::carried_out(const std::string& detail) {
  carried_out_ = true;
  event("resolve", fmt::format("{} as {} by {}: {}", info(decision_->kind).name, to_string(decision_->exit),
                               decision_->actor, detail));
}

void Resync::event(std::string kind, std::string detail) {
  state::EventRow row;
  row.at = clock_.wall_micros();
  row.kind = std::move(kind);
  row.object = key_.to_string();
  row.actor = decision_ ? decision_->actor : "appliance";
  row.detail = std::move(detail);
  events_.push_back(std::move(row));
}

}  // namespace replicator
