// How much is asked of a cluster that is quiet, and how soon a change is seen all the same. Virtual time; the broker is
// a fake that counts requests.
#include "replicator/link/stream_watcher.h"

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "replicator/testing/fake_client.h"

namespace replicator {
namespace {

using base::TopicName;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeBroker;
using testing::FakeClient;
using testing::FakeTopic;

constexpr base::Duration kInterval = milliseconds(100);

class StreamWatcherTest : public ::testing::Test {
 protected:
  StreamWatcherTest() : cancel(io) {}
  ~StreamWatcherTest() override {
    stream.stop();
    for (auto& watcher : topics) watcher->stop();
    run(group.close());
  }
  void watch(int count, int partitions = 2) {
    for (int i = 0; i < count; ++i) {
      const TopicName name{"orders", "topic-" + std::to_string(i)};
      broker.append(broker.add_topic(name, static_cast<std::uint32_t>(partitions)), "first");
    }
    for (int i = 0; i < count; ++i) {
      const TopicName name{"orders", "topic-" + std::to_string(i)};
      topics.push_back(std::make_unique<TopicWatcher>(io, clock, client, name));
      group.spawn(topics.back()->run());
      stream.add(*topics.back());
    }
    group.spawn(stream.run());
  }
  template <class T>
  T run(base::Task<T> task) {
    return base::testing::run_until_done(io, clock, std::move(task));
  }
  void pass(base::Duration time) { run(clock.sleep_for(time)); }
  FakeTopic& topic(int number) { return *broker.topic({"orders", "topic-" + std::to_string(number)}); }
  base::Result<PartitionView> wait(int number, std::uint64_t end, base::Duration at_most) {
    PartitionView seen = topics[static_cast<std::size_t>(number)]->observed(0)->view;
    EXPECT_EQ(seen.end, end);
    return run(topics[static_cast<std::size_t>(number)]->wait_for_change(0, seen, at_most, cancel));
  }

