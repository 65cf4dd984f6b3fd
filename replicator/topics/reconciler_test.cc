#include "replicator/topics/reconciler.h"

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "replicator/testing/fake_client.h"
#include "replicator/topics/durability.h"

namespace replicator {
namespace {

using base::ErrorCode;
using base::PartitionKey;
using base::TopicName;
using testing::FakeBroker;
using testing::FakeClient;

class ReconcilerTest : public ::testing::Test {
 protected:
  base::Result<Topology> pass(ReconcileOptions options = {}) {
    auto rules = Rules::compile(config.topics, config.exclude, config.rename, config.marker);
    EXPECT_TRUE(rules);
    return base::testing::run_until_done(io, clock, reconcile(up, down, *rules, config, std::move(options)));
  }
  Topology reconciled(ReconcileOptions options = {}) {
    auto topology = pass(std::move(options));
    EXPECT_TRUE(topology) << topology.error().to_string();
    // Whatever happens downstream, nothing is created or deleted upstream.
    EXPECT_EQ(up.count<iggy::CreateStream>() + up.count<iggy::CreateTopic>() + up.count<iggy::CreatePartitions>(), 0U);
    for (FakeClient* client : {&up, &down}) {
      EXPECT_EQ(client->count<iggy::DeleteStream>() + client->count<iggy::DeleteTopic>() +
                    client->count<iggy::DeletePartitions>() + client->count<iggy::UpdateTopic>(),
                0U);
    }
    return std::move(topology).value_or(Topology{});
  }
  static bool says(const std::vector<std::string>& notices, const std::string& text) {
    return std::ranges::any_of(notices, [&](const std::string& each) { return each.find(text) != std::string::npos; });
  }
  std::uint32_t partitions_downstream(const TopicName& name) {
    const testing::FakeTopic* topic = down_broker.topic(name);
    return topic == nullptr ? 0 : topic->topic.partitions_count;
  }

