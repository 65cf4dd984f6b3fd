// The upstream half of resync: is it still the history that we copied, and can we go on at the watermark?
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "replicator/partition/resync.h"

namespace replicator {

Resync::Step Resync::check_upstream() {
  using What = Look::What;
  const bool legacy = source_.is_legacy();
  anchor_upstream_ = Content::kNone;
  const auto restart_decided = [&] {
    return decided(FaultKind::kUpstreamRewound, Exit::kRestart) ||
           decided(FaultKind::kUpstreamRecreated, Exit::kRestart);
  };

  if (durable_.anchor) {
    const state::Anchor& anchor = *durable_.anchor;
    auto looking = look(source_, anchor.up_offset);
    auto found = co_await std::move(looking);
    CO_RETURN_IF_ERROR(found);
    if (found->what == What::kHere) {
      anchor_upstream_ = base::digest_of(found->record()) == anchor.digest ? Content::kSame : Content::kOther;
    } else if (found->what == What::kNothing && up_.end <= anchor.up_offset) {
      anchor_upstream_ = Content::kEndsEarly;
    } else if (found->what == What::kNothing && up_.messages_count > 0) {
      const std::string seen =
          fmt::format("upstream gives nothing from {} on, and says that it ends beyond it", anchor.up_offset);
      if (!legacy || !persists(seen)) co_return ResyncOutcome(Behind{seen});
      anchor_upstream_ = Content::kGone;
    } else if (found->what == What::kRefused) {
      // A place that can't be read says nothing about what stands there.
      const std::string seen = fmt::format("upstream offset {} can't be read: {}", anchor.up_offset, found->refusal);
      if (!legacy || !persists(seen)) co_return ResyncOutcome(Behind{seen});
      anchor_upstream_ = Content::kGone;
    } else {
      anchor_upstream_ = Content::kGone;
    }
    if (anchor_upstream_ == Content::kOther) {
      if (restart_decided()) {
        auto step = restart();
        co_return co_await std::move(step);
      }
      std::string detail = fmt::format("upstream offset {} holds message {}, and message {} was copied from there",
                                       anchor.up_offset, found->record().id.to_string(), anchor.id.to_string());
      if (!moved(up_.created, durable_.up_created, legacy)) {
        auto step = rewound(anchor.up_offset, std::move(detail));
        co_return co_await std::move(step);
      }
      co_return finding(FaultKind::kUpstreamRecreated, std::move(detail), std::min(anchor.up_offset, up_.end),
                        durable_.watermark);  // what was copied and is no longer there
    }
  }

  // On legacy the content at the anchor outweighs created_at.
  const bool created_moved =
      moved(up_.created, durable_.up_created, legacy) && !(legacy && anchor_upstream_ == Content::kSame);
  const bool ends_early = anchor_upstream_ == Content::kEndsEarly || up_.end < durable_.watermark;

  if (created_moved) {
    if (restart_decided()) {
      auto step = restart();
      co_return co_await std::move(step);
    }
    const std::string seen = fmt::format("upstream was created at {} µs, recorded is {} µs", up_.created.partition,
                                         durable_.up_created.partition);
    if (!persists(seen)) co_return ResyncOutcome(Behind{seen + "; looking again before believing it"});
    if (durable_.anchor || durable_.counters.copied > 0) {
      co_return finding(FaultKind::kUpstreamRecreated, seen, 0, up_.end);
    }
    // Nothing of the old history was copied: the new one is simply the one to copy.
    auto floor_call = floor();
    auto oldest = co_await std::move(floor_call);
    CO_RETURN_IF_ERROR(oldest);
    if (!*oldest) co_return ResyncOutcome(Behind{seen + ", and gives none of its messages"});
    next_.up_created = up_.created;
    next_.watermark = **oldest;
    rewinds_ = true;
    repair_ = "upstream was recreated before anything was copied";
    event("upstream_recreated",
          "recreated before anything was copied; the new history is copied from its first message");
    co_return ResyncOutcome(Ready{});
  }
  if (ends_early) {
    if (restart_decided()) {
      auto step = restart();
      co_return co_await std::move(step);
    }
    auto step = upstream_ends_early();
    co_return co_await std::move(step);
  }
  // Another message was seen where ours should be, and a person has decided: that it can't be seen now (offsets were
  // jumped over since) contradicts nothing.
  if (restart_decided() && durable_.anchor && anchor_upstream_ == Content::kGone) {
    auto step = restart();
    co_return co_await std::move(step);
  }
  if (legacy && up_.created != durable_.up_created && durable_.up_created != state::Incarnation{}) {
    event("upstream_created_at_moved",
          "a 0.8 server's restart moves created_at; the content at the anchor is as recorded");
  }
  next_.up_created = up_.created;
  co_return ResyncOutcome(Ready{});
}

// Upstream offset `differs` does not hold what was copied from there. The fault names all that is gone: from the first
// offset that was issued again.
Resync::Step Resync::rewound(std::uint64_t differs, std::string detail) {
  auto ranges_call = store_.ranges(key_, durable_.incarnation);
  auto ranges = co_await std::move(ranges_call);
  CO_RETURN_IF_ERROR(ranges);
  std::uint64_t first = differs;
  for (auto range = ranges->rbegin(); range != ranges->rend(); ++range) {
    if (range->up_begin >= first) continue;
    const std::uint64_t length = std::min(range->length, first - range->up_begin);
    auto kept_call = last_kept(*range, range->down_begin + length);
    auto kept = co_await std::move(kept_call);
    CO_RETURN_IF_ERROR(kept);
    if (kept->down.what == Look::What::kHere) {
      const std::uint64_t equal = kept->down.record().offset - range->down_begin + 1;
      if (equal < length) first = range->up_begin + equal;
      break;
    }
    auto front_call = look(sink_, range->down_begin);
    auto front = co_await std::move(front_call);
    CO_RETURN_IF_ERROR(front);
    if (front->what != Look::What::kHere) break;  // gone downstream as well: nothing more can be compared
    first = range->up_begin;
  }
  if (first < differs) detail += fmt::format("; the first that was issued again is {}", first);
  co_return finding(FaultKind::kUpstreamRewound, std::move(detail), first, durable_.watermark);
}

// The upstream's end lies before what we have copied. It lost messages that we have (wait for new ones above), or it
// lost them and gave their offsets to others (a fault, as soon as there is evidence).
Resync::Step Resync::upstream_ends_early() {
  const std::uint64_t end = up_.end;
  // Its newest message, if we have copied its offset, must be the one that we copied.
  bool is_ours = end == 0;
  auto newest_call = source_.last();
  auto newest = co_await std::move(newest_call);
  CO_RETURN_IF_ERROR(newest);
  if (!newest->batch.empty()) {
    const base::Record& record = newest->batch.records.back();
    auto ranges_call = store_.ranges(key_, durable_.incarnation);
    auto ranges = co_await std::move(ranges_call);
    CO_RETURN_IF_ERROR(ranges);
    for (const state::RangeRow& range : *ranges) {
      if (record.offset < range.up_begin || record.offset - range.up_begin >= range.length) continue;
      auto looking = look(sink_, range.down_begin + (record.offset - range.up_begin));
      auto ours = co_await std::move(looking);
      CO_RETURN_IF_ERROR(ours);
      if (ours->what != Look::What::kHere) continue;
      is_ours = base::digest_of(ours->record()) == base::digest_of(record);
      if (!is_ours) {
        auto step = rewound(record.offset,
                            fmt::format("upstream offset {} holds message {}, and message {} was copied from there",
                                        record.offset, record.id.to_string(), ours->record().id.to_string()));
        co_return co_await std::move(step);
      }
    }
  }
  // Where nothing can be compared, an end that grows tells the same. (A node that catches up grows as well, but what it
  // shows is ours.)
  lowest_up_end_ = std::min(lowest_up_end_.value_or(end), end);
  const bool for_long = persists("upstream ends early");
  if (for_long && end > *lowest_up_end_ && !is_ours) {
    // Nothing could be compared: from where it fell to, at the least.
    co_return finding(
        FaultKind::kUpstreamRewound,
        fmt::format(
            "upstream's end fell to {} and grew to {}, still below {}: offsets that were copied were issued again",
            *lowest_up_end_, end, durable_.watermark),
        *lowest_up_end_, durable_.watermark);
  }
  const std::string seen = fmt::format("upstream ends at {}, {} messages were copied up to {}", end,
                                       durable_.watermark - end, durable_.watermark);
  if (for_long && !lost_reported_) {
    // Kept although the partition goes on waiting.
    event("upstream_lost", fmt::format("upstream lost {} messages that the downstream has: offsets {} to {}",
                                       durable_.watermark - end, end, durable_.watermark));
    state::Transaction note;
    note.events = std::exchange(events_, {});
    auto applying = store_.apply(std::move(note));
    auto applied = co_await std::move(applying);
    CO_RETURN_IF_ERROR(applied);
    lost_reported_ = true;
  }
  co_return ResyncOutcome(Behind{seen + "; waiting for new messages"});
}

Resync::Step Resync::check_watermark() {
  const std::uint64_t watermark = next_.watermark;
  if (up_.end <= watermark) co_return ResyncOutcome(Ready{});
  auto looking = look(source_, watermark);
  auto found = co_await std::move(looking);
  CO_RETURN_IF_ERROR(found);
  switch (found->what) {
    case Look::What::kHere:
      co_return ResyncOutcome(Ready{});
    case Look::What::kAbove: {
      auto step = gap_before(found->record().offset);
      co_return co_await std::move(step);
    }
    case Look::What::kNothing:
      if (up_.messages_count == 0) {
        auto step = gap_before(up_.end);
        co_return co_await std::move(step);
      }
      if (!source_.is_legacy()) {
        // An unused reservation, or a read that failed inside the server: the same start is asked again, never skipped.
        co_return ResyncOutcome(
            Behind{fmt::format("upstream says that it ends at {} and gives nothing from {} on", up_.end, watermark)});
      }
      break;
    case Look::What::kRefused:
      break;
  }
  auto step = unreadable(found->refusal);
  co_return co_await std::move(step);
}

// Can the server have deleted a message that was appended after we had last copied all?
bool Resync::retention_possible() const {
  if (!up_.has_retention) return false;
  if (up_.max_bytes != 0 || up_.expiry_micros == 0 || durable_.caught_up_at == 0) return true;
  const std::uint64_t now = clock_.wall_micros();
  // A clock that was set back since does not tell how long ago that was.
  return now < durable_.caught_up_at || now >= durable_.caught_up_at + up_.expiry_micros;
}

// Nothing is kept between the watermark and `next_readable`. Why?
Resync::Step Resync::gap_before(std::uint64_t next_readable) {
  const std::uint64_t watermark = next_.watermark;
  auto floor_call = floor();
  auto oldest = co_await std::move(floor_call);
  CO_RETURN_IF_ERROR(oldest);
  if (!*oldest) co_return ResyncOutcome(Behind{"upstream says that it holds messages and gives none"});
  const bool at_the_front = **oldest >= next_readable && retention_possible();
  const std::uint64_t lost = next_readable - watermark;
  if (at_the_front) {
    if (decided(FaultKind::kUnverifiableTail, Exit::kAdopt)) {
      // Part of it stands in the tail that is taken as ours; how much can't be told any more.
      gaps_.push_back(gap(watermark, next_readable, "unverified", "expired upstream before it was recorded as copied"));
      close(gaps_.back(), to_string(Exit::kAdopt));
      next_.watermark = next_readable;
      co_return ResyncOutcome(Ready{});
    }
    if (decided(FaultKind::kRetention, Exit::kAccept)) {
      auto step = accept_gap(next_readable, "retention", "expired before they were copied");
      co_return co_await std::move(step);
    }
    if (down_.end > durable_.down_end) {
      co_return finding(FaultKind::kUnverifiableTail,
                        fmt::format("upstream offsets {} to {} expired, and downstream holds {} more offsets than were "
                                    "recorded: what stands there can't be compared",
                                    watermark, next_readable, down_.end - durable_.down_end),
                        watermark, next_readable);
    }
    std::string detail =
        fmt::format("upstream offsets {} to {} ({}) expired before they were copied; the oldest kept is {}", watermark,
                    next_readable, lost, next_readable);
    auto reporting = report(watermark, next_readable, "retention", detail);
    auto reported = co_await std::move(reporting);
    CO_RETURN_IF_ERROR(reported);
    co_return finding(FaultKind::kRetention, detail, watermark, next_readable);
  }
  if (!source_.is_legacy()) {
    if (**oldest >= next_readable) {
      // Nothing older is kept that would show it to be a hole: the row stays open for a person to see.
      gaps_.push_back(gap(watermark, next_readable, "unknown",
                          "nothing older is kept: never used by the server, or deleted there by hand"));
    } else {
      state::GapRow row = gap(watermark, next_readable, "hole", "offsets that the server reserved and never used");
      close(row, "hole");
      gaps_.push_back(std::move(row));
    }
    next_.watermark = next_readable;
    repair_ = fmt::format("hole of {} offsets at {}", lost, watermark);
    event("hole", fmt::format("upstream offsets {} to {} hold no message", watermark, next_readable));
    co_return ResyncOutcome(Ready{});
  }
  if (decided(FaultKind::kUnknownGap, Exit::kAccept)) {
    auto step = accept_gap(next_readable, "unknown", "missing upstream, cause unknown");
    co_return co_await std::move(step);
  }
  std::string detail = fmt::format("upstream offsets {} to {} ({}) are missing, and no retention explains it",
                                   watermark, next_readable, lost);
  auto reporting = report(watermark, next_readable, "unknown", detail);
  auto reported = co_await std::move(reporting);
  CO_RETURN_IF_ERROR(reported);
  co_return finding(FaultKind::kUnknownGap, detail, watermark, next_readable);
}

// 0.8: the server counts messages that it does not give (a lost or damaged segment, a purge with unsaved messages).
Resync::Step Resync::unreadable(std::string refusal) {
  const std::uint64_t watermark = next_.watermark;
  const std::string seen = fmt::format("upstream gives nothing from {} on, and says that it ends beyond it{}",
                                       watermark, refusal.empty() ? "" : " (" + refusal + ")");
  if (!persists(seen)) co_return ResyncOutcome(Behind{seen});
  // Readable again at the first place where a poll gives something: gallop, then halve.
  std::uint64_t bad = watermark;
  std::uint64_t good = up_.end;
  for (std::uint64_t step = 1; watermark + step < up_.end; step *= 2) {
    auto looking = look(source_, watermark + step);
    auto found = co_await std::move(looking);
    CO_RETURN_IF_ERROR(found);
    if (found->what == Look::What::kHere || found->what == Look::What::kAbove) {
      good = found->record().offset;
      break;
    }
    bad = watermark + step;
  }
  while (good - bad > 1) {
    const std::uint64_t middle = bad + (good - bad) / 2;
    auto looking = look(source_, middle);
    auto found = co_await std::move(looking);
    CO_RETURN_IF_ERROR(found);
    if (found->what == Look::What::kHere) {
      good = middle;
    } else {
      bad = middle;
    }
  }
  if (decided(FaultKind::kUpstreamUnreadable, Exit::kAccept)) {
    auto step = accept_gap(good, "upstream_unreadable", "the upstream never gave them");
    co_return co_await std::move(step);
  }
  std::string detail =
      fmt::format("upstream offsets {} to {} can't be read{}", watermark, good, refusal.empty() ? "" : ": " + refusal);
  auto reporting = report(watermark, good, "upstream_unreadable", detail);
  auto reported = co_await std::move(reporting);
  CO_RETURN_IF_ERROR(reported);
  co_return finding(FaultKind::kUpstreamUnreadable, detail, watermark, good);
}

// An open ledger row for the part of the range that none names yet: a look that is repeated reports nothing twice.
base::Task<base::Status> Resync::report(std::uint64_t up_begin, std::uint64_t up_end, std::string cause,
                                        std::string detail) {
  auto gaps_call = store_.gaps();
  auto gaps = co_await std::move(gaps_call);
  CO_RETURN_IF_ERROR(gaps);
  for (const state::GapRow& row : *gaps) {
    if (row.key == key_ && row.incarnation == next_.incarnation && row.cause == cause && row.resolved_as.empty() &&
        row.up_begin <= up_begin) {
      up_begin = std::max(up_begin, row.up_end);
    }
  }
  if (up_begin < up_end) gaps_.push_back(gap(up_begin, up_end, std::move(cause), std::move(detail)));
  co_return base::ok();
}

// The operator takes the loss: its ledger rows are closed, what was lost since then is added, and copying goes on at
// `watermark`.
Resync::Step Resync::accept_gap(std::uint64_t watermark, std::string cause, std::string detail) {
  auto gaps_call = store_.gaps();
  auto gaps = co_await std::move(gaps_call);
  CO_RETURN_IF_ERROR(gaps);
  std::uint64_t named = next_.watermark;
  for (const state::GapRow& row : *gaps) {
    if (row.key == key_ && row.incarnation == next_.incarnation && row.resolved_as.empty() && row.cause == cause &&
        row.up_begin >= next_.watermark && row.up_end <= watermark) {
      close_gaps_.push_back(row.id);
      if (row.up_begin <= named) named = std::max(named, row.up_end);
    }
  }
  if (named < watermark) {
    gaps_.push_back(gap(named, watermark, cause, detail));
    close(gaps_.back(), to_string(Exit::kAccept));
  }
  carried_out(fmt::format("upstream offsets {} to {} are given up", next_.watermark, watermark));
  repair_ = fmt::format("accepted the loss of upstream offsets {} to {}", next_.watermark, watermark);
  next_.counters.skipped += watermark - next_.watermark;
  next_.watermark = watermark;
  rewinds_ = true;
  co_return ResyncOutcome(Ready{});
}

}  // namespace replicator
