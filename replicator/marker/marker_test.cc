#include "replicator/marker/marker.h"

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "replicator/testing/fake_client.h"

namespace replicator {
namespace {

using base::ErrorCode;
using base::TopicName;
using std::chrono::seconds;
using testing::FakeBroker;
using testing::FakeClient;

const TopicName kTopic{"iggy-replicate", "links"};

// A state file: what survives a process, and can be copied.
struct StateFile {
  std::string link = "link-1";
  std::uint64_t generation = 0;
  std::string identity = {};
};

// One process: its own connection, its own marker.
class Process {
 public:
  Process(FakeBroker& broker, base::Clock& clock, asio::io_context& io, StateFile& file, std::string name)
      : client(broker, clock), file_(file), clock_(clock), stop(io), tasks(io) {
    options.topic = kTopic;
    options.link_id = file.link;
    options.stored_generation = file.generation;
    options.stored_identity = file.identity;
    options.fresh_identity = "cluster-by-" + name;
    options.process = std::move(name);
    options.upstream = "iggy://a:8090";
    options.downstream = "iggy://b:8090";
    options.topics = {"*/*"};
  }

  base::Task<base::Result<std::uint64_t>> acquire() {
    marker = std::make_unique<Marker>(client, clock_, options);
    auto acquiring = marker->acquire([this](std::uint64_t generation) { return save(generation); });
    auto acquired = co_await std::move(acquiring);
    if (acquired) file_.identity = marker->identity();
    co_return acquired;
  }
  // Keeps the lease in the background until halt().
  void keep() { tasks.spawn(run()); }
  base::Task<void> halt() {
    stop.set();
    auto closing = tasks.close();
    co_await std::move(closing);
  }

  FakeClient client;
  MarkerOptions options;
  std::unique_ptr<Marker> marker;
  std::optional<base::Status> ended;  // of run()
  bool saving_fails = false;

 private:
  base::Task<base::Status> save(std::uint64_t generation) {
    if (saving_fails) co_return base::Error(ErrorCode::kStateUnavailable, "save", "", "disk full");
    file_.generation = generation;
    co_return base::ok();
  }
  base::Task<void> run() {
    auto running = marker->run(stop);
    ended = co_await std::move(running);
  }
  StateFile& file_;
  base::Clock& clock_;

 public:
  base::Event stop;
  base::TaskGroup tasks;
};

class MarkerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Process> process(StateFile& on, const std::string& name) {
    return std::make_unique<Process>(broker, clock, io, on, name);
  }
  template <class T>
  T run(base::Task<T> task) {
    return base::testing::run_until_done(io, clock, std::move(task));
  }
  base::Result<std::uint64_t> acquire(Process& process) { return run(process.acquire()); }
  void sleep(base::Duration duration) { run(clock.sleep_for(duration)); }
  base::Duration since(base::TimePoint begin) { return clock.now() - begin; }
  std::size_t records() { return broker.topic(kTopic) == nullptr ? 0 : broker.topic(kTopic)->messages.size(); }
  static bool says(const base::Error& error, const std::string& text) {
    return error.to_string().find(text) != std::string::npos;
  }

