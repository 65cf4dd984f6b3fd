// The upstream half of resync: is it still the history that we copied, and can we go on at the watermark?
#include <algorithm>

#include <fmt/format.h>

#include "replicator/resync.h"

namespace replicator {

Resync::Step Resync::check_upstream() {
  using What = Look::What;
  const bool legacy = source_.is_legacy();
  const bool created_moved = moved(up_.created, durable_.up_created, legacy);
  anchor_upstream_ = Content::kNone;

  if (durable_.anchor) {
    const state::Anchor& anchor = *durable_.anchor;
    auto looking = look(source_, anchor.up_offset);
    auto found = co_await std::move(looking);
    CO_RETURN_IF_ERROR(found);
    if (found->what == What::kHere) {
      anchor_upstream_ = base::digest_of(found->record()) == anchor.digest ? Content::kSame : Content::kOther;
    } else if (found->what == What::kNothing) {
      // Either nothing is left at or above the anchor, or the end lies before it. The newest readable message tells.
      auto newest_call = source_.last();
      auto newest = co_await std::move(newest_call);
      CO_RETURN_IF_ERROR(newest);
      const bool nothing_readable = newest->batch.empty();
      const std::uint64_t readable_end = nothing_readable ? up_.end : newest->batch.records.back().offset + 1;
      const bool purged = nothing_readable && up_.end == 0;
      anchor_upstream_ = purged || readable_end <= anchor.up_offset ? Content::kEndsEarly : Content::kGone;
    } else {
      anchor_upstream_ = Content::kGone;
    }
    if (anchor_upstream_ == Content::kOther) {
      const FaultKind kind = created_moved ? FaultKind::kUpstreamRecreated : FaultKind::kUpstreamRewound;
      if (decided(kind, Exit::kRestart) || decided(FaultKind::kUpstreamRewound, Exit::kRestart) ||
          decided(FaultKind::kUpstreamRecreated, Exit::kRestart)) {
        auto step = restart();
        co_return co_await std::move(step);
      }
      co_return finding(kind,
                        fmt::format("upstream offset {} holds message {}, and message {} was copied from there",
                                    anchor.up_offset, found->record().id.to_string(), anchor.id.to_string()),
                        anchor.up_offset, up_.end);
    }
  }

  const std::uint64_t known_end = durable_.watermark;
  const bool ends_early = anchor_upstream_ == Content::kEndsEarly ||
                          (anchor_upstream_ != Content::kGone && up_.end < known_end && known_end > 0);

  if (created_moved) {
    if (!durable_.anchor && durable_.counters.copied == 0) {
      // Nothing of the old history was copied: the new one is simply the one to copy.
      auto floor_call = floor(up_.end);
      auto oldest = co_await std::move(floor_call);
      CO_RETURN_IF_ERROR(oldest);
      next_.up_created = up_.created;
      next_.watermark = *oldest;
      rewinds_ = next_.watermark < durable_.watermark;
      event("upstream_recreated",
            "recreated before anything was copied; the new history is copied from its first message");
      co_return ResyncOutcome(Ready{});
    }
    if (decided(FaultKind::kUpstreamRecreated, Exit::kRestart)) {
      auto step = restart();
      co_return co_await std::move(step);
    }
    const std::string seen = fmt::format("upstream was created at {} µs, recorded is {} µs", up_.created.partition,
                                         durable_.up_created.partition);
    if (!persists(seen)) co_return ResyncOutcome(Behind{seen + "; looking again before believing it"});
    co_return finding(FaultKind::kUpstreamRecreated, seen, 0, up_.end);
  }
  if (ends_early) {
    auto step = upstream_ends_early();
    co_return co_await std::move(step);
  }
  if (legacy && up_.created != durable_.up_created && durable_.up_created != state::Incarnation{}) {
    event("upstream_created_at_moved",
          "a 0.8 server's restart moves created_at; the content at the anchor is as recorded");
  }
  next_.up_created = up_.created;
  co_return ResyncOutcome(Ready{});
}

// The upstream's end lies before what we have copied. It lost messages that we have (wait for new ones above), or it
// lost them and gave their offsets to others (a fault, as soon as there is evidence).
Resync::Step Resync::upstream_ends_early() {
  const std::uint64_t end = up_.end;
  const auto rewound = [&](std::string detail) {
    return finding(FaultKind::kUpstreamRewound, std::move(detail), end, durable_.watermark);
  };
  if (decided(FaultKind::kUpstreamRewound, Exit::kRestart)) {
    auto step = restart();
    co_return co_await std::move(step);
  }
  if (lowest_up_end_ && end > *lowest_up_end_) {
    co_return rewound(fmt::format(
        "upstream's end fell to {} and grew to {}, still below {}: offsets that were copied were issued again",
        *lowest_up_end_, end, durable_.watermark));
  }
  lowest_up_end_ = end;

  // Its newest message, if we have copied its offset, must be the one that we copied.
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
      if (ours->what == Look::What::kHere && base::digest_of(ours->record()) != base::digest_of(record)) {
        co_return rewound(fmt::format("upstream offset {} holds message {}, and message {} was copied from there",
                                      record.offset, record.id.to_string(), ours->record().id.to_string()));
      }
    }
  }
  const std::string seen = fmt::format("upstream ends at {}, {} messages were copied up to {}", end,
                                       durable_.watermark - end, durable_.watermark);
  if (persists(seen) && reported_lost_end_ != end) {
    reported_lost_end_ = end;
    event("upstream_lost", fmt::format("upstream lost {} messages that the downstream has: offsets {} to {}",
                                       durable_.watermark - end, end, durable_.watermark));
    repair_ = fmt::format("upstream_lost {}", durable_.watermark - end);
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

// Nothing is kept between the watermark and `next_readable`. Why?
Resync::Step Resync::gap_before(std::uint64_t next_readable) {
  const std::uint64_t watermark = next_.watermark;
  auto floor_call = floor(next_readable);
  auto oldest = co_await std::move(floor_call);
  CO_RETURN_IF_ERROR(oldest);
  const bool at_the_front = *oldest >= next_readable;
  const auto lost = next_readable - watermark;
  if (at_the_front && up_.has_retention) {
    if (decided(FaultKind::kRetention, Exit::kAccept)) {
      auto step = accept_gap(next_readable, "retention", "expired before they were copied");
      co_return co_await std::move(step);
    }
    std::string detail =
        fmt::format("upstream offsets {} to {} ({}) expired before they were copied; the oldest kept is {}", watermark,
                    next_readable, lost, next_readable);
    gaps_.push_back(gap(watermark, next_readable, "retention", detail));
    co_return finding(FaultKind::kRetention, detail, watermark, next_readable);
  }
  if (!source_.is_legacy()) {
    state::GapRow row = gap(watermark, next_readable, "hole", "offsets that the server reserved and never used");
    row.resolved_as = "hole";
    row.resolved_by = "appliance";
    row.resolved_at = row.found_at;
    gaps_.push_back(std::move(row));
    next_.watermark = next_readable;
    added_.skipped += 0;
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
  gaps_.push_back(gap(watermark, next_readable, "unknown", detail));
  co_return finding(FaultKind::kUnknownGap, detail, watermark, next_readable);
}

// 0.8: the server counts messages that it does not give (a lost or damaged segment, a purge with unsaved messages).
Resync::Step Resync::unreadable(std::string refusal) {
  const std::uint64_t watermark = next_.watermark;
  const std::string seen = fmt::format("upstream says that it ends at {} and gives nothing from {} on{}", up_.end,
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
  gaps_.push_back(gap(watermark, good, "upstream_unreadable", detail));
  co_return finding(FaultKind::kUpstreamUnreadable, detail, watermark, good);
}

// The operator takes the loss: its ledger row is closed and copying goes on at `watermark`.
Resync::Step Resync::accept_gap(std::uint64_t watermark, std::string cause, std::string detail) {
  auto gaps_call = store_.gaps();
  auto gaps = co_await std::move(gaps_call);
  CO_RETURN_IF_ERROR(gaps);
  for (const state::GapRow& row : *gaps) {
    if (row.key == key_ && row.incarnation == next_.incarnation && row.resolved_as.empty() && row.cause == cause &&
        row.up_begin >= next_.watermark && row.up_end <= watermark) {
      close_gaps_.push_back(row.id);
    }
  }
  if (close_gaps_.empty()) {
    state::GapRow row = gap(next_.watermark, watermark, cause, detail);
    row.resolved_as = to_string(decision_->exit);
    row.resolved_by = decision_->actor;
    row.resolved_at = row.found_at;
    gaps_.push_back(std::move(row));
  }
  event("resolve", fmt::format("{} as accept by {}: upstream offsets {} to {} are given up", info(decision_->kind).name,
                               decision_->actor, next_.watermark, watermark));
  repair_ = fmt::format("accepted the loss of upstream offsets {} to {}", next_.watermark, watermark);
  next_.counters.skipped += watermark - next_.watermark;
  next_.watermark = watermark;
  rewinds_ = true;
  co_return ResyncOutcome(Ready{});
}

}  // namespace replicator
