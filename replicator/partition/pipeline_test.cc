// The whole pipeline over two clusters in memory: what arrives downstream, in which order, and what the state file
// says, for each thing that can go wrong while copying.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "replicator/testing/sim_appliance.h"

namespace replicator {
namespace {

using namespace std::chrono_literals;
using state::testing::Failing;
using testing::Flavour;
using testing::SendFault;
using testing::SimAppliance;
using testing::SimLink;
using testing::SimMessage;

struct World {
  explicit World(Flavour up = Flavour::kVsr, Flavour down = Flavour::kVsr, std::size_t partitions = 1)
      : link(up, down, partitions) {}
  ~World() { stop(); }

  void start() {
    appliance = std::make_unique<SimAppliance>(link.io, link.clock, link.up, link.down, *link.faulty, options, budget);
    appliance->start();
  }
  void stop() {
    if (!appliance) return;
    link.run(appliance->stop());
    appliance.reset();
  }
  void kill() {
    link.run(appliance->kill());
    appliance.reset();
    link.reopen();
  }
  testing::SimSink& sink() { return appliance->lane().sink; }
  testing::SimSource& source() { return appliance->lane().source; }
  PartitionPipeline& pipeline() { return appliance->pipeline(); }
  Phase phase() { return pipeline().status().phase; }
  // Lets time pass until the condition holds; false when it does not within `patience`.
  template <class Condition>
  bool until(Condition condition, base::Duration patience = 120s) {
    const base::TimePoint deadline = link.clock.now() + patience;
    while (!condition()) {
      if (link.clock.now() >= deadline) return false;
      link.pass(10ms);
    }
    return true;
  }
  bool caught_up(base::Duration patience = 120s) {
    return until(
        [this] {
          for (std::size_t i = 0; i < appliance->size(); ++i) {
            const auto& pipeline = appliance->pipeline(i);
            if (!pipeline.caught_up() || pipeline.status().acked < link.up.at(i).end()) return false;
          }
          return true;
        },
        patience);
  }
  bool fault(std::string_view kind, base::Duration patience = 200s) {
    return until([&] { return phase() == Phase::kFault && pipeline().status().fault.kind == kind; }, patience);
  }
  // Both logs hold the same messages in the same order.
  void expect_equal(std::size_t partition = 0) {
    const auto& up = link.up.at(partition).log;
    const auto& down = link.down.at(partition).log;
    ASSERT_EQ(down.size(), up.size());
    for (std::size_t i = 0; i < up.size(); ++i) EXPECT_EQ(up[i], down[i]) << "at " << i;
  }
  base::Status resolve(Exit exit) { return link.run(pipeline().resolve(exit, "ada@host")); }

  SimLink link;
  PipelineOptions options;
  std::size_t budget = 1 << 20;
  std::unique_ptr<SimAppliance> appliance;
};

TEST(Pipeline, CopiesABacklogInOrderAndRecordsIt) {
  for (const auto& [up, down] : {std::pair(Flavour::kLegacy, Flavour::kVsr), {Flavour::kVsr, Flavour::kLegacy}}) {
    World w(up, down, 3);
    for (std::size_t p = 0; p < 3; ++p) w.link.up.produce(p, 3000 + p);
    w.start();
    EXPECT_TRUE(w.caught_up());
    const PartitionStatus status = w.pipeline().status();
    EXPECT_EQ(status.phase, Phase::kCaughtUp);
    EXPECT_EQ(status.lag.messages, 0U);
    EXPECT_EQ(status.lag.micros, 0U);
    w.stop();
    w.link.reopen();
    for (std::uint32_t p = 0; p < 3; ++p) {
      w.expect_equal(p);
      const auto row = w.link.row(p);
      EXPECT_EQ(row->watermark, 3000U + p);
      EXPECT_EQ(row->down_end, 3000U + p);
      EXPECT_EQ(row->counters.copied, 3000U + p);
      EXPECT_EQ(row->generation, 1U);
      ASSERT_EQ(w.link.ranges(p).size(), 1U);
      EXPECT_EQ(w.link.ranges(p)[0].length, 3000U + p);
    }
    EXPECT_TRUE(w.link.gaps().empty());
  }
}

TEST(Pipeline, FollowsALiveProducerWithoutLookingTwice) {
  World w;
  w.start();
  for (int i = 0; i < 50; ++i) {
    w.link.up.produce(0, 3);
    w.link.pass(37ms);
  }
  EXPECT_TRUE(w.caught_up(1s));
  w.expect_equal();
  // A view that is older than the newest poll is no evidence of anything.
  EXPECT_EQ(w.pipeline().status().counters.errors, 0U);
  EXPECT_EQ(w.link.row()->generation, 1U);
}

TEST(Pipeline, IdleCostsNoPolls) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.pass(2s);
  const std::uint64_t before = w.source().polls;
  w.link.pass(60s);
  EXPECT_EQ(w.source().polls, before);
  w.link.up.produce(0, 1);
  EXPECT_TRUE(w.until([&] { return w.link.down.at(0).next == 11; }, 150ms));
}

TEST(Pipeline, EachSendFaultEndsInEqualLogs) {
  for (const Flavour down : {Flavour::kLegacy, Flavour::kVsr}) {
    for (const SendFault fault :
         {SendFault::kNotAccepted, SendFault::kSilence, SendFault::kCutBefore, SendFault::kAckLost,
          SendFault::kAckSilent, SendFault::kLandsLate, SendFault::kAckWithoutOffset}) {
      World w(Flavour::kVsr, down);
      w.options.batch_bytes = 1000;
      w.link.up.produce(0, 200);
      w.start();
      w.sink().faults = {SendFault::kNone, fault, SendFault::kNone, fault};
      EXPECT_TRUE(w.caught_up()) << int(fault);
      w.expect_equal();
      EXPECT_FALSE(w.pipeline().status().fault.active()) << w.pipeline().status().fault.detail;
    }
  }
}

TEST(Pipeline, AnAbandonedSendThatLandsAfterTheLookIsCountedAndNamed) {
  World w;
  w.options.batch_bytes = 1000;
  w.link.up.produce(0, 200);
  w.start();
  w.sink().settles = false;
  w.sink().late_by = 4s;
  w.sink().faults = {SendFault::kNone, SendFault::kLandsLate};
  EXPECT_TRUE(w.caught_up());
  w.link.pass(10s);
  w.link.up.produce(0, 5);
  EXPECT_TRUE(w.caught_up());
  w.link.pass(1s);
  const std::uint64_t duplicates = w.pipeline().status().counters.duplicates;
  EXPECT_GT(duplicates, 0U);
  EXPECT_EQ(w.link.down.at(0).log.size(), 205 + duplicates);
  EXPECT_FALSE(w.pipeline().status().fault.active());
  EXPECT_GE(w.link.count_events("own_duplicate"), 1U);
}

TEST(Pipeline, AnAckWithAnotherBaseLooksBeforeItGoesOn) {
  World w;
  w.link.up.produce(0, 100);
  w.start();
  w.sink().faults = {SendFault::kForeignBefore};
  EXPECT_TRUE(w.fault("foreign_writer"));
  EXPECT_TRUE(w.resolve(Exit::kAccept));
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 101U);
  EXPECT_EQ(w.link.gaps().at(0).cause, "foreign_writer");
}

