#include "replicator/partition/memory_budget.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"

namespace replicator {
namespace {

class MemoryBudgetTest : public ::testing::Test {
 protected:
  asio::io_context io_;
  base::testing::SimClock clock_{io_};
  base::Event stop_{io_};
  MemoryBudget budget_{io_, 100};
  std::vector<int> order_;

  base::Task<void> take(std::size_t bytes, int number, std::optional<Permit>* keep, Urgency urgency = Urgency::kLive) {
    auto acquire = budget_.acquire(bytes, stop_, urgency);
    Permit permit = co_await std::move(acquire);
    order_.push_back(number);
    keep->emplace(std::move(permit));
  }
};

TEST_F(MemoryBudgetTest, GrantsInOrderAndALargeRequestIsNotStarved) {
  std::optional<Permit> a, b, c;
  base::TaskGroup group(io_);
  group.spawn(take(60, 1, &a));
  group.spawn(take(80, 2, &b));
  group.spawn(take(10, 3, &c));
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1}));  // 10 would fit, but 80 came first
  a.reset();
  io_.restart();
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1, 2, 3}));
  EXPECT_EQ(budget_.used(), 90U);
  base::testing::run_until_done(io_, clock_, group.close());
}

TEST_F(MemoryBudgetTest, OneRequestAboveTheWholeBudgetIsGrantedAlone) {
  std::optional<Permit> a, b;
  base::TaskGroup group(io_);
  group.spawn(take(500, 1, &a));
  group.spawn(take(1, 2, &b));
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1}));
  a->resize(90);
  io_.restart();
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1, 2}));
  base::testing::run_until_done(io_, clock_, group.close());
}

TEST_F(MemoryBudgetTest, WhatCatchesUpLeavesAQuarterAndLetsLiveOnesGoFirst) {
  std::optional<Permit> a, b, c, d, e;
  base::TaskGroup group(io_);
  group.spawn(take(60, 1, &a, Urgency::kCatchUp));
  group.spawn(take(20, 2, &b, Urgency::kCatchUp));  // would fit into the whole
  group.spawn(take(20, 3, &c));
  group.spawn(take(70, 4, &d));
  group.spawn(take(10, 5, &e, Urgency::kCatchUp));
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1, 3}));
  a.reset();
  io_.restart();
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1, 3, 4}));
  c.reset();
  d.reset();
  io_.restart();
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1, 3, 4, 2, 5}));
  base::testing::run_until_done(io_, clock_, group.close());
}

TEST_F(MemoryBudgetTest, AnotherTotalHoldsAtOnce) {
  std::optional<Permit> a, b;
  base::TaskGroup group(io_);
  group.spawn(take(90, 1, &a));
  group.spawn(take(50, 2, &b));
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1}));
  budget_.set_total(200);
  io_.restart();
  io_.poll();
  EXPECT_EQ(order_, std::vector<int>({1, 2}));
  base::testing::run_until_done(io_, clock_, group.close());
}

TEST_F(MemoryBudgetTest, StopEndsTheWaitWithoutBytes) {
  std::optional<Permit> a, b;
  base::TaskGroup group(io_);
  group.spawn(take(100, 1, &a));
  group.spawn(take(1, 2, &b));
  io_.poll();
  stop_.set();
  base::testing::run_until_done(io_, clock_, group.close());
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(b->bytes(), 0U);
  a.reset();
  b.reset();
  EXPECT_EQ(budget_.used(), 0U);
}

}  // namespace
}  // namespace replicator