  asio::io_context io;
  base::testing::SimClock clock{io};
  FakeBroker up_broker{clock}, down_broker{clock};
  FakeClient up{up_broker, clock}, down{down_broker, clock};
  Config config;
};

TEST_F(ReconcilerTest, CreatesWhatIsMissingWithExplicitUnlimitedSettings) {
  iggy::TopicSettings settings;
  settings.compression = iggy::Compression::kGzip;
  settings.message_expiry = 7ULL * 86'400'000'000;
  settings.max_topic_size = 0;
  up_broker.add_topic({"orders", "events"}, 3, settings);
  up_broker.add_topic({"iggy-replicate", "links"}, 1);
  const Topology topology = reconciled({.link_is_new = true});
  ASSERT_EQ(topology.partitions.size(), 3U);
  EXPECT_EQ(topology.partitions[2], (WantedPartition{{{"orders", "events"}, 2}, {"orders", "events"}, true}));
  const testing::FakeTopic* there = down_broker.topic({"orders", "events"});
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(there->topic.partitions_count, 3U);
  EXPECT_EQ(there->topic.settings.compression, iggy::Compression::kGzip);
  EXPECT_EQ(there->topic.settings.message_expiry, iggy::kNeverExpire);
  EXPECT_EQ(there->topic.settings.max_topic_size, iggy::kUnlimitedSize);
  EXPECT_EQ(down_broker.stream("iggy-replicate"), nullptr);
  ASSERT_EQ(topology.actions.size(), 2U);
  EXPECT_EQ(topology.actions[0].text, "create stream orders");
  EXPECT_NE(topology.actions[1].text.find("keeps messages for ever"), std::string::npos) << topology.actions[1].text;
  EXPECT_NE(topology.actions[1].text.find("7 days"), std::string::npos) << topology.actions[1].text;
  // A second pass finds nothing to do.
  const Topology again = reconciled();
  EXPECT_TRUE(again.actions.empty());
  EXPECT_EQ(again.partitions.size(), 3U);
  EXPECT_FALSE(again.partitions[0].present_at_link_start);
  EXPECT_TRUE(again.missing.empty());
}

TEST_F(ReconcilerTest, CopiesRetentionOnlyWhenAskedAndNeverAsZero) {
  config.retention = RetentionCopy::kCopy;
  iggy::TopicSettings settings;
  settings.message_expiry = 3'600'000'000;
  settings.max_topic_size = 0;
  up_broker.add_topic({"orders", "events"}, 1, settings);
  reconciled();
  const testing::FakeTopic* there = down_broker.topic({"orders", "events"});
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(there->topic.settings.message_expiry, 3'600'000'000U);
  EXPECT_EQ(there->topic.settings.max_topic_size, iggy::kUnlimitedSize);
}

TEST_F(ReconcilerTest, PersistedIsGivenToNewTopicsAndDemandedOfOthers) {
  FakeBroker broker{clock, iggy::Dialect::kVsr11};
  broker.option_keys = {"durability"};
  FakeClient target{broker, clock};
  config.ack = Ack::kPersisted;
  up_broker.add_topic({"orders", "events"}, 2);
  up_broker.add_topic({"orders", "weak"}, 1);
  broker.add_topic({"orders", "weak"}, 1);
  auto rules = Rules::compile(config.topics, config.exclude, config.rename, config.marker);
  const auto topology = base::testing::run_until_done(io, clock, reconcile(up, target, *rules, config, {}));
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->partitions.size(), 2U);
  EXPECT_TRUE(is_persisted(broker.topic({"orders", "events"})->topic));
  ASSERT_EQ(topology->missing.size(), 1U);
  EXPECT_EQ(topology->missing[0].fault, FaultKind::kNotDurable);
  EXPECT_NE(topology->missing[0].reason.find("durability = persisted"), std::string::npos);
  EXPECT_EQ(broker.topic({"orders", "weak"})->topic.partitions_count, 1U);
}

TEST_F(ReconcilerTest, WhatAnAcknowledgmentCantProveIsRefused) {
  const auto refusal = [&](iggy::Dialect dialect, std::vector<std::string> keys, Ack ack) {
    FakeBroker broker{clock, dialect};
    broker.option_keys = std::move(keys);
    FakeClient client{broker, clock};
    const auto kept = base::testing::run_until_done(io, clock, can_keep(client, ack));
    EXPECT_TRUE(kept || kept.error().code() == ErrorCode::kInvalidArgument);
    return kept ? std::string() : kept.error().message();
  };
  const auto vsr = iggy::Dialect::kVsr11;
  EXPECT_EQ(refusal(iggy::Dialect::kLegacy, {}, Ack::kMemory), "");
  EXPECT_EQ(refusal(iggy::Dialect::kLegacy, {}, Ack::kFlush), "");
  EXPECT_NE(refusal(iggy::Dialect::kLegacy, {}, Ack::kPersisted).find("no durability per topic"), std::string::npos);
  EXPECT_NE(refusal(vsr, {"durability"}, Ack::kFlush).find("has no flush"), std::string::npos);
  EXPECT_NE(refusal(vsr, {"enforce_fsync"}, Ack::kPersisted).find("no topic option `durability`"), std::string::npos);
  EXPECT_EQ(refusal(vsr, {"durability"}, Ack::kPersisted), "");
}

TEST_F(ReconcilerTest, DryRunSaysWhatItWouldDoAndDoesNothing) {
  up_broker.add_topic({"orders", "events"}, 3);
  up_broker.add_topic({"pay", "out"}, 4);
  down_broker.add_topic({"pay", "out"}, 1);
  const Topology topology = reconciled({.dry_run = true, .link_is_new = true});
  EXPECT_EQ(topology.partitions.size(), 7U);
  ASSERT_EQ(topology.actions.size(), 3U);
  EXPECT_EQ(topology.actions[2].kind, Action::Kind::kGrow);
  EXPECT_EQ(down.count<iggy::CreateStream>() + down.count<iggy::CreateTopic>() + down.count<iggy::CreatePartitions>(),
            0U);
}

TEST_F(ReconcilerTest, GrowsBeforeItCopiesInRequestsOfAtMostAThousand) {
  up_broker.add_topic({"orders", "events"}, 2);
  reconciled({.link_is_new = true});
  up_broker.topic(TopicName{"orders", "events"})->topic.partitions_count = 2'600;
  up_broker.add_topic({"orders", "wide"}, 1'500);
  std::set<PartitionKey> known = {{{"orders", "events"}, 0}, {{"orders", "events"}, 1}};
  const Topology topology = reconciled({.known = known});
  EXPECT_EQ(partitions_downstream({"orders", "events"}), 2'600U);
  EXPECT_EQ(partitions_downstream({"orders", "wide"}), 1'500U);
  EXPECT_EQ(topology.partitions.size(), 4'100U);
  EXPECT_FALSE(topology.partitions[2].present_at_link_start) << "added later: copied from its first message";
}

TEST_F(ReconcilerTest, ARefusedGrowthIsAFaultOfTheMissingPartitionsOnly) {
  up_broker.add_topic({"orders", "events"}, 4);
  up_broker.add_topic({"orders", "other"}, 1);
  down_broker.add_topic({"orders", "events"}, 2);
  down.deny<iggy::CreatePartitions>();
  const Topology topology = reconciled();
  EXPECT_EQ(topology.partitions.size(), 3U);
  ASSERT_EQ(topology.missing.size(), 2U);
  EXPECT_EQ(topology.missing[0].key, (PartitionKey{{"orders", "events"}, 2}));
  EXPECT_EQ(topology.missing[0].fault, FaultKind::kPermission);
  EXPECT_NE(topology.missing[0].reason.find("manage_topic"), std::string::npos) << topology.missing[0].reason;
  EXPECT_TRUE(says(topology.notices, "2 of 4 partitions"));
}

TEST_F(ReconcilerTest, OneTopicThatCantBeCreatedStopsNoOther) {
  up_broker.add_topic({"orders", "bad"}, 2);
  up_broker.add_topic({"orders", "good"}, 2);
  down.before = [](const iggy::Request& request, std::size_t) -> std::optional<base::Error> {
    const auto* create = std::get_if<iggy::CreateTopic>(&request);
    if (create == nullptr || create->name != "bad") return std::nullopt;
    return base::Error(ErrorCode::kServerRefused, "create_topic", "", "invalid_topic_size").with_status(1019);
  };
  const Topology topology = reconciled();
  EXPECT_EQ(topology.partitions.size(), 2U);
  ASSERT_EQ(topology.missing.size(), 2U);
  EXPECT_EQ(topology.missing[0].fault, FaultKind::kTargetMissing);
  EXPECT_NE(topology.missing[0].reason.find("invalid_topic_size"), std::string::npos);
}

TEST_F(ReconcilerTest, NamesTheRightThatIsMissingToCreateAStream) {
  up_broker.add_topic({"orders", "events"}, 1);
  up_broker.add_topic({"orders", "more"}, 1);
  up_broker.add_topic({"there", "t"}, 1);
  down_broker.add_topic({"there", "t"}, 1);
  down.deny<iggy::CreateStream>();
  const Topology topology = reconciled();
  EXPECT_EQ(topology.partitions.size(), 1U);
  ASSERT_EQ(topology.missing.size(), 2U);
  EXPECT_NE(topology.missing[0].reason.find("manage_streams"), std::string::npos);
  EXPECT_EQ(down.count<iggy::CreateStream>(), 1U) << "one refusal is enough for all topics of a stream";
}

TEST_F(ReconcilerTest, AlreadyExistsIsSuccess) {
  // Method: somebody else creates stream and topic between our look and our request.
  up_broker.add_topic({"orders", "events"}, 3);
  down.before = [this](const iggy::Request& request, std::size_t) -> std::optional<base::Error> {
    if (std::holds_alternative<iggy::CreateStream>(request)) down_broker.add_stream("orders");
    if (std::holds_alternative<iggy::CreateTopic>(request)) down_broker.add_topic({"orders", "events"}, 1);
    return std::nullopt;
  };
  const Topology topology = reconciled();
  EXPECT_EQ(topology.partitions.size(), 3U) << "the one that is there is grown";
  EXPECT_EQ(partitions_downstream({"orders", "events"}), 3U);
}

TEST_F(ReconcilerTest, ALostReplyIsLookedUpAndNeverRepeatedBlindly) {
  up_broker.add_topic({"orders", "events"}, 3);
  up_broker.add_topic({"orders", "grown"}, 5);
  down_broker.add_topic({"orders", "grown"}, 2);
  down.after = [](const iggy::Request& request, std::size_t) -> std::optional<base::Error> {
    if (!std::holds_alternative<iggy::CreateTopic>(request) &&
        !std::holds_alternative<iggy::CreatePartitions>(request)) {
      return std::nullopt;
    }
    return base::Error(ErrorCode::kUncertain, "create", "", "connection reset");
  };
  const Topology topology = reconciled();
  EXPECT_TRUE(topology.missing.empty());
  EXPECT_EQ(topology.partitions.size(), 8U);
  EXPECT_EQ(partitions_downstream({"orders", "grown"}), 5U);
  EXPECT_EQ(down.count<iggy::CreatePartitions>(), 1U);
}

TEST_F(ReconcilerTest, EveryFailedCallLeavesNothingWrongBehind) {
  // Method: fail call N, once refused and once with a lost reply, for N = 1, 2, 3 … until the pass has no call N; the
  // next pass, undisturbed, ends right.
  for (const bool lost : {false, true}) {
    for (std::size_t failing = 1;; ++failing) {
      up_broker.streams.clear();
      down_broker.streams.clear();
      up_broker.add_topic({"orders", "events"}, 3);
      up_broker.add_topic({"pay", "out"}, 2);
      down_broker.add_topic({"pay", "out"}, 1);
      bool hit = false;
      for (FakeClient* client : {&up, &down}) client->requests.clear();
      const auto fail = [&](const iggy::Request&, std::size_t) -> std::optional<base::Error> {
        if (up.requests.size() + down.requests.size() != failing) return std::nullopt;
        hit = true;
        return base::Error(lost ? ErrorCode::kUncertain : ErrorCode::kTimeout, "fake", "", "failed by the test");
      };
      for (FakeClient* client : {&up, &down}) (lost ? client->after : client->before) = fail;
      const auto disturbed = pass({.known = {{{"pay", "out"}, 0}}});
      if (disturbed) {
        EXPECT_TRUE(disturbed->deleted.empty()) << failing;
        const auto goes_on =
            std::ranges::count(disturbed->partitions, PartitionKey{{"pay", "out"}, 0}, &WantedPartition::key);
        EXPECT_EQ(goes_on, 1) << failing;
      }
      for (FakeClient* client : {&up, &down}) client->after = client->before = nullptr;
      const Topology topology = reconciled();
      EXPECT_EQ(topology.partitions.size(), 5U) << failing;
      EXPECT_EQ(partitions_downstream({"orders", "events"}), 3U) << failing;
      EXPECT_EQ(partitions_downstream({"pay", "out"}), 2U) << failing;
      if (!hit) {
        EXPECT_GT(failing, 8U) << "the pass was expected to make more calls";
        break;
      }
    }
  }
}

TEST_F(ReconcilerTest, WithoutCreateTopicsItSaysWhatIsMissing) {
  config.create_topics = false;
  up_broker.add_topic({"orders", "events"}, 2);
  up_broker.add_topic({"pay", "out"}, 2);
  down_broker.add_topic({"pay", "out"}, 1);
  const Topology topology = reconciled();
  EXPECT_EQ(topology.partitions.size(), 1U);
  ASSERT_EQ(topology.missing.size(), 3U);
  EXPECT_NE(topology.missing[0].reason.find("create_topics = false"), std::string::npos);
  EXPECT_TRUE(topology.actions.empty());
}

TEST_F(ReconcilerTest, RulesThatNameTheirTopicsNeedNoRightToList) {
  config.topics = {"orders/events", "pay/*"};
  up_broker.add_topic({"orders", "events"}, 1);
  up_broker.add_topic({"orders", "secret"}, 1);
  up_broker.add_topic({"pay", "out"}, 1);
  up.deny<iggy::GetStreams>();
  const Topology topology = reconciled();
  EXPECT_EQ(topology.partitions.size(), 2U);
  EXPECT_EQ(up.count<iggy::GetStreams>(), 0U);
  EXPECT_EQ(up.count<iggy::GetTopics>(), 1U);
  EXPECT_EQ(up.count<iggy::GetTopic>(), 1U);
}

TEST_F(ReconcilerTest, WithoutTheRightToListItKeepsWhatItKnows) {
  config.topics = {"*/events", "pay/out"};
  up_broker.add_topic({"orders", "events"}, 1);
  up_broker.add_topic({"pay", "out"}, 1);
  up.deny<iggy::GetStreams>();
  const Topology topology = reconciled({.known = {{{"orders", "events"}, 0}}});
  EXPECT_EQ(topology.partitions.size(), 2U) << "the known one, and the one that is named";
  EXPECT_TRUE(topology.deleted.empty()) << "what can't be seen is not deleted";
  EXPECT_TRUE(says(topology.notices, "read_streams"));
}

TEST_F(ReconcilerTest, AForbiddenTopicDownstreamIsReportedWithTheRight) {
  up_broker.add_topic({"orders", "events"}, 1);
  down_broker.add_topic({"orders", "events"}, 1);
  down.deny<iggy::GetTopics>();
  EXPECT_EQ(reconciled().partitions.size(), 1U) << "falls back to one topic at a time";
  down.deny<iggy::GetTopic>();
  const Topology topology = reconciled();
  ASSERT_EQ(topology.missing.size(), 1U);
  EXPECT_EQ(topology.missing[0].fault, FaultKind::kPermission);
  EXPECT_NE(topology.missing[0].reason.find("read_topic"), std::string::npos);
}

TEST_F(ReconcilerTest, ATopicDeletedUpstreamStaysAndIsReported) {
  up_broker.add_topic({"orders", "events"}, 1);
  down_broker.add_topic({"orders", "gone"}, 2);
  const Topology topology = reconciled(
      {.known = {
           {{"orders", "events"}, 0}, {{"orders", "events"}, 1}, {{"orders", "gone"}, 0}, {{"orders", "gone"}, 1}}});
  EXPECT_EQ(topology.partitions.size(), 1U);
  EXPECT_EQ(topology.deleted.size(), 3U) << "a partition deleted upstream too";
  EXPECT_TRUE(says(topology.notices, "orders/gone (2 partitions) was deleted upstream"));
  EXPECT_EQ(partitions_downstream({"orders", "gone"}), 2U);
}

TEST_F(ReconcilerTest, AConnectionErrorConcludesNothing) {
  up_broker.add_topic({"orders", "events"}, 1);
  up.deny<iggy::GetStreams>(ErrorCode::kConnectionLost);
  const auto topology = pass({.known = {{{"orders", "events"}, 0}}});
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().code(), ErrorCode::kConnectionLost);
}

TEST_F(ReconcilerTest, ReportsRulesThatMatchNothingAndKnownOnesNoLongerWanted) {
  config.topics = {"orders/*", "typo/*"};
  up_broker.add_topic({"orders", "events"}, 1);
  up_broker.add_topic({"pay", "out"}, 1);
  const Topology topology = reconciled({.known = {{{"pay", "out"}, 0}}});
  EXPECT_TRUE(says(topology.notices, "typo/* matches no topic"));
  EXPECT_FALSE(says(topology.notices, "orders/* matches"));
  ASSERT_EQ(topology.unwanted.size(), 1U);
  EXPECT_TRUE(topology.deleted.empty());
}

TEST_F(ReconcilerTest, ReportsDriftInWordsAndChangesNothing) {
  iggy::TopicSettings gzip;
  gzip.compression = iggy::Compression::kGzip;
  up_broker.add_topic({"orders", "events"}, 1, gzip);
  iggy::TopicSettings limited;
  limited.message_expiry = 7ULL * 86'400'000'000;
  limited.max_topic_size = 4ULL << 30;
  down_broker.add_topic({"orders", "events"}, 3, limited);
  const Topology topology = reconciled();
  EXPECT_TRUE(says(topology.notices, "3 partitions downstream and 1 upstream"));
  EXPECT_TRUE(says(topology.notices, "compression none downstream and gzip upstream"));
  EXPECT_TRUE(says(topology.notices, "7 days, size 4 GiB"));
  EXPECT_EQ(topology.partitions.size(), 1U);
}

TEST_F(ReconcilerTest, CarriesDurabilityOnlyWhenBothSidesKnowIt) {
  const auto text = [](std::string_view value) {
    return base::Bytes(base::as_bytes(value).begin(), base::as_bytes(value).end());
  };
  for (const bool known : {true, false}) {
    FakeBroker up_vsr(clock, iggy::Dialect::kVsr11);
    FakeBroker down_vsr(clock, iggy::Dialect::kVsr11);
    down_vsr.option_keys = known ? std::vector<std::string>{"durability", "consumer_offset_durability"}
                                 : std::vector<std::string>{"enforce_fsync"};
    FakeClient up_client(up_vsr, clock);
    FakeClient down_client(down_vsr, clock);
    testing::FakeTopic& topic = up_vsr.add_topic({"orders", "events"}, 1);
    topic.topic.settings.options = {{"durability", 2, text("persisted")}, {"segment_size", 12, text("12345678")}};
    topic.topic.derived = {{"consumer_offset_durability", 2, text("replicated")}};
    const auto rules = Rules::compile({}, {}, {}, "off");
    const auto topology =
        base::testing::run_until_done(io, clock, reconcile(up_client, down_client, *rules, config, {}));
    ASSERT_TRUE(topology);
    const testing::FakeTopic* there = down_vsr.topic({"orders", "events"});
    ASSERT_NE(there, nullptr);
    ASSERT_EQ(there->topic.settings.options.size(), known ? 2U : 0U);
    if (known) {
      EXPECT_EQ(there->topic.settings.options[0], topic.topic.settings.options[0]);
      EXPECT_EQ(there->topic.settings.options[1], topic.topic.derived[0]);
    }
  }
}

TEST_F(ReconcilerTest, RefusesTwoSourcesOntoOneTargetAndKeepsTheOneThatRuns) {
  config.rename = {{"a/*", "c/*"}, {"b/*", "c/*"}};
  up_broker.add_topic({"a", "x"}, 1);
  up_broker.add_topic({"b", "x"}, 1);
  up_broker.add_topic({"other", "x"}, 1);
  const Topology fresh = reconciled({.dry_run = true});
  EXPECT_EQ(fresh.refusals.size(), 2U);
  EXPECT_EQ(fresh.missing.size(), 2U);
  EXPECT_EQ(fresh.partitions.size(), 1U);
  const Topology running = reconciled({.known = {{{"a", "x"}, 0}}});
  EXPECT_EQ(running.partitions.size(), 2U);
  ASSERT_EQ(running.missing.size(), 1U);
  EXPECT_EQ(running.missing[0].key.topic.stream, "b");
}

TEST_F(ReconcilerTest, RefusesTopicsThatWouldFeedThemselvesInsideOneCluster) {
  config.topics = {"orders/*"};
  up_broker.add_topic({"orders", "x"}, 1);
  EXPECT_TRUE(reconciled({.dry_run = true}).refusals.empty());
  const Topology same = reconciled({.dry_run = true, .same_cluster = true});
  ASSERT_EQ(same.refusals.size(), 1U);
  EXPECT_TRUE(same.partitions.empty());
  config.rename = {{"orders/*", "dr-orders/*"}};
  const Topology renamed = reconciled({.dry_run = true, .same_cluster = true});
  EXPECT_TRUE(renamed.refusals.empty());
  EXPECT_EQ(renamed.partitions.size(), 1U);
}

TEST_F(ReconcilerTest, SkipsATopicWithoutPartitions) {
  up_broker.add_topic({"orders", "empty"}, 0);
  const Topology topology = reconciled();
  EXPECT_TRUE(topology.partitions.empty());
  EXPECT_EQ(down.count<iggy::CreateTopic>(), 0U);
  EXPECT_TRUE(says(topology.notices, "has no partitions upstream"));
}

TEST(Words, SayDurationsAndSizes) {
  EXPECT_EQ(expiry_in_words(iggy::kNeverExpire), "for ever");
  EXPECT_EQ(expiry_in_words(86'400'000'000), "1 day");
  EXPECT_EQ(expiry_in_words(129'600'000'000), "36 hours");
  EXPECT_EQ(expiry_in_words(90'000'000), "90 seconds");
  EXPECT_EQ(size_in_words(iggy::kUnlimitedSize), "unlimited");
  EXPECT_EQ(size_in_words(10ULL << 30), "10 GiB");
  EXPECT_EQ(size_in_words(1'000), "1000 bytes");
}

}  // namespace
}  // namespace replicator