  asio::io_context io;
  base::testing::SimClock clock{io};
  FakeBroker broker{clock};
  StateFile file;
};

TEST_F(MarkerTest, FirstUseCreatesTheTopicAndHoldsGenerationOne) {
  auto a = process(file, "a@h1:1");
  const auto generation = acquire(*a);
  ASSERT_TRUE(generation) << generation.error().to_string();
  EXPECT_EQ(*generation, 1U);
  EXPECT_EQ(file.generation, 1U);
  EXPECT_EQ(a->marker->identity(), "cluster-by-a@h1:1");
  EXPECT_TRUE(a->marker->may_send());
  const testing::FakeTopic* topic = broker.topic(kTopic);
  ASSERT_NE(topic, nullptr);
  EXPECT_EQ(topic->topic.partitions_count, 1U);
  EXPECT_EQ(topic->topic.settings.message_expiry, 86'400'000'000U);
  EXPECT_EQ(topic->topic.settings.max_topic_size, iggy::kUnlimitedSize);
  EXPECT_NE(a->client.last_sent.find("\"process\":\"a@h1:1\""), std::string::npos);
}

TEST_F(MarkerTest, SpeaksBothDialects) {
  FakeBroker vsr(clock, iggy::Dialect::kVsr11);
  Process a(vsr, clock, io, file, "a@h1:1");
  ASSERT_TRUE(acquire(a));
  EXPECT_TRUE(decode_marker_record(a.client.last_sent));
}

TEST_F(MarkerTest, WritesEveryTenSecondsAndReadsEveryTwo) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  const std::size_t polls = a->client.count<iggy::PollMessages>();
  a->keep();
  for (int i = 0; i < 600; ++i) {
    sleep(std::chrono::milliseconds(100));
    ASSERT_TRUE(a->marker->may_send()) << i;
  }
  EXPECT_EQ(records(), 7U);
  EXPECT_NEAR(static_cast<double>(a->client.count<iggy::PollMessages>() - polls), 36.0, 2.0);
  run(a->halt());
  ASSERT_TRUE(a->ended);
  EXPECT_TRUE(*a->ended);
}

TEST_F(MarkerTest, ARestartOnItsOwnStateFileGoesOnAtOnce) {
  {
    auto a = process(file, "a@h1:1");
    ASSERT_TRUE(acquire(*a));
  }
  auto b = process(file, "b@h1:2");
  const base::TimePoint begin = clock.now();
  const auto generation = acquire(*b);
  ASSERT_TRUE(generation) << generation.error().to_string();
  EXPECT_EQ(*generation, 2U);
  EXPECT_LT(since(begin), seconds(1));
  EXPECT_EQ(b->marker->identity(), "cluster-by-a@h1:1") << "the cluster keeps its identity";
}

TEST_F(MarkerTest, ACrashBetweenStateFileAndRecordDoesNotLockTheLinkOut) {
  {
    auto a = process(file, "a@h1:1");
    ASSERT_TRUE(acquire(*a));
  }
  file.generation = 5;  // saved, and killed before the record was written
  auto b = process(file, "b@h1:2");
  const auto generation = acquire(*b);
  ASSERT_TRUE(generation);
  EXPECT_EQ(*generation, 6U);
}

TEST_F(MarkerTest, NothingIsClaimedThatTheStateFileCouldNotSave) {
  auto a = process(file, "a@h1:1");
  a->saving_fails = true;
  const auto generation = acquire(*a);
  ASSERT_FALSE(generation);
  EXPECT_EQ(generation.error().code(), ErrorCode::kStateUnavailable);
  EXPECT_EQ(records(), 0U);
}

TEST_F(MarkerTest, ACopiedStateFileElsewhereFindsTheLivingHolder) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  a->keep();
  StateFile copy = file;
  auto b = process(copy, "b@h2:7");
  const auto generation = acquire(*b);
  ASSERT_FALSE(generation);
  EXPECT_EQ(generation.error().code(), ErrorCode::kFenced);
  EXPECT_TRUE(says(generation.error(), "a@h1:1")) << generation.error().to_string();
  EXPECT_TRUE(says(generation.error(), "stop that process")) << generation.error().to_string();
  EXPECT_EQ(copy.generation, 1U) << "nothing was claimed";
  EXPECT_FALSE(b->marker->may_send());
  sleep(seconds(10));
  EXPECT_TRUE(a->marker->may_send()) << "the holder is not disturbed";
  run(a->halt());
}

TEST_F(MarkerTest, AnOldStateFileIsRefused) {
  StateFile old;
  {
    auto a = process(file, "a@h1:1");
    ASSERT_TRUE(acquire(*a));
    old = file;
    auto b = process(file, "b@h1:2");
    ASSERT_TRUE(acquire(*b));
  }
  auto c = process(old, "c@h1:3");
  const auto generation = acquire(*c);
  ASSERT_FALSE(generation);
  EXPECT_EQ(generation.error().code(), ErrorCode::kFenced);
  EXPECT_TRUE(says(generation.error(), "old or copied state file")) << generation.error().to_string();
}