TEST(Pipeline, AServerThatLostItsTailBetweenTwoSendsGetsItAgain) {
  // The connection dies with the server; a send over a new one would land behind what is left.
  for (const Flavour down : {Flavour::kLegacy, Flavour::kVsr, Flavour::kVsrReserving}) {
    World w(Flavour::kVsr, down);
    w.link.up.produce(0, 50);
    w.start();
    EXPECT_TRUE(w.caught_up());
    w.link.pass(1s);
    w.link.down.at(0).saved = 20;
    w.link.down.crash();
    w.link.up.produce(0, 50);
    EXPECT_TRUE(w.caught_up());
    w.expect_equal();
    EXPECT_FALSE(w.pipeline().status().fault.active()) << w.pipeline().status().fault.detail;
    EXPECT_EQ(w.link.count_events("downstream_lost_tail"), 1U);
  }
}

TEST(Pipeline, NotAcceptedIsTriedAgainWithBackoffForEver) {
  World w;
  w.link.up.produce(0, 5);
  w.start();
  for (int i = 0; i < 20; ++i) w.sink().faults.push_back(SendFault::kNotAccepted);
  EXPECT_TRUE(w.until([&] { return w.phase() == Phase::kRetrying; }, 5s));
  w.link.pass(60s);
  EXPECT_EQ(w.phase(), Phase::kStuck);
  EXPECT_LT(w.sink().sends, 12U);
  EXPECT_TRUE(w.caught_up(600s));
  w.expect_equal();
}

TEST(Pipeline, AResumeWhileNotAcceptedDoesNotTurnTheBackoffIntoASpin) {
  World w;
  w.link.up.produce(0, 5);
  w.start();
  for (int i = 0; i < 500; ++i) w.sink().faults.push_back(SendFault::kNotAccepted);
  w.link.pass(10s);
  EXPECT_TRUE(w.link.run(w.pipeline().set_desired(state::Desired::kPaused, "ada")));
  EXPECT_TRUE(w.link.run(w.pipeline().set_desired(state::Desired::kRunning, "ada")));
  const std::uint64_t before = w.sink().sends;
  w.link.pass(10s);
  EXPECT_LE(w.sink().sends, before + 4);
}

TEST(Pipeline, RetriesEndWhereTheyAreToldTo) {
  World w;
  w.options.retry_max_attempts = 4;
  w.link.up.produce(0, 5);
  w.start();
  for (int i = 0; i < 5; ++i) w.sink().faults.push_back(SendFault::kNotAccepted);
  EXPECT_TRUE(w.fault("gave_up"));
  EXPECT_EQ(w.sink().sends, 5U) << "the first, and four retries";
  const std::string detail = w.pipeline().status().fault.detail;
  EXPECT_NE(detail.find("upstream offset 0: failed after 4 retries (time.retry_max_attempts): "), std::string::npos)
      << detail;
  EXPECT_TRUE(w.resolve(Exit::kRetry));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, RetriesAreCountedFromTheLastProgress) {
  World w;
  w.options.retry_max_attempts = 2;
  w.options.batch_bytes = 1;  // one message a send
  w.link.up.produce(0, 9);
  w.start();
  for (int i = 0; i < 9; ++i) {
    for (const SendFault fault : {SendFault::kNotAccepted, SendFault::kCutBefore, SendFault::kNone})
      w.sink().faults.push_back(fault);
  }
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_EQ(w.link.count_events("fault"), 0U);
}

TEST(Pipeline, ARefusalThatStaysIsAFaultWithItsOffsetAndStatusAndOneThatPassesIsNot) {
  for (const std::size_t times : {2U, 3U}) {
    World w;
    w.link.up.produce(0, 5);
    w.start();
    EXPECT_TRUE(w.caught_up());
    w.link.up.produce(0, 1);
    base::Error unknown(base::ErrorCode::kServerRefused, "send", "dr/events/0", "unknown_status");
    unknown.with_status(7777).with_retry(base::Retry::kFromWatermark);
    w.sink().refusals = {times, unknown};
    if (times < kRefusalsMax) {
      EXPECT_TRUE(w.caught_up());
      EXPECT_EQ(w.link.count_events("fault"), 0U);
    } else {
      EXPECT_TRUE(w.fault("gave_up"));
      EXPECT_NE(w.pipeline().status().fault.detail.find(
                    "upstream offset 5: refused 3 times in a row: send dr/events/0: unknown_status (status 7777)"),
                std::string::npos)
          << w.pipeline().status().fault.detail;
      EXPECT_TRUE(w.resolve(Exit::kRetry));
      EXPECT_TRUE(w.caught_up());
    }
    w.expect_equal();
  }
}

TEST(Pipeline, TwoUnansweredSendsAtAnUnmovedEndAreAFault) {
  World w;
  w.link.up.produce(0, 5);
  w.start();
  w.sink().faults = {SendFault::kSilence, SendFault::kSilence};
  EXPECT_TRUE(w.fault("send_unanswered"));
  EXPECT_EQ(w.sink().sends, 2U);
  EXPECT_TRUE(w.resolve(Exit::kRetry));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, OneUnansweredSendAndAReadThatTimesOutAreNoFault) {
  World w;
  w.link.up.produce(0, 5);
  w.start();
  w.sink().faults = {SendFault::kSilence};
  EXPECT_TRUE(w.until([&] { return w.sink().sends == 1; }));
  for (int i = 0; i < 3; ++i) w.source().line.errors.emplace_back(base::ErrorCode::kTimeout, "view", "", "injected");
  EXPECT_TRUE(w.caught_up(300s));
  EXPECT_EQ(w.link.count_events("fault"), 0U);
}

