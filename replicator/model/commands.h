// What an operator can ask of a running link. Called from gRPC threads: each posts to the I/O thread and waits for the
// outcome.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "replicator/model/fault.h"
#include "replicator/model/verify_report.h"
#include "state/offset_map.h"
#include "state/store.h"

namespace replicator {

struct CommandOutcome {
  std::vector<std::string> affected;  // partitions, "orders/events/3"
  std::string what;                   // what was done, or would be (dry run), one paragraph
};

// Thread-safe. Blocks up to 10 s. Errors: kInvalidArgument (no such partition, exit not of this fault, glob matches
// nothing), kStateUnavailable (nothing was changed), kStopped, kTimeout.
class Commands {
 public:
  virtual ~Commands() = default;
  // `glob` over stream/topic or stream/topic/partition. Survives a restart.
  virtual base::Result<CommandOutcome> pause(std::string glob, std::string actor, bool dry_run) = 0;
  virtual base::Result<CommandOutcome> resume(std::string glob, std::string actor, bool dry_run) = 0;
  virtual base::Result<CommandOutcome> resolve(base::PartitionKey key, Exit exit, std::string actor, bool dry_run) = 0;
  // Moves the watermark of one partition. `up_offset` = next upstream offset to copy.
  virtual base::Result<CommandOutcome> reset(base::PartitionKey key, std::uint64_t up_offset, std::string actor,
                                             bool dry_run) = 0;
  // Sends messages again that were left out as invalid, after the present end of their partitions. `ids`: ledger rows;
  // empty = all that were skipped. Durable when it returns, carried out after.
  virtual base::Result<CommandOutcome> replay(std::vector<std::int64_t> ids, std::string actor, bool dry_run) = 0;
  virtual base::Result<std::vector<state::GapRow>> gaps() = 0;
  virtual base::Result<std::vector<state::EventRow>> events(std::size_t newest) = 0;
  virtual base::Result<state::Translation> translate(base::PartitionKey key, state::Side from,
                                                     std::uint64_t offset) = 0;
  // Blocks as long as the comparison takes. `on_progress` is called on the caller's thread about twice a second; false
  // ends it (kStopped). One at a time: kNotAccepted while another runs. kInvalidArgument: the glob matches nothing.
  virtual base::Result<VerifyReport> verify(VerifyRequest request,
                                            std::function<bool(const VerifyProgress&)> on_progress) = 0;
  // As of the last look. Sorted by partition, kind, name.
  virtual base::Result<std::vector<state::ConsumerRow>> consumers() = 0;
  // Looks now, moves what may be moved, and answers with what stands then. `dry_run`: says what it would do.
  virtual base::Result<std::vector<state::ConsumerRow>> sync_consumers(std::string actor, bool dry_run) = 0;
};

}  // namespace replicator