TEST_F(MarkerTest, ANewcomerWaitsUntilThreeWritesAreMissing) {
  {
    auto a = process(file, "a@h1:1");
    ASSERT_TRUE(acquire(*a));  // and is killed
  }
  StateFile copy = file;
  auto b = process(copy, "b@h2:7");
  const base::TimePoint begin = clock.now();
  const auto generation = acquire(*b);
  ASSERT_TRUE(generation) << generation.error().to_string();
  EXPECT_EQ(*generation, 2U);
  EXPECT_GE(since(begin), seconds(30));
  EXPECT_LT(since(begin), seconds(34));
}

TEST_F(MarkerTest, AfterAnOrderlyStopANewcomerNeedNotWait) {
  {
    auto a = process(file, "a@h1:1");
    ASSERT_TRUE(acquire(*a));
    ASSERT_TRUE(run(a->marker->release()));
    EXPECT_FALSE(a->marker->may_send());
    ASSERT_TRUE(run(a->marker->release())) << "twice is allowed";
  }
  StateFile copy = file;
  auto b = process(copy, "b@h2:7");
  const base::TimePoint begin = clock.now();
  ASSERT_TRUE(acquire(*b));
  EXPECT_LT(since(begin), seconds(1));
}

base::Task<void> acquire_into(Process& process, std::optional<base::Result<std::uint64_t>>& out) {
  auto acquiring = process.acquire();
  out = co_await std::move(acquiring);
}

base::Task<void> acquire_both(asio::io_context& io, Process& a, Process& b,
                              std::optional<base::Result<std::uint64_t>>& of_a,
                              std::optional<base::Result<std::uint64_t>>& of_b) {
  base::TaskGroup group(io);
  group.spawn(acquire_into(a, of_a));
  group.spawn(acquire_into(b, of_b));
  auto closing = group.close();
  co_await std::move(closing);
}

TEST_F(MarkerTest, TwoAtOnceHaveOneWinner) {
  // On an empty topic, on a dead holder's record, and with either order of the replies (one of them is slower).
  for (const bool dead_holder : {false, true}) {
    for (const int slow : {0, 1, 2}) {
      broker.streams.clear();
      StateFile first;
      if (dead_holder) {
        auto dead = process(first, "dead@h0:1");
        ASSERT_TRUE(acquire(*dead));
      }
      StateFile second = first;
      auto a = process(first, "a@h1:1");
      auto b = process(second, "b@h2:2");
      if (slow == 1) a->client.frozen_until = clock.now() + seconds(1);
      if (slow == 2) b->client.frozen_until = clock.now() + seconds(1);
      std::optional<base::Result<std::uint64_t>> of_a, of_b;
      run(acquire_both(io, *a, *b, of_a, of_b));
      ASSERT_TRUE(of_a && of_b);
      EXPECT_NE(of_a->has_value(), of_b->has_value()) << dead_holder << slow;
      Process& winner = *of_a ? *a : *b;
      Process& loser = *of_a ? *b : *a;
      EXPECT_EQ((*of_a ? *of_b : *of_a).error().code(), ErrorCode::kFenced);
      EXPECT_TRUE(winner.marker->may_send());
      EXPECT_FALSE(loser.marker->may_send());
      winner.keep();
      sleep(seconds(60));
      EXPECT_TRUE(winner.marker->may_send()) << "the loser's claim does not disturb the winner";
      run(winner.halt());
    }
  }
}

TEST_F(MarkerTest, TwoOnAnEmptyTopicAgreeOnTheClustersIdentity) {
  StateFile one{.link = "link-1"}, two{.link = "link-2"};
  auto a = process(one, "a@h1:1");
  auto b = process(two, "b@h2:2");
  std::optional<base::Result<std::uint64_t>> of_a, of_b;
  run(acquire_both(io, *a, *b, of_a, of_b));
  ASSERT_TRUE(*of_a && *of_b);
  EXPECT_EQ(a->marker->identity(), b->marker->identity());
}

