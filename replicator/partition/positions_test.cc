// Only the legal moves: committed <= acked <= polled, none goes back; everything else aborts.
#include "replicator/partition/positions.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

TEST(Positions, MoveForwardInOrder) {
  Positions positions;
  positions.restart(10);
  positions.polled(20);
  positions.acked(15);
  positions.committed(12);
  EXPECT_EQ(positions.polled(), 20U);
  EXPECT_EQ(positions.acked(), 15U);
  EXPECT_EQ(positions.committed(), 12U);
  positions.forget_unacked();
  EXPECT_EQ(positions.polled(), 15U);
  positions.restart(3);  // a rewind is a new start
  EXPECT_EQ(positions.polled(), 3U);
  EXPECT_EQ(positions.committed(), 3U);
}

TEST(PositionsDeathTest, RefuseEverythingElse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto at = [] {
    Positions positions;
    positions.restart(10);
    positions.polled(20);
    positions.acked(15);
    positions.committed(12);
    return positions;
  };
  EXPECT_DEATH(at().polled(19), "polled never goes back");
  EXPECT_DEATH(at().acked(21), "acked moves forward");
  EXPECT_DEATH(at().acked(14), "acked moves forward");
  EXPECT_DEATH(at().committed(16), "committed moves forward");
  EXPECT_DEATH(at().committed(11), "committed moves forward");
}

}  // namespace
}  // namespace replicator
