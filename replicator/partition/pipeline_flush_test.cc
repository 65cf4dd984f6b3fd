// A sink that flushes: nothing is committed that a kill of the downstream's process could take back, and sends do not
// wait for a flush.
#include <gtest/gtest.h>

#include "replicator/testing/sim_appliance.h"

namespace replicator {
namespace {

using namespace std::chrono_literals;
using testing::Flavour;
using testing::SimAppliance;
using testing::SimLink;

struct FlushWorld {
  FlushWorld() { options.batch_bytes = 1000; }
  ~FlushWorld() { end(true); }
  void start() {
    appliance = std::make_unique<SimAppliance>(link.io, link.clock, link.up, link.down, *link.faulty, options, 1 << 20);
    sink().flushes_acks = true;
    appliance->start();
  }
  void end(bool in_order) {
    if (!appliance) return;
    link.run(in_order ? appliance->stop() : appliance->kill());
    appliance.reset();
  }
  testing::SimSink& sink() { return appliance->lane().sink; }
  // What a kill of the downstream leaves covers all that is committed.
  void expect_covered() {
    const auto row = link.row();
    if (row) EXPECT_LE(row->down_end, link.down.at(0).saved);
  }
  bool caught_up(base::Duration patience = 120s) {
    const base::TimePoint deadline = link.clock.now() + patience;
    while (link.clock.now() < deadline) {
      link.pass(5ms);
      expect_covered();
      const auto row = link.row();
      if (row && row->watermark == link.up.at(0).end()) return true;
    }
    return false;
  }
  void expect_equal() {
    const auto& up = link.up.at(0).log;
    const auto& down = link.down.at(0).log;
    ASSERT_EQ(down.size(), up.size());
    for (std::size_t i = 0; i < up.size(); ++i) EXPECT_EQ(up[i], down[i]) << "at " << i;
  }

  SimLink link{Flavour::kVsr, Flavour::kLegacy};
  PipelineOptions options;
  std::unique_ptr<SimAppliance> appliance;
};

TEST(PipelineFlush, OneFlushCoversManySendsAndComesBeforeTheirCommit) {
  FlushWorld w;
  w.link.up.produce(0, 3000);
  w.start();
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_GT(w.sink().flush_count, 0U);
  EXPECT_LT(w.sink().flush_count, w.sink().sends / 2);
}

TEST(PipelineFlush, IdleNeedsNoFlush) {
  FlushWorld w;
  w.link.up.produce(0, 10);
  w.start();
  EXPECT_TRUE(w.caught_up());
  const std::uint64_t before = w.sink().flush_count;
  w.link.pass(60s);
  EXPECT_EQ(w.sink().flush_count, before);
}

TEST(PipelineFlush, ACrashBetweenAckAndFlushIsSentAgain) {
  FlushWorld w;
  w.link.up.produce(0, 500);
  w.start();
  int crashes = 0;
  w.sink().on_flush = [&] {
    if (crashes < 3 && w.sink().flush_count % 2 == 0) {
      ++crashes;
      w.link.down.crash();
    }
  };
  for (int i = 0; i < 200; ++i) {
    w.link.up.produce(0, 20);
    w.link.pass(50ms);
    w.expect_covered();
  }
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(crashes, 3);
  w.expect_equal();
  EXPECT_EQ(w.link.count_events("downstream_lost_tail"), 0U) << "nothing below a committed watermark was lost";
  EXPECT_EQ(w.link.row()->counters.duplicates, 0U);
}

TEST(PipelineFlush, AFlushThatFailsCommitsNothing) {
  FlushWorld w;
  w.link.up.produce(0, 100);
  w.start();
  w.sink().flush_fault = base::Error(base::ErrorCode::kConnectionLost, "flush", "", "cut");
  EXPECT_TRUE(w.caught_up());
  w.expect_equal();
  EXPECT_GE(w.sink().flush_count, 2U);
}

TEST(PipelineFlush, AnAdoptedTailIsFlushedBeforeItIsCommitted) {
  FlushWorld w;
  w.link.up.produce(0, 100);
  w.options.flush_interval = 1h;  // killed before the first one
  w.start();
  w.link.pass(2s);
  EXPECT_EQ(w.link.down.at(0).log.size(), 100U);
  w.end(false);
  w.link.reopen();
  EXPECT_EQ(w.link.row()->watermark, 0U);
  w.options.flush_interval = 100ms;
  w.start();
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.count_events("adopted_own_tail"), 1U);
  EXPECT_EQ(w.sink().sends, 0U);
  EXPECT_EQ(w.sink().flush_count, 1U);
  w.expect_equal();
}

TEST(PipelineFlush, WhatStandsBeforeALeftOutMessageIsFlushedBeforeTheWatermarkPassesIt) {
  FlushWorld w;
  w.options.invalid_records = {true, ""};
  w.options.flush_interval = 2s;
  w.link.up.produce(0, 60);
  w.start();
  w.sink().invalid = w.link.up.at(0).log[30].body;
  for (int i = 0; i < 10'000 && (!w.link.row() || w.link.row()->watermark <= 30); ++i) w.link.pass(5ms);
  ASSERT_GT(w.link.row()->watermark, 30U);
  EXPECT_GE(w.link.down.at(0).saved, 30U);
  EXPECT_TRUE(w.caught_up());
  EXPECT_EQ(w.link.down.at(0).log.size(), 59U);
  EXPECT_EQ(w.link.row()->counters.skipped, 1U);
}

TEST(PipelineFlush, AReplayIsFlushedBeforeItsRowIsClosed) {
  FlushWorld w;
  w.options.invalid_records = {true, ""};
  w.link.up.produce(0, 20);
  w.start();
  w.sink().invalid = w.link.up.at(0).log[7].body;
  EXPECT_TRUE(w.caught_up());
  w.sink().invalid.clear();
  EXPECT_TRUE(w.link.run(w.appliance->pipeline().replay({w.link.gaps().at(0)}, "ada@host")));
  for (int i = 0; i < 1000 && w.link.gaps().at(0).resolved_as != "replayed"; ++i) w.link.pass(5ms);
  EXPECT_EQ(w.link.gaps().at(0).resolved_as, "replayed");
  EXPECT_EQ(w.link.down.at(0).saved, 20U);
}

TEST(PipelineFlush, AStopFlushesWhatWasAcked) {
  FlushWorld w;
  w.link.up.produce(0, 100);
  w.options.flush_interval = 1h;
  w.start();
  w.link.pass(2s);
  w.end(true);
  w.link.reopen();
  EXPECT_EQ(w.link.row()->watermark, 100U);
  w.expect_covered();
}

}  // namespace
}  // namespace replicator
