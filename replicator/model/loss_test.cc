// Goal: what would be lost is never understated, and never invented. Method: statuses by hand.
#include "replicator/model/loss.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

constexpr std::uint64_t kNow = 100'000'000;

PartitionStatus part(std::uint32_t number, std::uint64_t acked, std::optional<std::uint64_t> end) {
  PartitionStatus status;
  status.key = {{"orders", number < 2 ? "events" : "audit"}, number};
  status.acked = status.committed = acked;
  status.lag.seen_end = end;
  if (end) status.lag.observed_at = kNow - 2'000'000;
  return status;
}

TEST(Loss, CountsWhatWasSeenAndNotAcknowledgedHoweverOldTheView) {
  std::vector<PartitionStatus> all = {part(0, 90, 100), part(1, 50, 50), part(2, 1, 128)};
  all[0].caught_up_at = kNow - 5'000'000;
  all[2].lag.micros = 1'500'000;
  const Loss loss = loss_of(all, kNow, 0);
  EXPECT_EQ(loss.messages, 137U);
  EXPECT_EQ(loss.unknown, 0U);
  EXPECT_EQ(loss.worst_partition, "orders/audit/2");
  EXPECT_EQ(loss.worst_messages, 127U);
  EXPECT_EQ(loss.known_at, kNow - 2'000'000);
  ASSERT_TRUE(loss.micros);
  EXPECT_EQ(*loss.micros, 3'000'000U) << "between the last time that all was there and the last look";
  ASSERT_EQ(loss.topics.size(), 2U);
  EXPECT_EQ(loss.topics[0].topic.topic, "audit");
  EXPECT_EQ(loss.topics[0].messages, 127U);
  EXPECT_EQ(loss.topics[1].partitions, 2U);
  EXPECT_EQ(in_words(loss), "137 messages (most in orders/audit/2: 127), at most the newest 3.0 s, as of 2.0 s before");
}

TEST(Loss, APartitionThatWasNeverSeenIsUnknownAndNotZero) {
  const Loss loss = loss_of(std::vector{part(0, 10, 10), part(1, 0, std::nullopt)}, kNow, 0);
  EXPECT_EQ(loss.unknown, 1U);
  EXPECT_FALSE(loss.is_none());
  EXPECT_FALSE(loss.micros);
  EXPECT_EQ(in_words(loss), "0 messages, as of 2.0 s before; unknown for 1 of 2 partitions");
}

TEST(Loss, WhatTheUpstreamTookAfterTheLastLookIsEstimatedFromItsRate) {
  std::vector<PartitionStatus> all = {part(0, 100, 100), part(1, 50, 50), part(2, 1, 128)};
  all[0].upstream_per_second = all[2].upstream_per_second = 0.5;
  const Loss loss = loss_of(all, kNow, kNow - 1'000'000);
  EXPECT_EQ(loss.messages, 127U) << "what was seen is told apart";
  EXPECT_EQ(loss.unseen, 1U) << "half a message in each of two partitions, in one second";
  EXPECT_NE(in_words(loss).find("and about 1 more since"), std::string::npos) << in_words(loss);
}

TEST(Loss, AStateFileAloneKnowsNothingOfTheUpstream) {
  state::PartitionRow row;
  row.key = {{"orders", "events"}, 0};
  row.watermark = 12;
  const Loss loss = loss_of(std::vector{row}, kNow);
  EXPECT_EQ(loss.unknown, 1U);
  EXPECT_EQ(in_words(loss), "unknown for all 1 partitions");
}

}  // namespace
}  // namespace replicator
