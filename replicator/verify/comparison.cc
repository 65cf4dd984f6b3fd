#include "replicator/verify/comparison.h"

#include <algorithm>
#include <utility>

#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

namespace replicator {

namespace {

constexpr std::size_t kRecentMax = 1024;
constexpr std::uint32_t kWindow = 1000;  // messages that say what kind of difference it is

base::Error stopped() { return {base::ErrorCode::kStopped, "verify", "", "asked to stop"}; }

std::vector<Seen> all_seen(const base::RecordBatch& batch) {
  std::vector<Seen> all;
  all.reserve(batch.records.size());
  for (const base::Record& record : batch.records) all.push_back(seen(record));
  return all;
}

// A row about messages downstream that are no copies stands at the upstream offset that was next then.
bool explains_strangers(const state::OffsetMap& map, std::uint64_t up_low, std::uint64_t up_high) {
  return std::ranges::any_of(map.gaps(), [&](const state::GapRow& gap) {
    return gap.up_begin == gap.up_end && gap.up_begin >= up_low && gap.up_begin <= up_high;
  });
}

}  // namespace

base::Task<base::Result<Comparison::Outcome>> Comparison::run(PartitionVerdict& verdict) {
  verdict_ = &verdict;
  up_at_ = verdict.up_begin;
  down_at_ = verdict.down_begin;
  verdict.incarnation = map_.row().incarnation;
  verdict.up_end = map_.row().watermark;
  verdict.down_end = map_.row().down_end;
  for (const state::GapRow& gap : map_.gaps()) {
    const bool replayed_here = gap.down_offset.value_or(0) >= down_at_ && gap.resolved_as == "replayed";
    if ((gap.up_end >= up_at_ && gap.up_begin <= verdict.up_end) || replayed_here) verdict.gaps.push_back(gap);
  }
  up_.seek(up_at_, verdict.up_end);
  down_.seek(down_at_, verdict.down_end);
  auto remembering = remember_before();
  auto remembered = co_await std::move(remembering);
  CO_RETURN_IF_ERROR(remembered);
  for (state::RangeRow range : map_.ranges()) {
    if (range.up_begin + range.length <= up_at_) continue;
    if (range.up_begin < up_at_) {
      const std::uint64_t done = up_at_ - range.up_begin;
      range = {up_at_, range.down_begin + done, range.length - done, range.confirmed};
    }
    verdict.ranges.push_back(range);
    auto before = between(range.up_begin, range.down_begin);
    auto outcome = co_await std::move(before);
    if (!outcome || *outcome != Outcome::kEqual) co_return outcome;
    auto comparing = compare_range(range);
    outcome = co_await std::move(comparing);
    if (!outcome || *outcome != Outcome::kEqual) co_return outcome;
    up_at_ = range.up_begin + range.length;
    down_at_ = range.down_begin + range.length;
  }
  auto behind = between(verdict.up_end, verdict.down_end);
  auto outcome = co_await std::move(behind);
  if (!outcome || *outcome != Outcome::kEqual) co_return outcome;
  auto looking = tail();
  co_return co_await std::move(looking);
}

// Both sides at once: each round trip is waited for once.
base::Task<base::Status> Comparison::fill() {
  using namespace asio::experimental::awaitable_operators;
  const std::uint64_t before = up_.bytes_read() + down_.bytes_read();
  auto both = up_.fill() && down_.fill();
  auto [upstream, downstream] = co_await std::move(both);
  CO_RETURN_IF_ERROR(upstream);
  CO_RETURN_IF_ERROR(downstream);
  auto pacing = pace_.spend(up_.bytes_read() + down_.bytes_read() - before);
  co_await std::move(pacing);
  if (stop_.is_set()) co_return stopped();
  co_return base::ok();
}

base::Task<base::Result<Comparison::Outcome>> Comparison::compare_range(state::RangeRow range) {
  for (std::uint64_t i = 0; i < range.length;) {
    if (!up_.is_ready() || !down_.is_ready()) {
      auto filling = fill();
      auto filled = co_await std::move(filling);
      CO_RETURN_IF_ERROR(filled);
    }
    const base::Record* const up = up_.front();
    const base::Record* const down = down_.front();
    const std::uint64_t up_offset = range.up_begin + i;
    const std::uint64_t down_offset = range.down_begin + i;
    const bool up_here = up != nullptr && up->offset == up_offset;
    const bool down_here = down != nullptr && down->offset == down_offset;
    if (up_here && down_here) {
      const base::Digest wanted = base::digest_of(*up);
      const base::Digest found = base::digest_of(*down);
      if (wanted == found) {
        verdict_->up_digest = base::chain(verdict_->up_digest, wanted);
        verdict_->down_digest = base::chain(verdict_->down_digest, found);
        ++verdict_->messages;
        verdict_->bytes += up->body.size();
        ++tally_.messages;
        tally_.bytes += up->body.size();
        remember(found);
        up_.pop();
        down_.pop();
        ++i;
        continue;
      }
    } else {
      auto skipping = skip_removed(up_here ? state::Side::kDownstream : state::Side::kUpstream, up_offset, down_offset,
                                   range.length - i);
      auto skipped = co_await std::move(skipping);
      CO_RETURN_IF_ERROR(skipped);
      if (*skipped > 0) {
        i += *skipped;
        tally_.messages += *skipped;
        up_.seek(range.up_begin + i, verdict_->up_end);
        down_.seek(range.down_begin + i, verdict_->down_end);
        continue;
      }
    }
    auto judging = differs(up_offset, down_offset);
    co_return co_await std::move(judging);
  }
  co_return Outcome::kEqual;
}

// How many offsets from here on this side no longer holds, for a reason that is no difference; 0 = there is none.
base::Task<base::Result<std::uint64_t>> Comparison::skip_removed(state::Side side, std::uint64_t up_offset,
                                                                 std::uint64_t down_offset, std::uint64_t most) {
  const bool upstream = side == state::Side::kUpstream;
  SideStream& stream = upstream ? up_ : down_;
  const std::uint64_t offset = upstream ? up_offset : down_offset;
  auto floor_call = stream.floor();
  auto floor = co_await std::move(floor_call);
  CO_RETURN_IF_ERROR(floor);
  const std::uint64_t end = floor->value_or(offset + most);
  if (end <= offset) co_return std::uint64_t{0};
  if (!upstream) {
    // Downstream only its retention may take what was copied. It counts from arrival, which is later than upstream.
    auto view_call = stream.view();
    auto view = co_await std::move(view_call);
    CO_RETURN_IF_ERROR(view);
    const base::Record* const message = up_.front();
    const std::uint64_t now = clock_.wall_micros();
    const bool expired =
        view->expiry_micros != 0 && (message == nullptr || message->timestamp + view->expiry_micros <= now);
    if (view->max_bytes == 0 && !expired) co_return std::uint64_t{0};
  }
  const std::uint64_t count = std::min(end - offset, most);
  removed(side, offset, offset + count);
  co_return count;
}

// What stands between two ranges on either side: the ledger must know it.
base::Task<base::Result<Comparison::Outcome>> Comparison::between(std::uint64_t up_end, std::uint64_t down_end) {
  std::uint64_t unexplained = up_at_;  // offsets that a ledger row names need no look
  while (const state::GapRow* const gap = unexplained < up_end ? map_.gap_at(unexplained) : nullptr) {
    unexplained = gap->up_end;
  }
  if (unexplained >= up_end) up_.seek(up_end, verdict_->up_end);
  const bool strangers = explains_strangers(map_, up_at_, up_end);
  while (unexplained < up_end) {
    if (!up_.is_ready()) {
      auto filling = fill();
      auto filled = co_await std::move(filling);
      CO_RETURN_IF_ERROR(filled);
    }
    const base::Record* const message = up_.front();
    if (message == nullptr || message->offset >= up_end) break;
    if (map_.gap_at(message->offset) == nullptr) {
      Difference difference{DifferenceKind::kMissing, message->offset, down_end,
                            fmt::format("message {} (upstream offset {}) was never copied, and the ledger does not "
                                        "name it; it belongs before downstream offset {}",
                                        message->id.to_string(), message->offset, down_end)};
      auto confirming = confirm(std::move(difference));
      co_return co_await std::move(confirming);
    }
    up_.pop();
  }
  while (down_at_ < down_end) {
    if (!down_.is_ready()) {
      auto filling = fill();
      auto filled = co_await std::move(filling);
      CO_RETURN_IF_ERROR(filled);
    }
    const base::Record* const message = down_.front();
    if (message == nullptr || message->offset >= down_end) break;
    if (const state::GapRow* const replay = map_.replayed_at(message->offset)) {
      if (base::digest_of(*message) != replay->digest) {
        auto confirming =
            confirm({DifferenceKind::kDifferent, replay->up_begin, message->offset,
                     fmt::format("downstream offset {} holds message {}, which is not what was replayed there from "
                                 "upstream offset {} (ledger row {})",
                                 message->offset, message->id.to_string(), replay->up_begin, replay->id)});
        co_return co_await std::move(confirming);
      }
      remember(*replay->digest);
      down_.pop();
      continue;
    }
    if (!strangers) {
      auto confirming = confirm(unexpected(up_end, seen(*message), recent_));
      co_return co_await std::move(confirming);
    }
    ++verdict_->strangers;
    down_.pop();
  }
  co_return Outcome::kEqual;
}

// Behind what was committed stands the next copy, or nothing: whatever else stands there for long is a difference.
base::Task<base::Result<Comparison::Outcome>> Comparison::tail() {
  const base::TimePoint deadline = clock_.now() + options_.confirm_for;
  while (true) {
    auto down_call = down_.look(verdict_->down_end, 1);
    auto down = co_await std::move(down_call);
    CO_RETURN_IF_ERROR(down);
    if (down->empty()) co_return Outcome::kEqual;
    const Seen found = seen(down->records.front());
    auto up_call = up_.look(verdict_->up_end, kWindow);
    auto up = co_await std::move(up_call);
    CO_RETURN_IF_ERROR(up);
    const std::vector<Seen> next = all_seen(*up);
    if (std::ranges::find(next, found.digest, &Seen::digest) != next.end()) co_return Outcome::kEqual;
    auto map_call = store_.offset_map(map_.row().key);
    auto map = co_await std::move(map_call);
    CO_RETURN_IF_ERROR(map);
    if (map->row().generation != map_.row().generation) co_return Outcome::kChanged;
    if (map->row().down_end > found.offset) co_return Outcome::kEqual;  // recorded meanwhile: the next run compares it
    const bool replaying = std::ranges::any_of(map->gaps(), [&](const state::GapRow& gap) {
      return gap.resolved_as == "replaying" && gap.digest == found.digest;
    });
    if (replaying) co_return Outcome::kEqual;
    if (clock_.now() >= deadline) {
      auto confirming = confirm(unexpected(verdict_->up_end, found, recent_));
      co_return co_await std::move(confirming);
    }
    auto wait = base::wait_until(clock_, stop_, clock_.now() + std::chrono::milliseconds(500));
    co_await std::move(wait);
    if (stop_.is_set()) co_return stopped();
  }
}

// The pair at these offsets is not equal: looks again, and at what comes after.
base::Task<base::Result<Comparison::Outcome>> Comparison::differs(std::uint64_t up_offset, std::uint64_t down_offset) {
  const std::uint32_t window = std::min(kWindow, std::max(up_.chunk_count(), 3U));
  auto up_call = up_.look(up_offset, window);
  auto up_batch = co_await std::move(up_call);
  CO_RETURN_IF_ERROR(up_batch);
  const std::vector<Seen> up = all_seen(*up_batch);
  *up_batch = {};
  auto down_call = down_.look(down_offset, window);
  auto down_batch = co_await std::move(down_call);
  CO_RETURN_IF_ERROR(down_batch);
  const std::vector<Seen> down = all_seen(*down_batch);
  *down_batch = {};
  const bool down_here = !down.empty() && down.front().offset == down_offset;
  if (up.empty() || up.front().offset != up_offset) {
    if (!down_here) co_return Outcome::kChanged;
    auto confirming =
        confirm({DifferenceKind::kExtra, up_offset, down_offset,
                 fmt::format("downstream offset {} holds message {}, which was copied from upstream offset {}, and "
                             "upstream holds nothing there any more",
                             down_offset, down.front().id.to_string(), up_offset)});
    co_return co_await std::move(confirming);
  }
  if (down_here && down.front().digest == up.front().digest) co_return Outcome::kChanged;
  auto confirming = confirm(first_difference(up_offset, down_offset, up, down, recent_));
  co_return co_await std::move(confirming);
}

// A difference counts only while the position that it is seen from still holds.
base::Task<base::Result<Comparison::Outcome>> Comparison::confirm(Difference difference) {
  auto looking = rewound();
  auto changed = co_await std::move(looking);
  CO_RETURN_IF_ERROR(changed);
  if (*changed) co_return Outcome::kChanged;
  verdict_->difference = std::move(difference);
  co_return Outcome::kDifferent;
}

base::Task<base::Result<bool>> Comparison::rewound() {
  auto row_call = store_.partition(map_.row().key);
  auto row = co_await std::move(row_call);
  CO_RETURN_IF_ERROR(row);
  co_return !*row || (*row)->generation != map_.row().generation;
}

// An incremental run begins in the middle: what stands right before is known to be equal, and may come once more.
base::Task<base::Status> Comparison::remember_before() {
  constexpr std::uint64_t kBefore = 100;
  const std::uint64_t from = std::max(map_.down_begin(), down_at_ > kBefore ? down_at_ - kBefore : 0);
  if (from >= down_at_) co_return base::ok();
  auto looking = down_.look(from, static_cast<std::uint32_t>(down_at_ - from));
  auto batch = co_await std::move(looking);
  CO_RETURN_IF_ERROR(batch);
  for (const base::Record& record : batch->records) {
    if (record.offset < down_at_) remember(base::digest_of(record));
  }
  co_return base::ok();
}

void Comparison::removed(state::Side side, std::uint64_t begin, std::uint64_t end) {
  for (Removed& known : verdict_->removed) {
    if (known.side != side || known.end != begin) continue;
    known.end = end;
    return;
  }
  verdict_->removed.push_back({side, begin, end});
}

void Comparison::remember(const base::Digest& digest) {
  recent_.push_back(digest);
  if (recent_.size() > kRecentMax) recent_.pop_front();
}

}  // namespace replicator