TEST(Pipeline, TwoUnansweredSendsThatLandedAreNoFault) {
  World w;
  w.options.batch_bytes = 1000;
  w.link.up.produce(0, 100);
  w.start();
  w.sink().faults = {SendFault::kAckSilent, SendFault::kAckSilent, SendFault::kAckSilent};
  EXPECT_TRUE(w.caught_up(400s));
  w.expect_equal();
  EXPECT_EQ(w.link.count_events("fault"), 0U);
}

TEST(Pipeline, MissingPermissionIsAFaultThatARetryLeaves) {
  World w;
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.sink().line.permission = false;
  w.link.up.produce(0, 5);
  EXPECT_TRUE(w.fault("permission"));
  w.sink().line.permission = true;
  w.link.pass(60s);
  EXPECT_EQ(w.phase(), Phase::kFault);
  EXPECT_TRUE(w.resolve(Exit::kRetry));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, ErrorsAreCountedByCauseAndKept) {
  World w;
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.sink().faults = {SendFault::kCutBefore, SendFault::kAckLost};
  w.link.up.produce(0, 5);
  EXPECT_TRUE(w.caught_up());
  w.link.pass(2s);
  w.sink().line.permission = false;
  w.link.up.produce(0, 5);
  EXPECT_TRUE(w.fault("permission"));
  const auto shown = w.pipeline().status().counters;
  const std::map<std::string, std::uint64_t> expected = {{"connection_lost", 2}, {"permission", 1}};
  EXPECT_EQ(shown.errors_by_cause, expected);
  w.stop();
  EXPECT_EQ(w.link.row()->counters.errors_by_cause, shown.errors_by_cause);
  EXPECT_EQ(w.link.row()->counters.errors, shown.errors);
}

TEST(Pipeline, MissingPermissionBeforeThereIsARowIsSaidAndRetried) {
  World w;
  w.link.up.produce(0, 5);
  w.start();
  w.source().line.permission = false;
  EXPECT_TRUE(w.until([&] { return w.phase() == Phase::kRetrying; }));
  EXPECT_NE(w.pipeline().status().waits_for.find("not allowed"), std::string::npos);
  EXPECT_FALSE(w.pipeline().status().lag.messages);
  w.source().line.permission = true;
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, AnErrorWhileAnExitIsCarriedOutDoesNotReplaceTheFault) {
  World w;
  SimMessage stranger;
  stranger.id = {1, 1};
  stranger.body = "here before";
  w.link.down.append(0, {stranger});
  w.link.up.produce(0, 5);
  w.start();
  EXPECT_TRUE(w.fault("downstream_not_empty"));
  w.sink().line.permission = false;
  EXPECT_TRUE(w.resolve(Exit::kRestart));
  w.link.pass(5s);
  EXPECT_EQ(w.link.row()->fault.kind, "downstream_not_empty") << "the row would look like a started one";
  w.sink().line.permission = true;
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 6U);
  EXPECT_EQ(w.link.count_events("start"), 1U);
}

TEST(Pipeline, AnInvalidRecordStopsItsPartitionOnly) {
  World w(Flavour::kVsr, Flavour::kVsr, 2);
  w.link.up.produce(0, 20);
  w.link.up.produce(1, 20);
  w.start();
  w.sink().invalid = w.link.up.at(0).log[7].body;
  EXPECT_TRUE(w.fault("invalid_record"));
  EXPECT_EQ(w.pipeline().status().fault.up_begin, 7U);
  EXPECT_EQ(w.link.down.at(0).log.size(), 7U);
  EXPECT_TRUE(w.until([&] { return w.link.down.at(1).log.size() == 20; }));
  w.sink().invalid.clear();  // a limit was raised
  EXPECT_TRUE(w.resolve(Exit::kRetry));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, AFullTargetIsAFault) {
  World w;
  w.link.up.produce(0, 20);
  w.start();
  w.sink().faults = {SendFault::kRefused};
  EXPECT_TRUE(w.fault("target_full"));
  EXPECT_TRUE(w.resolve(Exit::kRetry));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, AnExitThatIsNotOfTheFaultIsRefused) {
  World w;
  w.link.up.produce(0, 5);
  w.start();
  EXPECT_FALSE(w.resolve(Exit::kRetry));
  w.sink().faults = {SendFault::kRefused};
  EXPECT_TRUE(w.fault("target_full"));
  EXPECT_FALSE(w.resolve(Exit::kRestart));
  EXPECT_EQ(w.phase(), Phase::kFault);
}

TEST(Pipeline, AFullBudgetStopsPollingAndOnePartitionTakesOnlyItsPart) {
  World w(Flavour::kVsr, Flavour::kVsr, 2);
  w.options.batch_bytes = 10'000;
  w.budget = 100'000;
  for (std::size_t p = 0; p < 2; ++p) w.link.up.produce(p, 3000);
  w.start();
  for (int i = 0; i < 1000; ++i) w.sink().faults.push_back(SendFault::kNotAccepted);
  EXPECT_TRUE(w.until([&] { return w.link.down.at(1).log.size() == 3000; })) << "one that can't send stops no other";
  EXPECT_LE(w.pipeline().status().queued_bytes, 60'000U);
  EXPECT_GT(w.pipeline().status().queued_bytes, 0U);
  const std::uint64_t polls = w.source().polls;
  w.link.pass(20s);
  EXPECT_EQ(w.source().polls, polls);
  w.sink().faults.clear();
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_EQ(w.appliance->budget.used(), 0U);
}

TEST(Pipeline, AThrottledPartitionCopiesNoFasterAndIsNotStuck) {
  std::unique_ptr<Throttle> throttle;
  World w;
  throttle = std::make_unique<Throttle>(w.link.io, w.link.clock, Rate{0, 50}, "link");
  w.options.throttles = {throttle.get()};
  w.options.stuck_after = 5s;
  w.link.up.produce(0, 3000);
  w.start();
  for (int second = 1; second <= 40; ++second) {
    w.link.pass(1s);
    EXPECT_NEAR(static_cast<double>(w.pipeline().status().acked), 50.0 * second, 30) << second;
    EXPECT_EQ(w.phase(), Phase::kCopying);
  }
  throttle->set({0, 1});
  w.link.pass(60s);
  EXPECT_EQ(w.phase(), Phase::kCopying);
  EXPECT_EQ(w.pipeline().status().waits_for, "its turn: the throttle of the link");
  throttle->set({});
  EXPECT_TRUE(w.caught_up(5s));
  w.expect_equal();
}

TEST(Pipeline, AStopIsHeardWhileTheThrottleHoldsTheReader) {
  std::unique_ptr<Throttle> throttle;
  World w;
  throttle = std::make_unique<Throttle>(w.link.io, w.link.clock, Rate{0, 1}, "link");
  w.options.throttles = {throttle.get()};
  w.link.up.produce(0, 3000);
  w.start();
  w.link.pass(20s);
  const base::TimePoint before = w.link.clock.now();
  w.stop();
  EXPECT_LT(w.link.clock.now() - before, 1s);
}

TEST(Pipeline, AnIdleReaderHearsAStopAtOnce) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.source().poll_interval = 30s;
  w.link.pass(61s);
  const base::TimePoint before = w.link.clock.now();
  w.stop();
  EXPECT_LT(w.link.clock.now() - before, 500ms);
}

