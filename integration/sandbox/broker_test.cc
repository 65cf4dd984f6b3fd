// Goal: the broker's rules, without sockets: what a kill, a restart, retention and faults do to offsets. Method: a
// broker on a fresh folder or in memory; messages written by the stranger; destroying the broker without save_all() is
// a SIGKILL.
#include "integration/sandbox/broker.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/digest.h"
#include "iggy/codec/vsr.h"
#include "integration/sandbox/stranger.h"
#include "integration/sandbox/testing_server.h"

namespace sandbox {
namespace {

constexpr const char* kVersions[] = {"0.8.0", "0.9.0-edge.5", "0.9.0"};

struct Fixture {
  explicit Fixture(std::string_view version, std::filesystem::path data = {}, LogSettings log = {}) {
    options.profile = profile_for(version).value();
    options.data = std::move(data);
    options.log = log;
    restart();
  }
  // As after SIGKILL.
  void restart() {
    broker.reset();
    broker = std::make_unique<Broker>(options);
    root.user = 0;
    root.vsr_client = {5, 5};
  }
  Outcome<iggy::Reply> ask(const iggy::Request& request) { return broker->handle(root, request); }
  template <class T>
  T get(const iggy::Request& request) {
    Outcome<iggy::Reply> reply = ask(request);
    EXPECT_TRUE(reply.has_value()) << iggy::name_of(request) << " status " << (reply ? 0 : reply.error());
    return std::get<T>(reply.value());
  }
  void make(std::uint32_t partitions = 1, std::vector<iggy::Option> extra = {}) {
    iggy::TopicSettings settings;
    if (broker->profile().dialect != iggy::Dialect::kLegacy) settings.options = std::move(extra);
    ask(iggy::CreateStream{.name = "s", .options = {}}).value();
    ask(iggy::CreateTopic{.stream = "s", .name = "t", .partitions_count = partitions, .settings = settings}).value();
  }
  PartitionState& partition(std::uint32_t id = 0) { return **broker->partition_of("s", "t", id); }
  void append(std::uint64_t count, std::uint32_t id = 0) { append_as_stranger(*broker, {"s", "t"}, id, count); }
  Outcome<PollResult> poll(std::uint64_t from, std::uint32_t count) {
    return broker->poll(root, iggy::PollMessages{.consumer = {iggy::ConsumerKind::kConsumer, 1U},
                                                 .stream = "s",
                                                 .topic = "t",
                                                 .partition = 0,
                                                 .strategy = {iggy::PollStrategy::Kind::kOffset, from},
                                                 .count = count});
  }
  // Offsets that a poll returns, read from the stored bytes.
  std::vector<std::uint64_t> offsets(std::uint64_t from, std::uint32_t count) {
    std::vector<std::uint64_t> out;
    for (const Chunk& chunk : poll(from, count)->chunks) {
      if (broker->profile().dialect == iggy::Dialect::kLegacy) {
        for (base::ByteView rest = chunk.bytes; !rest.empty();) {
          out.push_back(base::load<std::uint64_t>(rest.data() + 24));
          const std::size_t size =
              64 + base::load<std::uint32_t>(rest.data() + 48) + base::load<std::uint32_t>(rest.data() + 52);
          EXPECT_EQ(base::load<std::uint64_t>(rest.data()), base::xxh3_64(rest.subspan(8, size - 8)));
          rest = rest.subspan(size);
        }
      } else {
        std::vector<base::Record> records;
        EXPECT_TRUE(iggy::vsr::decode_batch(chunk.bytes, records, true).has_value());
        for (const base::Record& record : records) out.push_back(record.offset);
      }
    }
    return out;
  }

