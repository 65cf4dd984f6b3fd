// Every metric family, spelled once. Base units, `_total` for counters, labels from configuration and topology only, so
// that their number is bounded by the partitions of the link. What is unknown has no sample: it is never 0.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include <prometheus/collectable.h>

#include "replicator/model/status.h"

namespace replicator {

enum class MetricKind : std::uint8_t { kGauge, kCounter };

struct MetricInfo {
  std::string_view name;
  MetricKind kind;
  std::string_view labels;  // comma separated
  std::string_view help;
};

namespace metric {

inline constexpr std::string_view kPartition = "stream,topic,partition";

// Of the link.
inline constexpr MetricInfo kBuild{"iggy_replicate_build_info", MetricKind::kGauge, "version", "Always 1."};
inline constexpr MetricInfo kStarted{"iggy_replicate_start_time_seconds", MetricKind::kGauge, "",
                                     "When the process started, since the Unix epoch."};
inline constexpr MetricInfo kTaken{"iggy_replicate_status_time_seconds", MetricKind::kGauge, "",
                                   "When the snapshot behind these samples was made, since the Unix epoch."};
inline constexpr MetricInfo kState{"iggy_replicate_link_state", MetricKind::kGauge, "state",
                                   "1 for the present state: starting, running, draining, stopped, fenced."};
inline constexpr MetricInfo kLinkGeneration{"iggy_replicate_link_generation", MetricKind::kGauge, "",
                                            "Raised whenever a process takes the link over."};
inline constexpr MetricInfo kConnected{"iggy_replicate_connected", MetricKind::kGauge, "side",
                                       "1 while the side (upstream, downstream) is connected."};
inline constexpr MetricInfo kStoreWritable{"iggy_replicate_state_writable", MetricKind::kGauge, "",
                                           "0 while the state file can't be written."};
inline constexpr MetricInfo kBudget{"iggy_replicate_budget_bytes", MetricKind::kGauge, "",
                                    "What polled and not yet acknowledged messages may hold."};
inline constexpr MetricInfo kBudgetUsed{"iggy_replicate_budget_used_bytes", MetricKind::kGauge, "",
                                        "What they hold now."};

inline constexpr MetricInfo kStateFree{"iggy_replicate_state_free_bytes", MetricKind::kGauge, "",
                                       "Room left on the file system of the state file; absent when unknown."};
inline constexpr MetricInfo kCertificate{
    "iggy_replicate_certificate_expiry_time_seconds", MetricKind::kGauge, "of",
    "When the certificate of the upstream, downstream or admin API ends, since the Unix epoch; absent without TLS."};

// Of a partition.
inline constexpr MetricInfo kPhase{"iggy_replicate_partition_phase", MetricKind::kGauge, "stream,topic,partition,phase",
                                   "1 for the present phase; others are absent."};
inline constexpr MetricInfo kFault{"iggy_replicate_partition_fault", MetricKind::kGauge, "stream,topic,partition,kind",
                                   "1 while a person must resolve this fault; absent otherwise."};
inline constexpr MetricInfo kPaused{"iggy_replicate_partition_paused", MetricKind::kGauge, kPartition,
                                    "1 while an operator has paused it."};
inline constexpr MetricInfo kLagMessages{"iggy_replicate_lag_messages", MetricKind::kGauge, kPartition,
                                         "Messages not yet acknowledged, an upper bound; absent when unknown."};
inline constexpr MetricInfo kLagSeconds{
    "iggy_replicate_lag_seconds", MetricKind::kGauge, kPartition,
    "Age of the oldest message not yet acknowledged, 0 when caught up; absent when unknown."};
inline constexpr MetricInfo kLagObserved{"iggy_replicate_lag_observed_time_seconds", MetricKind::kGauge, kPartition,
                                         "When the upstream was last looked at, since the Unix epoch."};
inline constexpr MetricInfo kCaughtUp{"iggy_replicate_caught_up_time_seconds", MetricKind::kGauge, kPartition,
                                      "When nothing was left to copy for the last time; absent when never."};
inline constexpr MetricInfo kBacklogSeconds{
    "iggy_replicate_backlog_seconds", MetricKind::kGauge, kPartition,
    "Time until the backlog is copied at the present rate; absent when unknown."};
inline constexpr MetricInfo kCommitted{"iggy_replicate_committed_offset", MetricKind::kGauge, kPartition,
                                       "Next upstream offset after what is durably recorded as done."};
inline constexpr MetricInfo kAcked{"iggy_replicate_acked_offset", MetricKind::kGauge, kPartition,
                                   "Next upstream offset after what the downstream has acknowledged."};
inline constexpr MetricInfo kPolled{"iggy_replicate_polled_offset", MetricKind::kGauge, kPartition,
                                    "Next upstream offset after what was read."};
inline constexpr MetricInfo kUpstreamEnd{"iggy_replicate_upstream_end_offset", MetricKind::kGauge, kPartition,
                                         "Next offset of the upstream partition; absent when unknown."};
inline constexpr MetricInfo kDownstreamEnd{"iggy_replicate_downstream_end_offset", MetricKind::kGauge, kPartition,
                                           "Next offset of the downstream partition; absent when unknown."};
inline constexpr MetricInfo kQueued{"iggy_replicate_queued_bytes", MetricKind::kGauge, kPartition,
                                    "Polled and not yet acknowledged."};
inline constexpr MetricInfo kCopied{"iggy_replicate_copied_messages_total", MetricKind::kCounter, kPartition,
                                    "Messages copied since the partition entered the link, across restarts."};
inline constexpr MetricInfo kCopiedBytes{"iggy_replicate_copied_bytes_total", MetricKind::kCounter, kPartition,
                                         "Payload and user header bytes of the copied messages."};
inline constexpr MetricInfo kSkipped{"iggy_replicate_skipped_messages_total", MetricKind::kCounter, kPartition,
                                     "Messages left out by policy or accepted as lost."};
inline constexpr MetricInfo kDuplicates{"iggy_replicate_duplicate_messages_total", MetricKind::kCounter, kPartition,
                                        "Own duplicates found downstream."};
inline constexpr MetricInfo kErrors{"iggy_replicate_errors_total", MetricKind::kCounter, kPartition,
                                    "Failed attempts, whatever became of them."};
inline constexpr MetricInfo kErrorsByCause{"iggy_replicate_errors_by_cause_total", MetricKind::kCounter,
                                           "stream,topic,partition,cause",
                                           "The same by cause: the kind of error, or the fault that it became."};
inline constexpr MetricInfo kOpenGaps{"iggy_replicate_open_gaps", MetricKind::kGauge, kPartition,
                                      "Rows of the ledger that nobody has accepted; absent until the ledger was read."};
inline constexpr MetricInfo kExpiry{"iggy_replicate_upstream_expiry_seconds", MetricKind::kGauge, kPartition,
                                    "How long the upstream keeps messages; absent when for ever, or unknown."};
inline constexpr MetricInfo kRetentionLeft{
    "iggy_replicate_retention_left_seconds", MetricKind::kGauge, kPartition,
    "Time until the oldest message that is not copied may expire upstream, negative when it may be gone; absent when "
    "nothing expires, or the lag is unknown."};
inline constexpr MetricInfo kPinMessages{
    "iggy_replicate_upstream_pin_messages", MetricKind::kGauge, kPartition,
    "Upstream messages above the offset that is stored there for us; absent when none is stored, or unknown."};
inline constexpr MetricInfo kPinSeconds{
    "iggy_replicate_upstream_pin_seconds", MetricKind::kGauge, kPartition,
    "How long that offset has stood below newer messages; absent when none is stored."};
inline constexpr MetricInfo kPinAlarm{
    "iggy_replicate_upstream_pin_alarm", MetricKind::kGauge, kPartition,
    "1 while it holds back retention for longer than time.pin_alarm_after; absent when none is stored."};

inline constexpr std::array kAll = {
    kBuild,       kStarted,     kTaken,         kState,       kLinkGeneration, kConnected,     kStoreWritable,
    kBudget,      kBudgetUsed,  kStateFree,     kCertificate, kPhase,          kFault,         kPaused,
    kLagMessages, kLagSeconds,  kLagObserved,   kCaughtUp,    kBacklogSeconds, kCommitted,     kAcked,
    kPolled,      kUpstreamEnd, kDownstreamEnd, kQueued,      kCopied,         kCopiedBytes,   kSkipped,
    kDuplicates,  kErrors,      kErrorsByCause, kOpenGaps,    kExpiry,         kRetentionLeft, kPinMessages,
    kPinSeconds,  kPinAlarm,
};

}  // namespace metric

// Reads the board at scrape time. Thread-safe. The board must outlive it.
class Metrics final : public prometheus::Collectable {
 public:
  explicit Metrics(const StatusBoard& board) : board_(board) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const StatusBoard& board_;
};

}  // namespace replicator