TEST_F(MarkerTest, APausedProcessMayNotSendAndFindsWhoTookOver) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  a->keep();
  sleep(seconds(21));
  // Stopped for 60 s: none of its requests gets anywhere, its coroutines see the time afterwards.
  a->client.frozen_until = clock.now() + seconds(60);
  const base::TimePoint stopped = clock.now();
  StateFile copy = file;
  auto b = process(copy, "b@h2:7");
  const auto generation = acquire(*b);
  ASSERT_TRUE(generation) << generation.error().to_string();
  EXPECT_EQ(*generation, 2U);
  EXPECT_FALSE(a->marker->may_send()) << "its lease ended before the other's began";
  EXPECT_LE(a->marker->confirmed_until(), clock.now());
  b->keep();
  const std::size_t before = records();
  sleep(stopped + seconds(61) - clock.now());
  ASSERT_TRUE(a->ended) << "it has found the newer generation at its first read";
  EXPECT_EQ(a->ended->error().code(), ErrorCode::kFenced);
  EXPECT_TRUE(says(a->ended->error(), "b@h2:7")) << a->ended->error().to_string();
  EXPECT_FALSE(a->marker->may_send());
  for (std::size_t i = before; i < records(); ++i) {
    EXPECT_EQ(broker.topic(kTopic)->messages[i].payload.find("\"process\":\"a@h1:1\""), std::string::npos)
        << "it reads before it writes";
  }
  EXPECT_TRUE(b->marker->may_send());
  run(a->halt());
  run(b->halt());
}

TEST_F(MarkerTest, AHolderThatWakesWhileItIsTakenOverIsWaitedFor) {
  // Method: the former holder's write lands between the newcomer's last read and its claim.
  {
    auto a = process(file, "a@h1:1");
    ASSERT_TRUE(acquire(*a));
  }
  StateFile copy = file;
  auto b = process(copy, "b@h2:7");
  std::string late = broker.topic(kTopic)->messages[0].payload;
  const std::string written = "\"written_at\":";
  const std::size_t at = late.find(written) + written.size();
  late.replace(at, late.find(',', at) - at, std::to_string(clock.wall_micros() + 30'000'000));
  bool landed = false;
  b->client.before = [&](const iggy::Request& request, std::size_t) -> std::optional<base::Error> {
    if (std::holds_alternative<iggy::SendMessages>(request) && !std::exchange(landed, true)) {
      broker.append(*broker.topic(kTopic), late);
    }
    return std::nullopt;
  };
  const base::TimePoint begin = clock.now();
  const auto generation = acquire(*b);
  ASSERT_TRUE(generation) << generation.error().to_string();
  EXPECT_GE(since(begin), seconds(55)) << "three intervals of silence, then one lease";
  EXPECT_TRUE(b->marker->may_send());
}

TEST_F(MarkerTest, PromotedNeverWritesAgain) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  a->keep();
  // Another process (a command) promotes; the running one stops at its next read.
  auto command = process(file, "p@h9:9");
  command->marker = std::make_unique<Marker>(command->client, clock, command->options);
  ASSERT_TRUE(run(command->marker->promote()));
  ASSERT_TRUE(run(command->marker->promote())) << "twice is allowed";
  sleep(seconds(3));
  ASSERT_TRUE(a->ended);
  EXPECT_EQ(a->ended->error().code(), ErrorCode::kFenced);
  EXPECT_TRUE(says(a->ended->error(), "promoted")) << a->ended->error().to_string();
  EXPECT_FALSE(a->marker->may_send());
  run(a->halt());
  file.generation = 100;
  auto b = process(file, "b@h1:2");
  const auto generation = acquire(*b);
  ASSERT_FALSE(generation);
  EXPECT_EQ(generation.error().code(), ErrorCode::kFenced);
  EXPECT_TRUE(says(generation.error(), "never writes again"));
}

