// Translation, comparison and consumers as messages of the admin API.
#include "replicator/admin/to_proto.h"

namespace replicator {
namespace {

pb::Side side_of(state::Side side) { return side == state::Side::kUpstream ? pb::SIDE_UPSTREAM : pb::SIDE_DOWNSTREAM; }

// Both enums count the same words in the same order; the proto's 0 is "unspecified".
pb::Mapping mapping_of(state::Mapping mapping) { return static_cast<pb::Mapping>(static_cast<int>(mapping) + 1); }
pb::Verdict verdict_of(Verified verdict) { return static_cast<pb::Verdict>(static_cast<int>(verdict) + 1); }

pb::PartitionVerdict partition_of(const PartitionVerdict& verdict) {
  pb::PartitionVerdict out;
  *out.mutable_id() = to_proto(verdict.key);
  out.set_downstream_stream(verdict.downstream.stream);
  out.set_downstream_topic(verdict.downstream.topic);
  out.set_verdict(verdict_of(verdict.verdict));
  out.set_detail(verdict.detail);
  out.set_incarnation(verdict.incarnation);
  out.set_upstream_begin(verdict.up_begin);
  out.set_upstream_end(verdict.up_end);
  out.set_downstream_begin(verdict.down_begin);
  out.set_downstream_end(verdict.down_end);
  out.set_messages(verdict.messages);
  out.set_bytes(verdict.bytes);
  out.set_upstream_digest(verdict.up_digest.to_string());
  out.set_downstream_digest(verdict.down_digest.to_string());
  for (const state::RangeRow& range : verdict.ranges) {
    pb::MapRange* const row = out.add_ranges();
    row->set_upstream_begin(range.up_begin);
    row->set_downstream_begin(range.down_begin);
    row->set_length(range.length);
    row->set_confirmed(range.confirmed);
  }
  for (const state::GapRow& gap : verdict.gaps) *out.add_gaps() = to_proto(gap);
  out.set_strangers(verdict.strangers);
  for (const Removed& removed : verdict.removed) {
    pb::Removed* const row = out.add_removed();
    row->set_side(side_of(removed.side));
    row->set_begin(removed.begin);
    row->set_end(removed.end);
  }
  if (verdict.difference) {
    pb::Difference* const difference = out.mutable_difference();
    difference->set_kind(std::string(to_string(verdict.difference->kind)));
    difference->set_upstream_offset(verdict.difference->up_offset);
    difference->set_downstream_offset(verdict.difference->down_offset);
    difference->set_text(verdict.difference->text);
  }
  return out;
}

}  // namespace

pb::TranslateResponse to_proto(const base::PartitionKey& key, const state::Translation& translation) {
  pb::TranslateResponse out;
  *out.mutable_id() = to_proto(key);
  out.set_from(side_of(translation.from));
  out.set_offset(translation.offset);
  out.set_mapping(mapping_of(translation.mapping));
  if (translation.counterpart) out.set_counterpart(*translation.counterpart);
  if (translation.next) out.set_next(*translation.next);
  out.set_incarnation(translation.incarnation);
  if (translation.gap) *out.mutable_gap() = to_proto(*translation.gap);
  out.set_text(translation.text);
  return out;
}

pb::VerifyProgress to_proto(const VerifyProgress& progress) {
  pb::VerifyProgress out;
  out.set_partitions(progress.partitions);
  out.set_done(progress.done);
  out.set_different(progress.different);
  out.set_partition(progress.partition);
  out.set_messages(progress.messages);
  out.set_messages_total(progress.messages_total);
  out.set_bytes(progress.bytes);
  if (progress.seconds_left) out.set_seconds_left(*progress.seconds_left);
  return out;
}

pb::VerifyReport to_proto(const VerifyReport& report) {
  pb::VerifyReport out;
  out.set_link_id(report.link_id);
  if (report.started_at != 0) set_time(out.mutable_started_at(), report.started_at);
  if (report.ended_at != 0) set_time(out.mutable_ended_at(), report.ended_at);
  out.set_full(report.full);
  out.set_verdict(verdict_of(report.verdict));
  for (const PartitionVerdict& verdict : report.partitions) *out.add_partitions() = partition_of(verdict);
  return out;
}

pb::ConsumerOffset to_proto(const state::ConsumerRow& row) {
  pb::ConsumerOffset out;
  *out.mutable_id() = to_proto(row.key);
  out.set_kind(row.kind);
  out.set_name(row.name);
  if (row.up_offset) out.set_upstream_offset(*row.up_offset);
  if (row.down_offset) out.set_downstream_offset(*row.down_offset);
  out.set_state(row.state);
  out.set_detail(row.detail);
  if (row.seen_at != 0) set_time(out.mutable_seen_at(), row.seen_at);
  if (row.synced_at != 0) set_time(out.mutable_synced_at(), row.synced_at);
  return out;
}

}  // namespace replicator
