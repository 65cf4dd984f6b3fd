// The exits that take the downstream as it is: after it was rewritten, and after the state file was lost.
#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "replicator/partition/resync.h"

namespace replicator {

namespace {
constexpr std::size_t kRunMessages = 16;            // so many equal messages in a row are no coincidence
constexpr std::uint64_t kSearchMessages = 100'000;  // of the newest ones; a send is smaller
}  // namespace

// The downstream is not what was copied. The exits of that, or the fault.
Resync::Step Resync::recreated(std::string detail) {
  if (decided(FaultKind::kDownstreamRecreated, Exit::kRecopy)) {
    auto step = restart();
    co_return co_await std::move(step);
  }
  if (decided(FaultKind::kDownstreamRecreated, Exit::kAdopt)) {
    auto step = adopt_end();
    co_return co_await std::move(step);
  }
  co_return finding(FaultKind::kDownstreamRecreated, std::move(detail));
}

// Where copying goes on: at our own newest send, when it landed after the downstream was rewritten (the next look
// adopts it from there), otherwise behind the present end. Nothing while either side does not give what it says that it
// has.
base::Task<base::Result<std::optional<Resync::Continuation>>> Resync::continuation() {
  using Found = std::optional<Continuation>;
  // What was sent last is not known any more; an upstream that ends here may be a node with an old end.
  if (up_.end <= next_.watermark) {
    if (down_.messages_count > 0 && !persists("upstream ends where copying goes on")) co_return Found();
    co_return Found({next_.watermark, down_.end});
  }
  auto looking = look(source_, next_.watermark);
  auto next = co_await std::move(looking);
  CO_RETURN_IF_ERROR(next);
  if (next->batch.empty()) co_return Found();
  const base::Digest wanted = base::digest_of(next->record());
  std::uint64_t from = down_.end > kSearchMessages ? down_.end - kSearchMessages : 0;
  std::optional<std::pair<std::uint64_t, base::Digest>> front;
  while (from < down_.end) {
    auto read_call = sink_.read(from, read_count_);
    auto polled = co_await std::move(read_call);
    CO_RETURN_IF_ERROR(polled);
    learn(polled->batch);
    if (polled->batch.empty()) {
      if (down_.messages_count > 0) co_return Found();
      break;
    }
    if (!front) front = {polled->batch.records.front().offset, base::digest_of(polled->batch.records.front())};
    for (const base::Record& record : polled->batch.records) {
      if (base::digest_of(record) == wanted) co_return Found({next_.watermark, record.offset});
    }
    from = polled->batch.records.back().offset + 1;
  }
  // The beginning of the send may have expired there: then the oldest message that is left is one of it.
  for (from = next_.watermark; front && from < up_.end && from - next_.watermark <= front->first;) {
    auto poll = source_.poll(from, read_count_);
    auto polled = co_await std::move(poll);
    CO_RETURN_IF_ERROR(polled);
    learn(polled->batch);
    if (polled->batch.empty()) co_return Found();
    for (const base::Record& record : polled->batch.records) {
      if (record.offset - next_.watermark > front->first || record.offset - next_.watermark > kSearchMessages) break;
      if (base::digest_of(record) == front->second) co_return Found({record.offset, front->first});
    }
    from = polled->batch.records.back().offset + 1;
    if (from - next_.watermark > kSearchMessages) break;
  }
  co_return Found({next_.watermark, down_.end});
}

// Goes on with the next message not yet copied, after the present end. What was copied before is named in the ledger:
// it may be there no longer.
Resync::Step Resync::adopt_end() {
  auto finding_out = continuation();
  auto found = co_await std::move(finding_out);
  CO_RETURN_IF_ERROR(found);
  if (!*found) {
    co_return ResyncOutcome(
        Behind{fmt::format("whether a send of ours stands in the downstream can't be told yet: upstream ends at {}, "
                           "downstream at {}",
                           up_.end, down_.end)});
  }
  next_.incarnation = durable_.incarnation + 1;
  next_.watermark = (**found).up_offset;
  next_.down_end = (**found).down_offset;
  if (durable_.anchor || durable_.counters.copied > 0 || next_.watermark > durable_.watermark) {
    gaps_.push_back(gap(0, next_.watermark, "downstream_recreated",
                        fmt::format("copied before the downstream was rewritten; not looked for below offset {} there",
                                    next_.down_end)));
    close(gaps_.back(), to_string(Exit::kAdopt));
  }
  next_.down_created = down_.created;
  next_.anchor.reset();
  rewinds_ = true;
  repair_ = fmt::format("adopted the downstream's end {} by {}", next_.down_end, decision_->actor);
  carried_out(fmt::format("incarnation {} goes on at upstream offset {}, downstream offset {}", next_.incarnation,
                          next_.watermark, next_.down_end));
  co_return ResyncOutcome(Ready{});
}

// The newest messages downstream, in order: enough of them, or all.
base::Task<base::Result<base::RecordBatch>> Resync::newest_downstream() {
  base::RecordBatch newest;
  const std::uint64_t wanted = std::min<std::uint64_t>(kRunMessages, down_.messages_count);
  // Offsets may have holes: reach further back until there are enough.
  for (std::uint64_t reach = kRunMessages; newest.records.size() < wanted; reach *= 2) {
    const std::uint64_t from = down_.end > reach ? down_.end - reach : 0;
    auto read_call = sink_.read(from, static_cast<std::uint32_t>(std::min<std::uint64_t>(down_.end - from, 10'000)));
    auto polled = co_await std::move(read_call);
    CO_RETURN_IF_ERROR(polled);
    newest = std::move(polled->batch);
    if (from == 0) break;
    if (reach > 10'000 || (!newest.empty() && newest.records.back().offset + 1 != down_.end)) {
      newest.records.clear();  // a short answer is no end
      break;
    }
  }
  if (!newest.empty() && newest.records.back().offset + 1 != down_.end) newest.records.clear();
  if (newest.records.size() > kRunMessages)
    newest.records.erase(newest.records.begin(), newest.records.end() - kRunMessages);
  co_return newest;
}

// Reads all of the upstream, and counts where `run` stands in it.
base::Task<base::Result<Resync::Found>> Resync::find_upstream(const base::RecordBatch& run) {
  struct Seen {
    base::Digest digest;
    std::uint64_t offset;
  };
  std::vector<base::Digest> wanted;
  for (const base::Record& record : run.records) wanted.push_back(base::digest_of(record));
  Found found;
  std::deque<Seen> window;
  bool first = true;
  for (std::uint64_t from = 0; from < up_.end;) {
    auto poll = source_.poll(from, read_count_);
    auto polled = co_await std::move(poll);
    CO_RETURN_IF_ERROR(polled);
    learn(polled->batch);
    if (polled->batch.empty()) break;
    for (const base::Record& record : polled->batch.records) {
      if (std::exchange(first, false)) found.up_floor = record.offset;
      window.push_back({base::digest_of(record), record.offset});
      if (window.size() > wanted.size()) window.pop_front();
      if (!std::ranges::equal(window, wanted, {}, &Seen::digest)) continue;
      ++found.times;
      found.ranges.clear();
      for (std::size_t i = 0; i < window.size(); ++i) {
        const std::uint64_t down_offset = run.records[i].offset;
        if (!found.ranges.empty() && found.ranges.back().up_begin + found.ranges.back().length == window[i].offset &&
            found.ranges.back().down_begin + found.ranges.back().length == down_offset) {
          ++found.ranges.back().length;
        } else {
          found.ranges.push_back({window[i].offset, down_offset, 1, true});
        }
      }
    }
    from = polled->batch.records.back().offset + 1;
  }
  co_return found;
}

// The state file was lost and the copy is there: where does it end? A run that is equal on both sides, and only once,
// tells.
Resync::Step Resync::adopt_copy(std::string detail) {
  auto newest_call = newest_downstream();
  auto newest = co_await std::move(newest_call);
  CO_RETURN_IF_ERROR(newest);
  if (newest->empty()) {
    co_return ResyncOutcome(
        Behind{fmt::format("downstream says that it ends at {} and gives nothing of that", down_.end)});
  }
  auto find_call = find_upstream(*newest);
  auto found = co_await std::move(find_call);
  CO_RETURN_IF_ERROR(found);
  const base::Record& last = newest->records.back();
  const std::uint64_t down_begin = newest->records.front().offset;
  if (found->times != 1) {
    co_return finding(
        FaultKind::kDownstreamNotEmpty,
        fmt::format("{}; adopt was refused: the newest {} messages there (offsets {} to {}) stand {} upstream "
                    "(offsets {} to {})",
                    detail, newest->records.size(), down_begin, last.offset + 1,
                    found->times == 0 ? std::string("nowhere in this order") : fmt::format("{} times", found->times),
                    found->up_floor, up_.end));
  }
  const std::uint64_t up_begin = found->ranges.front().up_begin;
  ranges_ = std::move(found->ranges);
  next_.key = key_;
  next_.downstream = downstream_;
  next_.up_created = up_.created;
  next_.down_created = down_.created;
  next_.anchor =
      state::Anchor{ranges_.back().up_begin + ranges_.back().length - 1, last.offset, last.id, base::digest_of(last)};
  next_.watermark = next_.anchor->up_offset + 1;
  next_.down_end = down_.end;
  gaps_.push_back(gap(0, up_begin, "unverified",
                      fmt::format("taken as copied, not compared: downstream offsets below {}", down_begin)));
  close(gaps_.back(), to_string(Exit::kAdopt));
  rewinds_ = true;
  repair_ = fmt::format("adopted the copy up to upstream offset {} by {}", next_.watermark, decision_->actor);
  carried_out(
      fmt::format("{} messages are equal, from upstream offset {} and downstream offset {} on; copying goes on "
                  "at upstream offset {}, downstream offset {}",
                  newest->records.size(), up_begin, down_begin, next_.watermark, next_.down_end));
  co_return ResyncOutcome(Ready{});
}

}  // namespace replicator
