// The downstream half of resync: is what we copied still there, and what stands behind it that we do not know of yet?
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "replicator/partition/resync.h"

namespace replicator {

namespace {
// An abandoned send is at most one batch: where to look for it, around a position.
constexpr std::uint64_t kWindowMessages = 100'000;
constexpr std::size_t kWindowBytes = 64U * 1024 * 1024;
}  // namespace

Resync::Step Resync::check_downstream() {
  using What = Look::What;
  const bool legacy = sink_.is_legacy();
  const bool created_moved = moved(down_.created, durable_.down_created, legacy);

  bool same = false;     // the anchor's message is where it was
  bool lost = false;     // the downstream no longer has it, and retention did not take it
  bool expired = false;  // retention took it

  if (durable_.anchor) {
    const state::Anchor& anchor = *durable_.anchor;
    auto looking = look(sink_, anchor.down_offset);
    auto found = co_await std::move(looking);
    CO_RETURN_IF_ERROR(found);
    switch (found->what) {
      case What::kHere:
        if (base::digest_of(found->record()) != anchor.digest) {
          std::string seen = fmt::format("downstream offset {} holds message {}, and message {} was written there",
                                         anchor.down_offset, found->record().id.to_string(), anchor.id.to_string());
          auto step = created_moved ? recreated(std::move(seen)) : step_back();
          co_return co_await std::move(step);
        }
        same = true;
        break;
      case What::kAbove: {
        // Retention eats from the front; a crash that jumps over a reservation leaves older messages below the hole.
        auto front_call = look(sink_, 0);
        auto front = co_await std::move(front_call);
        CO_RETURN_IF_ERROR(front);
        const bool nothing_below = front->what == What::kAbove && front->record().offset >= found->record().offset;
        expired = nothing_below && (legacy || down_.has_retention);
        lost = !expired;
        break;
      }
      case What::kNothing:
        if (down_.end <= anchor.down_offset) {
          lost = true;
        } else if (down_.messages_count == 0) {
          expired = legacy || down_.has_retention;
          lost = !expired;
        } else {
          co_return ResyncOutcome(Behind{fmt::format("downstream says that it ends at {} and gives nothing from {} on",
                                                     down_.end, anchor.down_offset)});
        }
        break;
      case What::kRefused:
        co_return ResyncOutcome(
            Behind{fmt::format("downstream offset {} can't be read: {}", anchor.down_offset, found->refusal)});
    }
  } else {
    lost = down_.end < durable_.down_end;
  }

  if (lost) {
    const std::string seen = fmt::format("downstream ends at {}, recorded is {}", down_.end, durable_.down_end);
    if (!persists(seen)) co_return ResyncOutcome(Behind{seen + "; looking again before believing it"});
    const bool emptied = down_.has_retention && down_.messages_count == 0;
    if (created_moved || emptied) {
      auto step = recreated(
          seen + (created_moved ? ", and its created_at is another" : ", and it is empty: expired or purged"));
      co_return co_await std::move(step);
    }
    auto step = step_back();
    co_return co_await std::move(step);
  }
  if (created_moved && !same && (durable_.anchor || durable_.counters.copied > 0)) {
    const std::string seen = fmt::format("downstream was created at {} µs, recorded is {} µs", down_.created.partition,
                                         durable_.down_created.partition);
    if (!persists(seen)) co_return ResyncOutcome(Behind{seen + "; looking again before believing it"});
    auto step = recreated(seen);
    co_return co_await std::move(step);
  }
  // What stood behind the recorded end can't be compared when nothing of it is left.
  if (expired && down_.messages_count == 0 && down_.end > durable_.down_end &&
      !decided(FaultKind::kUnverifiableTail, Exit::kAdopt)) {
    co_return finding(
        FaultKind::kUnverifiableTail,
        fmt::format("downstream was recorded up to {}, now ends at {} and holds nothing: what stood between can't be "
                    "compared",
                    durable_.down_end, down_.end));
  }
  if (same && down_.end < durable_.down_end) {
    // Only strangers' messages and replays stood behind ours, and they are gone.
    const std::string seen = fmt::format("downstream ends at {}, recorded is {}", down_.end, durable_.down_end);
    if (!persists(seen)) co_return ResyncOutcome(Behind{seen + "; looking again before believing it"});
    next_.down_end = down_.end;
    auto reopening = reopen_replays(down_.end);
    auto reopened = co_await std::move(reopening);
    CO_RETURN_IF_ERROR(reopened);
  }
  next_.down_created = down_.created;
  co_return ResyncOutcome(Ready{});
}

// The greatest downstream offset of `range` below `end` that still holds what was written there, when what was lost is
// a tail. That a message is there is not enough: a later send of ours may have taken the place of a lost one. What
// upstream no longer holds can't be compared and counts as kept; the caller sees it.
base::Task<base::Result<Resync::Kept>> Resync::last_kept(state::RangeRow range, std::uint64_t end) {
  Kept kept;
  std::uint64_t low = range.down_begin;
  std::uint64_t high = std::min(range.down_begin + range.length, end);
  std::uint64_t middle = high - 1;  // mostly all of it is there
  while (low < high) {
    auto down_call = look(sink_, middle);
    auto down = co_await std::move(down_call);
    CO_RETURN_IF_ERROR(down);
    if (down->what == Look::What::kRefused) co_return Kept{std::move(*down), {}};
    bool here = down->what == Look::What::kHere;
    if (here) {
      auto up_call = look(source_, range.up_begin + (middle - range.down_begin));
      auto up = co_await std::move(up_call);
      CO_RETURN_IF_ERROR(up);
      here = up->what != Look::What::kHere || base::digest_of(up->record()) == base::digest_of(down->record());
      if (here) kept = {std::move(*down), std::move(*up)};
    }
    (here ? low : high) = here ? middle + 1 : middle;
    middle = low + (high - low) / 2;
  }
  co_return kept;
}

// The end of our own messages that stand from `from` on, in the place of what the downstream lost: sends of ours that
// landed after that. `from` when the first is not one of them. They are sent again in their order, so each is named as
// landed twice.
base::Task<base::Result<std::uint64_t>> Resync::name_own_from(std::uint64_t from) {
  const Read poll = [this](std::uint64_t offset, std::uint32_t count) { return source_.poll(offset, count); };
  auto below_call = read_recent(poll, durable_.watermark);
  auto below = co_await std::move(below_call);
  CO_RETURN_IF_ERROR(below);
  std::size_t bytes = 0;
  std::uint64_t next = durable_.watermark;
  while (next < up_.end && next < durable_.watermark + kWindowMessages && bytes < kWindowBytes) {
    auto call = source_.poll(next, read_count_);
    auto ahead = co_await std::move(call);
    CO_RETURN_IF_ERROR(ahead);
    learn(ahead->batch);
    if (ahead->batch.empty()) break;
    for (const base::Record& record : ahead->batch.records) recent_.push_back(base::digest_of(record));
    bytes += ahead->batch.size();
    next = ahead->batch.records.back().offset + 1;
  }
  std::vector<base::Digest> window = std::exchange(recent_, {});
  const auto order = [](const base::Digest& a, const base::Digest& b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  };
  std::ranges::sort(window, order);
  while (from < down_.end) {
    auto call = sink_.read(from, read_count_);
    auto tail = co_await std::move(call);
    CO_RETURN_IF_ERROR(tail);
    learn(tail->batch);
    if (tail->batch.empty()) break;
    for (const base::Record& message : tail->batch.records) {
      if (!std::ranges::binary_search(window, base::digest_of(message), order)) co_return from;
      record_stranger(message, "own_duplicate", "recorded");
      added_.duplicates += 1;
      from = message.offset + 1;
    }
  }
  co_return from;
}

// The downstream crashed and lost acknowledged messages. The last point of the offset map that is equal on both sides
// is where to go on.
Resync::Step Resync::step_back() {
  const state::PartitionRow before = next_;
  const std::size_t gaps_before = gaps_.size();
  std::optional<std::string> unverifiable;
  auto ranges_call = store_.ranges(key_, durable_.incarnation);
  auto ranges = co_await std::move(ranges_call);
  CO_RETURN_IF_ERROR(ranges);
  std::uint64_t watermark = durable_.watermark;
  std::uint64_t down_end = durable_.down_end;
  std::optional<state::Anchor> anchor;
  for (auto range = ranges->rbegin(); range != ranges->rend() && !anchor; ++range) {
    watermark = range->up_begin;
    down_end = range->down_begin;
    if (range->down_begin >= down_.end || down_.messages_count == 0) continue;
    auto kept_call = last_kept(*range, down_.end);
    auto kept = co_await std::move(kept_call);
    CO_RETURN_IF_ERROR(kept);
    const Look& down = kept->down;
    const Look& up = kept->up;
    if (down.what == Look::What::kRefused) {
      co_return ResyncOutcome(Behind{"the downstream's last kept message can't be read: " + down.refusal});
    }
    if (down.what != Look::What::kHere) continue;
    const std::uint64_t down_offset = down.record().offset;
    const std::uint64_t up_offset = range->up_begin + (down_offset - range->down_begin);
    const base::Digest digest = base::digest_of(down.record());
    if (up.what != Look::What::kHere && !decided(FaultKind::kUnverifiableTail, Exit::kAdopt)) {
      unverifiable = fmt::format(
          "downstream lost its tail from offset {} on (recorded is {}), and upstream no longer "
          "holds offset {} to compare what is left with",
          down_offset + 1, durable_.down_end, up_offset);
    } else if (up.what != Look::What::kHere) {
      gaps_.push_back(gap(up_offset, up_offset + 1, "unverified",
                          fmt::format("downstream offset {} holds message {}, taken for its copy: upstream no longer "
                                      "holds it",
                                      down_offset, down.record().id.to_string())));
      close(gaps_.back(), to_string(Exit::kAdopt));
      carried_out(fmt::format("downstream ends at {}, {} was recorded; copying goes on at upstream offset {}",
                              down_offset + 1, durable_.down_end, up_offset + 1));
    }
    watermark = up_offset + 1;
    down_end = down_offset + 1;
    anchor = state::Anchor{up_offset, down_offset, down.record().id, digest};
  }
  const std::uint64_t begin = ranges->empty() ? durable_.down_end : ranges->front().down_begin;
  if (!anchor && down_.end < begin) {
    // Below this run of the map stands another one, of before a reset or restart: what is missing there is not known.
    if (durable_.incarnation > 1) {
      auto step = recreated(
          fmt::format("downstream ends at {}, below {} where the last reset or restart began", down_.end, begin));
      co_return co_await std::move(step);
    }
    // Whatever stands there came after everything was gone, and perhaps from us: a send of later messages that met a
    // purge. Going on behind it would put older ones after them.
    if (down_.messages_count > 0) {
      auto step = recreated(fmt::format("downstream holds {} messages and ends at {}, below {} where copying began",
                                        down_.messages_count, down_.end, begin));
      co_return co_await std::move(step);
    }
  }
  const std::uint64_t lost = durable_.watermark - watermark;
  const std::uint64_t lost_from = down_end;
  next_.caught_up_at = 0;  // what is sent again is older than that
  next_.watermark = watermark;
  next_.down_end = std::min(down_end, down_.end);
  // A stranger's message weighs more than one that can't be compared: its exit ends both.
  const auto undo = [&] {
    gaps_.resize(gaps_before);
    added_ = {};
    next_ = before;
  };
  if (down_end < down_.end && down_.messages_count > 0) {
    auto place_call = look(sink_, down_end);
    auto place = co_await std::move(place_call);
    CO_RETURN_IF_ERROR(place);
    auto naming = name_own_from(down_end);
    auto own_end = co_await std::move(naming);
    CO_RETURN_IF_ERROR(own_end);
    const bool taken = place->what == Look::What::kHere && down_end < durable_.down_end;
    if (taken && (!anchor || *own_end == down_end)) {
      // Nothing equal is left, or somebody else's message stands where ours was: that is no lost tail.
      undo();
      auto step = recreated(fmt::format("downstream offset {} holds message {}, and another one was written there",
                                        down_end, place->record().id.to_string()));
      co_return co_await std::move(step);
    }
    next_.down_end = std::max(next_.down_end, *own_end);
  }
  if (unverifiable) {
    undo();
    co_return finding(FaultKind::kUnverifiableTail, *std::move(unverifiable));
  }
  auto reopening = reopen_replays(next_.down_end);
  auto reopened = co_await std::move(reopening);
  CO_RETURN_IF_ERROR(reopened);
  next_.anchor = anchor;
  next_.down_created = down_.created;
  rewinds_ = true;
  repair_ = fmt::format("downstream_lost_tail {}: sending again from upstream offset {}", lost, watermark);
  event("downstream_lost_tail",
        fmt::format("downstream lost its tail from offset {} on; sending again from upstream offset {} ({} offsets)",
                    lost_from, watermark, lost));
  if (added_.duplicates > 0) {
    event("own_duplicate", fmt::format("{} messages were sent while that was not known: they stand before older ones, "
                                       "and are sent again in their order",
                                       added_.duplicates));
  }
  co_return ResyncOutcome(Ready{});
}

// What stands behind the recorded end: our own sends whose ack was lost (adopted), our own sends that landed a second
// time (named), or somebody else's (a fault).
Resync::Step Resync::match_tail() {
  std::uint64_t down_offset = next_.down_end;
  base::RecordBatch expected;  // upstream, from next_.watermark on
  std::size_t expected_at = 0;
  const bool accept_strangers = decided(FaultKind::kForeignWriter, Exit::kAccept);
  const bool accept_unverified = decided(FaultKind::kUnverifiableTail, Exit::kAdopt);
  const bool expires = sink_.is_legacy() || down_.has_retention;
  const std::uint64_t tail_begin = down_offset;
  bool at_tail_begin = true;
  std::uint64_t adopted = 0;
  std::uint64_t own_duplicates = 0;

  // Offsets that hold nothing at all (an unused reservation) only say where the next message will stand.
  if (down_.messages_count == 0 && down_.end > down_offset) {
    if (accept_unverified) {
      gaps_.push_back(gap(next_.watermark, next_.watermark, "unverified",
                          fmt::format("downstream offsets {} to {} are gone, uncompared", down_offset, down_.end)));
      close(gaps_.back(), to_string(Exit::kAdopt));
    }
    down_offset = down_.end;
  }
  while (down_offset < down_.end) {
    auto read_call = sink_.read(down_offset, read_count_);
    auto tail = co_await std::move(read_call);
    CO_RETURN_IF_ERROR(tail);
    learn(tail->batch);
    if (tail->batch.empty()) {
      co_return ResyncOutcome(Behind{
          fmt::format("downstream says that it ends at {} and gives nothing from {} on", down_.end, down_offset)});
    }
    for (const base::Record& message : tail->batch.records) {
      if (expected_at == expected.records.size() && up_.end > next_.watermark) {
        auto poll = source_.poll(next_.watermark, read_count_);
        auto polled = co_await std::move(poll);
        CO_RETURN_IF_ERROR(polled);
        learn(polled->batch);
        if (polled->batch.empty()) {
          co_return ResyncOutcome(Behind{
              fmt::format("upstream says that it ends at {} and gives nothing from {} on", up_.end, next_.watermark)});
        }
        expected = std::move(polled->batch);
        expected_at = 0;
      }
      const base::Digest digest = base::digest_of(message);
      const auto equal = [&](const base::Record& record) { return base::digest_of(record) == digest; };
      const auto next = expected.records.begin() + static_cast<std::ptrdiff_t>(expected_at);
      auto match = next != expected.records.end() && equal(*next) ? next : expected.records.end();
      bool replayed = false;
      bool duplicate = false;
      if (match == expected.records.end()) {
        auto replay_call = is_replay(message, digest);
        auto replay = co_await std::move(replay_call);
        CO_RETURN_IF_ERROR(replay);
        replayed = *replay;
      }
      if (match == expected.records.end() && !replayed) {
        auto duplicate_call = is_own_duplicate(digest);
        auto known = co_await std::move(duplicate_call);
        CO_RETURN_IF_ERROR(known);
        duplicate = *known;
        if (!duplicate && accept_unverified) match = std::find_if(next, expected.records.end(), equal);
      }
      if (match != expected.records.end()) {
        if (match->offset > next_.watermark && match != next) {
          gaps_.push_back(gap(next_.watermark, match->offset, "unverified",
                              "taken as copied: the downstream no longer holds what to compare with"));
          close(gaps_.back(), to_string(Exit::kAdopt));
        }
        if (!ranges_.empty() && ranges_.back().up_begin + ranges_.back().length == match->offset &&
            ranges_.back().down_begin + ranges_.back().length == message.offset) {
          ++ranges_.back().length;
        } else {
          ranges_.push_back({match->offset, message.offset, 1, true});
        }
        next_.anchor = state::Anchor{match->offset, message.offset, message.id, digest};
        next_.watermark = match->offset + 1;
        expected_at = static_cast<std::size_t>(match - expected.records.begin()) + 1;
        recent_.push_back(digest);
        added_.copied += 1;
        added_.copied_bytes += message.body.size();
        ++adopted;
      } else if (replayed) {
        recent_.push_back(digest);
        added_.copied += 1;
        added_.copied_bytes += message.body.size();
        ++adopted;
      } else if (duplicate) {
        added_.duplicates += 1;
        ++own_duplicates;
        record_stranger(message, "own_duplicate", "recorded");
      } else if (message.offset > tail_begin && at_tail_begin && expires && !accept_unverified && !accept_strangers) {
        co_return finding(
            FaultKind::kUnverifiableTail,
            fmt::format("downstream was recorded up to {} and goes on at {}: what stood between expired uncompared",
                        tail_begin, message.offset));
      } else if (next == expected.records.end()) {
        const std::string seen =
            fmt::format("downstream holds message {} at offset {}, behind all that upstream (end {}) has",
                        message.id.to_string(), message.offset, up_.end);
        if (!accept_unverified && !accept_strangers) {
          if (!persists(seen)) co_return ResyncOutcome(Behind{seen});
          co_return finding(FaultKind::kUnverifiableTail, seen);
        }
        record_stranger(message, accept_strangers ? "foreign_writer" : "unverified", to_string(decision_->exit));
      } else {
        if (!accept_strangers && !accept_unverified) {
          if (next->offset > next_.watermark && up_.has_retention) {
            co_return finding(
                FaultKind::kUnverifiableTail,
                fmt::format("downstream offset {} holds message {}, and upstream offsets {} to {}, of which it may be "
                            "one, expired uncompared",
                            message.offset, message.id.to_string(), next_.watermark, next->offset),
                next_.watermark, next->offset);
          }
          co_return finding(
              FaultKind::kForeignWriter,
              fmt::format("downstream offset {} holds message {} that is not ours; upstream's next is {} at {}",
                          message.offset, message.id.to_string(), next->id.to_string(), next->offset));
        }
        record_stranger(message, accept_strangers ? "foreign_writer" : "unverified", to_string(decision_->exit));
      }
      down_offset = message.offset + 1;
      at_tail_begin = false;
    }
  }
  next_.down_end = down_offset;
  if (adopted > 0)
    event("adopted_own_tail", fmt::format("{} messages sent before were found downstream and adopted", adopted));
  if (own_duplicates > 0) {
    event("own_duplicate",
          fmt::format("{} messages landed twice: abandoned sends of ours that were carried out late", own_duplicates));
  }
  const bool recorded = std::ranges::any_of(
      gaps_, [](const state::GapRow& row) { return row.cause == "foreign_writer" || row.cause == "unverified"; });
  if ((accept_strangers || accept_unverified) && recorded) {
    carried_out(fmt::format("continuing after downstream offset {}", down_offset));
    rewinds_ = true;
  }
  if (adopted > 0 || own_duplicates > 0)
    repair_ = fmt::format("adopted {} of our own, {} landed twice", adopted, own_duplicates);
  co_return ResyncOutcome(Ready{});
}

// A ledger row for a downstream message that is not the next copy; a run of the same kind shares one row.
void Resync::record_stranger(const base::Record& message, const std::string& cause, std::string_view resolved_as) {
  const bool continues = !gaps_.empty() && gaps_.back().cause == cause && gaps_.back().up_begin == next_.watermark &&
                         gaps_.back().up_end == next_.watermark && stranger_end_ == message.offset;
  if (!continues) {
    stranger_begin_ = message.offset;
    gaps_.push_back(gap(next_.watermark, next_.watermark, cause, ""));
    close(gaps_.back(), resolved_as);
  }
  stranger_end_ = message.offset + 1;
  gaps_.back().detail = fmt::format("downstream offsets {} to {}; the last is message {}", stranger_begin_,
                                    stranger_end_, message.id.to_string());
}

// Was this message among the last that we wrote? Where the downstream has let go of its part of the window, the
// upstream still tells.
base::Task<base::Result<bool>> Resync::is_own_duplicate(base::Digest digest) {
  if (!recent_read_) {
    recent_read_ = true;
    auto written_call = read_recent([this](std::uint64_t from, std::uint32_t count) { return sink_.read(from, count); },
                                    durable_.down_end);
    auto whole = co_await std::move(written_call);
    CO_RETURN_IF_ERROR(whole);
    if (!*whole) {
      auto copied_call = read_recent(
          [this](std::uint64_t from, std::uint32_t count) { return source_.poll(from, count); }, durable_.watermark);
      auto copied = co_await std::move(copied_call);
      CO_RETURN_IF_ERROR(copied);
    }
  }
  co_return std::ranges::find(recent_, digest) != recent_.end();
}

// A message that was left out once and is sent now: its intent was written down before. Closes its ledger row.
base::Task<base::Result<bool>> Resync::is_replay(const base::Record& message, base::Digest digest) {
  if (!replaying_) {
    auto gaps_call = store_.gaps();
    auto gaps = co_await std::move(gaps_call);
    CO_RETURN_IF_ERROR(gaps);
    std::erase_if(*gaps,
                  [this](const state::GapRow& row) { return row.key != key_ || row.resolved_as != "replaying"; });
    replaying_ = std::move(*gaps);
  }
  const auto found = std::ranges::find_if(*replaying_, [&](const state::GapRow& row) {
    return row.digest == digest && message.offset >= row.down_offset.value_or(0);
  });
  if (found == replaying_->end()) co_return false;
  gap_changes_.push_back({found->id, "replayed", found->resolved_by, clock_.wall_micros(), message.offset});
  event("replayed", fmt::format("upstream offset {}, left out before, stands at downstream offset {}", found->up_begin,
                                message.offset));
  replaying_->erase(found);
  co_return true;
}

// What was replayed above `down_end` is lost with the tail: it is wanted again.
base::Task<base::Status> Resync::reopen_replays(std::uint64_t down_end) {
  auto gaps_call = store_.gaps();
  auto gaps = co_await std::move(gaps_call);
  CO_RETURN_IF_ERROR(gaps);
  for (const state::GapRow& row : *gaps) {
    if (row.key != key_ || row.incarnation != durable_.incarnation || row.resolved_as != "replayed" ||
        row.down_offset.value_or(0) < down_end)
      continue;
    gap_changes_.push_back({row.id, "replaying", row.resolved_by, clock_.wall_micros(), down_end});
    reopened_replays_ = true;
  }
  co_return base::ok();
}

// A poll has no byte limit on the wire: the next one asks for what the sizes seen allow.
void Resync::learn(const base::RecordBatch& batch) {
  constexpr std::size_t kReadBytes = 4U * 1024 * 1024;
  if (batch.empty()) return;
  const std::size_t average = std::max<std::size_t>(batch.size() / batch.records.size(), 1);
  read_count_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(kReadBytes / average, 1, options_.read_count));
}

// Adds the digests of the window below `end`; false when its beginning is gone.
base::Task<base::Result<bool>> Resync::read_recent(Read read, std::uint64_t end) {
  std::size_t bytes = 0;
  const std::uint64_t begin = end > kWindowMessages ? end - kWindowMessages : 0;
  while (end > begin && bytes < kWindowBytes) {
    const std::uint64_t from = end > begin + read_count_ ? end - read_count_ : begin;
    auto reading = read(from, static_cast<std::uint32_t>(end - from));
    auto polled = co_await std::move(reading);
    CO_RETURN_IF_ERROR(polled);
    learn(polled->batch);
    for (const base::Record& record : polled->batch.records) {
      if (record.offset >= end) break;
      recent_.push_back(base::digest_of(record));
      bytes += record.size();
    }
    if (polled->batch.empty() || polled->batch.records.front().offset > from) co_return false;
    end = from;
  }
  co_return true;
}

}  // namespace replicator
