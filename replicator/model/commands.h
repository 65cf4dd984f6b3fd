// What an operator can ask of a running link. Called from gRPC threads: each posts to the I/O thread and waits for the
// outcome.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "replicator/model/fault.h"
#include "replicator/model/rate.h"
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
  // How fast may be read: of the link (empty glob), or of each topic that `glob` matches. Rate{} = no limit. Until the
  // next restart or reload.
  virtual base::Result<CommandOutcome> set_throttle(std::string glob, Rate rate, std::string actor, bool dry_run) = 0;
  // Reads the configuration again. `affected`: the keys that changed. kInvalidArgument: it has problems, nothing was
  // changed.
  virtual base::Result<CommandOutcome> reload(std::string actor, bool dry_run) = 0;
  virtual base::Result<std::vector<state::GapRow>> gaps() = 0;
  virtual base::Result<std::vector<state::EventRow>> events(std::size_t newest) = 0;
};

}  // namespace replicator
