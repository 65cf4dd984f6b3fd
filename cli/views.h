// What the verbs print for people: answers of the admin API as text of at most 80 columns. Pure. Ages are counted from
// the link's own snapshot time, so that both clocks need not agree.
#pragma once

#include <cstdint>
#include <string>

#include <google/protobuf/repeated_field.h>

#include "iggy/replicate/admin/v1/admin.pb.h"

namespace cli {

namespace pb = iggy::replicate::admin::v1;
using Partitions = google::protobuf::RepeatedPtrField<pb::Partition>;

// "orders/events/3", as `resolve` and `reset` read it.
std::string name_of(const pb::PartitionId& id);
// "caught up": the phase's name for people.
std::string phase_text(pb::Phase phase);
// "2026-01-31 12:00:00" (UTC), or "never".
std::string time_text(const google::protobuf::Timestamp& time);

// The link in a few lines: state, both ends, totals, notices.
std::string link_view(const pb::Link& link);
// One line per partition, then why those do not move that don't, with the exits of each fault.
std::string status_view(const pb::Link& link, const Partitions& partitions);
std::string lag_view(const Partitions& partitions, const google::protobuf::Timestamp& taken_at);
std::string settings_view(const pb::Link& link);
std::string gaps_view(const google::protobuf::RepeatedPtrField<pb::Gap>& gaps);
std::string events_view(const google::protobuf::RepeatedPtrField<pb::Event>& events);
// One line, to be overwritten by the next.
std::string progress_view(const pb::VerifyProgress& progress);
// What was compared, left out, and the first difference of each partition that has one.
std::string verify_view(const pb::VerifyReport& report);
std::string consumers_view(const google::protobuf::RepeatedPtrField<pb::ConsumerOffset>& consumers);
// A fault with its sentence and exits; each line of a command that can be pasted.
std::string fault_view(const pb::Partition& partition, const google::protobuf::Timestamp& taken_at);

// What makes `status` and `lag` end with 1: the link does not run, an end is not connected, the state file can't be
// written, a partition has a fault, is stuck, or its lag is unknown.
bool has_problem(const pb::Link& link);
bool has_problem(const Partitions& partitions);

}  // namespace cli
