// Goal: a link that was ended stays ended, whatever fails or dies on the way, and the verb can be repeated. Method: a
// broker in memory whose Nth call fails, a store in memory that fails, the verb again, and a process that tries to
// start.
#include "replicator/failover/end_link.h"

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "base/testing/sim_clock.h"
#include "replicator/testing/fake_client.h"
#include "state/inline_store.h"
#include "state/sqlite_store.h"
#include "state/testing/faulty_store.h"

namespace replicator {
namespace {

using testing::FakeBroker;
using testing::FakeClient;

class EndLinkTest : public ::testing::Test {
 protected:
  EndLinkTest() {
    auto opened = state::SqliteStore::open_in_memory();
    file = *std::move(opened);
    link.id = "link-1";
    link.upstream = "iggy://a:8090";
    link.downstream = "iggy://b:8090";
    link.generation = 3;
    state::Transaction first;
    first.link = link;
    EXPECT_TRUE(file->apply(first));
  }

  EndReport end(iggy::Client* client, state::Store& on) {
    state::InlineStore store(on);
    state::LinkRow loaded = **file->link();
    EndLinkOptions options;
    options.actor = "ann@host";
    options.patience = std::chrono::seconds(2);
    if (sync) options.sync_consumers = sync;
    return base::testing::run_until_done(
        io, clock, end_link(store, loaded, client, "connection refused", clock, config, rules, std::move(options)));
  }
  bool may_start(std::uint64_t generation) {
    FakeClient client(broker, clock);
    state::LinkRow copy = link;
    copy.generation = generation;
    Marker marker(client, clock, marker_options(config, rules, copy));
    const auto acquired = base::testing::run_until_done(
        io, clock, marker.acquire([](std::uint64_t) -> base::Task<base::Status> { co_return base::ok(); }));
    return acquired.has_value();
  }
  std::string state() { return (*file->link())->state; }
  std::size_t events() { return file->events(100)->size(); }

  asio::io_context io;
  base::testing::SimClock clock{io};
  FakeBroker broker{clock};
  std::unique_ptr<state::SqliteStore> file;
  state::LinkRow link;
  Config config;
  Rules rules = *Rules::compile({}, {}, {}, config.marker);
  std::function<base::Task<base::Result<std::vector<state::ConsumerRow>>>()> sync;
};

TEST_F(EndLinkTest, IsDurableOnBothSidesAndSaysWhatComesNext) {
  FakeClient client(broker, clock);
  const EndReport report = end(&client, *file);
  EXPECT_TRUE(report.recorded_in_state);
  EXPECT_TRUE(report.recorded_downstream);
  EXPECT_FALSE(report.was_ended);
  EXPECT_TRUE(report.undone.empty());
  EXPECT_FALSE(report.next_steps.empty());
  EXPECT_EQ(state(), "promoted");
  EXPECT_EQ(file->events(1)->front().kind, "failover");
  EXPECT_EQ(file->events(1)->front().actor, "ann@host");
  EXPECT_FALSE(may_start(3));
  EXPECT_FALSE(may_start(99)) << "a newer generation does not help";
}

TEST_F(EndLinkTest, ADeadDownstreamDoesNotKeepTheStateFileFromSayingSo) {
  const EndReport report = end(nullptr, *file);
  EXPECT_TRUE(report.recorded_in_state);
  EXPECT_FALSE(report.recorded_downstream);
  ASSERT_EQ(report.undone.size(), 1U);
  EXPECT_NE(report.undone[0].find("connection refused"), std::string::npos);
  FakeClient client(broker, clock);
  const EndReport again = end(&client, *file);
  EXPECT_TRUE(again.was_ended);
  EXPECT_TRUE(again.undone.empty());
  EXPECT_FALSE(may_start(3));
}

TEST_F(EndLinkTest, AFullDiskDoesNotKeepTheRecordDownstreamFromBeingWritten) {
  state::testing::FaultyStore full(*file);
  full.fail(1, state::testing::Failing::kFromThenOn);
  FakeClient client(broker, clock);
  const EndReport report = end(&client, full);
  EXPECT_FALSE(report.recorded_in_state);
  EXPECT_TRUE(report.recorded_downstream);
  EXPECT_EQ(report.undone.size(), 1U);
  EXPECT_EQ(state(), "active");
  EXPECT_FALSE(may_start(3)) << "the record downstream is enough";
  const EndReport again = end(&client, *file);
  EXPECT_TRUE(again.undone.empty());
  EXPECT_EQ(state(), "promoted");
}

TEST_F(EndLinkTest, RepeatingItChangesNothing) {
  FakeClient client(broker, clock);
  end(&client, *file);
  const std::size_t records = broker.topic({"iggy-replicate", "links"})->end;
  const EndReport again = end(&client, *file);
  EXPECT_TRUE(again.was_ended);
  EXPECT_TRUE(again.undone.empty());
  EXPECT_EQ(broker.topic({"iggy-replicate", "links"})->end, records);
  EXPECT_EQ(events(), 2U) << "who asked again stands in the audit trail";
}

TEST_F(EndLinkTest, ConsumersAreSyncedAfterTheRecordsAndAFailureThereIsToldAndUndoesNothing) {
  FakeClient client(broker, clock);
  bool promoted_before = false;
  sync = [&]() -> base::Task<base::Result<std::vector<state::ConsumerRow>>> {
    promoted_before = state() == "promoted";
    co_return base::Error(base::ErrorCode::kConnectFailed, "sync", "", "upstream is gone");
  };
  const EndReport report = end(&client, *file);
  EXPECT_TRUE(promoted_before);
  EXPECT_TRUE(report.recorded_downstream);
  ASSERT_EQ(report.undone.size(), 1U);
  EXPECT_NE(report.undone[0].find("upstream is gone"), std::string::npos);
}

TEST_F(EndLinkTest, WithoutAMarkerOnlyTheStateFileSaysSoAndItIsTold) {
  config.marker = "off";
  rules = *Rules::compile({}, {}, {}, "off");
  FakeClient client(broker, clock);
  const EndReport report = end(&client, *file);
  EXPECT_TRUE(report.undone.empty());
  EXPECT_FALSE(report.recorded_downstream);
  EXPECT_NE(report.next_steps.front().find("destroy such copies"), std::string::npos);
}

}  // namespace
}  // namespace replicator
