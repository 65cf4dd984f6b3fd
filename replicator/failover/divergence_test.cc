// Goal: exactly what never got across is an orphan, whatever both sides lost, landed late or appended. Method: two logs
// in memory, the row and map that a link would have left.
#include "replicator/failover/divergence.h"

#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/testing/run_until_done.h"

namespace replicator {
namespace {

// Messages by name; an empty name is an offset that holds none.
using Log = std::vector<std::string>;

class DivergenceTest : public ::testing::Test {
 protected:
  LogSide side(const Log& log) {
    ReadLog read = [&log](std::uint64_t from, std::uint32_t count) -> base::Task<base::Result<base::RecordBatch>> {
      base::RecordBatch batch;
      for (std::uint64_t at = from; at < log.size() && batch.records.size() < count; ++at) {
        if (!log[at].empty()) batch.records.push_back(record(log[at], at));
      }
      co_return batch;
    };
    std::uint64_t begin = 0;
    while (begin < log.size() && log[begin].empty()) ++begin;
    return {std::move(read), begin, log.size()};
  }
  static base::Record record(const std::string& text, std::uint64_t offset) {
    base::Record made;
    made.offset = offset;
    made.id = {7, std::hash<std::string>{}(text)};
    made.body = base::as_bytes(text);
    made.payload_length = static_cast<std::uint32_t>(text.size());
    return made;
  }
  // What a link leaves that has copied the first `count` messages one to one.
  void copied(const Log& up, std::uint64_t count) {
    row.watermark = row.down_end = count;
    ranges.clear();
    if (count == 0) return;
    const base::Record last = record(up[count - 1], count - 1);
    row.anchor = state::Anchor{count - 1, count - 1, last.id, base::digest_of(last)};
    ranges.push_back({0, 0, count, true});
  }
  Divergence find(const Log& up, const Log& down) {
    auto found = base::testing::run_until_done(io, clock, find_divergence(row, ranges, side(up), side(down)));
    EXPECT_TRUE(found);
    return *found;
  }