// Partition 0 has a backlog of minutes at this rate, partition 1 a message now and then.
TEST(Pipeline, LiveGoesBeforeABacklogAtTheSameThrottle) {
  std::unique_ptr<Throttle> throttle;
  World w(Flavour::kVsr, Flavour::kVsr, 2);
  throttle = std::make_unique<Throttle>(w.link.io, w.link.clock, Rate{0, 50}, "link");
  w.options.throttles = {throttle.get()};
  w.options.batch_bytes = 10'000;
  w.link.up.produce(0, 10'000);
  w.start();
  for (std::uint64_t number = 1; number <= 30; ++number) {
    w.link.up.produce(1, 1);
    const base::TimePoint before = w.link.clock.now();
    EXPECT_TRUE(w.until([&] { return w.appliance->pipeline(1).status().acked == number; }, 10s));
    EXPECT_LT(w.link.clock.now() - before, 1s) << number;
    w.link.pass(700ms);
  }
  EXPECT_LT(w.pipeline().status().acked, 5000U) << "the backlog was done: the test proves nothing";
  EXPECT_GT(w.pipeline().status().acked, 500U) << "what is left over is used";
  throttle->set({});
  EXPECT_TRUE(w.caught_up());
  w.expect_equal(0);
  w.expect_equal(1);
}

TEST(Pipeline, AMessageLargerThanTheBudgetIsCopied) {
  World w;
  w.options.batch_bytes = 1000;
  w.budget = 4000;
  w.link.up.produce(0, 3);
  w.link.up.produce(0, 1, 50'000);
  w.link.up.produce(0, 3);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, AStateFileThatCannotBeWrittenStopsSendingAfterTheBoundAndNothingIsSentTwice) {
  World w;
  w.options.batch_bytes = 1000;
  w.options.uncommitted_batches_max = 4;
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.pass(1s);
  w.link.faulty->fail(1, Failing::kFromThenOn);
  const std::uint64_t before = w.sink().sends;
  w.link.up.produce(0, 500);
  w.link.pass(120s);
  EXPECT_LE(w.sink().sends, before + 4);
  EXPECT_GT(w.sink().sends, before);
  EXPECT_NE(w.pipeline().status().waits_for.find("disk full"), std::string::npos);
  EXPECT_EQ(w.phase(), Phase::kStuck);
  w.link.faulty->fail(0, Failing::kOnce);
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, AnErrorWhileTheStateFileFailsWaitsForTheCommitAndKeepsItsPlace) {
  World w;
  w.options.batch_bytes = 1000;
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.faulty->fail(1, Failing::kFromThenOn);
  w.link.up.produce(0, 100);
  w.link.pass(1s);
  w.link.down.cut();  // the row in the file is behind now
  w.link.up.produce(0, 100);
  w.link.pass(20s);
  w.link.faulty->fail(0, Failing::kOnce);
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_EQ(w.link.row()->generation, 1U);
}

TEST(Pipeline, TheNthStoreCallThatFailsLosesNothing) {
  for (const Failing failing : {Failing::kOnce, Failing::kFromThenOn}) {
    for (std::uint64_t nth = 1;; ++nth) {
      World w;
      w.options.batch_bytes = 1000;
      w.link.up.produce(0, 60);
      w.start();
      w.link.faulty->fail(nth, failing);
      w.link.pass(3s);
      const bool failed = w.link.faulty->has_failed();
      w.link.faulty->fail(0, Failing::kOnce);
      EXPECT_TRUE(w.caught_up());
      w.expect_equal();
      w.stop();
      EXPECT_TRUE(w.link.file->check()->empty());
      EXPECT_EQ(w.link.row()->watermark, 60U);
      if (!failed || nth == 12) break;
    }
  }
}

TEST(Pipeline, PausesResumesAndSurvivesARestartPaused) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  EXPECT_TRUE(w.link.run(w.pipeline().set_desired(state::Desired::kPaused, "ada@host")));
  w.link.up.produce(0, 10);
  w.link.pass(10s);
  EXPECT_EQ(w.phase(), Phase::kPaused);
  EXPECT_EQ(w.link.down.at(0).log.size(), 10U);
  w.stop();
  w.link.reopen();
  w.start();
  w.link.pass(10s);
  EXPECT_EQ(w.phase(), Phase::kPaused);
  EXPECT_EQ(w.link.down.at(0).log.size(), 10U);
  EXPECT_TRUE(w.link.run(w.pipeline().set_desired(state::Desired::kRunning, "ada@host")));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_EQ(w.link.count_events("pause"), 1U);
  EXPECT_EQ(w.link.count_events("resume"), 1U);
}

TEST(Pipeline, APauseDuringAResyncThatRewindsIsKept) {
  World w;
  w.link.up.produce(0, 30);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.pass(1s);
  w.link.down.at(0).saved = 10;
  w.link.down.crash();
  w.link.up.produce(0, 1);
  EXPECT_TRUE(w.until([&] { return w.link.count_events("downstream_lost_tail") == 1; }));
  EXPECT_TRUE(w.link.run(w.pipeline().set_desired(state::Desired::kPaused, "ada@host")));
  w.link.pass(20s);
  EXPECT_EQ(w.phase(), Phase::kPaused);
  EXPECT_EQ(w.link.row()->desired, state::Desired::kPaused);
}

TEST(Pipeline, ResetMovesTheWatermarkOfAPausedPartitionOnly) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  EXPECT_FALSE(w.link.run(w.pipeline().reset(4, "ada@host")));
  // The reset comes while a send is in flight: it waits for the pause.
  w.link.up.produce(0, 5);
  w.link.pass(101ms);
  EXPECT_TRUE(w.link.run(w.pipeline().set_desired(state::Desired::kPaused, "ada@host")));
  EXPECT_TRUE(w.link.run(w.pipeline().reset(12, "ada@host")));
  w.link.reopen();
  EXPECT_EQ(w.link.row()->watermark, 12U);
  EXPECT_EQ(w.link.row()->generation, 2U);
  EXPECT_EQ(w.link.count_events("reset"), 1U);
}