  BrokerOptions options;
  std::unique_ptr<Broker> broker;
  Caller root;
};

std::vector<std::uint64_t> run_of(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(first + i);
  return out;
}

class EveryVersion : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Broker, EveryVersion, testing::ValuesIn(kVersions));

TEST_P(EveryVersion, KillLosesWhatWasNotSaved) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make();
  for (int i = 0; i < 15; ++i) f.append(100);
  ASSERT_EQ(f.partition().log.next_offset(), 1500U);
  f.restart();
  EXPECT_EQ(f.partition().log.messages(), 1100U) << "saved when the count passed 1,024";
  EXPECT_EQ(f.offsets(0, 10'000), run_of(0, 1100));
  f.append(1);
  if (f.broker->profile().offset_reservation == 0) {
    EXPECT_EQ(f.offsets(1100, 10), run_of(1100, 1)) << "given out again";
  } else {
    EXPECT_EQ(f.offsets(1100, 10), run_of(100 + 65'536, 1)) << "above the reservation of the first send";
  }
}

TEST_P(EveryVersion, OrderlyStopLosesNothing) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make(2);
  f.append(10, 1);
  f.broker->save_all(true);
  f.restart();
  EXPECT_EQ(f.partition(1).log.messages(), 10U);
  f.append(1, 1);
  EXPECT_EQ(f.partition(1).log.next_offset(), 11U) << "no gap either";
}

TEST_P(EveryVersion, StoredOffsetsAreClampedAfterAKill) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make();
  f.append(4);
  const iggy::Consumer consumer{iggy::ConsumerKind::kConsumer, "rep"};
  f.get<iggy::Done>(
      iggy::StoreConsumerOffset{.consumer = consumer, .stream = "s", .topic = "t", .partition = 0, .offset = 3});
  EXPECT_EQ(
      f.ask(iggy::StoreConsumerOffset{.consumer = consumer, .stream = "s", .topic = "t", .partition = 0, .offset = 4})
          .error(),
      status::kInvalidOffset);
  f.restart();
  if (f.broker->profile().offset_reservation != 0) return;  // its end did not move back
  const auto stored = f.get<iggy::ConsumerOffset>(
      iggy::GetConsumerOffset{.consumer = consumer, .stream = "s", .topic = "t", .partition = 0});
  EXPECT_EQ(stored.stored_offset, 0U);
}

TEST_P(EveryVersion, TornTailOfALogIsCutOff) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make();
  f.append(1100);
  f.append(30);
  f.broker->save_all(true);
  const auto file = folder.path() / "logs" / std::to_string(f.partition().uid);
  f.broker.reset();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 7);
  f.restart();
  EXPECT_EQ(f.partition().log.messages(), 1100U);
  EXPECT_EQ(f.offsets(1095, 100), run_of(1095, 5));
}

TEST_P(EveryVersion, LosingTheTailGivesItsOffsetsOutAgain) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make();
  f.append(100);
  f.broker->lose_tail(f.partition(), 30);  // in the middle of a stored batch
  EXPECT_EQ(f.offsets(60, 100), run_of(60, 10));
  f.append(5);
  EXPECT_EQ(f.offsets(65, 100), run_of(65, 10));
  f.broker->save_all(true);
  f.restart();
  EXPECT_EQ(f.offsets(0, 1000), run_of(0, 75));
}

TEST_P(EveryVersion, TrimmingTheFrontMakesPollsJump) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make();
  f.append(100);
  f.append(100);
  f.broker->trim(f.partition(), 37);
  EXPECT_EQ(f.offsets(5, 3), run_of(37, 3));
  EXPECT_EQ(f.partition().log.messages(), 163U);
  f.broker->trim(f.partition(), 120);
  EXPECT_EQ(f.offsets(0, 1000), run_of(120, 80));
  f.broker->save_all(true);
  f.restart();
  EXPECT_EQ(f.offsets(0, 1000), run_of(120, 80));
}

TEST_P(EveryVersion, JumpLeavesAHole) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make();
  f.append(10);
  f.broker->jump(f.partition(), 1000);
  EXPECT_TRUE(f.offsets(10, 5).empty());
  EXPECT_EQ(f.partition().log.current_offset(), 1009U);
  f.append(2);
  EXPECT_EQ(f.offsets(9, 5), (std::vector<std::uint64_t>{9, 1010, 1011}));
  f.broker->save_all(true);
  f.restart();
  EXPECT_EQ(f.offsets(9, 5), (std::vector<std::uint64_t>{9, 1010, 1011}));
}

TEST_P(EveryVersion, ExpiredLogGoesOnOrBeginsAgainAfterARestart) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make();
  f.append(40);
  f.broker->expire(**f.broker->topic_of("s", "t"));
  EXPECT_EQ(f.partition().log.messages(), 0U);
  EXPECT_EQ(f.partition().log.current_offset(), 39U);
  EXPECT_EQ(f.poll(0, 10)->count, 0U);
  f.broker->save_all(true);
  f.restart();
  f.append(2);
  EXPECT_EQ(f.offsets(0, 10), run_of(f.broker->profile().restart_rewinds_empty_log ? 0 : 40, 2));
}

