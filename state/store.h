// Durable positions of one link: what has been copied, what will never be, and everything an operator or a repair did.
// Knows nothing of the wire. One writer: the store thread (sqlite_store.h); readers open the file themselves
// (read_only).
//
// Ranges are half-open. Times are µs since the Unix epoch. Offsets are plain numbers here: `up_` upstream, `down_`
// downstream.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "base/result.h"

namespace state {

// created_at of stream, topic and partition, µs; 0 = not known yet.
struct Incarnation {
  std::uint64_t stream = 0, topic = 0, partition = 0;
  friend bool operator==(const Incarnation&, const Incarnation&) = default;
};

// The last copied message as seen on both sides.
struct Anchor {
  std::uint64_t up_offset = 0, down_offset = 0;
  base::MessageId id;
  base::Digest digest;
  friend bool operator==(const Anchor&, const Anchor&) = default;
};

struct Counters {
  std::uint64_t copied = 0, copied_bytes = 0, skipped = 0, duplicates = 0, errors = 0;
  // `errors`, those since schema 3, by cause: base::to_string(ErrorCode), or the fault's kind.
  std::map<std::string, std::uint64_t> errors_by_cause;
  friend bool operator==(const Counters&, const Counters&) = default;
};
inline void add(Counters& to, const Counters& added) {
  to.copied += added.copied;
  to.copied_bytes += added.copied_bytes;
  to.skipped += added.skipped;
  to.duplicates += added.duplicates;
  to.errors += added.errors;
  for (const auto& [cause, count] : added.errors_by_cause) to.errors_by_cause[cause] += count;
}

enum class Desired : std::uint8_t { kRunning = 0, kPaused = 1 };

// A condition that only a person may resolve. `kind` is the snake_case name of replicator/model/fault.h; empty = none.
struct FaultRow {
  std::string kind;
  std::string detail;                      // one sentence: what was seen, with offsets and ids
  std::uint64_t since = 0;                 // µs
  std::uint64_t up_begin = 0, up_end = 0;  // the upstream range it concerns; empty range when it concerns none
  bool active() const { return !kind.empty(); }
  friend bool operator==(const FaultRow&, const FaultRow&) = default;
};

struct PartitionRow {
  base::PartitionKey key;        // upstream names
  base::TopicName downstream;    // names after renaming
  std::uint64_t generation = 1;  // raised by whatever rewinds or restarts the partition
  std::uint64_t incarnation =
      1;  // counts histories: raised by restart/recopy, never by a normal run; keys the offset map
  Incarnation up_created, down_created;
  std::uint64_t watermark = 0;   // next upstream offset to copy; everything below is done
  std::uint64_t down_end = 0;    // downstream end (next offset there) that belongs to the watermark
  std::optional<Anchor> anchor;  // none = virtual: nothing copied yet in this incarnation
  Desired desired = Desired::kRunning;
  FaultRow fault;
  Counters counters;
  std::uint64_t caught_up_at = 0;  // µs, last time that nothing was left to copy; 0 = never
  std::string durability = "memory";
  friend bool operator==(const PartitionRow&, const PartitionRow&) = default;
};

// One run of the offset map: [up_begin, up_begin + length) is at [down_begin, down_begin + length).
struct RangeRow {
  std::uint64_t up_begin = 0, down_begin = 0, length = 0;
  bool confirmed = true;  // false = assumed: never used to translate
  friend bool operator==(const RangeRow&, const RangeRow&) = default;
};

// Upstream offsets that will never be copied (or downstream messages that are not ours), with a cause.
struct GapRow {
  std::int64_t id = 0;  // set by the store
  base::PartitionKey key;
  std::uint64_t incarnation = 1;
  std::uint64_t up_begin = 0, up_end = 0;
  std::string cause;  // "retention", "hole", "upstream_lost", "upstream_unreadable", "unknown", "invalid_record",
                      // "own_duplicate", "foreign_writer" …
  std::string detail;
  std::uint64_t found_at = 0;
  std::string resolved_as, resolved_by;  // empty = open
  std::uint64_t resolved_at = 0;
  // Of one message that was left out (cause "invalid_record", one offset): what `gaps replay` needs.
  std::optional<base::Digest> digest = {};        // of what would have been sent
  std::string file = {};                          // holds its bytes; empty = not exported
  std::optional<std::uint64_t> down_offset = {};  // "replaying": not below this; "replayed": exactly there
  friend bool operator==(const GapRow&, const GapRow&) = default;
};

// A ledger row of the same partition goes on: "skip" → "replaying" → "replayed".
struct GapChange {
  std::int64_t id = 0;
  std::string resolved_as, resolved_by;
  std::uint64_t resolved_at = 0;
  std::optional<std::uint64_t> down_offset;
};

// Audit: every operator action and every automatic repair.
struct EventRow {
  std::int64_t id = 0;  // set by the store
  std::uint64_t at = 0;
  std::string kind;    // "resolve", "reset", "pause", "downstream_lost_tail", "upstream_created_at_moved" …
  std::string object;  // partition, topic or empty for the link
  std::string actor;   // "appliance" or user@host
  std::string detail;
  friend bool operator==(const EventRow&, const EventRow&) = default;
};

// Up to where `verify` last found both sides equal. Void when the partition's generation is another.
struct VerifiedRow {
  base::PartitionKey key;
  std::uint64_t generation = 0;
  std::uint64_t up_end = 0, down_end = 0;
  std::uint64_t at = 0;  // µs
  friend bool operator==(const VerifiedRow&, const VerifiedRow&) = default;
};

// A consumer's (or group's) stored offsets of one partition on both sides: the last processed message of each.
struct ConsumerRow {
  base::PartitionKey key;
  std::string kind = "consumer";             // "consumer" | "group"
  std::string name;                          // not empty
  std::optional<std::uint64_t> up_offset;    // as last seen upstream; absent = nothing was stored
  std::uint64_t seen_at = 0;                 // µs
  std::optional<std::uint64_t> down_offset;  // as last stored or seen downstream
  std::uint64_t synced_at = 0;               // µs, last time that it was where it belongs; 0 = never
  std::string state;                         // replicator/model/consumer_status.h
  std::string detail;                        // one sentence when it is not synced
  friend bool operator==(const ConsumerRow&, const ConsumerRow&) = default;
};

struct LinkRow {
  std::string id;                                      // random hex, made once
  std::string upstream, downstream;                    // URLs without secrets, as last used
  std::string upstream_identity, downstream_identity;  // see replicator/marker/marker.h; empty = unknown
  std::uint64_t generation = 1;                        // of the marker; raised at every take-over
  std::string state = "active";                        // "active" | "promoted"
  std::uint64_t created_at = 0;
  friend bool operator==(const LinkRow&, const LinkRow&) = default;
};

// One partition's part of a group commit, moved in one transaction. Fields that are not set keep their value.
struct PartitionCommit {
  base::PartitionKey key;
  std::uint64_t generation = 0;  // must equal the row's, else kStaleGeneration and nothing of this entry is changed
  std::uint64_t watermark = 0;   // must not be below the row's
  std::uint64_t down_end = 0;
  std::optional<Anchor> anchor;
  std::vector<RangeRow> ranges;  // appended; one that continues the last row's run extends it instead
  std::vector<GapRow> gaps;
  std::vector<GapChange> gap_changes;
  Counters added;                  // added to the row's counters
  std::uint64_t caught_up_at = 0;  // 0 = unchanged
};

// Replaces a partition row after a restart, rewind, fault, resolve or reset: generation must be larger than the stored
// one (or the row new). The offset map of the row's incarnation is cut to below `row.watermark`; older incarnations are
// kept.
struct PartitionReplace {
  PartitionRow row;
  std::vector<GapRow> gaps;      // appended
  std::vector<RangeRow> ranges;  // appended after the cut
  std::vector<GapChange> gap_changes;
  std::vector<std::int64_t> close_gaps;  // ids of ledger rows to close ...
  std::string resolved_as, resolved_by;  // ... with this
  std::uint64_t resolved_at = 0;         // µs; required when close_gaps is not empty
};

// Changes that do not touch positions: fault set or cleared, desired state, created_at, caught_up_at. Same generation.
struct PartitionNote {
  base::PartitionKey key;
  std::uint64_t generation = 0;
  std::optional<FaultRow> fault;
  std::optional<Desired> desired;
  std::optional<Incarnation> up_created, down_created;
  std::optional<std::string> durability;
  Counters added;
  std::vector<GapRow> gaps;
  std::vector<GapChange> gap_changes;
};

// One transaction, one fsync. A kStaleGeneration entry is left out and reported in `stale`; everything else commits.
struct Transaction {
  std::vector<PartitionCommit> commits;
  std::vector<PartitionReplace> replaces;
  std::vector<PartitionNote> notes;
  std::vector<EventRow> events;
  std::optional<LinkRow> link;
  std::vector<VerifiedRow> verified{};   // replace what stood there; stale when the generation is another
  std::vector<ConsumerRow> consumers{};  // replace what stood there; left out when there is no such partition
  bool empty() const {
    return commits.empty() && replaces.empty() && notes.empty() && events.empty() && !link && verified.empty() &&
           consumers.empty();
  }
};
struct Applied {
  std::vector<base::PartitionKey> stale;
};

// Blocking. Affinity: one thread at a time.
// Errors: kStateUnavailable (full, read-only, busy: repeat the same call, nothing was changed), kStateCorrupt,
// kInternal.
class Store {
 public:
  virtual ~Store() = default;
  virtual base::Result<std::optional<LinkRow>> link() = 0;
  virtual base::Result<std::vector<PartitionRow>> partitions() = 0;
  virtual base::Result<std::optional<PartitionRow>> partition(const base::PartitionKey& key) = 0;
  // Offset map of the partition's incarnation, ascending.
  virtual base::Result<std::vector<RangeRow>> ranges(const base::PartitionKey& key, std::uint64_t incarnation) = 0;
  virtual base::Result<std::vector<GapRow>> gaps() = 0;                        // newest last
  virtual base::Result<std::vector<EventRow>> events(std::size_t newest) = 0;  // the newest n, oldest of them first
  virtual base::Result<std::vector<VerifiedRow>> verified() = 0;               // ordered by key
  virtual base::Result<std::vector<ConsumerRow>> consumers() = 0;              // ordered by key, kind, name
  virtual base::Result<Applied> apply(const Transaction& transaction) = 0;
};

}  // namespace state
