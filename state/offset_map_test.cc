// Goal: every offset of either side gets the right answer, over restarts, gaps, strangers and incarnations. Method:
// named cases by hand, then random histories in a real store, each offset compared with a map kept message by message.
#include "state/offset_map.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "state/sqlite_store.h"
#include "state/testing/rows.h"

namespace state {
namespace {

using testing::key;
using testing::new_row;

GapRow gap(std::uint64_t begin, std::uint64_t end, std::string cause, std::uint64_t incarnation = 1) {
  GapRow row;
  row.id = 7;
  row.key = key();
  row.incarnation = incarnation;
  row.up_begin = begin;
  row.up_end = end;
  row.cause = std::move(cause);
  return row;
}

PartitionRow row_at(std::uint64_t watermark, std::uint64_t down_end, std::uint64_t incarnation = 1) {
  PartitionRow row = new_row();
  row.watermark = watermark;
  row.down_end = down_end;
  row.incarnation = incarnation;
  return row;
}

// Copying began at 100; [200, 250) was accepted as lost; 100 to 102 downstream are a stranger's.
OffsetMap example() {
  return OffsetMap(row_at(400, 253), {{1, {{100, 0, 100, true}, {250, 103, 150, true}}}},
                   {gap(200, 250, "retention"), gap(250, 250, "foreign_writer")});
}

TEST(OffsetMap, TranslatesBothWaysThroughAConfirmedRange) {
  const OffsetMap map = example();
  const Translation there = map.translate(Side::kUpstream, 260);
  EXPECT_EQ(there.mapping, Mapping::kConfirmed);
  EXPECT_EQ(there.counterpart, 113U);
  const Translation back = map.translate(Side::kDownstream, 113);
  EXPECT_EQ(back.mapping, Mapping::kConfirmed);
  EXPECT_EQ(back.counterpart, 260U);
  for (const std::uint64_t edge : {100U, 199U, 250U, 399U}) {
    const Translation at = map.translate(Side::kUpstream, edge);
    ASSERT_EQ(at.mapping, Mapping::kConfirmed) << edge;
    EXPECT_EQ(map.translate(Side::kDownstream, *at.counterpart).counterpart, edge);
  }
}

TEST(OffsetMap, AReplayedMessageStandsWhereTheLedgerSays) {
  GapRow replay = gap(200, 201, "invalid_record");
  replay.resolved_as = "replayed";
  replay.down_offset = 150;
  const OffsetMap map(row_at(300, 200), {{1, {{100, 0, 100, true}, {201, 100, 50, true}, {251, 151, 49, true}}}},
                      {replay});
  const Translation there = map.translate(Side::kUpstream, 200);
  EXPECT_EQ(there.mapping, Mapping::kConfirmed);
  EXPECT_EQ(there.counterpart, 150U);
  EXPECT_EQ(there.next, 100U) << "a reader goes on in order";
  EXPECT_EQ(map.translate(Side::kDownstream, 150).counterpart, 200U);
  EXPECT_EQ(map.translate(Side::kDownstream, 151).counterpart, 251U);
}

TEST(OffsetMap, NamesTheGapAndWhereToGoOn) {
  const OffsetMap map = example();
  for (const std::uint64_t offset : {200U, 249U}) {
    const Translation answer = map.translate(Side::kUpstream, offset);
    EXPECT_EQ(answer.mapping, Mapping::kGap) << offset;
    ASSERT_TRUE(answer.gap);
    EXPECT_EQ(answer.gap->cause, "retention");
    EXPECT_FALSE(answer.counterpart);
    EXPECT_EQ(answer.next, 103U);
  }
  const Translation stranger = map.translate(Side::kDownstream, 101);
  EXPECT_EQ(stranger.mapping, Mapping::kGap);
  ASSERT_TRUE(stranger.gap);
  EXPECT_EQ(stranger.gap->cause, "foreign_writer");
  EXPECT_EQ(stranger.next, 250U);
}

TEST(OffsetMap, ClaimsNothingBelowItsBeginningNorAboveTheWatermark) {
  const OffsetMap map = example();
  EXPECT_EQ(map.translate(Side::kUpstream, 99).mapping, Mapping::kBelow);
  EXPECT_EQ(map.translate(Side::kUpstream, 99).next, 0U);
  EXPECT_EQ(map.translate(Side::kUpstream, 400).mapping, Mapping::kNotCopied);
  EXPECT_EQ(map.translate(Side::kUpstream, 400).next, 253U);
  EXPECT_EQ(map.translate(Side::kDownstream, 253).mapping, Mapping::kNotCopied);
  const OffsetMap late(row_at(10, 60), {{1, {{0, 50, 10, true}}}}, {});
  EXPECT_EQ(late.translate(Side::kDownstream, 49).mapping, Mapping::kBelow);
  const OffsetMap empty(row_at(5, 50), {}, {});
  EXPECT_EQ(empty.translate(Side::kUpstream, 4).mapping, Mapping::kBelow);
  EXPECT_EQ(empty.translate(Side::kDownstream, 49).mapping, Mapping::kBelow);
}

TEST(OffsetMap, SaysThatAnAssumedRangeIsOne) {
  const OffsetMap map(row_at(20, 20), {{1, {{0, 0, 10, true}, {10, 10, 10, false}}}}, {});
  const Translation answer = map.translate(Side::kUpstream, 15);
  EXPECT_EQ(answer.mapping, Mapping::kAssumed);
  EXPECT_EQ(answer.counterpart, 15U);
  EXPECT_FALSE(answer.next) << "nobody may be sent there";
  EXPECT_EQ(map.translate(Side::kDownstream, 15).mapping, Mapping::kAssumed);
}

TEST(OffsetMap, PrefersThePresentIncarnationAndNamesAnEarlierOne) {
  const OffsetMap map(row_at(50, 150, 2), {{2, {{30, 130, 20, true}}}, {1, {{0, 0, 100, true}}}},
                      {gap(0, 5, "retention", 1)});
  EXPECT_EQ(map.translate(Side::kUpstream, 40).counterpart, 140U);
  const Translation old = map.translate(Side::kUpstream, 10);
  EXPECT_EQ(old.mapping, Mapping::kEarlier);
  EXPECT_EQ(old.counterpart, 10U);
  EXPECT_EQ(old.incarnation, 1U);
  EXPECT_EQ(map.translate(Side::kDownstream, 99).mapping, Mapping::kEarlier);
  EXPECT_EQ(map.translate(Side::kDownstream, 99).counterpart, 99U);
  EXPECT_EQ(map.translate(Side::kUpstream, 60).mapping, Mapping::kNotCopied) << "not the old history's 60";
}

TEST(OffsetMap, IsUnknownWhereTheFileSaysNothing) {
  const OffsetMap map(row_at(30, 30), {{1, {{0, 0, 10, true}, {20, 20, 10, true}}}}, {});
  EXPECT_EQ(map.translate(Side::kUpstream, 15).mapping, Mapping::kUnknown);
  EXPECT_EQ(map.translate(Side::kUpstream, 15).next, 20U);
  EXPECT_EQ(map.translate(Side::kDownstream, 15).mapping, Mapping::kUnknown);
}

TEST(OffsetMap, ReadsAPartitionFromTheFile) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE(store);
  ASSERT_FALSE(load_offset_map(**store, key()));
  ASSERT_TRUE((*store)->apply(testing::create()));
  ASSERT_TRUE((*store)->apply(testing::with(testing::advance(0, 10))));
  auto map = load_offset_map(**store, key());
  ASSERT_TRUE(map);
  EXPECT_EQ(map->translate(Side::kUpstream, 9).counterpart, 9U);
}

// What happened to each message, one entry per message.
struct Truth {
  std::map<std::uint64_t, std::pair<std::uint64_t, bool>> up;  // upstream offset -> downstream offset, confirmed
  std::map<std::uint64_t, std::uint64_t> down;                 // downstream offset -> upstream offset
  std::map<std::uint64_t, std::string> lost;                   // upstream offset -> cause
};

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {
    store_ = std::move(*SqliteStore::open_in_memory());
    row_ = new_row();
    row_.watermark = up_begin_ = pick(20);
    row_.down_end = down_begin_ = pick(20);
    truths_.emplace_back();
    apply(testing::create(row_));
  }

