// Every setting of a link, with default, unit and range. Parsed from flags, IGGY_REPLICATE_* and TOML (cli/), validated
// here, then const. config/iggy-replicate.toml lists every key at its default; a test compares it with this file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "iggy/connection_string.h"
#include "replicator/model/fault.h"
#include "replicator/model/rate.h"

namespace replicator {

enum class Start : std::uint8_t { kEarliest, kLatest, kTimestamp, kOffset };
struct StartPolicy {
  Start start = Start::kEarliest;
  std::uint64_t value = 0;  // kTimestamp: µs since the epoch; kOffset: upstream offset of every partition
};

struct RenameRule {
  std::string from, to;  // "orders/*" -> "dr-orders/*": `*` stands for the same text on both sides, in order
};

enum class RetentionCopy : std::uint8_t { kUnlimited, kCopy };

// What the downstream's acknowledgment must prove before a position is committed.
enum class Ack : std::uint8_t { kMemory, kFlush, kPersisted };
std::string_view to_string(Ack ack);  // "memory", "flush", "persisted": in configuration, state file and status
std::optional<Ack> ack_from_name(std::string_view name);
// What a committed message outlives downstream, one sentence without a full stop.
std::string_view survives(Ack ack);

// Whether the position is stored upstream too, for tools that watch consumer offsets there. Never read back.
enum class UpstreamCommit : std::uint8_t { kNever, kAfterAck };

struct Config {
  // Link.
  std::string upstream_url, downstream_url;   // as given, with secrets
  std::vector<std::string> topics = {"*/*"};  // globs over stream/topic; `*` does not cross `/`
  std::vector<std::string> exclude;
  std::vector<RenameRule> rename;
  StartPolicy start;  // for partitions present when the link is made; later ones start at the earliest
  RetentionCopy retention = RetentionCopy::kUnlimited;
  bool create_topics = true;  // create what is missing downstream
  std::string marker =
      "iggy-replicate/links";  // stream/topic of the link record downstream; "off" where rights forbid it
  std::string state_file = "iggy-replicate.db";

  // Copying.
  base::Duration poll_interval = std::chrono::milliseconds(100);  // how often a caught-up topic is looked at
  base::Duration commit_interval = std::chrono::milliseconds(100);
  std::uint64_t commit_max_messages = 10'000;
  std::uint64_t batch_bytes = 4ULL * 1024 * 1024;     // target of one send; 64 KiB … 32 MiB
  std::uint64_t budget_bytes = 256ULL * 1024 * 1024;  // polled and not yet acked, whole process; >= 4 batches
  std::uint32_t uncommitted_batches_max = 64;  // acked and not yet committed, per partition, when the store fails
  Ack ack = Ack::kMemory;
  std::string provenance;  // name of the upstream cluster, stamped on each message (base/provenance.h); empty = not
  UpstreamCommit upstream_commit = UpstreamCommit::kNever;
  std::string upstream_commit_consumer;         // name; kAfterAck needs it
  std::string upstream_commit_as = "consumer";  // "consumer" (kind 1), "external_group" (kind 3; servers from 0.10 on)

  bool skip_invalid_records = false;   // leave out what the target can never take; false: that is a fault
  std::string invalid_records_export;  // folder that keeps the bytes of what is left out; empty = none

  // Exits that are taken without a person, at most three times an hour per partition. Never kRetry.
  std::map<FaultKind, Exit> policies;

  ThrottleRules throttle;  // how fast may be read; what is near its end goes before what catches up

  // Time.
  base::Duration connect_timeout = std::chrono::seconds(5);
  base::Duration read_timeout = std::chrono::seconds(30);
  base::Duration drain_timeout = std::chrono::seconds(10);
  base::Duration reconcile_interval = std::chrono::seconds(5);
  base::Duration confirm_for = std::chrono::seconds(5);  // how long evidence of absence must persist
  base::Duration retry_initial_backoff = std::chrono::seconds(1);
  base::Duration retry_max_backoff = std::chrono::seconds(30);
  std::uint32_t retry_max_attempts = 0;  // retries in a row without progress, then a partition is a fault; 0 = no end
  base::Duration stuck_after = std::chrono::seconds(30);
  base::Duration pin_alarm_after = std::chrono::hours(1);  // a stored upstream offset that holds back retention
  base::Duration fence_timeout =
      std::chrono::seconds(10);  // how long to wait for a dead connection to leave the client list

  // Consumers, whose stored offsets go along (replicator/consumers/).
  std::vector<std::string> consumers;                           // names; the server lists none
  bool consumer_groups = true;                                  // all groups of the copied topics
  std::vector<std::string> external_groups;                     // refused: no server that we speak to has them
  base::Duration consumer_interval = std::chrono::seconds(10);  // 0 = only when asked

  // Operating.
  std::string admin_address = "127.0.0.1:8095";    // gRPC; port 0 = any, printed in the log
  std::string admin_tls_cert, admin_tls_key;       // PEM files; needed (or a token) to bind beyond loopback
  std::string admin_token_file;                    // bearer token
  std::string metrics_address = "127.0.0.1:8096";  // "off" = none
  std::string log_format = "text";                 // text | json
  std::string log_level = "info";
  bool until_caught_up = false;
};

// All problems at once, each with its key: "copy.batch_bytes: 1 KiB is below 64 KiB". Empty = valid. Also parses both
// URLs.
std::vector<std::string> validate(const Config& config);

}  // namespace replicator
