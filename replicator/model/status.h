// What the outside may know: immutable snapshots, made by the supervisor on the I/O thread, read by admin, metrics and
// logs from any thread. Unknown is absent, never 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "replicator/model/fault.h"
#include "state/store.h"

namespace replicator {

enum class Phase : std::uint8_t {
  kStarting,  // not yet resynced
  kResync,    // reading both sides to find where it stands
  kCopying,   // backlog
  kCaughtUp,  // nothing left to copy
  kBehind,    // evidence is missing (a side answers with an old end): waits and says so
  kRetrying,  // backing off after an error
  kStuck,     // work and no progress for 30 s; `waits_for` says on what
  kPaused,
  kFault,  // only `resolve` helps
  kStopped,
};
std::string_view to_string(Phase phase);  // snake_case

struct Lag {
  std::optional<std::uint64_t> messages;  // upper bound, from offsets; absent = unknown
  std::optional<std::uint64_t>
      micros;                     // age of the oldest message not yet acked, by the upstream's clock; 0 when caught up
  std::uint64_t observed_at = 0;  // wall clock µs of the upstream view it comes from; 0 = never
  std::optional<std::uint64_t> seen_end;  // next upstream offset in that view, however old; absent = never seen
};

// Our stored offset upstream (copy.upstream_commit): segments above it are kept, whatever their age.
struct Pin {
  std::uint64_t next = 0;                 // the stored offset + 1: everything below is committed here
  std::optional<std::uint64_t> messages;  // above it upstream, an upper bound; absent = unknown
  std::uint64_t held_micros = 0;          // how long it has stood below newer messages
  bool alarm = false;                     // ... for longer than pin_alarm_after, on a topic with retention
  std::string error;                      // why it can't be moved now; empty = it can
};

struct PartitionStatus {
  base::PartitionKey key;
  base::TopicName downstream;
  Phase phase = Phase::kStarting;
  std::string waits_for;  // one sentence when it does not move; the last error when retrying
  std::uint64_t generation = 0, incarnation = 0;
  std::uint64_t committed = 0, acked = 0, polled = 0;  // next upstream offset of each position
  std::optional<std::uint64_t> upstream_end;           // next upstream offset; absent = unknown
  std::optional<std::uint64_t> downstream_end;
  Lag lag;
  state::FaultRow fault;  // active() when phase is kFault
  std::map<Exit, std::string>
      consequences;          // of the exits of this fault, in numbers; where there is something to count
  state::Counters counters;  // persisted totals plus what is not yet committed
  state::Desired desired = state::Desired::kRunning;
  std::uint64_t caught_up_at = 0;
  double messages_per_second = 0, bytes_per_second = 0;  // over the last 10 s
  double upstream_per_second = 0;                        // offsets that the upstream gave out, likewise
  std::optional<double> seconds_left;                    // of a backlog, at the present rate
  std::uint64_t queued_bytes = 0;
  std::string durability = "memory";
  std::optional<Pin> pin;
  // Of a topic whose messages expire upstream: the expiry, and what is left of it until the oldest message that is not
  // copied yet may go (negative: it may be gone); absent = nothing expires, or unknown.
  std::optional<std::uint64_t> expiry_micros;
  std::optional<std::int64_t> retention_left_micros;
  bool duplicates_possible = false;  // the downstream tail can't be read (no right): C5 does not hold
};

struct EndStatus {       // one side of the link
  std::string url;       // redacted
  std::string endpoint;  // address in use
  std::string node;      // "node-2 of 3"; empty = not a cluster
  std::string dialect;   // "legacy", "vsr-0.11", "" = not yet known
  std::string version;
  bool connected = false;
  std::string last_error;
  std::uint64_t last_seen = 0;  // wall clock µs
};

struct Setting {
  std::string key, set, effective, source;  // source: "default", "file", "environment", "flag", "run time"
};

// Ledger and audit trail, read every few seconds: for people who look, and for alerts.
struct Ledger {
  std::size_t rows = 0, open = 0;  // gaps; those that nobody has resolved
  std::map<base::PartitionKey, std::size_t> open_of;
  std::vector<state::GapRow> newest_gaps;      // newest first, open ones before others; at most kLedgerRowsMax
  std::vector<state::EventRow> newest_events;  // newest first; at most kLedgerRowsMax
};
inline constexpr std::size_t kLedgerRowsMax = 50;

struct LinkStatus {
  std::string link_id;
  std::string state = "starting";  // starting, running, draining, stopped, fenced
  std::string state_detail;
  std::uint64_t generation = 0;
  std::string version;                         // of this program
  std::uint64_t started_at = 0, taken_at = 0;  // wall clock µs
  EndStatus upstream, downstream;
  std::string state_file;
  std::string store_error;  // not empty: the state file can't be written now
  std::uint64_t budget_bytes = 0, budget_used_bytes = 0;
  std::vector<PartitionStatus> partitions;  // sorted by key
  std::vector<std::string> notices;         // drift, deleted topics, unmatched rules …: one sentence each
  std::vector<Setting> settings;
  std::shared_ptr<const Ledger> ledger;               // none = not read yet
  std::optional<std::uint64_t> state_free_bytes;      // of the file system that holds the state file
  std::map<std::string, std::uint64_t> certificates;  // "upstream", "downstream", "admin" -> not valid after, wall µs
};

// Single writer, many readers.
class StatusBoard {
 public:
  void publish(std::shared_ptr<const LinkStatus> status) { current_.store(std::move(status)); }
  // Never null.
  std::shared_ptr<const LinkStatus> read() const { return current_.load(); }

 private:
  std::atomic<std::shared_ptr<const LinkStatus>> current_ = std::make_shared<const LinkStatus>();
};

}  // namespace replicator
