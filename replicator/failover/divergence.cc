#include "replicator/failover/divergence.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/digest.h"

namespace replicator {
namespace {

constexpr std::uint32_t kReadCount = 500;

// Reads a side onwards, one message at a time.
class Cursor {
 public:
  Cursor(const LogSide& side, std::uint64_t from) : side_(side), next_(from) {}
  // None at the end. Valid until the next call.
  base::Task<base::Result<const base::Record*>> peek() {
    const base::Record* const none = nullptr;
    if (at_ == batch_.records.size()) {
      if (next_ >= side_.end) co_return none;
      auto reading = side_.read(next_, kReadCount);
      auto batch = co_await std::move(reading);
      CO_RETURN_IF_ERROR(batch);
      batch_ = std::move(*batch);
      at_ = 0;
      if (batch_.empty()) {
        next_ = side_.end;
        co_return none;
      }
      next_ = batch_.records.back().offset + 1;
    }
    const base::Record* const record = &batch_.records[at_];
    if (record->offset >= side_.end) co_return none;
    co_return record;
  }
  void pop() { ++at_; }

 private:
  const LogSide& side_;
  std::uint64_t next_;
  base::RecordBatch batch_;
  std::size_t at_ = 0;
};

struct DigestHash {
  std::size_t operator()(const base::Digest& digest) const { return digest.low ^ digest.high; }
};

enum class At : std::uint8_t { kSame, kOther, kExpired };

base::Task<base::Result<std::optional<base::Record>>> one(const LogSide& side, std::uint64_t offset,
                                                          base::RecordBatch& keep) {
  using Found = std::optional<base::Record>;
  if (offset >= side.end) co_return Found();
  auto reading = side.read(offset, 1);
  auto batch = co_await std::move(reading);
  CO_RETURN_IF_ERROR(batch);
  keep = std::move(*batch);
  if (keep.empty()) co_return Found();
  co_return Found(keep.records.front());
}

// Whether both sides hold the same message at these offsets. kExpired: that of one side is too old to be kept.
base::Task<base::Result<At>> compare(const LogSide& up, std::uint64_t up_offset, const LogSide& down,
                                     std::uint64_t down_offset) {
  if (up_offset < up.begin || down_offset < down.begin) co_return At::kExpired;
  base::RecordBatch up_batch, down_batch;
  auto up_call = one(up, up_offset, up_batch);
  auto here = co_await std::move(up_call);
  CO_RETURN_IF_ERROR(here);
  auto down_call = one(down, down_offset, down_batch);
  auto there = co_await std::move(down_call);
  CO_RETURN_IF_ERROR(there);
  if (!*here || !*there || (*here)->offset != up_offset || (*there)->offset != down_offset) co_return At::kOther;
  co_return base::digest_of(**here) == base::digest_of(**there) ? At::kSame : At::kOther;
}

// The last message of the offset map that is the same on both sides; what expired in front of it counts as the same.
base::Task<base::Status> last_equal(const std::vector<state::RangeRow>& ranges, const LogSide& up, const LogSide& down,
                                    Divergence& found) {
  std::uint64_t mapped = 0;
  for (const state::RangeRow& range : ranges) mapped += range.length;
  const auto place = [&ranges](std::uint64_t index) {
    auto range = ranges.begin();
    for (; index >= range->length; ++range) index -= range->length;
    return std::pair(range->up_begin + index, range->down_begin + index);
  };
  std::uint64_t equal = 0;  // of the mapped messages, counted from the oldest
  std::uint64_t differs = mapped;
  while (equal < differs) {
    const std::uint64_t middle = equal + (differs - equal) / 2;
    const auto [up_offset, down_offset] = place(middle);
    auto comparing = compare(up, up_offset, down, down_offset);
    auto at = co_await std::move(comparing);
    CO_RETURN_IF_ERROR(at);
    if (*at == At::kOther) {
      differs = middle;
    } else {
      equal = middle + 1;
    }
  }
  found.lost_upstream = mapped - equal;
  if (equal > 0) {
    const auto [up_offset, down_offset] = place(equal - 1);
    found.up_common = up_offset + 1;
    found.down_common = down_offset + 1;
  } else {
    found.up_common = 0;  // nothing is as it was copied: the old primary holds another history
    found.down_common = ranges.front().down_begin;
  }
  co_return base::ok();
}

}  // namespace

base::Task<base::Result<Divergence>> find_divergence(const state::PartitionRow& row,
                                                     const std::vector<state::RangeRow>& ranges, LogSide up,
                                                     LogSide down) {
  Divergence found;
  found.up_common = row.watermark;
  found.down_common = row.down_end;
  if (row.anchor && !ranges.empty()) {
    auto comparing = compare(up, row.anchor->up_offset, down, row.anchor->down_offset);
    auto at = co_await std::move(comparing);
    CO_RETURN_IF_ERROR(at);
    if (*at == At::kOther) {
      auto searching = last_equal(ranges, up, down, found);
      auto searched = co_await std::move(searching);
      CO_RETURN_IF_ERROR(searched);
    }
  }

  Cursor old_history(up, found.up_common);
  Cursor new_history(down, found.down_common);
  for (;;) {
    auto up_call = old_history.peek();
    auto here = co_await std::move(up_call);
    CO_RETURN_IF_ERROR(here);
    auto down_call = new_history.peek();
    auto there = co_await std::move(down_call);
    CO_RETURN_IF_ERROR(there);
    if (*here == nullptr || *there == nullptr || base::digest_of(**here) != base::digest_of(**there)) break;
    found.up_common = (*here)->offset + 1;
    found.down_common = (*there)->offset + 1;
    old_history.pop();
    new_history.pop();
  }

  std::unordered_multimap<base::Digest, std::uint64_t, DigestHash> left;
  for (;;) {
    auto peeking = old_history.peek();
    auto record = co_await std::move(peeking);
    CO_RETURN_IF_ERROR(record);
    if (*record == nullptr) break;
    left.emplace(base::digest_of(**record), (*record)->offset);
    old_history.pop();
  }
  while (!left.empty()) {
    auto peeking = new_history.peek();
    auto record = co_await std::move(peeking);
    CO_RETURN_IF_ERROR(record);
    if (*record == nullptr) break;
    if (const auto same = left.find(base::digest_of(**record)); same != left.end()) {
      left.erase(same);
      ++found.landed_late;
    }
    new_history.pop();
  }
  for (const auto& [digest, offset] : left) found.orphans.push_back(offset);
  std::ranges::sort(found.orphans);
  co_return found;
}

}  // namespace replicator