TEST_F(MarkerTest, APromotionIsRememberedWhenTheLinksTopicHasForgottenIt) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  const StateFile copy = file;
  ASSERT_TRUE(run(a->marker->promote()));
  broker.topic(kTopic)->messages.clear();  // expired, a day later
  file = copy;
  auto b = process(file, "b@h2:2");
  const auto generation = acquire(*b);
  ASSERT_FALSE(generation);
  EXPECT_EQ(generation.error().code(), ErrorCode::kFenced);
  EXPECT_TRUE(says(generation.error(), "never writes again")) << generation.error().to_string();
}

TEST_F(MarkerTest, ThePromotionOfALinkIsRefusedAtAnotherCluster) {
  file.identity = "cluster-elsewhere";
  auto other = process(file, "a@h1:1");
  broker.add_topic(kTopic, 1);
  MarkerRecord record;
  record.cluster = "cluster-here";
  record.link = "link-2";
  record.generation = 1;
  record.process = "x@h3:3";
  broker.append(*broker.topic(kTopic), encode(record));
  other->marker = std::make_unique<Marker>(other->client, clock, other->options);
  const base::Status refused = run(other->marker->promote());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kWrongLink);
}

TEST_F(MarkerTest, EveryFailedCallOfAPromotionIsMendedByRepeatingIt) {
  // Method: call N is refused or its reply is lost, for N = 1, 2, 3 …; the same verb again ends with one answer.
  for (const bool lose_reply : {false, true}) {
    for (std::size_t nth = 1;; ++nth) {
      StateFile mine = file;
      mine.link = "link-" + std::to_string(nth) + (lose_reply ? "b" : "a");
      auto first = process(mine, "a@h1:" + std::to_string(nth));
      bool hit = false;
      auto fail = [&hit, nth](const iggy::Request&, std::size_t number) -> std::optional<base::Error> {
        if (number != nth) return std::nullopt;
        hit = true;
        return base::Error(ErrorCode::kUncertain, "call", "", "connection reset");
      };
      (lose_reply ? first->client.after : first->client.before) = fail;
      first->marker = std::make_unique<Marker>(first->client, clock, first->options);
      const base::Status once = run(first->marker->promote());
      auto again = process(mine, "a@h1:again");
      again->marker = std::make_unique<Marker>(again->client, clock, again->options);
      ASSERT_TRUE(run(again->marker->promote())) << "after call " << nth << " failed";
      auto late = process(mine, "a@h1:late");
      EXPECT_FALSE(acquire(*late)) << "after call " << nth << " failed";
      if (!hit) break;
    }
  }
}

TEST_F(MarkerTest, PromotingOurselvesEndsTheRun) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  a->keep();
  ASSERT_TRUE(run(a->marker->promote()));
  EXPECT_FALSE(a->marker->may_send());
  sleep(seconds(3));
  ASSERT_TRUE(a->ended);
  EXPECT_TRUE(*a->ended);
  run(a->halt());
}

TEST_F(MarkerTest, ALostReplyIsReadBackAndNotBelieved) {
  auto a = process(file, "a@h1:1");
  int lost = 0;
  const auto lose = [&](const iggy::Request& request, std::size_t) -> std::optional<base::Error> {
    if (!std::holds_alternative<iggy::SendMessages>(request)) return std::nullopt;
    ++lost;
    return base::Error(ErrorCode::kUncertain, "send", "", "connection reset");
  };
  a->client.after = lose;
  ASSERT_TRUE(acquire(*a)) << "the claim is there, whatever was said";
  EXPECT_EQ(lost, 1);
  a->keep();
  sleep(seconds(60));
  EXPECT_TRUE(a->marker->may_send()) << "every write landed";
  // From now on the requests are lost, not the replies.
  a->client.after = nullptr;
  a->client.before = lose;
  const base::TimePoint begin = clock.now();
  while (a->marker->may_send() && since(begin) < seconds(60)) sleep(std::chrono::milliseconds(500));
  EXPECT_LE(since(begin), seconds(26));
  EXPECT_GE(since(begin), seconds(14));
  EXPECT_TRUE(a->marker->last_error());
  EXPECT_FALSE(a->ended) << "it tries on";
  a->client.before = nullptr;
  sleep(seconds(3));
  EXPECT_TRUE(a->marker->may_send());
  EXPECT_FALSE(a->marker->last_error());
  run(a->halt());
}

