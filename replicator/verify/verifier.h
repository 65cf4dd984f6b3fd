// One run of `verify` over the partitions of a link, one after the other: pins what is committed at its start,
// compares, records up to where both sides were equal, and writes the receipt.
//
// Affinity: one io_context. Lifetime: all references outlive run().
#pragma once

#include <functional>
#include <memory>

#include "replicator/verify/comparison.h"

namespace replicator {

struct VerifyPair {
  std::unique_ptr<VerifySide> upstream, downstream;
};

class Verifier {
 public:
  // `open`: the two sides of a partition.
  Verifier(base::Clock& clock, base::Event& stop, state::AsyncStore& store, VerifyOptions options,
           std::function<VerifyPair(const state::PartitionRow&)> open)
      : clock_(clock), stop_(stop), store_(store), options_(std::move(options)), open_(std::move(open)) {}

  // kInvalidArgument: the glob is malformed or matches nothing. kStopped. Errors of the state file.
  base::Task<base::Result<VerifyReport>> run(VerifyRequest request);
  // Of the run under way.
  VerifyProgress progress() const;

 private:
  struct Begin {
    state::OffsetMap map;
    std::uint64_t up = 0, down = 0;
  };
  base::Task<base::Result<std::vector<base::PartitionKey>>> select(std::string glob);
  base::Task<base::Result<Begin>> begin(base::PartitionKey key, bool full);
  base::Task<base::Result<PartitionVerdict>> compare(Begin begin, Pace& pace, bool full);
  base::Task<base::Status> record(VerifyReport& report, const std::vector<state::VerifiedRow>& clean);

  base::Clock& clock_;
  base::Event& stop_;
  state::AsyncStore& store_;
  const VerifyOptions options_;
  const std::function<VerifyPair(const state::PartitionRow&)> open_;
  Tally tally_;
  VerifyProgress progress_;
  base::TimePoint started_{};
};

}  // namespace replicator
