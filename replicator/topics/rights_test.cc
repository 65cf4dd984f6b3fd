// What a user may is read from its permissions, and found out by trials that change nothing where it may not look.
#include "replicator/topics/rights.h"

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "replicator/testing/fake_client.h"

namespace replicator {
namespace {

using base::TopicName;
using iggy::Access;

const TopicName kEvents{"orders", "events"};

class RightsTest : public ::testing::Test {
 protected:
  RightsTest() {
    broker.add_topic(kEvents, 1);
    broker.stream("orders")->stream.id = 3;
    broker.topic(kEvents)->topic.id = 5;
  }
  std::optional<bool> has(Access access, TopicName object = {}) {
    return base::testing::run_until_done(io, clock, ask(access, std::move(object)));
  }
  base::Task<std::optional<bool>> ask(Access access, TopicName object) {
    auto looking = Rights::look(client);
    Rights rights = co_await std::move(looking);
    known = rights.are_known();
    auto asking = rights.have(access, std::move(object));
    co_return co_await std::move(asking);
  }

  asio::io_context io;
  base::testing::SimClock clock{io};
  testing::FakeBroker broker{clock};
  testing::FakeClient client{broker, clock};
  bool known = false;
};

TEST_F(RightsTest, AreReadFromTheUsersOwnPermissionsByNumber) {
  client.permissions.emplace();
  client.permissions->streams.push_back({.id = 3, .topics = {{.id = 5, .poll_messages = true}}});
  EXPECT_EQ(has(Access::kPoll, kEvents), true);
  EXPECT_TRUE(known);
  EXPECT_EQ(has(Access::kSend, kEvents), false);
  EXPECT_EQ(has(Access::kPoll, {"orders", "other"}), false);
  EXPECT_EQ(has(Access::kManageTopics, {"nowhere", ""}), false) << "nothing is granted on what is not there";
  EXPECT_EQ(has(Access::kReadServers), false);
  client.permissions->manage_streams = true;
  EXPECT_EQ(has(Access::kManageTopics, {"nowhere", ""}), true);
  EXPECT_EQ(client.count<iggy::PollMessages>() + client.count<iggy::SendMessages>(), 0U) << "no trial is needed";
}

TEST_F(RightsTest, AUserWithoutAnyPermissionHasNone) {
  EXPECT_EQ(has(Access::kPoll, kEvents), false);
  EXPECT_TRUE(known);
}

TEST_F(RightsTest, AreTriedWithoutChangingAnythingWhereTheyCantBeRead) {
  client.deny<iggy::GetUser>();
  EXPECT_EQ(has(Access::kPoll, kEvents), true);
  EXPECT_FALSE(known);
  EXPECT_EQ(has(Access::kSend, kEvents), true) << "no such partition: the right was looked at before";
  EXPECT_EQ(broker.topic(kEvents)->end, 0U);
  EXPECT_EQ(has(Access::kReadServers), true);
  EXPECT_EQ(has(Access::kManageTopics, {"orders", ""}), std::nullopt) << "that would create something";
  client.deny<iggy::SendMessages>();
  client.deny<iggy::PollMessages>();
  client.deny<iggy::GetClients>();
  EXPECT_EQ(has(Access::kSend, kEvents), false);
  EXPECT_EQ(has(Access::kPoll, kEvents), false);
  EXPECT_EQ(has(Access::kReadServers), false);
}

TEST_F(RightsTest, AnUnansweredTrialTellsNothing) {
  client.deny<iggy::GetUser>();
  client.deny<iggy::PollMessages>(base::ErrorCode::kTimeout);
  EXPECT_EQ(has(Access::kPoll, kEvents), std::nullopt);
}

TEST_F(RightsTest, AMissingRightIsNamedWithSideAndObject) {
  EXPECT_EQ(lacks("upstream", client, Access::kPoll, "orders/events"),
            "upstream user of the token lacks poll_messages on orders/events");
  const base::Error refused(base::ErrorCode::kPermission, "send", "", "status 41");
  EXPECT_EQ(name_right(refused, "downstream", client, Access::kSend, kEvents).message(),
            "downstream user of the token lacks send_messages on orders/events");
  const base::Error other(base::ErrorCode::kTimeout, "send", "", "no answer");
  EXPECT_EQ(name_right(other, "downstream", client, Access::kSend, kEvents).message(), "no answer");
}

}  // namespace
}  // namespace replicator
