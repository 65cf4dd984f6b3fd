// The bucket on virtual time: what passes in a minute, who goes first, and what a change or a stop does to those that
// wait.
#include "replicator/partition/throttle.h"

#include <deque>

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"

namespace replicator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Reads for ever: takes `estimate` bytes and `messages`, and then finds that it was `real` bytes.
struct Reader {
  Urgency urgency = Urgency::kCatchUp;
  std::uint64_t estimate = 1000, real = 1000, messages = 10;
  base::Duration pause{};  // between two reads: how often there is something new
  std::uint64_t bytes = 0, polls = 0;
  base::Duration longest_wait{};
};

base::Task<void> read(Throttle& throttle, base::Clock& clock, base::Event& stop, Reader& reader) {
  while (!stop.is_set()) {
    if (reader.pause.count() != 0) {
      auto waiting = base::wait_until(clock, stop, clock.now() + reader.pause);
      co_await std::move(waiting);
    }
    const base::TimePoint before = clock.now();
    auto taking = throttle.take(reader.estimate, reader.messages, reader.urgency, stop);
    if (!co_await std::move(taking)) break;
    reader.longest_wait = std::max(reader.longest_wait, clock.now() - before);
    reader.bytes += reader.real;
    ++reader.polls;
    throttle.correct(static_cast<std::int64_t>(reader.real) - static_cast<std::int64_t>(reader.estimate), 0);
  }
}

class ThrottleTest : public ::testing::Test {
 protected:
  ~ThrottleTest() override {
    stop.set();
    base::testing::run_until_done(io, clock, group.close());
  }
  Reader& start(Reader reader = {}) {
    Reader& kept = readers.emplace_back(reader);
    group.spawn(read(throttle, clock, stop, kept));
    return kept;
  }
  void pass(base::Duration time) { base::testing::run_until_done(io, clock, clock.sleep_for(time)); }

  std::deque<Reader> readers;  // outlive what reads
  asio::io_context io;
  base::testing::SimClock clock{io};
  base::Event stop{io};
  base::TaskGroup group{io};
  Throttle throttle{io, clock};
};

TEST_F(ThrottleTest, BytesOfAMinuteAreThoseOfTheRate) {
  throttle.set({100'000, 0});
  const Reader& one = start();
  const Reader& two = start();
  pass(seconds(60));
  EXPECT_NEAR(static_cast<double>(one.bytes + two.bytes), 6e6, 6e4);
  EXPECT_NEAR(static_cast<double>(one.bytes), static_cast<double>(two.bytes), 3e4) << "both are served";
}

TEST_F(ThrottleTest, MessagesOfAMinuteAreThoseOfTheRate) {
  throttle.set({0, 50});
  const Reader& reader = start();
  pass(seconds(60));
  EXPECT_NEAR(static_cast<double>(reader.polls * reader.messages), 3000, 30);
}

TEST_F(ThrottleTest, WhatWasReadBeyondTheEstimateIsPaidBack) {
  throttle.set({100'000, 0});
  const Reader& reader = start({.real = 50'000});
  pass(seconds(60));
  EXPECT_NEAR(static_cast<double>(reader.bytes), 6e6, 1e5);
}

// One that is near its end waits for no more than the poll that is under way, however many catch up.
TEST_F(ThrottleTest, LiveGoesBeforeCatchUp) {
  throttle.set({100'000, 0});
  for (int i = 0; i < 5; ++i) start({.estimate = 10'000, .real = 10'000});
  const Reader& live =
      start({.urgency = Urgency::kLive, .estimate = 100, .real = 100, .messages = 1, .pause = milliseconds(200)});
  pass(seconds(60));
  EXPECT_LE(live.longest_wait, milliseconds(110)) << "a poll of the backlog is 100 ms worth";
  EXPECT_GE(live.polls, 190U);
  std::uint64_t backlog = 0;
  for (int i = 0; i < 5; ++i) backlog += readers[static_cast<std::size_t>(i)].bytes;
  EXPECT_GE(backlog, 5'800'000U) << "what live ones leave is used";
}

TEST_F(ThrottleTest, CatchUpIsSlowBesideAFloodOfLiveOnesAndNotStarved) {
  throttle.set({100'000, 0});
  for (int i = 0; i < 3; ++i) start({.urgency = Urgency::kLive});
  const Reader& backlog = start();
  pass(seconds(60));
  EXPECT_NEAR(static_cast<double>(backlog.bytes), 6e6 / (Throttle::kLiveInARow + 1), 3e4);
}

TEST_F(ThrottleTest, AChangeHoldsAtOnceForThoseThatWait) {
  throttle.set({1024, 0});
  Reader& reader = start({.estimate = 1'000'000, .real = 1'000'000});
  pass(seconds(10));
  EXPECT_EQ(reader.polls, 1U) << "the debt of the first is a quarter of an hour";
  reader.pause = milliseconds(1);
  throttle.set({});
  pass(milliseconds(100));
  EXPECT_GT(reader.polls, 50U);
  throttle.set({1024, 0});
  pass(seconds(1));
  const std::uint64_t polls = reader.polls;
  pass(seconds(60));
  EXPECT_EQ(reader.polls, polls);
}

TEST_F(ThrottleTest, AStopEndsTheWaitAtOnceAndTakesNothing) {
  throttle.set({1024, 0});
  start({.estimate = 1'000'000, .real = 1'000'000});
  pass(seconds(1));
  EXPECT_EQ(throttle.waiting(), 1U);
  const base::TimePoint before = clock.now();
  stop.set();
  base::testing::run_until_done(io, clock, group.close());
  EXPECT_EQ(clock.now(), before);
  EXPECT_EQ(throttle.waiting(), 0U);
}

TEST_F(ThrottleTest, WithoutALimitNothingWaits) {
  const Reader& reader = start({.pause = milliseconds(1)});
  pass(seconds(1));
  EXPECT_EQ(reader.longest_wait, base::Duration{});
  EXPECT_GT(reader.polls, 900U);
}

}  // namespace
}  // namespace replicator