TEST_F(MarkerTest, EveryFailedCallOfAnAcquireEndsHeldOrWithAnError) {
  // Method: call N fails, refused or with its reply lost, for N = 1, 2, 3 … until acquire has no call N. It must not
  // hold without a record that says so, and a second try must succeed.
  for (const bool lost : {false, true}) {
    for (std::size_t failing = 1;; ++failing) {
      broker.streams.clear();
      StateFile fresh;
      auto a = process(fresh, "a@h1:1");
      bool hit = false;
      const auto fail = [&](const iggy::Request&, std::size_t number) -> std::optional<base::Error> {
        if (number != failing) return std::nullopt;
        hit = true;
        return base::Error(lost ? ErrorCode::kUncertain : ErrorCode::kTimeout, "fake", "", "failed by the test");
      };
      (lost ? a->client.after : a->client.before) = fail;
      const auto first = acquire(*a);
      if (first) {
        EXPECT_EQ(fresh.generation, *first);
        EXPECT_TRUE(a->marker->may_send());
        EXPECT_GE(records(), 1U);
      } else {
        EXPECT_NE(first.error().code(), ErrorCode::kFenced) << failing;
        a->client.before = a->client.after = nullptr;
        const auto second = run(a->marker->acquire([&](std::uint64_t generation) -> base::Task<base::Status> {
          fresh.generation = generation;
          co_return base::ok();
        }));
        EXPECT_TRUE(second) << failing;
        EXPECT_TRUE(a->marker->may_send());
      }
      if (!hit) {
        EXPECT_GT(failing, 6U);
        break;
      }
    }
  }
}

TEST_F(MarkerTest, ALostLogIsWrittenAnewAndIsNoEvidence) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  a->keep();
  sleep(seconds(35));
  // Purged: offsets begin at 0 again.
  broker.topic(kTopic)->messages.clear();
  broker.topic(kTopic)->end = 0;
  sleep(seconds(5));
  EXPECT_GE(records(), 1U);
  EXPECT_TRUE(a->marker->may_send());
  // Deleted.
  broker.streams.clear();
  sleep(seconds(5));
  EXPECT_GE(records(), 1U);
  for (int i = 0; i < 60; ++i) {
    sleep(seconds(1));
    EXPECT_TRUE(a->marker->may_send()) << i;
  }
  EXPECT_FALSE(a->ended);
  run(a->halt());
}

TEST_F(MarkerTest, ALinkWhoseRecordsHaveExpiredGoesOnWithItsStoredGenerationAndIdentity) {
  {
    auto a = process(file, "a@h1:1");
    ASSERT_TRUE(acquire(*a));
  }
  file.generation = 8;
  broker.topic(kTopic)->messages.clear();  // the end stays where it was
  auto b = process(file, "b@h2:2");
  const auto generation = acquire(*b);
  ASSERT_TRUE(generation);
  EXPECT_EQ(*generation, 9U);
  EXPECT_EQ(b->marker->identity(), "cluster-by-a@h1:1");
  EXPECT_TRUE(b->marker->may_send());
}

TEST_F(MarkerTest, NamesTheSettingWhenTheRightIsMissing) {
  const auto refused = [&](Process& process) {
    const auto generation = acquire(process);
    ASSERT_FALSE(generation);
    EXPECT_EQ(generation.error().code(), ErrorCode::kPermission);
    EXPECT_TRUE(says(generation.error(), "marker = \"off\"")) << generation.error().to_string();
    EXPECT_TRUE(says(generation.error(), "iggy-replicate/links")) << generation.error().to_string();
  };
  auto a = process(file, "a@h1:1");
  a->client.deny<iggy::CreateStream>();
  refused(*a);
  auto b = process(file, "b@h1:1");
  b->client.deny<iggy::CreateTopic>();
  refused(*b);
  auto c = process(file, "c@h1:1");
  c->client.deny<iggy::SendMessages>();
  refused(*c);
  auto d = process(file, "d@h1:1");
  d->client.deny<iggy::PollMessages>();
  refused(*d);
}

