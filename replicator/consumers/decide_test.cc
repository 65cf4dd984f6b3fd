// Goal: a consumer skips nothing downstream, is never moved back, and never past what was committed. Method: one map by
// hand, every stored offset.
#include "replicator/consumers/decide.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

using State = ConsumerState;

const base::PartitionKey kKey{{"orders", "events"}, 0};

// Upstream 0 … 99 at 0 … 99, 100 … 149 lost, 150 … 199 at 103 … 152 (three strangers before).
state::OffsetMap map(std::string fault = {}, bool confirmed = true) {
  state::PartitionRow row;
  row.key = kKey;
  row.watermark = 200;
  row.down_end = 153;
  row.fault.kind = std::move(fault);
  state::GapRow gap;
  gap.key = kKey;
  gap.up_begin = 100;
  gap.up_end = 150;
  gap.cause = "retention";
  return {row, {{1, {{0, 0, 100, true}, {150, 103, 50, confirmed}}}}, {gap}};
}

TEST(Decide, GoesOnAtTheFirstMessageNotYetProcessed) {
  const auto store = [](std::uint64_t up) { return decide(map(), nullptr, up, std::nullopt).store; };
  EXPECT_EQ(store(0), 0U);
  EXPECT_EQ(store(98), 98U);
  EXPECT_EQ(store(99), 102U) << "upstream 100 to 149 are lost: the next is 150, at 103";
  EXPECT_EQ(store(120), 102U);
  EXPECT_EQ(store(149), 102U);
  EXPECT_EQ(store(150), 103U);
  EXPECT_EQ(store(199), 152U);
}

TEST(Decide, IsNeverAheadOfWhatWasCommitted) { EXPECT_EQ(decide(map(), nullptr, 5000, std::nullopt).store, 152U); }

TEST(Decide, NeverMovesBack) {
  const ConsumerDecision ahead = decide(map(), nullptr, 10, 50);
  EXPECT_EQ(ahead.state, State::kAhead);
  EXPECT_FALSE(ahead.store);
  const ConsumerDecision same = decide(map(), nullptr, 10, 10);
  EXPECT_EQ(same.state, State::kSynced);
  EXPECT_FALSE(same.store);
}

TEST(Decide, WaitsWhereNothingIsSure) {
  EXPECT_EQ(decide(map({}, false), nullptr, 160, std::nullopt).state, State::kWaiting);
  EXPECT_EQ(decide(map("upstream_rewound"), nullptr, 10, std::nullopt).state, State::kWaiting);
  state::PartitionRow row;
  row.key = kKey;
  row.watermark = 60;
  row.down_end = 40;
  const state::OffsetMap adopted(row, {{1, {{50, 30, 10, true}}}}, {});
  EXPECT_EQ(decide(adopted, nullptr, 10, std::nullopt).state, State::kWaiting) << "what stands below 30 is not known";
  row.incarnation = 2;
  const state::OffsetMap restarted(row, {{1, {{0, 0, 30, true}}}, {2, {{50, 30, 10, true}}}}, {});
  EXPECT_EQ(decide(restarted, nullptr, 10, std::nullopt).state, State::kWaiting) << "of another history";
}

TEST(Decide, BelowACopyThatBeganOnAnEmptyTopicIsItsFirstMessage) {
  state::PartitionRow row;
  row.key = kKey;
  row.watermark = 60;
  row.down_end = 10;
  const state::OffsetMap latest(row, {{1, {{50, 0, 10, true}}}}, {});
  EXPECT_EQ(decide(latest, nullptr, 10, std::nullopt).state, State::kAtStart);
  EXPECT_EQ(decide(latest, nullptr, 10, 3).state, State::kAhead);
}

TEST(Decide, ReportsADeletionAndChangesNothing) {
  EXPECT_EQ(decide(map(), nullptr, std::nullopt, 5).state, State::kNone);
  state::ConsumerRow known;
  known.up_offset = 7;
  const ConsumerDecision gone = decide(map(), &known, std::nullopt, 5);
  EXPECT_EQ(gone.state, State::kDeleted);
  EXPECT_FALSE(gone.store);
  known.up_offset.reset();
  known.state = "deleted";
  EXPECT_EQ(decide(map(), &known, std::nullopt, 5).state, State::kDeleted) << "also at the next look";
}

}  // namespace
}  // namespace replicator
