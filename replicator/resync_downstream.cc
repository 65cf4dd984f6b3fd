// The downstream half of resync: is what we copied still there, and what stands behind it that we do not know of yet?
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "replicator/resync.h"

namespace replicator {

Resync::Step Resync::check_downstream() {
  using What = Look::What;
  const bool created_moved = moved(down_.created, durable_.down_created, sink_.is_legacy());
  const auto recreated = [&](std::string detail) {
    return finding(FaultKind::kDownstreamRecreated, std::move(detail));
  };
  if (decided(FaultKind::kDownstreamRecreated, Exit::kRestart)) {
    auto step = restart();
    co_return co_await std::move(step);
  }

  bool ends_early = false;
  if (durable_.anchor) {
    const state::Anchor& anchor = *durable_.anchor;
    auto looking = look(sink_, anchor.down_offset);
    auto found = co_await std::move(looking);
    CO_RETURN_IF_ERROR(found);
    switch (found->what) {
      case What::kHere:
        if (base::digest_of(found->record()) != anchor.digest) {
          co_return recreated(fmt::format("downstream offset {} holds message {}, and message {} was written there",
                                          anchor.down_offset, found->record().id.to_string(), anchor.id.to_string()));
        }
        break;
      case What::kAbove:
        // Retention took the anchor. What stands behind the recorded end can still be compared, unless its beginning is
        // gone too.
        if (found->record().offset > durable_.down_end && down_end_ > durable_.down_end) {
          if (decided(FaultKind::kUnverifiableTail, Exit::kAccept)) break;
          co_return finding(
              FaultKind::kUnverifiableTail,
              fmt::format("downstream was recorded up to {} and now begins at {}: what stood between can't be compared",
                          durable_.down_end, found->record().offset));
        }
        break;
      case What::kNothing:
        if (down_end_ > anchor.down_offset && down_.messages_count == 0) break;  // all expired, the end is where it was
        ends_early = down_end_ <= anchor.down_offset;
        if (!ends_early) {
          co_return ResyncOutcome(Behind{fmt::format("downstream says that it ends at {} and gives nothing from {} on",
                                                     down_end_, anchor.down_offset)});
        }
        break;
      case What::kRefused:
        co_return ResyncOutcome(
            Behind{fmt::format("downstream offset {} can't be read: {}", anchor.down_offset, found->refusal)});
    }
  } else {
    ends_early = down_end_ < durable_.down_end;
  }

  if (ends_early) {
    const std::string seen = fmt::format("downstream ends at {}, recorded is {}", down_end_, durable_.down_end);
    if (!persists(seen)) co_return ResyncOutcome(Behind{seen + "; looking again before believing it"});
    if (created_moved) co_return recreated(seen + ", and its created_at is another");
    if (down_.has_retention && down_.messages_count == 0)
      co_return recreated(seen + ", and it is empty: expired or purged");
    auto step = step_back();
    co_return co_await std::move(step);
  }
  if (created_moved && !durable_.anchor && durable_.counters.copied > 0) {
    const std::string seen = fmt::format("downstream was created at {} µs, recorded is {} µs", down_.created.partition,
                                         durable_.down_created.partition);
    if (!persists(seen)) co_return ResyncOutcome(Behind{seen + "; looking again before believing it"});
    co_return recreated(seen);
  }
  next_.down_created = down_.created;
  co_return ResyncOutcome(Ready{});
}

// The downstream crashed and lost acknowledged messages. The last point of the offset map that is equal on both sides
// is where to go on.
Resync::Step Resync::step_back() {
  auto ranges_call = store_.ranges(key_, durable_.incarnation);
  auto ranges = co_await std::move(ranges_call);
  CO_RETURN_IF_ERROR(ranges);
  std::uint64_t watermark = durable_.watermark;
  std::uint64_t down_end = durable_.down_end;
  std::optional<state::Anchor> anchor;
  bool found_equal = false;
  for (auto range = ranges->rbegin(); range != ranges->rend() && !found_equal; ++range) {
    watermark = range->up_begin;
    down_end = range->down_begin;
    if (range->down_begin >= down_end_) continue;
    std::uint64_t down_offset = std::min(range->down_begin + range->length, down_end_) - 1;
    const std::uint64_t up_offset = range->up_begin + (down_offset - range->down_begin);
    auto down_call = look(sink_, down_offset);
    auto down = co_await std::move(down_call);
    CO_RETURN_IF_ERROR(down);
    auto up_call = look(source_, up_offset);
    auto up = co_await std::move(up_call);
    CO_RETURN_IF_ERROR(up);
    if (down->what != Look::What::kHere) {
      co_return ResyncOutcome(
          Behind{fmt::format("downstream ends at {} and does not give offset {}", down_end_, down_offset)});
    }
    if (up->what != Look::What::kHere) {
      co_return finding(
          FaultKind::kDownstreamRecreated,
          fmt::format("downstream ends at {}, recorded is {}, and upstream no longer holds offset {} to compare with",
                      down_end_, durable_.down_end, up_offset));
    }
    const base::Digest digest = base::digest_of(down->record());
    if (digest != base::digest_of(up->record())) {
      co_return finding(
          FaultKind::kDownstreamRecreated,
          fmt::format("downstream offset {} holds message {}, and upstream offset {} that was written there holds {}",
                      down_offset, down->record().id.to_string(), up_offset, up->record().id.to_string()));
    }
    found_equal = true;
    watermark = up_offset + 1;
    down_end = down_offset + 1;
    anchor = state::Anchor{up_offset, down_offset, down->record().id, digest};
  }
  if (!found_equal && down_end_ > down_end) {
    co_return finding(FaultKind::kDownstreamRecreated,
                      fmt::format("downstream ends at {}, and nothing below it is known to be ours", down_end_));
  }
  const std::uint64_t lost = durable_.watermark - watermark;
  next_.watermark = watermark;
  next_.down_end = down_end;
  next_.anchor = anchor;
  next_.down_created = down_.created;
  rewinds_ = true;
  repair_ = fmt::format("downstream_lost_tail {}: sending again from upstream offset {}", lost, watermark);
  event("downstream_lost_tail",
        fmt::format("downstream lost its tail from offset {} on; sending again from upstream offset {} ({} offsets)",
                    down_end, watermark, lost));
  co_return ResyncOutcome(Ready{});
}

// What stands behind the recorded end: our own sends whose ack was lost (adopted), our own sends that landed a second
// time (named), or somebody else's (a fault).
Resync::Step Resync::match_tail() {
  std::uint64_t down_offset = next_.down_end;
  base::RecordBatch expected;  // upstream, from next_.watermark on
  std::size_t expected_at = 0;
  const bool adopt_strangers = decided(FaultKind::kForeignWriter, Exit::kAccept);
  const bool adopt_unverified = decided(FaultKind::kUnverifiableTail, Exit::kAccept);
  std::uint64_t adopted = 0;
  std::uint64_t own_duplicates = 0;

  while (down_offset < down_end_) {
    auto read_call = sink_.read(down_offset, options_.read_count);
    auto tail = co_await std::move(read_call);
    CO_RETURN_IF_ERROR(tail);
    if (tail->batch.empty()) {
      co_return ResyncOutcome(Behind{
          fmt::format("downstream says that it ends at {} and gives nothing from {} on", down_end_, down_offset)});
    }
    for (const base::Record& message : tail->batch.records) {
      if (message.offset < down_offset) continue;
      if (expected_at == expected.records.size() && up_.end > next_.watermark) {
        auto poll = source_.poll(next_.watermark, options_.read_count);
        auto polled = co_await std::move(poll);
        CO_RETURN_IF_ERROR(polled);
        expected = std::move(polled->batch);
        expected_at = 0;
      }
      const base::Digest digest = base::digest_of(message);
      const bool have_expected = expected_at < expected.records.size();
      if (have_expected && base::digest_of(expected.records[expected_at]) == digest) {
        const base::Record& ours = expected.records[expected_at++];
        if (!ranges_.empty() && ranges_.back().up_begin + ranges_.back().length == ours.offset &&
            ranges_.back().down_begin + ranges_.back().length == message.offset) {
          ++ranges_.back().length;
        } else {
          ranges_.push_back({ours.offset, message.offset, 1, true});
        }
        next_.anchor = state::Anchor{ours.offset, message.offset, message.id, digest};
        next_.watermark = ours.offset + 1;
        recent_.push_back(digest);
        added_.copied += 1;
        added_.copied_bytes += message.body.size();
        ++adopted;
      } else {
        auto duplicate_call = is_own_duplicate(digest);
        auto duplicate = co_await std::move(duplicate_call);
        CO_RETURN_IF_ERROR(duplicate);
        std::string cause;
        if (*duplicate) {
          cause = "own_duplicate";
          added_.duplicates += 1;
          ++own_duplicates;
        } else if (!have_expected) {
          const std::string seen =
              fmt::format("downstream holds {} messages behind offset {} that upstream (end {}) does not have",
                          down_end_ - message.offset, message.offset, up_.end);
          if (!adopt_unverified && !adopt_strangers) {
            if (!persists(seen)) co_return ResyncOutcome(Behind{seen});
            co_return finding(FaultKind::kUnverifiableTail, seen);
          }
          cause = "unverified";
        } else {
          if (!adopt_strangers) {
            co_return finding(
                FaultKind::kForeignWriter,
                fmt::format("downstream offset {} holds message {} that is not ours; upstream's next is {} at {}",
                            message.offset, message.id.to_string(), expected.records[expected_at].id.to_string(),
                            expected.records[expected_at].offset));
          }
          cause = "foreign_writer";
        }
        state::GapRow row =
            gap(next_.watermark, next_.watermark, cause,
                fmt::format("downstream offset {}, message {}", message.offset, message.id.to_string()));
        row.resolved_as = *duplicate ? "recorded" : std::string(to_string(Exit::kAccept));
        row.resolved_by = decision_ ? decision_->actor : "appliance";
        row.resolved_at = row.found_at;
        gaps_.push_back(std::move(row));
      }
      down_offset = message.offset + 1;
    }
  }
  next_.down_end = down_offset;
  if (adopted > 0)
    event("adopted_own_tail", fmt::format("{} messages sent before were found downstream and adopted", adopted));
  if (own_duplicates > 0) {
    event("own_duplicate",
          fmt::format("{} messages landed twice: abandoned sends of ours that were carried out late", own_duplicates));
  }
  if (adopt_strangers || adopt_unverified) {
    event("resolve", fmt::format("{} as accept by {}: continuing after downstream offset {}",
                                 info(decision_->kind).name, decision_->actor, down_offset));
  }
  if (adopted > 0 || own_duplicates > 0)
    repair_ = fmt::format("adopted {} of our own, {} landed twice", adopted, own_duplicates);
  co_return ResyncOutcome(Ready{});
}

// Was this message among the last that we wrote? An abandoned send is at most one batch; a window of 64 MiB or 100,000
// messages covers it.
base::Task<base::Result<bool>> Resync::is_own_duplicate(base::Digest digest) {
  constexpr std::uint64_t kWindowMessages = 100'000;
  constexpr std::size_t kWindowBytes = 64U * 1024 * 1024;
  if (!recent_read_) {
    recent_read_ = true;
    std::size_t bytes = 0;
    std::uint64_t end = next_.down_end;
    const std::uint64_t begin = end > kWindowMessages ? end - kWindowMessages : 0;
    while (end > begin && bytes < kWindowBytes) {
      const std::uint64_t from = end > begin + options_.read_count ? end - options_.read_count : begin;
      auto read = sink_.read(from, static_cast<std::uint32_t>(end - from));
      auto polled = co_await std::move(read);
      CO_RETURN_IF_ERROR(polled);
      for (const base::Record& record : polled->batch.records) {
        if (record.offset >= end) continue;
        recent_.push_back(base::digest_of(record));
        bytes += record.size();
      }
      end = from;
    }
  }
  co_return std::ranges::find(recent_, digest) != recent_.end();
}

}  // namespace replicator
