// The offset that is stored upstream follows what is committed here, and the pin that it is raises its alarm once.
#include "replicator/link/upstream_offset.h"

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "replicator/testing/fake_client.h"

namespace replicator {
namespace {

using namespace std::chrono_literals;

class UpstreamOffsetTest : public ::testing::Test {
 protected:
  std::optional<std::string> update(std::uint64_t committed, std::optional<std::uint64_t> end, bool retention = true) {
    return base::testing::run_until_done(io, clock, offset.update({committed, end, retention}));
  }
  void pass(base::Duration time) { base::testing::run_until_done(io, clock, clock.sleep_for(time)); }

  asio::io_context io;
  base::testing::SimClock clock{io};
  testing::FakeBroker broker{clock};
  testing::FakeClient client{broker, clock};
  UpstreamOffset offset{clock, client, {{"orders", "events"}, 0}, "watcher", 10s};
};

TEST_F(UpstreamOffsetTest, StoresTheLastCommittedOffsetAndOnlyWhenItMoved) {
  update(0, 5);
  EXPECT_FALSE(client.stored_offset) << "nothing is committed: there is no offset below the first";
  EXPECT_FALSE(offset.pin());
  update(3, 5);
  EXPECT_EQ(client.stored_offset, 2U);
  update(3, 5);
  EXPECT_EQ(client.count<iggy::StoreConsumerOffset>(), 1U);
  ASSERT_TRUE(offset.pin());
  EXPECT_EQ(offset.pin()->next, 3U);
  EXPECT_EQ(offset.pin()->messages, 2U);
  update(1, 5);  // a new history begins again
  EXPECT_EQ(client.stored_offset, 0U);
}

TEST_F(UpstreamOffsetTest, AnOffsetThatStandsBelowNewMessagesIsAnAlarmOnce) {
  EXPECT_FALSE(update(3, 5));
  pass(9s);
  EXPECT_FALSE(update(3, 90));
  pass(2s);
  const auto began = update(3, 90);
  ASSERT_TRUE(began);
  EXPECT_NE(began->find("`watcher` holds back upstream retention at offset 3: 87 messages"), std::string::npos)
      << *began;
  EXPECT_TRUE(offset.pin()->alarm);
  EXPECT_FALSE(update(3, 95)) << "said once";
  const auto ended = update(95, 95);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(offset.pin()->alarm);
  EXPECT_EQ(offset.pin()->held_micros, 0U);
}

TEST_F(UpstreamOffsetTest, NothingIsHeldBackAtTheEndOrWithoutRetention) {
  update(5, 5);
  pass(60s);
  EXPECT_FALSE(update(5, 5)) << "caught up: nothing is above it";
  pass(60s);
  EXPECT_FALSE(update(5, 9, false)) << "the topic keeps its messages for ever";
}

TEST_F(UpstreamOffsetTest, AMissingRightIsNamedAndTriedAgain) {
  client.deny<iggy::StoreConsumerOffset>();
  update(3, 5);
  ASSERT_TRUE(offset.pin());
  EXPECT_NE(offset.pin()->error.find("lacks poll_messages on orders/events"), std::string::npos) << offset.pin()->error;
  client.before = nullptr;
  update(3, 5);
  EXPECT_EQ(client.stored_offset, 2U);
  EXPECT_TRUE(offset.pin()->error.empty());
}

}  // namespace
}  // namespace replicator
