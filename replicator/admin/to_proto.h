// The link's own types as messages of the admin API, and back. Pure; any thread.
#pragma once

#include <string_view>

#include <grpcpp/support/status.h>

#include "base/error.h"
#include "iggy/replicate/admin/v1/admin.pb.h"
#include "replicator/model/commands.h"
#include "replicator/model/status.h"
#include "replicator/model/verify_report.h"
#include "state/offset_map.h"
#include "state/store.h"

namespace replicator {

namespace pb = iggy::replicate::admin::v1;

pb::ErrorReason to_reason(base::ErrorCode code);
// The inverse; kInternal for reasons that are no error of the link.
base::ErrorCode to_code(pb::ErrorReason reason);
grpc::StatusCode to_status_code(base::ErrorCode code);

// The details of the status hold a serialized pb::ErrorInfo.
grpc::Status to_status(const base::Error& error);
grpc::Status to_status(grpc::StatusCode code, pb::ErrorReason reason, std::string_view message, std::string_view hint);

// µs since the epoch. REQUIRES: micros != 0; 0 means "never", which is an absent field.
void set_time(google::protobuf::Timestamp* time, std::uint64_t micros);

pb::Phase to_proto(Phase phase);
pb::LinkState to_link_state(std::string_view state);
pb::PartitionId to_proto(const base::PartitionKey& key);
base::PartitionKey from_proto(const pb::PartitionId& id);

pb::Link to_proto(const LinkStatus& status, bool with_settings);
pb::Partition to_proto(const PartitionStatus& partition);
pb::Gap to_proto(const state::GapRow& row);
pb::Event to_proto(const state::EventRow& row);
pb::Loss to_proto(const Loss& loss);
pb::EndReport to_proto(const EndReport& report);

// to_proto_compare.cc
pb::TranslateResponse to_proto(const base::PartitionKey& key, const state::Translation& translation);
pb::VerifyProgress to_proto(const VerifyProgress& progress);
pb::VerifyReport to_proto(const VerifyReport& report);
pb::ConsumerOffset to_proto(const state::ConsumerRow& row);

}  // namespace replicator