TEST(Pipeline, AfterAResetTheMessagesAreSentAgain) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  EXPECT_TRUE(w.link.run(w.pipeline().set_desired(state::Desired::kPaused, "ada@host")));
  EXPECT_TRUE(w.link.run(w.pipeline().reset(7, "ada@host")));
  EXPECT_TRUE(w.link.run(w.pipeline().set_desired(state::Desired::kRunning, "ada@host")));
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 13U);
  EXPECT_FALSE(w.pipeline().status().fault.active()) << w.pipeline().status().fault.detail;
}

TEST(Pipeline, StopDrainsAndCommitsWhatWasAcked) {
  World w;
  w.options.batch_bytes = 1000;
  w.link.up.produce(0, 2000);
  w.start();
  w.link.pass(60ms);
  const base::TimePoint before = w.link.clock.now();
  w.stop();
  EXPECT_LE(w.link.clock.now() - before, 2s);
  EXPECT_GT(w.link.down.at(0).log.size(), 0U);
  EXPECT_EQ(w.link.row()->watermark, w.link.down.at(0).log.size());
}

TEST(Pipeline, StopsAtEveryMomentOfItsLife) {
  for (int step = 0; step < 60; ++step) {
    World w;
    w.options.batch_bytes = 1000;
    w.link.up.produce(0, 100);
    w.start();
    w.sink().faults = {SendFault::kNone, SendFault::kNotAccepted, SendFault::kAckLost};
    w.link.pass(std::chrono::microseconds(step * step * 900));
    w.stop();
    EXPECT_LE(w.link.row() ? w.link.row()->watermark : 0, w.link.down.at(0).log.size());
  }
}

TEST(Pipeline, AKilledProcessAdoptsItsOwnTail) {
  World w;
  w.options.batch_bytes = 1000;
  w.link.up.produce(0, 2000);
  for (int round = 0; round < 8; ++round) {
    w.start();
    w.link.pass(std::chrono::milliseconds(30 + 7 * round));
    w.kill();
  }
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_EQ(w.link.row()->counters.copied, 2000U);
  EXPECT_GE(w.link.count_events("adopted_own_tail"), 1U);
  EXPECT_TRUE(w.link.gaps().empty());
}

TEST(Pipeline, AKillDuringAnExitCarriesItOutOnceOrNotAtAll) {
  World w;
  w.link.up.produce(0, 20);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.pass(1s);
  w.link.up.purge(0);
  w.link.up.produce(0, 30);
  EXPECT_TRUE(w.fault("upstream_rewound"));
  EXPECT_TRUE(w.resolve(Exit::kRestart));
  w.link.pass(4ms);
  w.kill();
  w.start();
  w.link.pass(1s);
  if (w.phase() == Phase::kFault) EXPECT_TRUE(w.resolve(Exit::kRestart));
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.row()->incarnation, 2U);
  EXPECT_EQ(w.link.down.at(0).log.size(), 50U);
}

TEST(Pipeline, LagIsUnknownWhenTheUpstreamIsGone) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.pipeline().status().lag.messages, 0U);
  w.link.up.refuse_connections_until(w.link.clock.now() + 60s);
  w.link.up.cut();
  w.link.pass(5s);
  EXPECT_FALSE(w.pipeline().status().lag.messages) << "unknown is never 0";
  EXPECT_FALSE(w.pipeline().status().upstream_end);
  EXPECT_FALSE(w.pipeline().caught_up());
  EXPECT_EQ(w.phase(), Phase::kRetrying);
  w.link.up.produce(0, 5);
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.pipeline().status().lag.messages, 0U);
  w.expect_equal();
}

TEST(Pipeline, ALegacyPartitionThatGoesSilentWhileCopyingIsNotCaughtUp) {
  World w(Flavour::kLegacy, Flavour::kLegacy);
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.up.at(0).unreadable.push_back({10, 15, false});
  w.link.up.produce(0, 20);
  EXPECT_TRUE(w.fault("upstream_unreadable"));
  EXPECT_TRUE(w.resolve(Exit::kAccept));
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 25U);
  EXPECT_EQ(w.link.gaps().at(0).up_begin, 10U);
  EXPECT_EQ(w.link.gaps().at(0).up_end, 15U);
}

TEST(Pipeline, OneEmptyAnswerOnVsrDelaysTheLastMessageAndDoesNotLoseIt) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.source().line.empty_reads = 1;
  w.link.up.produce(0, 3);
  EXPECT_TRUE(w.caught_up(10s));
  w.expect_equal();
}

TEST(Pipeline, AnAnchorThatExpiresWhileIdleDoesNotStopTheNextMessages) {
  for (const Flavour flavour : {Flavour::kLegacy, Flavour::kVsr}) {
    World w(flavour, Flavour::kVsr);
    w.link.up.at(0).has_retention = true;
    w.link.up.produce(0, 10);
    w.start();
    EXPECT_TRUE(w.caught_up());
    w.link.up.expire(0, 10);
    w.link.pass(5s);
    w.link.up.produce(0, 5);
    EXPECT_TRUE(w.caught_up(20s)) << w.pipeline().status().waits_for;
    EXPECT_EQ(w.link.down.at(0).log.size(), 15U);
    EXPECT_FALSE(w.pipeline().status().fault.active());
  }
}