  asio::io_context io;
  base::testing::SimClock clock{io};
  FakeBroker broker{clock};
  FakeClient client{broker, clock};
  base::Event cancel;
  base::TaskGroup group{io};
  StreamWatcher stream{io, clock, client, "orders", kInterval};
  std::vector<std::unique_ptr<TopicWatcher>> topics;
};

TEST_F(StreamWatcherTest, ManyQuietTopicsCostOneListPerIntervalAndATurnEach) {
  watch(300);
  pass(seconds(2));
  client.requests.clear();
  pass(seconds(60));
  EXPECT_NEAR(static_cast<double>(client.count<iggy::GetTopics>()), 600, 2);
  EXPECT_NEAR(static_cast<double>(client.count<iggy::GetTopic>()), 2 * 300, 2) << "each twice a minute";
  EXPECT_LE(clock.now() - topics[200]->observed(1)->at, kInterval) << "what is unchanged is known to be";
}

TEST_F(StreamWatcherTest, AMessageIntoAQuietTopicIsSeenWithinTheInterval) {
  watch(20);
  pass(seconds(5));
  broker.append(topic(7), "second");
  const base::TimePoint before = clock.now();
  const auto view = wait(7, 1, seconds(30));
  ASSERT_TRUE(view) << view.error().to_string();
  EXPECT_EQ(view->end, 2U);
  EXPECT_LE(clock.now() - before, kInterval);
}

// While something happens a topic is asked by itself, so that no answer has to wait for another.
TEST_F(StreamWatcherTest, ALivelyTopicIsAskedDirectly) {
  watch(1);
  pass(seconds(5));
  for (std::uint64_t end = 1; end < 30; ++end) {
    broker.append(topic(0), "more");
    const auto view = wait(0, end, seconds(30));
    ASSERT_TRUE(view && view->end == end + 1);
  }
  client.requests.clear();
  broker.append(topic(0), "more");
  ASSERT_TRUE(wait(0, 30, seconds(30)));
  EXPECT_EQ(client.count<iggy::GetTopics>(), 0U);
}

TEST_F(StreamWatcherTest, WithoutTheRightToListEachTopicIsAskedAndTheListOnceAMinute) {
  watch(10);
  client.deny<iggy::GetTopics>();
  pass(seconds(5));
  client.requests.clear();
  pass(seconds(60));
  EXPECT_LE(client.count<iggy::GetTopics>(), 2U);
  EXPECT_NEAR(static_cast<double>(client.count<iggy::GetTopic>()), 10 * 600, 20);
  broker.append(topic(3), "second");
  ASSERT_TRUE(wait(3, 1, seconds(30)));
}

TEST_F(StreamWatcherTest, AfterAnOutageTheListIsEnoughAgainWithinSeconds) {
  watch(50);
  pass(seconds(5));
  const auto down = std::make_shared<bool>(true);  // the fixture asks once more when the test is over
  client.before = [down](const iggy::Request&, std::size_t) -> std::optional<base::Error> {
    if (!*down) return std::nullopt;
    return base::Error(base::ErrorCode::kConnectionLost, "fake", "", "down");
  };
  const auto view = topics[7]->observed(0)->view;
  const auto told = run(topics[7]->wait_for_change(0, view, seconds(30), cancel));
  ASSERT_FALSE(told) << "who waits hears of it";
  EXPECT_EQ(told.error().code(), base::ErrorCode::kConnectionLost);
  const base::TimePoint lost = clock.now();
  pass(seconds(10));
  EXPECT_LE(topics[7]->observed(0)->at, lost) << "nobody looked meanwhile: its age says so";
  *down = false;
  pass(seconds(2));
  client.requests.clear();
  pass(seconds(6));
  EXPECT_NEAR(static_cast<double>(client.count<iggy::GetTopics>()), 60, 2);
  EXPECT_LE(client.count<iggy::GetTopic>(), 12U);
}

TEST_F(StreamWatcherTest, AListMuchLongerThanWhatIsWatchedIsLeftAlone) {
  for (int i = 0; i < 100; ++i) broker.add_topic({"orders", "other-" + std::to_string(i)}, 1);
  watch(3);
  pass(seconds(5));
  client.requests.clear();
  pass(seconds(50));
  EXPECT_LE(client.count<iggy::GetTopics>(), 1U);
  EXPECT_NEAR(static_cast<double>(client.count<iggy::GetTopic>()), 3 * 500, 6);
}

// As much expired as came: the list says that nothing has happened.
TEST_F(StreamWatcherTest, CountersThatStandStillAreNotBelievedForEver) {
  watch(5);
  pass(seconds(5));
  testing::FakeTopic& changed = topic(2);
  broker.append(changed, "second");
  changed.messages.erase(changed.messages.begin());
  const base::TimePoint before = clock.now();
  const auto view = wait(2, 1, seconds(60));
  ASSERT_TRUE(view && view->end == 2) << "not seen";
  EXPECT_GT(clock.now() - before, kInterval) << "the list did show it: the test proves nothing";
  EXPECT_LE(clock.now() - before, kFullLookInterval + kInterval);
}

TEST_F(StreamWatcherTest, ATopicThatVanishesIsReportedWithinTheInterval) {
  watch(4);
  pass(seconds(5));
  const auto seen = topics[1]->observed(0)->view;
  std::erase_if(broker.stream("orders")->topics, [](const auto& each) { return each.topic.name == "topic-1"; });
  const base::TimePoint before = clock.now();
  const auto view = run(topics[1]->wait_for_change(0, seen, seconds(30), cancel));
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code(), base::ErrorCode::kNotFound);
  EXPECT_LE(clock.now() - before, kInterval);
}

base::Task<base::TimePoint> wait_and_tell(TopicWatcher& watcher, base::Event& cancel, base::Clock& clock) {
  auto waiting = watcher.wait_for_change(0, watcher.observed(0)->view, seconds(30), cancel);
  auto view = co_await std::move(waiting);
  co_return clock.now();
}

base::Task<void> set_later(base::Clock& clock, base::Event& event) {
  auto pause = clock.sleep_for(milliseconds(5));
  co_await std::move(pause);
  event.set();
}

TEST_F(StreamWatcherTest, AWaiterLeavesAtOnceWhenCancelled) {
  watch(1);
  pass(seconds(5));
  group.spawn(set_later(clock, cancel));
  const base::TimePoint before = clock.now();
  EXPECT_EQ(run(wait_and_tell(*topics[0], cancel, clock)) - before, milliseconds(5));
}

}  // namespace
}  // namespace replicator