  void step() {
    switch (pick(10)) {
      case 0:
        return lose();
      case 1:
        return stranger();
      case 2:
        return step_back();
      case 3:
        return pick(4) == 0 ? restart() : copy();
      default:
        return copy();
    }
  }

  void check() {
    auto map = load_offset_map(*store_, key());
    ASSERT_TRUE(map);
    const Truth& truth = truths_.back();
    for (std::uint64_t offset = 0; offset < row_.watermark + 5; ++offset) {
      const Translation answer = map->translate(Side::kUpstream, offset);
      const auto at = truth.up.find(offset);
      if (at != truth.up.end()) {
        ASSERT_EQ(answer.mapping, at->second.second ? Mapping::kConfirmed : Mapping::kAssumed) << offset;
        ASSERT_EQ(answer.counterpart, at->second.first) << offset;
      } else if (truth.lost.contains(offset)) {
        ASSERT_EQ(answer.mapping, Mapping::kGap) << offset;
        ASSERT_EQ(answer.gap->cause, truth.lost.at(offset)) << offset;
      } else if (offset >= row_.watermark) {
        ASSERT_EQ(answer.mapping, Mapping::kNotCopied) << offset;
      } else {
        const auto old = earlier([&](const Truth& t) { return t.up.contains(offset); });
        ASSERT_EQ(answer.mapping, old ? Mapping::kEarlier : Mapping::kBelow) << offset;
        if (old) ASSERT_EQ(answer.counterpart, truths_[*old].up.at(offset).first) << offset;
      }
      const auto next = truth.up.lower_bound(offset);
      if (next == truth.up.end()) {
        ASSERT_EQ(answer.next, row_.down_end) << offset;
      } else if (next->second.second) {
        ASSERT_EQ(answer.next, next->second.first) << offset;
      } else {
        ASSERT_FALSE(answer.next) << offset;
      }
    }
    for (std::uint64_t offset = 0; offset < row_.down_end + 5; ++offset) {
      const Translation answer = map->translate(Side::kDownstream, offset);
      if (const auto at = truth.down.find(offset); at != truth.down.end()) {
        ASSERT_EQ(answer.counterpart, at->second) << offset;
      } else if (offset >= row_.down_end) {
        ASSERT_EQ(answer.mapping, Mapping::kNotCopied) << offset;
      } else if (offset >= down_begin_) {
        ASSERT_EQ(answer.mapping, Mapping::kGap) << offset;
      } else {
        const auto old = earlier([&](const Truth& t) { return t.down.contains(offset); });
        if (old) ASSERT_EQ(answer.counterpart, truths_[*old].down.at(offset)) << offset;
        ASSERT_FALSE(answer.mapping == Mapping::kConfirmed || answer.mapping == Mapping::kAssumed) << offset;
      }
    }
  }