TEST(Pipeline, ExpiredBeforeCopiedIsAFaultThatNamesTheRange) {
  World w;
  w.link.up.at(0).has_retention = true;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.down.refuse_connections_until(w.link.clock.now() + 30s);
  w.link.down.cut();
  w.link.up.produce(0, 100);
  w.link.pass(2s);
  w.link.up.expire(0, 60);
  EXPECT_TRUE(w.fault("retention"));
  EXPECT_EQ(w.pipeline().status().fault.up_begin, 10U);
  EXPECT_EQ(w.pipeline().status().fault.up_end, 60U);
  EXPECT_TRUE(w.resolve(Exit::kRetry));  // nothing has changed: the same fault, and the ledger is not doubled
  EXPECT_TRUE(w.fault("retention"));
  EXPECT_EQ(w.link.gaps().size(), 1U);
  EXPECT_TRUE(w.resolve(Exit::kAccept));
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 60U);
  EXPECT_EQ(w.link.gaps().size(), 1U);
  EXPECT_EQ(w.link.gaps()[0].resolved_as, "accept");
}

TEST(Pipeline, APurgedUpstreamUnderALiveConnectionCannotSlipPast) {
  for (const Flavour flavour : {Flavour::kLegacy, Flavour::kVsr}) {
    World w(flavour, Flavour::kVsr);
    w.link.up.produce(0, 10);
    w.start();
    EXPECT_TRUE(w.caught_up());
    w.link.up.purge(0);
    w.link.up.produce(0, 30);  // before anybody looks: the end has only grown
    EXPECT_TRUE(w.fault("upstream_rewound"));
    EXPECT_EQ(w.link.down.at(0).log.size(), 10U);
    EXPECT_TRUE(w.resolve(Exit::kRestart));
    EXPECT_TRUE(w.caught_up());
    EXPECT_EQ(w.link.down.at(0).log.size(), 40U);
  }
}

TEST(Pipeline, RecreatedUpstreamIsReportedWithinTheConfirmation) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.up.recreate(0);
  w.link.up.produce(0, 3);
  EXPECT_TRUE(w.fault("upstream_recreated", 15s)) << w.pipeline().status().waits_for;
  EXPECT_TRUE(w.resolve(Exit::kRestart));
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 13U);
}

// The downstream's leader moves to a node that does not have the newest messages, and no connection ends.
TEST(Pipeline, ATailLostBehindAnOpenConnectionIsSentAgain) {
  for (const Flavour flavour : {Flavour::kLegacy, Flavour::kVsr}) {
    World w(Flavour::kVsr, flavour);
    w.link.up.produce(0, 40);
    w.start();
    EXPECT_TRUE(w.caught_up());
    w.link.down.at(0).saved = 25;
    w.link.down.lose_tail();
    w.link.up.produce(0, 3);  // lands at 25, where another message was written
    EXPECT_TRUE(w.until([&] { return w.link.count_events("downstream_lost_tail") == 1; }));
    EXPECT_TRUE(w.caught_up());
    EXPECT_TRUE(w.pipeline().status().fault.kind.empty()) << w.pipeline().status().fault.detail;
    // All in order behind what was kept; the three that came too early are there twice, and the ledger says so.
    const auto& up = w.link.up.at(0).log;
    const auto& down = w.link.down.at(0).log;
    ASSERT_EQ(down.size(), 46U);
    EXPECT_TRUE(std::equal(up.begin(), up.begin() + 25, down.begin()));
    EXPECT_TRUE(std::equal(up.begin() + 25, up.end(), down.begin() + 28));
    EXPECT_EQ(w.pipeline().status().counters.duplicates, 3U);
    w.link.pass(2s);
    EXPECT_TRUE(w.caught_up());
  }
}

TEST(Pipeline, ATailLostWhileNothingIsSentIsFoundAndSentAgain) {
  World w;
  w.link.up.produce(0, 40);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.pass(5s);
  w.link.down.at(0).saved = 25;
  w.link.down.lose_tail();
  EXPECT_TRUE(w.until([&] { return w.link.down.at(0).log.size() == 40; }, 20s));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_EQ(w.link.count_events("downstream_lost_tail"), 1U);
}

TEST(Pipeline, PurgedDownstreamIsNotCaughtUp) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.pass(1s);
  w.link.down.purge(0);
  w.link.up.produce(0, 1);  // lands at 0, where another message was written
  EXPECT_TRUE(w.fault("downstream_recreated"));
  EXPECT_TRUE(w.until([&] { return w.pipeline().status().consequences.contains(Exit::kRecopy); }));
  EXPECT_NE(w.pipeline().status().consequences[Exit::kRecopy].find("up to 1 of them will be there twice"),
            std::string::npos)
      << w.pipeline().status().consequences[Exit::kRecopy];
  EXPECT_TRUE(w.resolve(Exit::kRecopy));
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 12U);
}

TEST(Pipeline, ARewrittenDownstreamIsAdoptedAndNothingIsSentAgain) {
  World w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.link.pass(1s);
  w.link.down.purge(0);
  w.link.up.produce(0, 1);
  EXPECT_TRUE(w.fault("downstream_recreated"));
  EXPECT_TRUE(w.resolve(Exit::kAdopt));
  w.link.up.produce(0, 4);
  EXPECT_TRUE(w.caught_up());
  const auto& up = w.link.up.at(0).log;
  const auto& down = w.link.down.at(0).log;
  // Nothing of the first ten, and each of the others once: also the one that had landed before the fault.
  EXPECT_EQ(down, std::vector<SimMessage>(up.begin() + 10, up.end()));
}

TEST(Pipeline, ALostStateFileIsReplacedByLookingForTheCopy) {
  World w;
  w.link.up.produce(0, 50);
  std::vector<SimMessage> copied(w.link.up.at(0).log.begin(), w.link.up.at(0).log.begin() + 37);
  w.link.down.append(0, copied);
  w.start();
  EXPECT_TRUE(w.fault("downstream_not_empty"));
  EXPECT_TRUE(w.resolve(Exit::kAdopt));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
}

