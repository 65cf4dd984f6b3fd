#include "state/offset_map.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace state {
namespace {

std::uint64_t begin_of(Side side, const RangeRow& range) {
  return side == Side::kUpstream ? range.up_begin : range.down_begin;
}

Side other(Side side) { return side == Side::kUpstream ? Side::kDownstream : Side::kUpstream; }

// The first range that ends above `offset` on `side`. Both columns ascend: downstream is appended to.
std::vector<RangeRow>::const_iterator first_above(const std::vector<RangeRow>& ranges, Side side,
                                                  std::uint64_t offset) {
  return std::ranges::partition_point(
      ranges, [&](const RangeRow& range) { return begin_of(side, range) + range.length <= offset; });
}

const RangeRow* range_of(const std::vector<RangeRow>& ranges, Side side, std::uint64_t offset) {
  const auto found = first_above(ranges, side, offset);
  return found != ranges.end() && begin_of(side, *found) <= offset ? &*found : nullptr;
}

std::uint64_t counterpart(const RangeRow& range, Side from, std::uint64_t offset) {
  return begin_of(other(from), range) + (offset - begin_of(from, range));
}

// A ledger row about a downstream message that is no copy: it takes no upstream offset.
bool is_stranger(const GapRow& gap) { return gap.up_begin == gap.up_end; }

// A message that was left out, and stands behind later ones now.
bool is_replayed(const GapRow& gap) { return gap.resolved_as == "replayed" && gap.down_offset; }

std::string span_of(const GapRow& gap) {
  return "[" + std::to_string(gap.up_begin) + ", " + std::to_string(gap.up_end) + ")";
}

std::string resolution_of(const GapRow& gap) {
  return gap.resolved_as.empty() ? "open" : gap.resolved_as + " by " + gap.resolved_by;
}

}  // namespace

std::string_view to_string(Mapping mapping) {
  switch (mapping) {
    case Mapping::kConfirmed:
      return "confirmed";
    case Mapping::kAssumed:
      return "assumed";
    case Mapping::kGap:
      return "gap";
    case Mapping::kBelow:
      return "below";
    case Mapping::kEarlier:
      return "earlier";
    case Mapping::kNotCopied:
      return "not_copied";
    case Mapping::kUnknown:
      return "unknown";
  }
  base::check(false, "every mapping has a name");
  return {};
}

OffsetMap::OffsetMap(PartitionRow row, std::vector<IncarnationMap> incarnations, const std::vector<GapRow>& gaps)
    : row_(std::move(row)) {
  newest_.incarnation = row_.incarnation;
  for (IncarnationMap& map : incarnations) {
    if (map.incarnation == row_.incarnation) {
      newest_ = std::move(map);
    } else {
      earlier_.push_back(std::move(map));
    }
  }
  std::ranges::sort(earlier_, std::greater{}, &IncarnationMap::incarnation);
  for (const GapRow& gap : gaps) {
    if (gap.key == row_.key && gap.incarnation == row_.incarnation) gaps_.push_back(gap);
  }
  std::ranges::sort(gaps_, {}, [](const GapRow& gap) { return std::pair(gap.up_begin, gap.id); });
  up_begin_ = row_.watermark;
  down_begin_ = row_.down_end;
  if (!newest_.ranges.empty()) {
    up_begin_ = newest_.ranges.front().up_begin;
    down_begin_ = newest_.ranges.front().down_begin;
  }
  // What was left out before the first copy belongs to this incarnation as well.
  for (const GapRow& gap : gaps_) up_begin_ = std::min(up_begin_, gap.up_begin);
}

Translation OffsetMap::translate(Side from, std::uint64_t offset) const {
  Translation answer = from == Side::kUpstream ? from_upstream(offset) : from_downstream(offset);
  answer.from = from;
  answer.offset = offset;
  answer.next = next_of(from, offset);
  if (answer.incarnation == 0) answer.incarnation = row_.incarnation;
  return answer;
}

const GapRow* OffsetMap::gap_at(std::uint64_t up_offset) const {
  for (const GapRow& gap : gaps_) {
    if (gap.up_begin <= up_offset && up_offset < gap.up_end) return &gap;
  }
  return nullptr;
}

const GapRow* OffsetMap::replayed_at(std::uint64_t down_offset) const {
  const auto found = std::ranges::find_if(
      gaps_, [&](const GapRow& gap) { return is_replayed(gap) && gap.down_offset == down_offset; });
  return found == gaps_.end() ? nullptr : &*found;
}

// Nothing of the present incarnation knows the offset: an earlier one may. REQUIRES: from and offset are set.
bool OffsetMap::answer_earlier(Translation& answer) const {
  for (const IncarnationMap& map : earlier_) {
    const RangeRow* const range = range_of(map.ranges, answer.from, answer.offset);
    if (range == nullptr) continue;
    answer.mapping = Mapping::kEarlier;
    answer.counterpart = counterpart(*range, answer.from, answer.offset);
    answer.incarnation = map.incarnation;
    answer.text = "mapped by incarnation " + std::to_string(map.incarnation) + " only, the present one is " +
                  std::to_string(row_.incarnation) +
                  ": a restart or reset lies between, and the offset may hold another message now";
    return true;
  }
  return false;
}