TEST_P(EveryVersion, PurgeResetsOffsetsAndKeepsCreatedAt) {
  Fixture f(GetParam());
  f.make();
  f.append(1500);
  const std::uint64_t created_at = f.partition().created_at;
  f.get<iggy::Done>(iggy::PurgeTopic{.stream = "s", .topic = "t"});
  EXPECT_EQ(f.partition().created_at, created_at);
  EXPECT_EQ(f.partition().log.next_offset(), 0U);
  f.append(1);
  EXPECT_EQ(f.offsets(0, 10), run_of(0, 1));
}

TEST_P(EveryVersion, CreatedAtMovesOnceOrNever) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make(2);
  const std::uint64_t topic = (*f.broker->topic_of("s", "t"))->created_at;
  const std::uint64_t partition = f.partition(1).created_at;
  f.restart();
  const std::uint64_t moved = (*f.broker->topic_of("s", "t"))->created_at;
  EXPECT_EQ(moved != topic, f.broker->profile().created_at_shifts);
  EXPECT_EQ(f.partition(1).created_at != partition, f.broker->profile().created_at_shifts);
  const std::uint64_t partition_moved = f.partition(1).created_at;
  f.restart();
  EXPECT_EQ((*f.broker->topic_of("s", "t"))->created_at, moved);
  EXPECT_EQ(f.partition(1).created_at, partition_moved);
}

TEST_P(EveryVersion, FreedNumbersAreRecycled) {
  Fixture f(GetParam());
  for (int i = 0; i < 6; ++i) f.ask(iggy::CreateStream{.name = "s" + std::to_string(i), .options = {}}).value();
  for (std::uint32_t id : {3U, 5U, 4U}) f.ask(iggy::DeleteStream{.stream = id}).value();
  std::vector<std::uint32_t> given;
  for (int i = 0; i < 3; ++i)
    given.push_back(
        f.get<iggy::StreamDetails>(iggy::CreateStream{.name = "n" + std::to_string(i), .options = {}}).stream.id);
  EXPECT_EQ(given, f.broker->profile().lowest_id_first ? (std::vector<std::uint32_t>{3, 4, 5})
                                                       : (std::vector<std::uint32_t>{4, 5, 3}));
}