TEST(Pipeline, AnAdoptThatIsRefusedStaysTheFaultAndSaysWhy) {
  World w;
  w.link.up.produce(0, 5);
  SimMessage stranger;
  stranger.id = {1, 1};
  stranger.body = "here before";
  w.link.down.append(0, {stranger});
  w.options.policies = {{FaultKind::kDownstreamNotEmpty, Exit::kAdopt}};
  w.start();
  EXPECT_TRUE(w.until([&] {
    return w.pipeline().status().fault.detail.find("adopt was refused") != std::string::npos &&
           w.phase() == Phase::kFault;
  }));
  w.link.pass(60s);
  EXPECT_EQ(w.link.count_events("fault"), 2U) << "found, and found again after the refusal: a policy is tried once";
  EXPECT_EQ(w.link.down.at(0).log.size(), 1U);
  EXPECT_TRUE(w.resolve(Exit::kRestart));
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 6U);
}

TEST(Pipeline, APolicyTakesItsExitByItselfThreeTimesAnHour) {
  World w;
  w.options.policies = {{FaultKind::kForeignWriter, Exit::kAccept}};
  w.link.up.produce(0, 5);
  w.start();
  EXPECT_TRUE(w.caught_up());
  const auto interfere = [&w](std::uint64_t i) {
    SimMessage stranger;
    stranger.id = {9, i};
    stranger.body = "stranger";
    w.link.down.append(0, {stranger});
    w.link.up.produce(0, 1);
  };
  for (std::uint64_t i = 0; i < 3; ++i) {
    interfere(i);
    EXPECT_TRUE(w.caught_up()) << w.pipeline().status().waits_for;
    EXPECT_EQ(w.link.gaps().size(), i + 1);
    EXPECT_EQ(w.link.gaps().back().resolved_by, "policy");
    w.link.pass(60s);
  }
  w.kill();  // a restart does not begin to count anew
  w.start();
  EXPECT_TRUE(w.caught_up());
  interfere(3);
  EXPECT_TRUE(w.fault("foreign_writer"));
  EXPECT_TRUE(w.until([&] { return w.pipeline().status().waits_for.find("waits for a person") != std::string::npos; }));
  w.link.pass(60s);
  EXPECT_EQ(w.phase(), Phase::kFault);
  EXPECT_TRUE(w.resolve(Exit::kAccept));
  EXPECT_TRUE(w.caught_up());
  w.link.pass(3700s);
  interfere(4);
  EXPECT_TRUE(w.caught_up()) << "an hour later the policy holds again";
  EXPECT_EQ(w.link.gaps().size(), 5U);
}

// --- messages that the target can never take ---

// `up` without these offsets, then those that were sent after all.
std::vector<SimMessage> copy_of(const std::vector<SimMessage>& up, const std::vector<std::size_t>& left_out,
                                const std::vector<std::size_t>& replayed = {}) {
  std::vector<SimMessage> expected;
  for (std::size_t i = 0; i < up.size(); ++i) {
    if (std::ranges::find(left_out, i) == left_out.end()) expected.push_back(up[i]);
  }
  for (const std::size_t i : replayed) expected.push_back(up[i]);
  return expected;
}

TEST(Pipeline, SkipLeavesOutOneMessageAndNamesIt) {
  for (const bool by_server : {false, true}) {
    World w;
    w.link.up.produce(0, 20);
    w.start();
    (by_server ? w.sink().refused : w.sink().invalid) = w.link.up.at(0).log[7].body;
    EXPECT_TRUE(w.fault("invalid_record"));
    EXPECT_EQ(w.pipeline().status().fault.up_begin, 7U) << "the one message, not the first of its batch";
    EXPECT_TRUE(w.resolve(Exit::kSkip));
    EXPECT_TRUE(w.caught_up());
    EXPECT_EQ(w.link.down.at(0).log, copy_of(w.link.up.at(0).log, {7}));
    const auto row = w.link.row();
    EXPECT_EQ(row->generation, 2U);
    EXPECT_EQ(row->counters.skipped, 1U);
    ASSERT_EQ(w.link.gaps().size(), 1U);
    const state::GapRow gap = w.link.gaps()[0];
    EXPECT_EQ(gap.cause, "invalid_record");
    EXPECT_EQ(gap.up_begin, 7U);
    EXPECT_EQ(gap.up_end, 8U);
    EXPECT_NE(gap.detail.find(w.link.up.at(0).log[7].id.to_string()), std::string::npos) << gap.detail;
    EXPECT_NE(gap.detail.find(by_server ? "invalid header value" : "too large"), std::string::npos) << gap.detail;
    EXPECT_EQ(gap.resolved_as, "skip");
    EXPECT_EQ(gap.resolved_by, "ada@host");
    EXPECT_EQ(w.link.count_events("resolve"), 1U);
  }
}

TEST(Pipeline, SkipChangesNothingWhenTheTargetTakesTheMessageNow) {
  World w;
  w.link.up.produce(0, 20);
  w.start();
  w.sink().invalid = w.link.up.at(0).log[7].body;
  EXPECT_TRUE(w.fault("invalid_record"));
  w.sink().invalid.clear();
  EXPECT_TRUE(w.resolve(Exit::kSkip));
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_TRUE(w.link.gaps().empty());
}

TEST(Pipeline, InvalidRecordsAreLeftOutByThemselvesAndKeptInFiles) {
  World w;
  w.options.batch_bytes = 1000;
  w.options.invalid_records = {true, w.link.folder.file("left-out")};
  w.link.up.produce(0, 60);
  w.link.up.at(0).log[30].body = w.link.up.at(0).log[7].body;  // two of them
  w.start();
  w.sink().invalid = w.link.up.at(0).log[7].body;
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log, copy_of(w.link.up.at(0).log, {7, 30}));
  EXPECT_EQ(w.pipeline().status().counters.skipped, 2U);
  w.stop();
  w.link.reopen();
  EXPECT_EQ(w.link.row()->watermark, 60U);
  ASSERT_EQ(w.link.gaps().size(), 2U);
  for (const state::GapRow& gap : w.link.gaps()) {
    EXPECT_EQ(gap.resolved_by, "policy");
    const auto kept = state::load_record(gap.file);
    ASSERT_TRUE(kept) << kept.error().to_string();
    EXPECT_EQ(base::digest_of(kept->records.at(0)), gap.digest);
    EXPECT_EQ(base::as_text(kept->records.at(0).body), w.link.up.at(0).log[gap.up_begin].body);
  }
}

