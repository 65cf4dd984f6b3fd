#include "replicator/admin/to_proto.h"

#include <algorithm>
#include <array>
#include <optional>

#include "replicator/model/config.h"
#include "replicator/model/fault.h"

namespace replicator {
namespace {

using base::ErrorCode;
using grpc::StatusCode;

struct Mapping {
  pb::ErrorReason reason;
  StatusCode status;
};

Mapping mapping(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMalformed:
      return {pb::ERROR_REASON_MALFORMED, StatusCode::INTERNAL};
    case ErrorCode::kConnectFailed:
      return {pb::ERROR_REASON_CONNECT_FAILED, StatusCode::UNAVAILABLE};
    case ErrorCode::kConnectionLost:
      return {pb::ERROR_REASON_CONNECTION_LOST, StatusCode::UNAVAILABLE};
    case ErrorCode::kTimeout:
      return {pb::ERROR_REASON_TIMEOUT, StatusCode::DEADLINE_EXCEEDED};
    case ErrorCode::kNotIggy:
      return {pb::ERROR_REASON_NOT_IGGY, StatusCode::FAILED_PRECONDITION};
    case ErrorCode::kUnsupported:
      return {pb::ERROR_REASON_UNSUPPORTED, StatusCode::UNIMPLEMENTED};
    case ErrorCode::kCredentials:
      return {pb::ERROR_REASON_CREDENTIALS, StatusCode::FAILED_PRECONDITION};
    case ErrorCode::kPermission:
      return {pb::ERROR_REASON_PERMISSION, StatusCode::FAILED_PRECONDITION};
    case ErrorCode::kNotFound:
      return {pb::ERROR_REASON_NOT_FOUND, StatusCode::NOT_FOUND};
    case ErrorCode::kAlreadyExists:
      return {pb::ERROR_REASON_ALREADY_EXISTS, StatusCode::ALREADY_EXISTS};
    case ErrorCode::kServerRefused:
      return {pb::ERROR_REASON_SERVER_REFUSED, StatusCode::FAILED_PRECONDITION};
    case ErrorCode::kNotAccepted:
      return {pb::ERROR_REASON_NOT_ACCEPTED, StatusCode::UNAVAILABLE};
    case ErrorCode::kUncertain:
      return {pb::ERROR_REASON_UNCERTAIN, StatusCode::UNKNOWN};
    case ErrorCode::kInvalidRecord:
      return {pb::ERROR_REASON_INVALID_RECORD, StatusCode::FAILED_PRECONDITION};
    case ErrorCode::kInvalidArgument:
      return {pb::ERROR_REASON_INVALID_ARGUMENT, StatusCode::INVALID_ARGUMENT};
    case ErrorCode::kStateCorrupt:
      return {pb::ERROR_REASON_STATE_CORRUPT, StatusCode::DATA_LOSS};
    case ErrorCode::kStateUnavailable:
      return {pb::ERROR_REASON_STATE_UNAVAILABLE, StatusCode::UNAVAILABLE};
    case ErrorCode::kStateLocked:
      return {pb::ERROR_REASON_STATE_LOCKED, StatusCode::FAILED_PRECONDITION};
    case ErrorCode::kWrongLink:
      return {pb::ERROR_REASON_WRONG_LINK, StatusCode::FAILED_PRECONDITION};
    case ErrorCode::kStaleGeneration:
      return {pb::ERROR_REASON_STALE_GENERATION, StatusCode::ABORTED};
    case ErrorCode::kFenced:
      return {pb::ERROR_REASON_FENCED, StatusCode::FAILED_PRECONDITION};
    case ErrorCode::kStopped:
      return {pb::ERROR_REASON_STOPPED, StatusCode::UNAVAILABLE};
    case ErrorCode::kInternal:
      return {pb::ERROR_REASON_INTERNAL, StatusCode::INTERNAL};
  }
  return {pb::ERROR_REASON_INTERNAL, StatusCode::INTERNAL};
}

void set_counters(pb::Counters* out, const state::Counters& counters) {
  out->set_copied(counters.copied);
  out->set_copied_bytes(counters.copied_bytes);
  out->set_skipped(counters.skipped);
  out->set_duplicates(counters.duplicates);
  out->set_errors(counters.errors);
  for (const auto& [cause, count] : counters.errors_by_cause) (*out->mutable_errors_by_cause())[cause] = count;
}

void set_end(pb::End* out, const EndStatus& end) {
  out->set_url(end.url);
  out->set_endpoint(end.endpoint);
  out->set_dialect(end.dialect);
  out->set_server_version(end.version);
  out->set_connected(end.connected);
  out->set_last_error(end.last_error);
  if (end.last_seen != 0) set_time(out->mutable_last_seen(), end.last_seen);
}

void set_totals(pb::Totals* out, const std::vector<PartitionStatus>& partitions) {
  std::array<std::uint32_t, static_cast<std::size_t>(Phase::kStopped) + 1> phases{};
  state::Counters counters;
  std::uint64_t lag_messages = 0;
  std::uint64_t lag_micros = 0;
  std::uint32_t unknown = 0;
  bool micros_known = true;
  double messages_per_second = 0;
  double bytes_per_second = 0;
  for (const PartitionStatus& partition : partitions) {
    ++phases[static_cast<std::size_t>(partition.phase)];
    add(counters, partition.counters);
    if (!partition.lag.messages) ++unknown;
    lag_messages += partition.lag.messages.value_or(0);
    if (!partition.lag.micros) micros_known = false;
    lag_micros = std::max(lag_micros, partition.lag.micros.value_or(0));
    messages_per_second += partition.messages_per_second;
    bytes_per_second += partition.bytes_per_second;
  }
  out->set_partitions(static_cast<std::uint32_t>(partitions.size()));
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (phases[i] == 0) continue;
    pb::PhaseCount* count = out->add_phases();
    count->set_phase(to_proto(static_cast<Phase>(i)));
    count->set_partitions(phases[i]);
  }
  out->set_partitions_with_unknown_lag(unknown);
  if (unknown == 0) out->set_lag_messages(lag_messages);
  if (micros_known) out->set_lag_micros(lag_micros);
  set_counters(out->mutable_counters(), counters);
  out->set_messages_per_second(messages_per_second);
  out->set_bytes_per_second(bytes_per_second);
  if (unknown == 0 && lag_messages == 0) {
    out->set_seconds_left(0);
  } else if (unknown == 0 && messages_per_second > 0) {
    out->set_seconds_left(static_cast<double>(lag_messages) / messages_per_second);
  }
}