TEST_P(EveryVersion, RetentionTakesSealedSegmentsBelowTheBarrier) {
  base::Bytes one_mib(8);
  base::store(one_mib.data(), std::uint64_t{kMiB});
  Fixture f(GetParam(), {}, {.segment_size = kMiB});
  f.make(1, {{"segment_size", 12, one_mib}});
  for (int i = 0; i < 100; ++i) f.append(1000);
  TopicState& topic = **f.broker->topic_of("s", "t");
  ASSERT_GT(f.partition().log.segments(), 3U);
  topic.settings.message_expiry = 1;
  f.get<iggy::Done>(iggy::StoreConsumerOffset{
      .consumer = {iggy::ConsumerKind::kConsumer, 9U}, .stream = "s", .topic = "t", .partition = 0, .offset = 10});
  f.broker->clean();
  EXPECT_EQ(f.partition().log.first_offset(), 0U) << "a stored offset holds everything back";
  f.get<iggy::Done>(iggy::DeleteConsumerOffset{
      .consumer = {iggy::ConsumerKind::kConsumer, 9U}, .stream = "s", .topic = "t", .partition = 0});
  f.broker->clean();
  EXPECT_EQ(f.partition().log.segments(), 1U) << "the active one stays";
  EXPECT_GT(f.partition().log.first_offset(), 0U);
  EXPECT_EQ(f.partition().log.current_offset(), 99'999U);
}

TEST_P(EveryVersion, RecreatedTopicStartsEmptyWithTheSamePartitions) {
  Fixture f(GetParam());
  f.make(3);
  f.append(10);
  const std::uint64_t before = (*f.broker->topic_of("s", "t"))->created_at;
  ASSERT_TRUE(f.broker->recreate(*f.broker->find_stream("s"), "t").has_value());
  const TopicState& topic = **f.broker->topic_of("s", "t");
  EXPECT_GT(topic.created_at, before);
  EXPECT_EQ(topic.partitions.size(), 3U);
  EXPECT_EQ(f.partition().log.next_offset(), 0U);
}

TEST_P(EveryVersion, MetadataSurvivesAKill) {
  const TemporaryFolder folder;
  Fixture f(GetParam(), folder.path());
  f.make(2);
  iggy::Permissions permissions;
  permissions.read_streams = true;
  permissions.streams.push_back({.id = 0, .send_messages = true, .topics = {{.id = 0, .poll_messages = true}}});
  f.ask(iggy::CreateUser{.name = "poor", .password = "poor", .permissions = permissions, .options = {}}).value();
  f.ask(iggy::CreateGroup{.stream = "s", .topic = "t", .name = "g"}).value();
  const auto token = f.get<iggy::TokenCreated>(iggy::CreateToken{.name = "token", .expiry = 0}).token;
  const auto before = f.get<iggy::TopicDetails>(iggy::GetTopic{.stream = "s", .topic = "t"});
  f.restart();
  auto after = f.get<iggy::TopicDetails>(iggy::GetTopic{.stream = "s", .topic = "t"});
  EXPECT_EQ(after.topic.settings, before.topic.settings);
  EXPECT_EQ(after.topic.derived, before.topic.derived);
  EXPECT_EQ(after.partitions.size(), 2U);
  EXPECT_EQ(f.get<iggy::UserDetails>(iggy::GetUser{.user = "poor"}).permissions, permissions);
  EXPECT_EQ(f.get<iggy::Groups>(iggy::GetGroups{.stream = "s", .topic = "t"}).groups.size(), 1U);
  Caller other;
  EXPECT_TRUE(
      f.broker->login(other, iggy::LoginToken{.token = token, .client_version = {}, .context = {}}).has_value());
}

TEST_P(EveryVersion, RightsAreChecked) {
  Fixture f(GetParam());
  f.make();
  f.append(1);
  iggy::Permissions only_read;
  only_read.streams.push_back({.id = 0, .read_stream = true, .topics = {}});
  f.ask(iggy::CreateUser{.name = "reader", .password = "reader", .permissions = only_read, .options = {}}).value();
  Caller reader;
  ASSERT_TRUE(
      f.broker
          ->login(reader,
                  iggy::LoginUser{.username = "reader", .password = "reader", .client_version = {}, .context = {}})
          .has_value());
  EXPECT_TRUE(f.broker->handle(reader, iggy::GetTopic{.stream = "s", .topic = "t"}).has_value());
  EXPECT_EQ(f.broker->handle(reader, iggy::GetStreams{}).error(), status::kUnauthorized);
  EXPECT_EQ(f.broker->handle(reader, iggy::PurgeTopic{.stream = "s", .topic = "t"}).error(), status::kUnauthorized);
  std::swap(f.root, reader);
  EXPECT_EQ(f.poll(0, 1)->count, 1U);
}

TEST_P(EveryVersion, AGrantOnATopicReachesNoOther) {
  Fixture f(GetParam());
  f.make();
  f.ask(iggy::CreateTopic{.stream = "s", .name = "other", .settings = {}}).value();
  iggy::Permissions only_poll;
  only_poll.streams.push_back({.id = 0, .topics = {{.id = 0, .poll_messages = true}}});
  f.ask(iggy::CreateUser{.name = "poller", .password = "poller", .permissions = only_poll, .options = {}}).value();
  Caller poller;
  const iggy::LoginUser login{.username = "poller", .password = "poller", .client_version = {}, .context = {}};
  f.broker->connect(poller);
  ASSERT_TRUE(f.broker->login(poller, login).has_value());
  const auto poll = [&](const char* topic) {
    return f.broker->poll(
        poller, iggy::PollMessages{.consumer = {}, .stream = "s", .topic = topic, .partition = 0, .strategy = {}});
  };
  EXPECT_TRUE(poll("t").has_value());
  EXPECT_EQ(poll("other").error(), status::kUnauthorized);
  EXPECT_EQ(poll("nowhere").error(), status::kTopicNotFound) << "what is missing is said before what is forbidden";
  EXPECT_EQ(f.broker->handle(poller, iggy::GetTopic{.stream = "s", .topic = "t"}).error(), status::kUnauthorized);
  // Everybody may read their own rights.
  const auto self = f.broker->handle(poller, iggy::GetUser{.user = "poller"});
  EXPECT_EQ(std::get<iggy::UserDetails>(self.value()).permissions, only_poll);
  EXPECT_EQ(f.broker->handle(poller, iggy::GetUser{.user = "iggy"}).error(), status::kUnauthorized);
  // A right that is withdrawn is gone at once.
  f.ask(iggy::UpdatePermissions{.user = "poller", .permissions = std::nullopt}).value();
  EXPECT_EQ(poll("t").error(), status::kUnauthorized);
  f.ask(iggy::DeleteUser{.user = "poller"}).value();
  EXPECT_FALSE(poller.user.has_value()) << "its logins end with it";
}

TEST(Broker08, FullDiskRefusesThenAcksWhatNobodyCanRead) {
  const TemporaryFolder folder;
  Fixture f("0.8.0", folder.path());
  f.make();
  f.append(1100);
  f.broker->set_disk_full(true);
  f.append(600);
  EXPECT_EQ(f.partition().log.next_offset(), 1700U);
  EXPECT_EQ(f.offsets(1690, 100).size(), 10U) << "still only in memory";
  f.append(600);  // the save fails
  f.append(100);  // acked
  EXPECT_EQ(f.partition().log.current_offset(), 2399U);
  EXPECT_TRUE(f.offsets(2300, 100).empty()) << "count 0 below current_offset";
  f.broker->set_disk_full(false);
  f.append(1100);
  EXPECT_TRUE(f.offsets(2300, 100).empty()) << "room does not help";
  f.broker->save_all(true);
  f.restart();
  EXPECT_EQ(f.partition().log.next_offset(), 1100U) << "nor does a restart: offsets come again";
}

TEST(BrokerEdge5, FullDiskKillsTheWriter) {
  Fixture f("0.9.0-edge.5");
  f.make();
  f.append(3);
  f.broker->set_disk_full(true);
  f.append(1);
  EXPECT_TRUE(f.broker->writer_is_dead());
  EXPECT_EQ(f.offsets(0, 10), run_of(0, 3));
  f.broker->set_disk_full(false);
  EXPECT_TRUE(f.broker->writer_is_dead());
}

TEST(Broker09, RepeatedNumberIsRecognisedWithinTheWindow) {
  Fixture f("0.9.0");
  f.make();
  PartitionState& partition = f.partition();
  EXPECT_FALSE(f.broker->is_duplicate(f.root, partition, 1000));
  f.broker->remember(f.root, partition, 1000);
  EXPECT_TRUE(f.broker->is_duplicate(f.root, partition, 1000));
  EXPECT_FALSE(f.broker->is_duplicate(f.root, partition, 999)) << "older, but never seen";
  EXPECT_TRUE(f.broker->is_duplicate(f.root, partition, 1000 - 128)) << "below the window counts as done";
  f.broker->remember(f.root, partition, 999);
  f.broker->remember(f.root, partition, 1100);
  EXPECT_TRUE(f.broker->is_duplicate(f.root, partition, 999));
  EXPECT_FALSE(f.broker->is_duplicate(f.root, partition, 1001));
  Caller other = f.root;
  other.vsr_client = {6, 6};
  EXPECT_FALSE(f.broker->is_duplicate(other, partition, 1000)) << "another client";
  f.get<iggy::Done>(iggy::PurgeTopic{.stream = "s", .topic = "t"});
  EXPECT_FALSE(f.broker->is_duplicate(f.root, f.partition(), 1000)) << "cleared by a purge";
}

TEST(Broker09, OptionKeysDependOnTheVersion) {
  const auto create = [](const char* version, const std::string& key, std::uint8_t kind, std::string_view value) {
    Fixture f(version);
    f.ask(iggy::CreateStream{.name = "s", .options = {}}).value();
    const base::ByteView view = base::as_bytes(value);
    iggy::TopicSettings settings;
    settings.options = {{key, kind, {view.begin(), view.end()}}};
    const auto reply =
        f.ask(iggy::CreateTopic{.stream = "s", .name = "t", .partitions_count = 1, .settings = settings});
    return reply ? 0U : reply.error();
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(create("0.9.0", "durability", 2, "persisted"), 0U);
  EXPECT_EQ(create("0.9.0", "durability", 2, "sometimes"), status::kOptionValue);
  EXPECT_EQ(create("0.9.0", "enforce_fsync", 3, "\1"sv), status::kOptionKey);
  EXPECT_EQ(create("0.9.0-edge.5", "durability", 2, "persisted"), status::kOptionKey);
  EXPECT_EQ(create("0.9.0-edge.5", "enforce_fsync", 3, "\1"sv), 0U);
}

TEST(Broker09, PersistedTopicsLoseNothing) {
  const TemporaryFolder folder;
  Fixture f("0.9.0", folder.path());
  const base::ByteView persisted = base::as_bytes("persisted");
  f.make(1, {{"durability", 2, {persisted.begin(), persisted.end()}}});
  f.append(3);
  f.restart();
  EXPECT_EQ(f.offsets(0, 10), run_of(0, 3));
}

}  // namespace
}  // namespace sandbox