TEST(Pipeline, AnExportThatCantBeWrittenHoldsTheMessageBack) {
  World w;
  w.options.invalid_records = {true, w.link.folder.file("no/such/folder")};
  w.link.up.produce(0, 10);
  w.start();
  w.sink().invalid = w.link.up.at(0).log[7].body;
  w.link.pass(60s);
  EXPECT_EQ(w.link.row()->watermark, 7U);
  EXPECT_TRUE(w.link.gaps().empty()) << "no ledger row without the bytes";
  EXPECT_NE(w.pipeline().status().waits_for.find("no/such/folder"), std::string::npos)
      << w.pipeline().status().waits_for;
}

struct Replayed : World {
  // 20 messages copied, message 7 left out; then its limit is raised.
  explicit Replayed(Flavour down = Flavour::kVsr) : World(Flavour::kVsr, down) {
    options.invalid_records = {true, link.folder.file("left-out")};
    link.up.produce(0, 20);
    start();
    sink().invalid = link.up.at(0).log[7].body;
    EXPECT_TRUE(caught_up());
    expected = copy_of(link.up.at(0).log, {7}, {7});
    link.pass(1s);
    sink().invalid.clear();
  }
  base::Status replay() { return link.run(pipeline().replay({link.gaps().at(0)}, "ada@host")); }
  bool replayed() {
    return until([this] { return link.gaps().at(0).resolved_as == "replayed"; }, 60s) && caught_up();
  }
  std::vector<SimMessage> expected;
};

TEST(Pipeline, AReplayAppendsTheMessageAndClosesItsRow) {
  Replayed w;
  EXPECT_TRUE(w.replay());
  EXPECT_TRUE(w.replayed());
  EXPECT_EQ(w.link.down.at(0).log, w.expected);
  EXPECT_EQ(w.link.gaps()[0].down_offset, 19U);
  EXPECT_EQ(w.link.gaps()[0].resolved_by, "ada@host");
  EXPECT_EQ(w.link.row()->counters.copied, 20U);
  w.link.up.produce(0, 5);
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 25U);
  EXPECT_EQ(w.pipeline().status().counters.duplicates, 0U);
}

TEST(Pipeline, AReplayComesFromTheExportWhenUpstreamHasLetGo) {
  Replayed w;
  w.link.up.at(0).has_retention = true;
  w.link.up.expire(0, 15);
  EXPECT_TRUE(w.replay());
  EXPECT_TRUE(w.replayed());
  EXPECT_EQ(w.link.down.at(0).log, w.expected);
}

TEST(Pipeline, AReplayThatCantBeDoneIsGivenUpWithAReason) {
  for (const bool gone : {false, true}) {
    Replayed w;
    if (gone) {
      w.link.up.at(0).has_retention = true;
      w.link.up.expire(0, 15);
      ASSERT_TRUE(std::filesystem::remove(w.link.gaps()[0].file));
    } else {
      w.sink().invalid = w.link.up.at(0).log[7].body;  // the limit is what it was
    }
    EXPECT_TRUE(w.replay());
    EXPECT_TRUE(w.until([&] { return w.link.count_events("replay_failed") == 1; }));
    EXPECT_TRUE(w.caught_up());
    EXPECT_EQ(w.link.gaps()[0].resolved_as, "skip");
    EXPECT_EQ(w.link.down.at(0).log.size(), 19U);
  }
}

TEST(Pipeline, EachSendFaultOfAReplayEndsInOneCopy) {
  for (const Flavour down : {Flavour::kLegacy, Flavour::kVsr}) {
    for (const SendFault fault :
         {SendFault::kNotAccepted, SendFault::kSilence, SendFault::kCutBefore, SendFault::kAckLost,
          SendFault::kAckSilent, SendFault::kLandsLate, SendFault::kAckWithoutOffset}) {
      Replayed w(down);
      w.sink().faults = {fault};
      EXPECT_TRUE(w.replay());
      EXPECT_TRUE(w.until([&w] { return w.link.gaps().at(0).resolved_as == "replayed"; })) << int(fault);
      EXPECT_EQ(w.link.down.at(0).log, w.expected) << int(fault);
      EXPECT_FALSE(w.pipeline().status().fault.active()) << w.pipeline().status().fault.detail;
      EXPECT_EQ(w.pipeline().status().counters.duplicates, 0U);
    }
  }
}

TEST(Pipeline, AKillInTheMiddleOfAReplayEndsInOneCopy) {
  for (int millis = 0; millis < 16; ++millis) {
    Replayed w;
    EXPECT_TRUE(w.replay());
    w.link.pass(std::chrono::microseconds(500 * millis));
    w.kill();
    w.start();
    EXPECT_TRUE(w.replayed()) << millis;
    EXPECT_EQ(w.link.down.at(0).log, w.expected) << millis;
    EXPECT_FALSE(w.pipeline().status().fault.active()) << w.pipeline().status().fault.detail;
  }
}

TEST(Pipeline, AReplayThatIsLostWithTheTailIsSentAgain) {
  for (const std::uint64_t saved : {19U, 12U}) {
    Replayed w;
    EXPECT_TRUE(w.replay());
    EXPECT_TRUE(w.replayed());
    w.link.pass(1s);
    w.link.down.at(0).saved = saved;
    w.link.down.crash();
    EXPECT_TRUE(w.until([&] { return w.link.down.at(0).log.size() == 20; })) << saved;
    EXPECT_TRUE(w.replayed());
    for (const SimMessage& message : w.expected) EXPECT_EQ(std::ranges::count(w.link.down.at(0).log, message), 1);
    EXPECT_FALSE(w.pipeline().status().fault.active()) << w.pipeline().status().fault.detail;
  }
}

TEST(Pipeline, UncommittedAcksAndAnErrorAtOnceCommitBeforeTheNextLook) {
  World w;
  w.options.batch_bytes = 1000;
  w.link.up.produce(0, 300);
  w.start();
  for (int i = 0; i < 5; ++i) {
    w.link.pass(20ms);
    w.link.up.cut();
    w.link.down.cut();
  }
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_EQ(w.link.count_events("adopted_own_tail") > 3, false);
}

}  // namespace
}  // namespace replicator