void set_fault(pb::Fault* out, const PartitionStatus& partition) {
  const state::FaultRow& fault = partition.fault;
  out->set_kind(fault.kind);
  out->set_detail(fault.detail);
  if (fault.since != 0) set_time(out->mutable_since(), fault.since);
  out->set_upstream_begin(fault.up_begin);
  out->set_upstream_end(fault.up_end);
  const std::optional<FaultKind> kind = fault_from_name(fault.kind);
  if (!kind) return;  // written by another version of the program
  out->set_meaning(std::string(info(*kind).meaning));
  for (const Exit exit : info(*kind).exits) {
    pb::Exit* offered = out->add_exits();
    offered->set_name(std::string(to_string(exit)));
    offered->set_meaning(std::string(meaning(*kind, exit)));
    const auto found = partition.consequences.find(exit);
    if (found != partition.consequences.end()) offered->set_consequence(found->second);
  }
}

}  // namespace

pb::ErrorReason to_reason(ErrorCode code) { return mapping(code).reason; }

ErrorCode to_code(pb::ErrorReason reason) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (to_reason(code) == reason) return code;
  }
  return ErrorCode::kInternal;
}

StatusCode to_status_code(ErrorCode code) { return mapping(code).status; }

grpc::Status to_status(const base::Error& error) {
  pb::ErrorInfo details;
  details.set_reason(to_reason(error.code()));
  details.set_operation(error.operation());
  details.set_object(error.object());
  details.set_message(error.message());
  details.set_hint(error.hint());
  details.set_wire_status(error.wire_status());
  return {to_status_code(error.code()), error.to_string(), details.SerializeAsString()};
}

grpc::Status to_status(StatusCode code, pb::ErrorReason reason, std::string_view message, std::string_view hint) {
  pb::ErrorInfo details;
  details.set_reason(reason);
  details.set_message(std::string(message));
  details.set_hint(std::string(hint));
  return {code, std::string(message), details.SerializeAsString()};
}