 private:
  std::uint64_t pick(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random_);
  }

  std::optional<std::size_t> earlier(const std::function<bool(const Truth&)>& holds) const {
    for (std::size_t at = truths_.size() - 1; at-- > 0;) {
      if (holds(truths_[at])) return at;
    }
    return std::nullopt;
  }

  void apply(const Transaction& transaction) {
    auto applied = store_->apply(transaction);
    ASSERT_TRUE(applied) << applied.error().to_string();
    ASSERT_TRUE(applied->stale.empty());
  }

  PartitionCommit commit() const {
    PartitionCommit next;
    next.key = key();
    next.generation = row_.generation;
    return next;
  }
  void apply(PartitionCommit next) {
    next.watermark = row_.watermark;
    next.down_end = row_.down_end;
    apply(testing::with(std::move(next)));
  }

  void copy() {
    const std::uint64_t count = 1 + pick(5);
    const bool confirmed = pick(8) != 0;
    PartitionCommit next = commit();
    next.ranges.push_back({row_.watermark, row_.down_end, count, confirmed});
    for (std::uint64_t i = 0; i < count; ++i) {
      truths_.back().up[row_.watermark] = {row_.down_end, confirmed};
      truths_.back().down[row_.down_end++] = row_.watermark++;
    }
    apply(std::move(next));
  }

  void lose() {
    const std::uint64_t count = 1 + pick(4);
    PartitionCommit next = commit();
    next.gaps.push_back(gap(row_.watermark, row_.watermark + count, pick(2) == 0 ? "retention" : "hole"));
    next.gaps.back().incarnation = row_.incarnation;
    for (std::uint64_t i = 0; i < count; ++i) truths_.back().lost[row_.watermark++] = next.gaps.back().cause;
    apply(std::move(next));
  }

  void stranger() {
    PartitionCommit next = commit();
    next.gaps.push_back(gap(row_.watermark, row_.watermark, "own_duplicate"));
    next.gaps.back().incarnation = row_.incarnation;
    row_.down_end += 1 + pick(3);
    apply(std::move(next));
  }

  // The downstream lost its tail: the last copies are sent again, to the same places.
  void step_back() {
    Truth& truth = truths_.back();
    if (truth.up.empty() || std::next(truth.up.rbegin()) == truth.up.rend()) return;
    const auto last = truth.up.rbegin();
    if (last->first + 1 != row_.watermark || last->second.first + 1 != row_.down_end) return;
    row_.watermark = last->first;
    row_.down_end = last->second.first;
    row_.generation += 1;
    truth.down.erase(row_.down_end);
    truth.up.erase(row_.watermark);
    apply(testing::create(row_));
  }

  void restart() {
    row_.generation += 1;
    row_.incarnation += 1;
    row_.watermark = up_begin_ = pick(row_.watermark + 3);
    down_begin_ = row_.down_end;
    truths_.emplace_back();
    apply(testing::create(row_));
  }

  std::mt19937_64 random_;
  std::unique_ptr<SqliteStore> store_;
  PartitionRow row_;
  std::uint64_t up_begin_ = 0, down_begin_ = 0;
  std::vector<Truth> truths_;  // by incarnation
};

TEST(OffsetMap, AgreesWithAMapKeptMessageByMessage) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed);
    for (int step = 0; step < 40; ++step) history.step();
    history.check();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace state
