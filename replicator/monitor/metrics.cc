#include "replicator/monitor/metrics.h"

#include <initializer_list>
#include <string>
#include <unordered_map>

#include <prometheus/metric_family.h>

#include "base/check.h"

namespace replicator {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

// Gathers samples by family, in the order of metric::kAll.
class Samples {
 public:
  Samples() {
    for (const MetricInfo& info : metric::kAll) {
      prometheus::MetricFamily family;
      family.name = info.name;
      family.help = info.help;
      family.type = info.kind == MetricKind::kCounter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
      index_.emplace(info.name, families_.size());
      families_.push_back(std::move(family));
    }
  }

  // `values` belong to the labels of the family, in their order.
  void add(const MetricInfo& info, double value, std::initializer_list<std::string_view> values = {}) {
    prometheus::ClientMetric sample;
    std::string_view names = info.labels;
    for (const std::string_view label : values) {
      const std::size_t comma = names.find(',');
      sample.label.push_back({std::string(names.substr(0, comma)), std::string(label)});
      names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    }
    base::check(names.empty() && (info.labels.empty() == (values.size() == 0)), "a sample has its family's labels");
    (info.kind == MetricKind::kCounter ? sample.counter.value : sample.gauge.value) = value;
    families_[index_.at(info.name)].metric.push_back(std::move(sample));
  }

  std::vector<prometheus::MetricFamily> take() {
    std::erase_if(families_, [](const auto& family) { return family.metric.empty(); });
    return std::move(families_);
  }

 private:
  std::vector<prometheus::MetricFamily> families_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

double seconds(std::uint64_t micros) { return static_cast<double>(micros) / 1e6; }

void add_partition(Samples& out, const PartitionStatus& partition) {
  const std::string& stream = partition.key.topic.stream;
  const std::string& topic = partition.key.topic.topic;
  const std::string number = std::to_string(partition.key.partition);
  const auto add = [&](const MetricInfo& info, double value) { out.add(info, value, {stream, topic, number}); };
  const auto add_count = [&](const MetricInfo& info, std::uint64_t value) { add(info, static_cast<double>(value)); };

  out.add(metric::kPhase, 1, {stream, topic, number, to_string(partition.phase)});
  if (partition.fault.active()) out.add(metric::kFault, 1, {stream, topic, number, partition.fault.kind});
  add(metric::kPaused, partition.desired == state::Desired::kPaused ? 1 : 0);
  if (partition.lag.messages) add_count(metric::kLagMessages, *partition.lag.messages);
  if (partition.lag.micros) add(metric::kLagSeconds, seconds(*partition.lag.micros));
  if (partition.lag.observed_at != 0) add(metric::kLagObserved, seconds(partition.lag.observed_at));
  if (partition.caught_up_at != 0) add(metric::kCaughtUp, seconds(partition.caught_up_at));
  if (partition.seconds_left) add(metric::kBacklogSeconds, *partition.seconds_left);
  add_count(metric::kCommitted, partition.committed);
  add_count(metric::kAcked, partition.acked);
  add_count(metric::kPolled, partition.polled);
  if (partition.upstream_end) add_count(metric::kUpstreamEnd, *partition.upstream_end);
  if (partition.downstream_end) add_count(metric::kDownstreamEnd, *partition.downstream_end);
  add_count(metric::kQueued, partition.queued_bytes);
  add_count(metric::kCopied, partition.counters.copied);
  add_count(metric::kCopiedBytes, partition.counters.copied_bytes);
  add_count(metric::kSkipped, partition.counters.skipped);
  add_count(metric::kDuplicates, partition.counters.duplicates);
  add_count(metric::kErrors, partition.counters.errors);
  for (const auto& [cause, count] : partition.counters.errors_by_cause)
    out.add(metric::kErrorsByCause, static_cast<double>(count), {stream, topic, number, cause});
  if (partition.expiry_micros) add(metric::kExpiry, seconds(*partition.expiry_micros));
  if (partition.retention_left_micros) {
    add(metric::kRetentionLeft, static_cast<double>(*partition.retention_left_micros) / 1e6);
  }
  if (partition.pin) {
    if (partition.pin->messages) add_count(metric::kPinMessages, *partition.pin->messages);
    add(metric::kPinSeconds, seconds(partition.pin->held_micros));
    add(metric::kPinAlarm, partition.pin->alarm ? 1 : 0);
  }
}

}  // namespace

std::vector<prometheus::MetricFamily> Metrics::Collect() const {
  const auto status = board_.read();
  Samples out;
  out.add(metric::kBuild, 1, {status->version});
  if (status->started_at != 0) out.add(metric::kStarted, seconds(status->started_at));
  if (status->taken_at != 0) out.add(metric::kTaken, seconds(status->taken_at));
  out.add(metric::kState, 1, {status->state});
  out.add(metric::kLinkGeneration, static_cast<double>(status->generation));
  out.add(metric::kConnected, status->upstream.connected ? 1 : 0, {"upstream"});
  out.add(metric::kConnected, status->downstream.connected ? 1 : 0, {"downstream"});
  out.add(metric::kStoreWritable, status->store_error.empty() ? 1 : 0);
  out.add(metric::kBudget, static_cast<double>(status->budget_bytes));
  out.add(metric::kBudgetUsed, static_cast<double>(status->budget_used_bytes));
  if (status->state_free_bytes) out.add(metric::kStateFree, static_cast<double>(*status->state_free_bytes));
  for (const auto& [of, ends] : status->certificates) out.add(metric::kCertificate, seconds(ends), {of});
  for (const PartitionStatus& partition : status->partitions) {
    add_partition(out, partition);
    if (!status->ledger) continue;
    const auto open = status->ledger->open_of.find(partition.key);
    out.add(metric::kOpenGaps, open == status->ledger->open_of.end() ? 0 : static_cast<double>(open->second),
            {partition.key.topic.stream, partition.key.topic.topic, std::to_string(partition.key.partition)});
  }
  return out.take();
}

}  // namespace replicator