  asio::io_context io;
  base::testing::SimClock clock{io};
  state::PartitionRow row;
  std::vector<state::RangeRow> ranges;
};

using Offsets = std::vector<std::uint64_t>;

TEST_F(DivergenceTest, ListsWhatWasAcknowledgedAndNeverCopied) {
  const Log up = {"a", "b", "c", "d", "e"};
  copied(up, 3);
  const Divergence found = find(up, {"a", "b", "c", "n1", "n2"});
  EXPECT_EQ(found.orphans, (Offsets{3, 4}));
  EXPECT_EQ(found.up_common, 3U);
  EXPECT_EQ(found.down_common, 3U);
  EXPECT_EQ(found.lost_upstream, 0U);
}

TEST_F(DivergenceTest, WhatWasSentAndNeverRecordedIsNoOrphan) {
  const Log up = {"a", "b", "c", "d", "e"};
  copied(up, 2);
  const Divergence found = find(up, {"a", "b", "c", "d", "n1"});
  EXPECT_EQ(found.orphans, (Offsets{4}));
  EXPECT_EQ(found.down_common, 4U) << "the new history begins behind what is ours";
}

TEST_F(DivergenceTest, ASendThatLandedLateInsideTheNewHistoryIsNoOrphan) {
  const Log up = {"a", "b", "c", "d", "e"};
  copied(up, 2);
  const Divergence found = find(up, {"a", "b", "n1", "c", "d", "n2"});
  EXPECT_EQ(found.orphans, (Offsets{4}));
  EXPECT_EQ(found.landed_late, 2U);
  EXPECT_EQ(found.down_common, 2U);
}

TEST_F(DivergenceTest, AnOldPrimaryThatLostItsTailGetsItBackFromTheNewOne) {
  const Log up = {"a", "b", "c", "d", "e", "f"};
  copied(up, 6);
  const Log after_crash = {"a", "b", "c", "d"};
  const Divergence found = find(after_crash, {"a", "b", "c", "d", "e", "f", "n1"});
  EXPECT_TRUE(found.orphans.empty());
  EXPECT_EQ(found.lost_upstream, 2U);
  EXPECT_EQ(found.up_common, 4U);
  EXPECT_EQ(found.down_common, 4U);
}

TEST_F(DivergenceTest, OffsetsThatWereIssuedAgainAreOrphansFromTheFirstOne) {
  copied({"a", "b", "c", "d"}, 4);
  const Divergence found = find({"a", "b", "x", "y", "z"}, {"a", "b", "c", "d", "n1"});
  EXPECT_EQ(found.orphans, (Offsets{2, 3, 4}));
  EXPECT_EQ(found.down_common, 2U);
  EXPECT_EQ(found.lost_upstream, 2U);
}

TEST_F(DivergenceTest, ANewPrimaryThatLostItsTailMakesOrphansOfWhatItLost) {
  copied({"a", "b", "c", "d"}, 4);
  const Divergence found = find({"a", "b", "c", "d"}, {"a", "b", "n1", "n2", "n3"});
  EXPECT_EQ(found.orphans, (Offsets{2, 3}));
  EXPECT_EQ(found.down_common, 2U);
}

TEST_F(DivergenceTest, APurgedOldPrimaryHasNothingInCommon) {
  copied({"a", "b", "c"}, 3);
  const Divergence found = find({}, {"a", "b", "c", "n1"});
  EXPECT_TRUE(found.orphans.empty());
  EXPECT_EQ(found.lost_upstream, 3U);
  EXPECT_EQ(found.down_common, 0U);
}

TEST_F(DivergenceTest, APartitionThatWasNeverCopiedIsAllOrphans) {
  copied({}, 0);
  EXPECT_EQ(find({"a", "b"}, {}).orphans, (Offsets{0, 1}));
  EXPECT_EQ(find({"a", "b"}, {"n1"}).orphans, (Offsets{0, 1}));
}

TEST_F(DivergenceTest, WhatExpiredOnOneSideIsNoDivergence) {
  const Log up = {"a", "b", "c", "d"};
  copied(up, 3);
  const Divergence found = find({"", "", "", "d"}, {"a", "b", "c", "n1"});
  EXPECT_EQ(found.orphans, (Offsets{3}));
  EXPECT_EQ(found.lost_upstream, 0U);
  EXPECT_EQ(found.down_common, 3U);
}

TEST_F(DivergenceTest, AnOldPrimaryThatLostItsTailAndWentOnAboveAReservationLostItAllTheSame) {
  copied({"a", "b", "c", "d"}, 4);
  const Divergence found = find({"a", "b", "", "", "", "", "x"}, {"a", "b", "c", "d", "n1"});
  EXPECT_EQ(found.orphans, (Offsets{6}));
  EXPECT_EQ(found.lost_upstream, 2U);
  EXPECT_EQ(found.down_common, 2U);
}

TEST_F(DivergenceTest, EqualMessagesAreCountedOneByOne) {
  const Log up = {"a", "x", "x", "x"};
  copied(up, 1);
  const Divergence found = find(up, {"a", "n1", "x"});
  EXPECT_EQ(found.orphans.size(), 2U);
  EXPECT_EQ(found.landed_late, 1U);
}

TEST_F(DivergenceTest, ReadsOverManyBatches) {
  Log up, down;
  for (int i = 0; i < 3000; ++i) up.push_back("m" + std::to_string(i));
  down.assign(up.begin(), up.begin() + 2863);
  copied(up, 1200);
  const Divergence found = find(up, down);
  EXPECT_EQ(found.orphans.size(), 137U);
  EXPECT_EQ(found.orphans.front(), 2863U);
  EXPECT_EQ(found.down_common, 2863U);
}

}  // namespace
}  // namespace replicator