void set_time(google::protobuf::Timestamp* time, std::uint64_t micros) {
  time->set_seconds(static_cast<std::int64_t>(micros / 1'000'000));
  time->set_nanos(static_cast<std::int32_t>(micros % 1'000'000) * 1000);
}

pb::Phase to_proto(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return pb::PHASE_STARTING;
    case Phase::kResync:
      return pb::PHASE_RESYNC;
    case Phase::kCopying:
      return pb::PHASE_COPYING;
    case Phase::kCaughtUp:
      return pb::PHASE_CAUGHT_UP;
    case Phase::kBehind:
      return pb::PHASE_BEHIND;
    case Phase::kRetrying:
      return pb::PHASE_RETRYING;
    case Phase::kStuck:
      return pb::PHASE_STUCK;
    case Phase::kPaused:
      return pb::PHASE_PAUSED;
    case Phase::kFault:
      return pb::PHASE_FAULT;
    case Phase::kStopped:
      return pb::PHASE_STOPPED;
  }
  return pb::PHASE_UNSPECIFIED;
}

pb::LinkState to_link_state(std::string_view state) {
  if (state == "starting") return pb::LINK_STATE_STARTING;
  if (state == "running") return pb::LINK_STATE_RUNNING;
  if (state == "draining") return pb::LINK_STATE_DRAINING;
  if (state == "stopped") return pb::LINK_STATE_STOPPED;
  if (state == "fenced") return pb::LINK_STATE_FENCED;
  return pb::LINK_STATE_UNSPECIFIED;
}

pb::PartitionId to_proto(const base::PartitionKey& key) {
  pb::PartitionId out;
  out.set_stream(key.topic.stream);
  out.set_topic(key.topic.topic);
  out.set_partition(key.partition);
  return out;
}

base::PartitionKey from_proto(const pb::PartitionId& id) { return {{id.stream(), id.topic()}, id.partition()}; }

pb::Link to_proto(const LinkStatus& status, bool with_settings) {
  pb::Link out;
  out.set_id(status.link_id);
  out.set_state(to_link_state(status.state));
  out.set_state_detail(status.state_detail);
  out.set_generation(status.generation);
  out.set_version(status.version);
  if (status.started_at != 0) set_time(out.mutable_started_at(), status.started_at);
  if (status.taken_at != 0) set_time(out.mutable_taken_at(), status.taken_at);
  set_end(out.mutable_upstream(), status.upstream);
  set_end(out.mutable_downstream(), status.downstream);
  out.set_state_file(status.state_file);
  out.set_store_error(status.store_error);
  out.set_budget_bytes(status.budget_bytes);
  out.set_budget_used_bytes(status.budget_used_bytes);
  set_totals(out.mutable_totals(), status.partitions);
  for (const std::string& notice : status.notices) out.add_notices(notice);
  if (!with_settings) return out;
  for (const Setting& setting : status.settings) {
    pb::Setting* copy = out.add_settings();
    copy->set_key(setting.key);
    copy->set_set(setting.set);
    copy->set_effective(setting.effective);
    copy->set_source(setting.source);
  }
  return out;
}

