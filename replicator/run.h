// The three things that a command line asks of the replicator: run the link, check both ends, say what would be done.
// Blocking; one thread. The configuration is valid (validate() said so). Errors are those that end the verb as a whole:
// kConnectFailed, kCredentials, kNotIggy, kStateLocked, kStateCorrupt, kWrongLink, kFenced, kPermission, kInternal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "replicator/model/config.h"
#include "replicator/model/reading.h"
#include "replicator/model/status.h"

namespace replicator {

// What one run did to one partition.
struct PartitionReceipt {
  base::PartitionKey key;
  base::TopicName downstream;
  std::uint64_t up_begin = 0, up_end = 0;  // upstream offsets committed by this run, half-open; empty = nothing new
  std::uint64_t copied = 0, copied_bytes = 0;
  std::uint64_t skipped = 0;
  std::string digest;     // over the copied messages in order, hex; empty = none copied
  bool complete = false;  // reached the upstream end that was seen at the start
  std::string detail;     // why not: fault, paused, the last error; one sentence
};

struct RunReport {
  std::string outcome;  // "caught_up", "incomplete" (--until-caught-up ended with partitions that can't go on),
                        // "stopped" (asked to), "ended" (failover or promote: for good), "fenced" (another process
                        // writes, or the link is promoted)
  std::string detail;   // one sentence, may be empty
  std::vector<PartitionReceipt> partitions;  // sorted by key
};

// Runs until SIGINT or SIGTERM (which it handles: drains, commits, returns), or with config.until_caught_up until every
// partition has reached the upstream end seen at the start or can't go on. `settings` are shown in status as they are.
// `read_again`: the configuration anew, for SIGHUP and the admin API's Reload; called on any thread.
base::Result<RunReport> run_link(const Config& config, const std::vector<Setting>& settings,
                                 std::function<ConfigReading()> read_again);

enum class Verdict : std::uint8_t { kOk, kWarn, kFail };
struct CheckItem {
  std::string side;  // "upstream", "downstream", "state", "link"
  std::string item;  // "reachable", "server", "rights", "durability orders/events", "same cluster", "fsync" …
  Verdict verdict = Verdict::kOk;
  std::string text;  // one sentence
};
struct CheckReport {
  std::vector<CheckItem> items;  // in the order in which they were looked at
};
// A side that can't be reached is a kFail item, so that the other is looked at as well. Changes nothing on either side.
base::Result<CheckReport> check_link(const Config& config);

struct PlanLine {
  std::string topic;       // "orders/events"
  std::string downstream;  // after renaming; empty when not copied
  std::string action;      // "create", "grow", "copy", "fault", "refuse", "notice"
  std::string text;        // one sentence: counts, settings in words, or why
};
struct PlanReport {
  std::vector<PlanLine> lines;  // sorted by topic
};
base::Result<PlanReport> plan_link(const Config& config);

}  // namespace replicator
