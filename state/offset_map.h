// Where a message of one side is on the other: the offset map of one partition with its ledger, over all incarnations.
// Pure; says what it does not know.
//
//   upstream    0 ……… 100 ════════ 200 ▒▒▒▒ 250 ════════ 400        ▒ ledger, ═ range of the map
//   downstream        0 ══════════ 100 ░░ 103 ══════════ 253        ░ not ours
//
// Only confirmed ranges answer kConfirmed. Where several incarnations map an offset, the newest answers: it is the one
// whose histories both sides have now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "state/store.h"

namespace state {

enum class Side : std::uint8_t { kUpstream, kDownstream };

enum class Mapping : std::uint8_t {
  kConfirmed,  // `counterpart` is that message, copied in its turn or replayed
  kAssumed,    // `counterpart` was sent and its place was never confirmed
  kGap,        // upstream: it will never be copied; downstream: it is not ours. `gap` says why
  kBelow,      // below where copying began (start policy, adopted, restarted): nothing is claimed about it
  kEarlier,    // mapped by an earlier incarnation only: `counterpart` held before a restart or reset
  kNotCopied,  // at or above what is committed
  kUnknown,    // neither mapped nor in the ledger
};
std::string_view to_string(Mapping mapping);  // snake_case

struct Translation {
  Side from = Side::kUpstream;
  std::uint64_t offset = 0;
  Mapping mapping = Mapping::kUnknown;
  std::optional<std::uint64_t> counterpart;  // offset on the other side
  // First offset on the other side whose message comes at or after this one in the present incarnation: where a reader
  // that is to read `offset` next goes on. Absent when a range that is only assumed, or an open end, decides it.
  std::optional<std::uint64_t> next;
  std::uint64_t incarnation = 0;  // that answered
  std::optional<GapRow> gap;
  std::string text;  // one sentence for people
};

// The map of one incarnation, ranges ascending.
struct IncarnationMap {
  std::uint64_t incarnation = 1;
  std::vector<RangeRow> ranges;
};

class OffsetMap {
 public:
  // `incarnations`: any order. `gaps`: rows of other partitions are left out.
  OffsetMap(PartitionRow row, std::vector<IncarnationMap> incarnations, const std::vector<GapRow>& gaps);

  Translation translate(Side from, std::uint64_t offset) const;

  const PartitionRow& row() const { return row_; }
  // Of the present incarnation.
  const std::vector<RangeRow>& ranges() const { return newest_.ranges; }
  // Of the present incarnation, in order of upstream offset.
  const std::vector<GapRow>& gaps() const { return gaps_; }
  // Where the present incarnation began on each side.
  std::uint64_t up_begin() const { return up_begin_; }
  std::uint64_t down_begin() const { return down_begin_; }
  // The ledger row of the present incarnation that holds this upstream offset.
  const GapRow* gap_at(std::uint64_t up_offset) const;
  // The ledger row whose message was left out first, and replayed to this downstream offset.
  const GapRow* replayed_at(std::uint64_t down_offset) const;

 private:
  Translation from_upstream(std::uint64_t offset) const;
  Translation from_downstream(std::uint64_t offset) const;
  std::optional<std::uint64_t> next_of(Side from, std::uint64_t offset) const;
  bool answer_earlier(Translation& answer) const;

  PartitionRow row_;
  IncarnationMap newest_;
  std::vector<IncarnationMap> earlier_;  // newest first
  std::vector<GapRow> gaps_;
  std::uint64_t up_begin_ = 0, down_begin_ = 0;
};

// Reads what OffsetMap needs. kNotFound: the file has no such partition.
base::Result<OffsetMap> load_offset_map(Store& store, const base::PartitionKey& key);

}  // namespace state
