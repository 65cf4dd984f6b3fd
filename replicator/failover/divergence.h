// Where the two sides of one partition of an ended link part: what the old primary acknowledged and never gave away
// (orphans), and where the new primary's own history begins. By content; offsets only say where to look.
//
//   old primary  ├──── common ────┤├─ orphans ──┤                     up_common   first offset that is not common
//   new primary  ├──── common ────┤├─ new history … ─┤                down_common the same place on the new primary
//
//   1 the last copied message is the same on both sides, or else the last one of the offset map that is (halved: what
//     an old primary lost in its crash, or a new one lost after the failover, was its newest)
//   2 from there both are read on while they are equal: what was sent and never recorded as acknowledged
//   3 what is left of the old primary is looked for in the whole new history: a send that landed late, a producer that
//     sent again with the same id and time. What is not found is an orphan.
//
// Reads only. Memory: 40 bytes per message of step 3.
// Affinity: any one io_context.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/record.h"
#include "base/result.h"
#include "base/task.h"
#include "state/store.h"

namespace replicator {

// One side's partition: `count` messages from `from` on, fewer at the end, empty past it.
using ReadLog = std::function<base::Task<base::Result<base::RecordBatch>>(std::uint64_t from, std::uint32_t count)>;

struct LogSide {
  ReadLog read;
  std::uint64_t begin = 0;  // oldest readable offset: what is below it has expired
  std::uint64_t end =
      0;  // next offset after the newest readable message, as pinned; nothing at or above it is looked at
};

struct Divergence {
  std::uint64_t up_common = 0, down_common = 0;
  std::uint64_t lost_upstream = 0;     // copied, and no longer the same at its place on one of the sides
  std::uint64_t landed_late = 0;       // found somewhere inside the new history
  std::vector<std::uint64_t> orphans;  // offsets on the old primary, ascending
};

// `row` and `ranges` as the ended link left them; a partition that was never copied has an empty row and no ranges.
// Errors: those of reading.
base::Task<base::Result<Divergence>> find_divergence(const state::PartitionRow& row,
                                                     const std::vector<state::RangeRow>& ranges, LogSide up,
                                                     LogSide down);

}  // namespace replicator
