// Goal: nothing that the link can say is lost on its way to the API. Method: walk the enums, then one full snapshot.
#include "replicator/admin/to_proto.h"

#include <set>

#include <gtest/gtest.h>

namespace replicator {
namespace {

using base::ErrorCode;

TEST(ErrorToProto, EveryCodeHasItsOwnReasonAndAStatus) {
  std::set<pb::ErrorReason> reasons;
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_NE(to_reason(code), pb::ERROR_REASON_UNSPECIFIED) << base::to_string(code);
    EXPECT_TRUE(reasons.insert(to_reason(code)).second) << base::to_string(code);
    EXPECT_NE(to_status_code(code), grpc::StatusCode::OK) << base::to_string(code);
    EXPECT_EQ(to_code(to_reason(code)), code);
    // The reason is the code's own word: INVALID_ARGUMENT for invalid_argument.
    std::string name = pb::ErrorReason_Name(to_reason(code)).substr(std::string("ERROR_REASON_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, base::to_string(code));
  }
}

TEST(ErrorToProto, DetailsCarryReasonAndHint) {
  const grpc::Status status =
      to_status(base::Error(ErrorCode::kPermission, "send", "orders/events/3", "not allowed", "grant send_messages")
                    .with_status(41));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "send orders/events/3: not allowed (status 41); grant send_messages");
  pb::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(status.error_details()));
  EXPECT_EQ(info.reason(), pb::ERROR_REASON_PERMISSION);
  EXPECT_EQ(info.operation(), "send");
  EXPECT_EQ(info.object(), "orders/events/3");
  EXPECT_EQ(info.message(), "not allowed");
  EXPECT_EQ(info.hint(), "grant send_messages");
  EXPECT_EQ(info.wire_status(), 41U);
}

TEST(StatusToProto, EveryPhaseKeepsItsName) {
  for (int i = 0; i <= static_cast<int>(Phase::kStopped); ++i) {
    const auto phase = static_cast<Phase>(i);
    std::string name = pb::Phase_Name(to_proto(phase)).substr(std::string("PHASE_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, to_string(phase));
  }
}

TEST(StatusToProto, EveryLinkStateIsKnown) {
  for (const char* state : {"starting", "running", "draining", "stopped", "fenced"}) {
    EXPECT_NE(to_link_state(state), pb::LINK_STATE_UNSPECIFIED) << state;
  }
  EXPECT_EQ(to_link_state("else"), pb::LINK_STATE_UNSPECIFIED);
}

TEST(StatusToProto, UnknownIsAbsentAndNeverZero) {
  const pb::Partition partition = to_proto(PartitionStatus());
  EXPECT_FALSE(partition.has_upstream_end());
  EXPECT_FALSE(partition.has_downstream_end());
  EXPECT_FALSE(partition.lag().has_messages());
  EXPECT_FALSE(partition.lag().has_age_micros());
  EXPECT_FALSE(partition.lag().has_observed_at());
  EXPECT_FALSE(partition.has_seconds_left());
  EXPECT_FALSE(partition.has_caught_up_at());
  EXPECT_FALSE(partition.has_fault());
  const pb::Link link = to_proto(LinkStatus(), true);
  EXPECT_FALSE(link.has_started_at());
  EXPECT_FALSE(link.upstream().has_last_seen());
}

PartitionStatus partition(std::optional<std::uint64_t> lag, double rate) {
  PartitionStatus status;
  status.key = {{"orders", "events"}, 3};
  status.lag.messages = lag;
  status.lag.micros = lag;
  status.messages_per_second = rate;
  return status;
}

TEST(Totals, OneUnknownLagMakesTheSumUnknown) {
  LinkStatus status;
  status.partitions = {partition(100, 50), partition(std::nullopt, 0)};
  pb::Totals totals = to_proto(status, false).totals();
  EXPECT_EQ(totals.partitions(), 2U);
  EXPECT_EQ(totals.partitions_with_unknown_lag(), 1U);
  EXPECT_FALSE(totals.has_lag_messages());
  EXPECT_FALSE(totals.has_lag_micros());
  EXPECT_FALSE(totals.has_seconds_left());

  status.partitions[1] = partition(300, 150);
  totals = to_proto(status, false).totals();
  EXPECT_EQ(totals.lag_messages(), 400U);
  EXPECT_EQ(totals.lag_micros(), 300U);
  EXPECT_DOUBLE_EQ(totals.seconds_left(), 2.0);

  status.partitions = {partition(10, 0)};
  EXPECT_FALSE(to_proto(status, false).totals().has_seconds_left()) << "a backlog that does not move has no end";
  status.partitions = {partition(0, 0)};
  EXPECT_DOUBLE_EQ(to_proto(status, false).totals().seconds_left(), 0.0);
}

TEST(StatusToProto, AFaultComesWithItsExits) {
  PartitionStatus status = partition(1, 0);
  status.phase = Phase::kFault;
  status.fault = {"retention", "offsets [10, 20) expired", 1'700'000'000'123'456, 10, 20};
  status.consequences = {{Exit::kAccept, "10 offsets are given up"}};
  const pb::Partition out = to_proto(status);
  EXPECT_EQ(out.phase(), pb::PHASE_FAULT);
  EXPECT_EQ(out.fault().kind(), "retention");
  EXPECT_FALSE(out.fault().meaning().empty());
  EXPECT_EQ(out.fault().since().seconds(), 1'700'000'000);
  EXPECT_EQ(out.fault().since().nanos(), 123'456'000);
  ASSERT_EQ(out.fault().exits_size(), 2);
  EXPECT_EQ(out.fault().exits(0).name(), "accept");
  EXPECT_FALSE(out.fault().exits(0).meaning().empty());
  EXPECT_EQ(out.fault().exits(0).consequence(), "10 offsets are given up");
  EXPECT_EQ(out.fault().exits(1).consequence(), "");

  status.fault.kind = "of_a_newer_version";
  EXPECT_EQ(to_proto(status).fault().exits_size(), 0);
}

TEST(StatusToProto, SettingsAreSentOnlyWhenAskedFor) {
  LinkStatus status;
  status.settings = {{"copy.batch_bytes", "8MiB", "8MiB", "flag"}};
  EXPECT_EQ(to_proto(status, false).settings_size(), 0);
  ASSERT_EQ(to_proto(status, true).settings_size(), 1);
  EXPECT_EQ(to_proto(status, true).settings(0).source(), "flag");
}

TEST(LedgerToProto, AnOpenGapHasNoResolution) {
  state::GapRow row;
  row.id = 7;
  row.key = {{"orders", "events"}, 3};
  row.up_begin = 10;
  row.up_end = 20;
  row.cause = "retention";
  row.found_at = 1'000'000;
  const pb::Gap gap = to_proto(row);
  EXPECT_EQ(gap.id(), 7);
  EXPECT_EQ(from_proto(gap.partition()), row.key);
  EXPECT_EQ(gap.upstream_end(), 20U);
  EXPECT_EQ(gap.found_at().seconds(), 1);
  EXPECT_TRUE(gap.resolved_as().empty());
  EXPECT_FALSE(gap.has_resolved_at());
}

}  // namespace
}  // namespace replicator