Translation OffsetMap::from_upstream(std::uint64_t offset) const {
  Translation answer;
  answer.from = Side::kUpstream;
  answer.offset = offset;
  if (const RangeRow* const range = range_of(newest_.ranges, Side::kUpstream, offset)) {
    answer.mapping = range->confirmed ? Mapping::kConfirmed : Mapping::kAssumed;
    answer.counterpart = counterpart(*range, Side::kUpstream, offset);
    answer.text = range->confirmed ? "the downstream confirmed it there"
                                   : "sent there, and the downstream has not confirmed where it stands";
  } else if (const GapRow* const gap = gap_at(offset); gap != nullptr && is_replayed(*gap)) {
    answer.mapping = Mapping::kConfirmed;
    answer.counterpart = gap->down_offset;
    answer.text = "left out at first, and replayed there: ledger row " + std::to_string(gap->id);
  } else if (gap != nullptr) {
    answer.mapping = Mapping::kGap;
    answer.gap = *gap;
    answer.text = "never copied: ledger row " + std::to_string(gap->id) + ", " + gap->cause + " " + span_of(*gap) +
                  ", " + resolution_of(*gap);
  } else if (offset >= row_.watermark) {
    answer.mapping = Mapping::kNotCopied;
    answer.text = "not yet copied: the watermark is " + std::to_string(row_.watermark);
  } else if (answer_earlier(answer)) {
    return answer;
  } else if (offset < up_begin_) {
    answer.mapping = Mapping::kBelow;
    answer.text = "below upstream offset " + std::to_string(up_begin_) + ", where copying began: nothing is claimed";
  } else {
    answer.text = "neither copied nor in the ledger";
  }
  return answer;
}

Translation OffsetMap::from_downstream(std::uint64_t offset) const {
  Translation answer;
  answer.from = Side::kDownstream;
  answer.offset = offset;
  if (const RangeRow* const range = range_of(newest_.ranges, Side::kDownstream, offset)) {
    answer.mapping = range->confirmed ? Mapping::kConfirmed : Mapping::kAssumed;
    answer.counterpart = counterpart(*range, Side::kDownstream, offset);
    answer.text = range->confirmed ? "the downstream confirmed it there"
                                   : "sent there, and the downstream has not confirmed where it stands";
    return answer;
  }
  if (offset >= row_.down_end) {
    answer.mapping = Mapping::kNotCopied;
    answer.text =
        "not yet committed: the downstream end that belongs to the watermark is " + std::to_string(row_.down_end);
    return answer;
  }
  // Between two ranges (or behind the last) stand what was replayed, and strangers: the ledger names those at the
  // upstream offset that was next then.
  if (const GapRow* const replay = replayed_at(offset)) {
    answer.mapping = Mapping::kConfirmed;
    answer.counterpart = replay->up_begin;
    answer.text = "left out at first, and replayed there: ledger row " + std::to_string(replay->id);
    return answer;
  }
  const auto above = first_above(newest_.ranges, Side::kDownstream, offset);
  const std::uint64_t low =
      above == newest_.ranges.begin() ? up_begin_ : std::prev(above)->up_begin + std::prev(above)->length;
  const std::uint64_t high = above == newest_.ranges.end() ? row_.watermark : above->up_begin;
  const bool after_begin = above != newest_.ranges.begin();
  if (!after_begin && answer_earlier(answer)) return answer;
  for (const GapRow& gap : gaps_) {
    if (!is_stranger(gap) || gap.up_begin < low || gap.up_begin > high) continue;
    answer.mapping = Mapping::kGap;
    answer.gap = gap;
    answer.text = "no copy: ledger row " + std::to_string(gap.id) + ", " + gap.cause + " (" + gap.detail + "), " +
                  resolution_of(gap);
    return answer;
  }
  if (!after_begin && offset < down_begin_) {
    answer.mapping = Mapping::kBelow;
    answer.text =
        "below downstream offset " + std::to_string(down_begin_) + ", where copying began: nothing is claimed";
  } else {
    answer.text = "nothing that was copied stands there, and the ledger does not name it";
  }
  return answer;
}

std::optional<std::uint64_t> OffsetMap::next_of(Side from, std::uint64_t offset) const {
  const auto above = first_above(newest_.ranges, from, offset);
  if (above != newest_.ranges.end()) {
    if (!above->confirmed) return std::nullopt;
    const std::uint64_t at = std::max(offset, begin_of(from, *above));
    return counterpart(*above, from, at);
  }
  return from == Side::kUpstream ? row_.down_end : row_.watermark;
}

base::Result<OffsetMap> load_offset_map(Store& store, const base::PartitionKey& key) {
  auto row = store.partition(key);
  if (!row) return std::move(row).error();
  if (!*row) {
    return base::Error(base::ErrorCode::kNotFound, "translate", key.to_string(), "the state file has no such partition",
                       "iggy-replicate state show lists them");
  }
  std::vector<IncarnationMap> maps;
  for (std::uint64_t incarnation = 1; incarnation <= (*row)->incarnation; ++incarnation) {
    auto ranges = store.ranges(key, incarnation);
    if (!ranges) return std::move(ranges).error();
    if (!ranges->empty()) maps.push_back({incarnation, std::move(*ranges)});
  }
  auto gaps = store.gaps();
  if (!gaps) return std::move(gaps).error();
  return OffsetMap(std::move(**row), std::move(maps), *gaps);
}

}  // namespace state
