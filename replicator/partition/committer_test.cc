// Group commit on virtual time over the real state file: what is gathered, what a failing store does, how it ends.
#include "replicator/partition/committer.h"

#include <gtest/gtest.h>

#include "replicator/testing/sim_link.h"

namespace replicator {
namespace {

using state::testing::Failing;
using testing::sim_key;

class Listener final : public CommitListener {
 public:
  void on_committed(const state::PartitionCommit& commit) override { committed.push_back(commit.watermark); }
  void on_stale(const base::PartitionKey&) override { ++stale; }
  std::vector<std::uint64_t> committed;
  int stale = 0;
};

struct Fixture {
  Fixture()
      : link(testing::Flavour::kVsr, testing::Flavour::kVsr, 2),
        committer(link.io, link.clock, *link.inline_store, {}),
        tasks(link.io) {
    for (const std::uint32_t partition : {0U, 1U}) {
      state::Transaction transaction;
      state::PartitionReplace replace;
      replace.row.key = sim_key(partition);
      replace.row.downstream = testing::sim_downstream();
      transaction.replaces.push_back(replace);
      base::check(link.file->apply(transaction).has_value(), "the row is written");
    }
    tasks.spawn(committer.run());
  }
  ~Fixture() { end(std::chrono::seconds(1)); }
  void end(base::Duration within) {
    committer.drain(link.clock.now() + within);
    link.run(tasks.close());
  }
  void add(std::uint32_t partition, std::uint64_t from, std::uint64_t count, std::uint64_t generation = 1) {
    state::PartitionCommit commit;
    commit.key = sim_key(partition);
    commit.generation = generation;
    commit.watermark = from + count;
    commit.down_end = from + count;
    commit.ranges.push_back({from, from, count, true});
    commit.added.copied = count;
    committer.add(std::move(commit), listeners[partition]);
  }
  bool flush(std::uint32_t partition, base::Duration within) {
    return link.run(committer.flush(sim_key(partition), link.clock.now() + within));
  }

  testing::SimLink link;
  Committer committer;
  base::TaskGroup tasks;
  Listener listeners[2];
};

TEST(Committer, GathersAllPartitionsIntoOneTransaction) {
  Fixture f;
  f.add(0, 0, 5);
  f.add(0, 5, 5);
  f.add(1, 0, 3);
  const std::uint64_t before = f.link.faulty->calls();
  f.link.pass(std::chrono::milliseconds(150));
  EXPECT_EQ(f.link.faulty->calls(), before + 1);
  EXPECT_EQ(f.listeners[0].committed, std::vector<std::uint64_t>{10});
  EXPECT_EQ(f.listeners[1].committed, std::vector<std::uint64_t>{3});
  EXPECT_EQ(f.link.row(0)->watermark, 10U);
  EXPECT_EQ(f.link.row(0)->counters.copied, 10U);
  EXPECT_EQ(f.link.ranges(0).size(), 1U);
}

TEST(Committer, ManyMessagesDoNotWaitForTheInterval) {
  Fixture f;
  f.add(0, 0, 10'000);
  f.link.pass(std::chrono::milliseconds(1));
  EXPECT_EQ(f.link.row(0)->watermark, 10'000U);
}

TEST(Committer, AFailedCommitIsRepeatedAsACommitUntilItIsThrough) {
  Fixture f;
  f.link.faulty->fail(1, Failing::kFromThenOn);
  f.add(0, 0, 5);
  EXPECT_FALSE(f.flush(0, std::chrono::seconds(3)));
  EXPECT_NE(f.committer.error().find("disk full"), std::string::npos);
  f.add(0, 5, 5);
  f.link.faulty->fail(0, Failing::kOnce);
  EXPECT_TRUE(f.flush(0, std::chrono::seconds(30)));
  EXPECT_EQ(f.committer.error(), "");
  EXPECT_EQ(f.listeners[0].committed, (std::vector<std::uint64_t>{5, 10}));
}

TEST(Committer, AnOlderGenerationChangesNothing) {
  Fixture f;
  f.add(0, 0, 5, 7);
  f.add(1, 0, 3);
  EXPECT_TRUE(f.flush(0, std::chrono::seconds(1)));
  EXPECT_EQ(f.listeners[0].stale, 1);
  EXPECT_EQ(f.link.row(0)->watermark, 0U);
  EXPECT_EQ(f.link.row(1)->watermark, 3U);
}

TEST(Committer, OnePartitionThatContradictsTheFileHoldsUpNoOther) {
  Fixture f;
  state::PartitionCommit broken;
  broken.key = sim_key(0);
  broken.generation = 1;
  broken.watermark = 5;
  broken.down_end = 5;
  broken.ranges.push_back({3, 3, 9, true});  // ends above the watermark
  f.committer.add(std::move(broken), f.listeners[0]);
  f.add(1, 0, 3);
  EXPECT_TRUE(f.flush(1, std::chrono::seconds(1)));
  EXPECT_TRUE(f.flush(0, std::chrono::seconds(1)));
  EXPECT_EQ(f.link.row(1)->watermark, 3U);
  EXPECT_EQ(f.listeners[1].committed, std::vector<std::uint64_t>{3});
  EXPECT_EQ(f.link.row(0)->watermark, 0U);
  EXPECT_EQ(f.listeners[0].stale, 1);
}

TEST(Committer, AForgottenPartitionIsNotTold) {
  Fixture f;
  f.add(0, 0, 5);
  f.committer.forget(sim_key(0));
  EXPECT_TRUE(f.flush(0, std::chrono::seconds(1)));
  EXPECT_TRUE(f.listeners[0].committed.empty());
}

TEST(Committer, DrainCommitsWhatIsPendingAndEnds) {
  Fixture f;
  f.add(0, 0, 5);
  f.end(std::chrono::seconds(10));
  EXPECT_EQ(f.link.row(0)->watermark, 5U);
}

TEST(Committer, DrainEndsAtItsDeadlineWhenTheStoreFails) {
  Fixture f;
  f.link.faulty->fail(1, Failing::kFromThenOn);
  f.add(0, 0, 5);
  f.link.pass(std::chrono::seconds(20));  // deep in its backoff
  const base::TimePoint before = f.link.clock.now();
  f.end(std::chrono::seconds(2));
  EXPECT_LE(f.link.clock.now() - before, std::chrono::seconds(2));
  EXPECT_EQ(f.link.row(0)->watermark, 0U);
}

}  // namespace
}  // namespace replicator
