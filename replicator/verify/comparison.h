// Compares one partition, message by message, in the order of the offset map:
//
//   upstream    ══════ r1 ══════ ▒▒▒ ══════ r2 ══════        ▒ must stand in the ledger
//                   │ pair by pair        │
//   downstream  ══════ r1 ══════ ░ ══════ r2 ══════ … tail   ░ must be explained by the ledger
//
// up to what was committed when it began, so that live load is no difference; of the tail behind that, only the first
// message is looked at: it must be the next copy. Ends at the first difference. Memory: one chunk per side.
// Affinity: one io_context.
#pragma once

#include "replicator/verify/first_difference.h"
#include "replicator/verify/pace.h"
#include "replicator/verify/side_stream.h"
#include "state/async_store.h"

namespace replicator {

// Counts of all comparisons of a run.
struct Tally {
  std::uint64_t messages = 0, bytes = 0;
};

class Comparison {
 public:
  enum class Outcome : std::uint8_t {
    kEqual,
    kDifferent,  // verdict.difference
    kChanged,    // a side was rewound, or the position was, meanwhile: begin again
  };

  // References outlive it. `map`: as of now; what is committed there is compared. `up_begin`, `down_begin`: where to
  // begin; everything below is left out.
  Comparison(const state::OffsetMap& map, SideStream& upstream, SideStream& downstream, state::AsyncStore& store,
             base::Clock& clock, base::Event& stop, Pace& pace, const VerifyOptions& options, Tally& tally)
      : map_(map),
        up_(upstream),
        down_(downstream),
        store_(store),
        clock_(clock),
        stop_(stop),
        pace_(pace),
        options_(options),
        tally_(tally) {}

  // Fills `verdict`, whose up_begin and down_begin say where to begin. An error: a side can't be read, or kStopped.
  base::Task<base::Result<Outcome>> run(PartitionVerdict& verdict);

 private:
  base::Task<base::Status> fill();
  base::Task<base::Result<Outcome>> compare_range(state::RangeRow range);
  base::Task<base::Result<Outcome>> between(std::uint64_t up_end, std::uint64_t down_end);
  base::Task<base::Result<Outcome>> tail();
  base::Task<base::Result<std::uint64_t>> skip_removed(state::Side side, std::uint64_t up_offset,
                                                       std::uint64_t down_offset, std::uint64_t most);
  base::Task<base::Result<Outcome>> differs(std::uint64_t up_offset, std::uint64_t down_offset);
  base::Task<base::Result<Outcome>> confirm(Difference difference);
  base::Task<base::Result<bool>> rewound();
  base::Task<base::Status> remember_before();
  void removed(state::Side side, std::uint64_t begin, std::uint64_t end);
  void remember(const base::Digest& digest);

  const state::OffsetMap& map_;
  SideStream& up_;
  SideStream& down_;
  state::AsyncStore& store_;
  base::Clock& clock_;
  base::Event& stop_;
  Pace& pace_;
  const VerifyOptions& options_;
  Tally& tally_;
  PartitionVerdict* verdict_ = nullptr;
  Recent recent_;
  std::uint64_t up_at_ = 0, down_at_ = 0;  // everything below is dealt with
};

}  // namespace replicator
