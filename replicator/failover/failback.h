// The way back: after a failover (or a promotion) the old primary is there again, and a link of the other direction
// begins. This makes its state file, after the divergence of every partition was told (divergence.h).
//
//   1 look      both sides, both ends pinned; the old primary must stand still        changes nothing
//   2 export    the orphans, with their bytes (orphan_file.h)                         a new file beside the others
//   3 note      event `failback` in the state file of the ended link
//   4 purge     `rebuild` only: the old primary's topics are emptied
//   5 reverse   the state file of the reverse link, under its name only when it is whole
//
// keep:    the orphans stay where they are; the reverse link appends the new history after them. Each partition's row
//          starts at the first message of the new primary that is not common to both.
// rebuild: the old primary's topics are purged and everything is copied anew; no rows are needed.
//
// A crash at each step, and the same verb again:
//   1, 2   as if nothing had happened; a file `….part` may lie there
//   3      the same; the orphans are exported once more, into a file of another name
//   4      some topics are empty: nothing is an orphan there any more, the export of the first time is complete. The
//   rest
//          is exported again and purged
//   5      the reverse file is there, or it is not
// When the reverse file is there, the verb refuses: the reverse link may run already.
//
// A loop is impossible: the verb refuses unless the ended link's record on the new primary says that it is promoted, so
// that no process of it ever writes there again; and the reverse link refuses to start while another one brings back
// what it copies.
//
// Blocking; one thread.
#pragma once

#include <string>
#include <vector>

#include "replicator/failover/divergence.h"
#include "replicator/model/config.h"

namespace replicator {

enum class FailbackMode : std::uint8_t { kReport, kKeep, kRebuild };

struct FailbackOptions {
  FailbackMode mode = FailbackMode::kReport;
  std::string actor;
  bool dry_run = false;       // the report alone, whatever the mode
  std::string export_folder;  // empty = nothing is exported (kReport only)
  std::string reverse_file;   // state file to make; not used by kReport
};

struct PartitionDivergence {
  base::PartitionKey key;               // on the old primary
  base::TopicName downstream;           // on the new one
  bool on_old = false, on_new = false;  // the partition is there
  Divergence found;
  std::uint64_t old_end = 0, new_end = 0;  // pinned
  std::uint64_t new_messages = 0;          // offsets of the new history
};

struct FailbackReport {
  std::string link_id;
  FailbackMode mode = FailbackMode::kReport;
  bool dry_run = false;
  std::vector<PartitionDivergence> partitions;  // sorted by key
  std::uint64_t orphans = 0;
  std::string export_file;          // empty = none was written
  std::string reverse_file;         // empty = none was made
  std::vector<std::string> purged;  // topics of the old primary
  std::vector<std::string> next_steps;
};

// `config` is that of the ended link: upstream_url is the old primary, downstream_url the new one. Errors:
// kInvalidArgument (the link has not ended; the reverse file is there; the old primary still grows), kFenced (the
// record on the new primary does not say promoted), kWrongLink, those of the connections and of the state file.
base::Result<FailbackReport> failback(const Config& config, const FailbackOptions& options);

}  // namespace replicator