pb::Partition to_proto(const PartitionStatus& partition) {
  pb::Partition out;
  *out.mutable_id() = to_proto(partition.key);
  out.set_downstream_stream(partition.downstream.stream);
  out.set_downstream_topic(partition.downstream.topic);
  out.set_phase(to_proto(partition.phase));
  out.set_waits_for(partition.waits_for);
  out.set_generation(partition.generation);
  out.set_incarnation(partition.incarnation);
  out.set_committed(partition.committed);
  out.set_acked(partition.acked);
  out.set_polled(partition.polled);
  if (partition.upstream_end) out.set_upstream_end(*partition.upstream_end);
  if (partition.downstream_end) out.set_downstream_end(*partition.downstream_end);
  pb::Lag* lag = out.mutable_lag();
  if (partition.lag.messages) lag->set_messages(*partition.lag.messages);
  if (partition.lag.micros) lag->set_age_micros(*partition.lag.micros);
  if (partition.lag.observed_at != 0) set_time(lag->mutable_observed_at(), partition.lag.observed_at);
  if (partition.fault.active()) set_fault(out.mutable_fault(), partition);
  set_counters(out.mutable_counters(), partition.counters);
  out.set_paused(partition.desired == state::Desired::kPaused);
  if (partition.caught_up_at != 0) set_time(out.mutable_caught_up_at(), partition.caught_up_at);
  out.set_messages_per_second(partition.messages_per_second);
  out.set_bytes_per_second(partition.bytes_per_second);
  if (partition.seconds_left) out.set_seconds_left(*partition.seconds_left);
  out.set_queued_bytes(partition.queued_bytes);
  out.set_durability(partition.durability);
  if (const auto ack = ack_from_name(partition.durability)) out.set_durability_meaning(std::string(survives(*ack)));
  if (partition.pin) {
    pb::Pin& pin = *out.mutable_pin();
    pin.set_next(partition.pin->next);
    if (partition.pin->messages) pin.set_messages(*partition.pin->messages);
    pin.set_held_micros(partition.pin->held_micros);
    pin.set_alarm(partition.pin->alarm);
    pin.set_error(partition.pin->error);
  }
  out.set_duplicates_possible(partition.duplicates_possible);
  return out;
}

pb::Gap to_proto(const state::GapRow& row) {
  pb::Gap out;
  out.set_id(row.id);
  *out.mutable_partition() = to_proto(row.key);
  out.set_incarnation(row.incarnation);
  out.set_upstream_begin(row.up_begin);
  out.set_upstream_end(row.up_end);
  out.set_cause(row.cause);
  out.set_detail(row.detail);
  if (row.found_at != 0) set_time(out.mutable_found_at(), row.found_at);
  out.set_resolved_as(row.resolved_as);
  out.set_resolved_by(row.resolved_by);
  if (row.resolved_at != 0) set_time(out.mutable_resolved_at(), row.resolved_at);
  out.set_file(row.file);
  if (row.down_offset && row.resolved_as == "replayed") out.set_downstream_offset(*row.down_offset);
  return out;
}

pb::Event to_proto(const state::EventRow& row) {
  pb::Event out;
  out.set_id(row.id);
  if (row.at != 0) set_time(out.mutable_at(), row.at);
  out.set_kind(row.kind);
  out.set_object(row.object);
  out.set_actor(row.actor);
  out.set_detail(row.detail);
  return out;
}

pb::Loss to_proto(const Loss& loss) {
  const auto fill = [](auto* out, const auto& sum) {
    out->set_partitions(sum.partitions);
    out->set_unknown_partitions(sum.unknown);
    out->set_messages(sum.messages);
    if (sum.micros) out->set_age_micros(*sum.micros);
    out->set_unseen_messages(sum.unseen);
    if (sum.known_at != 0) set_time(out->mutable_known_at(), sum.known_at);
  };
  pb::Loss out;
  fill(&out, loss);
  out.set_worst_partition(loss.worst_partition);
  out.set_worst_messages(loss.worst_messages);
  if (loss.taken_at != 0) set_time(out.mutable_taken_at(), loss.taken_at);
  for (const TopicLoss& topic : loss.topics) {
    pb::TopicLoss* const each = out.add_topics();
    each->set_stream(topic.topic.stream);
    each->set_topic(topic.topic.topic);
    fill(each, topic);
  }
  return out;
}

pb::EndReport to_proto(const EndReport& report) {
  pb::EndReport out;
  out.set_verb(report.ending == Ending::kPromote ? "promote" : "failover");
  out.set_dry_run(report.dry_run);
  out.set_was_ended(report.was_ended);
  out.set_link_id(report.link_id);
  *out.mutable_loss() = to_proto(report.loss);
  out.set_recorded_in_state(report.recorded_in_state);
  out.set_recorded_downstream(report.recorded_downstream);
  out.set_stopped_micros(report.stopped_micros);
  out.set_recorded_micros(report.recorded_micros);
  out.set_verified(report.verified);
  out.set_consumers(report.consumers);
  for (const state::ConsumerRow& row : report.consumer_rows) *out.add_consumer_offsets() = to_proto(row);
  for (const std::string& undone : report.undone) out.add_undone(undone);
  for (const std::string& step : report.next_steps) out.add_next_steps(step);
  return out;
}

}  // namespace replicator