TEST_F(MarkerTest, CheckFindsATakeOverAtOnce) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  EXPECT_TRUE(run(a->marker->check()));
  StateFile copy = file;
  auto b = process(copy, "b@h1:2");  // a copy on the same host goes on at once
  ASSERT_TRUE(acquire(*b));
  const auto status = run(a->marker->check());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kFenced);
  EXPECT_FALSE(a->marker->may_send());
  EXPECT_TRUE(run(a->marker->release())) << "a fenced process writes nothing";
  EXPECT_TRUE(run(b->marker->check()));
}

TEST_F(MarkerTest, AStrangersMessagesAreIgnored) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  a->keep();
  for (int i = 0; i < 2'500; ++i) broker.append(*broker.topic(kTopic), "{\"v\":9}");
  sleep(seconds(60));
  EXPECT_TRUE(a->marker->may_send());
  run(a->halt());
}

TEST_F(MarkerTest, TellsWhetherBothUrlsAreOneCluster) {
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  FakeClient same(broker, clock);
  EXPECT_TRUE(run(a->marker->visible_through(same)).value());
  FakeBroker elsewhere(clock);
  FakeClient other(elsewhere, clock);
  EXPECT_FALSE(run(a->marker->visible_through(other)).value()) << "no such topic there";
  StateFile others{.link = "other-link"};
  Process there(elsewhere, clock, io, others, "z@h3:3");
  ASSERT_TRUE(acquire(there));
  EXPECT_FALSE(run(a->marker->visible_through(other)).value()) << "another link's topic there";
  other.deny<iggy::PollMessages>();
  EXPECT_FALSE(run(a->marker->visible_through(other))) << "unknown is an error";
}

TEST_F(MarkerTest, ALivingTwinWithAStateFileOfItsOwnIsFound) {
  // The state file was lost and made anew, and the old process still runs.
  auto a = process(file, "a@h1:1");
  ASSERT_TRUE(acquire(*a));
  a->keep();
  StateFile fresh{.link = "link-2"};
  auto b = process(fresh, "b@h1:2");
  b->options.is_rival = [](const MarkerRecord& record) { return record.link == "link-1"; };
  const auto refused = acquire(*b);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kFenced);
  EXPECT_TRUE(says(refused.error(), "link-1")) << refused.error().to_string();
  run(a->halt());
  const auto generation = acquire(*b);
  ASSERT_TRUE(generation) << "a dead twin is waited for and passed";
  EXPECT_TRUE(b->marker->may_send());
}

TEST_F(MarkerTest, ASuspendedMachinesLeaseEndsByTheWallClock) {
  class SteppedClock final : public base::Clock {
   public:
    explicit SteppedClock(base::Clock& inner) : inner_(inner) {}
    base::TimePoint now() const override { return inner_.now(); }
    std::uint64_t wall_micros() const override { return inner_.wall_micros() + step; }
    base::Task<void> sleep_until(base::TimePoint deadline) override { return inner_.sleep_until(deadline); }
    std::uint64_t step = 0;

   private:
    base::Clock& inner_;
  };
  SteppedClock stepped(clock);
  Process a(broker, stepped, io, file, "a@h1:1");
  ASSERT_TRUE(acquire(a));
  EXPECT_TRUE(a.marker->may_send());
  stepped.step = 60'000'000;
  EXPECT_FALSE(a.marker->may_send());
  a.keep();
  sleep(seconds(3));
  EXPECT_TRUE(a.marker->may_send()) << "confirmed anew, since nobody took over";
  run(a.halt());
}

}  // namespace
}  // namespace replicator
