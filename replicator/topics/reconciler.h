// Compares what the rules want with what is there, and makes it so downstream. One pass per call; the supervisor calls
// it every `reconcile_interval` and starts and stops pipelines by the result.
//
//   upstream topics ──rules──▶ wanted ──compare with downstream──▶ create stream, create topic, add partitions
//
// Promises: nothing is ever created upstream, nothing is ever deleted anywhere, settings of a topic that exists are
// never changed (drift is a notice). Partitions are added downstream before they are in `partitions`, so before
// anything is copied into them. "Already exists" is success. What one topic can't have stops no other: it is in
// `missing`. A topic is created with the upstream's partition count and compression, the durability options that the
// upstream reports and the downstream knows, and an expiry and size limit that are always explicit: a 0 would mean the
// server's default, and 0.8 forgets what that was at its next restart.
//
// Rights, when all are there before: upstream and downstream `read_topics`, or the stream's `read_stream`, or, where
// the rules name the topics, the topic's `read_topic`. Rules that name their streams need no list of streams. To
// create: downstream `manage_topics`, for streams `manage_streams`.
//
// Affinity: the clients' io_context. A partition that a lost reply leaves in doubt is looked at again, and by the next
// pass: a request is never repeated blindly.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/task.h"
#include "iggy/client.h"
#include "replicator/model/config.h"
#include "replicator/model/fault.h"
#include "replicator/model/rules.h"
#include "replicator/topics/upstream_topics.h"

namespace replicator {

struct WantedPartition {
  base::PartitionKey key;
  base::TopicName downstream;
  bool present_at_link_start = false;  // only then the start policy applies; others start at their first message
  friend bool operator==(const WantedPartition&, const WantedPartition&) = default;
};

// Wanted, and without a place downstream.
struct MissingPartition {
  base::PartitionKey key;
  base::TopicName downstream;
  std::string reason;  // one sentence; names the right when one is missing
  FaultKind fault = FaultKind::kTargetMissing;
};

struct Action {
  enum class Kind : std::uint8_t { kCreateStream, kCreateTopic, kGrow };
  Kind kind = Kind::kCreateTopic;
  base::TopicName downstream;  // no topic for kCreateStream
  std::string text;            // "create topic dr/events: 3 partitions, …"
};

struct Topology {
  std::vector<WantedPartition> partitions;   // there on both sides (dry run: or would be); sorted by key
  std::vector<MissingPartition> missing;     // sorted by key
  std::vector<base::PartitionKey> deleted;   // known, and no longer upstream; what was copied stays
  std::vector<base::PartitionKey> unwanted;  // known, there, and no longer wanted by the rules
  std::vector<Action> actions;               // done, or planned by a dry run; in order
  std::vector<std::string> notices;          // one sentence each: drift, retention, rules that match nothing …
  // Why a link must not start like this: two sources onto one target, a topic fed back into itself. Those partitions
  // are in `missing` as well, so a link that runs already goes on with the others.
  std::vector<std::string> refusals;
};

struct ReconcileOptions {
  bool dry_run = false;                     // looks, and says what it would do
  bool link_is_new = false;                 // first pass of a new link: everything found is present at its start
  bool same_cluster = false;                // both URLs are one cluster (marker.h)
  std::set<base::PartitionKey> known = {};  // partitions with a row in the state file
};

// REQUIRES: both clients connected once; all references outlive the call. An error is about a whole side (connection,
// time-out, credentials, stopped): nothing may be concluded, call again.
base::Task<base::Result<Topology>> reconcile(iggy::Client& upstream, iggy::Client& downstream, const Rules& rules,
                                             const Config& config, ReconcileOptions options);

// "7 days", "90 s", "for ever" / "4 GiB", "unlimited": settings as people say them. 0 is "the server's default".
std::string expiry_in_words(std::uint64_t micros);
std::string size_in_words(std::uint64_t bytes);

}  // namespace replicator
