// Goal: a drill counts what was lost, once, and blames nothing else for it. Method: journals and logs by hand.
#include "replicator/drill/drill_verdict.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

JournalEntry acked(std::uint32_t partition, std::uint64_t sequence, std::uint64_t at, bool certain = true) {
  return {partition, sequence, {sequence, partition}, at, certain};
}
DrillStored there(std::uint32_t partition, std::uint64_t sequence) { return {sequence, {sequence, partition}}; }

TEST(DrillVerdict, WhatWasAcknowledgedAndIsNotThereIsTheRecoveryPoint) {
  const std::vector<JournalEntry> journal = {acked(0, 0, 100), acked(0, 1, 200),        acked(1, 0, 300),
                                             acked(0, 2, 400), acked(0, 3, 500, false), acked(0, 4, 2000)};
  const DrillVerdict verdict =
      judge_drill(journal, {{there(0, 0), there(0, 3), there(0, 4)}, {there(1, 0)}}, {4, 1}, 1000, "s/t");
  EXPECT_EQ(verdict.acknowledged, 4U);
  EXPECT_EQ(verdict.lost, 2U);
  EXPECT_EQ(verdict.lost_micros, 800U) << "since the oldest lost message was acknowledged";
  EXPECT_EQ(verdict.worst_partition, "s/t/0");
  EXPECT_EQ(verdict.worst_lost, 2U);
  EXPECT_EQ(verdict.uncertain_arrived, 1U);
  EXPECT_TRUE(verdict.is_sound());
}

TEST(DrillVerdict, DuplicatesDisorderDamageAndLateLossesAreToldApart) {
  std::vector<std::vector<DrillStored>> stored = {{there(0, 0), there(0, 2), there(0, 1), there(0, 1)}};
  stored[0][1].digest.low = 99;
  const std::vector<JournalEntry> journal = {acked(0, 0, 1), acked(0, 1, 1), acked(0, 2, 1), acked(0, 3, 1)};
  const DrillVerdict verdict = judge_drill(journal, stored, {3}, 10, "s/t");
  EXPECT_EQ(verdict.duplicates, 1U);
  EXPECT_EQ(verdict.out_of_order, 1U);
  EXPECT_EQ(verdict.damaged, 1U);
  EXPECT_EQ(verdict.lost_after, 1U);
  EXPECT_EQ(verdict.lost, 0U);
  EXPECT_FALSE(verdict.is_sound());
}

TEST(DrillVerdict, AConsumerSkipsOnlyWhatIsThere) {
  DrillConsumer consumer;
  judge_consumer(consumer, {{{0, 1}, {1, 3}, {7, 1}}}, {{there(0, 0), there(0, 1), there(0, 2)}});
  EXPECT_EQ(consumer.duplicates, 2U);
  EXPECT_EQ(consumer.skips, 1U);
}

TEST(DrillLoad, TheSameSeedGivesTheSameMessages) {
  DrillLoadOptions options;
  base::Bytes one, two, other;
  const base::Record first = drill_message(options, 2, 17, 5, one);
  const base::Record again = drill_message(options, 2, 17, 5, two);
  EXPECT_EQ(base::digest_of(first), base::digest_of(again));
  EXPECT_EQ(drill_sequence(first), 17U);
  options.seed = 2;
  EXPECT_NE(base::digest_of(first), base::digest_of(drill_message(options, 2, 17, 5, other)));
}

}  // namespace
}  // namespace replicator
