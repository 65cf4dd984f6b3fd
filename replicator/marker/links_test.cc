#include "replicator/marker/links.h"

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "replicator/testing/fake_client.h"

namespace replicator {
namespace {

MarkerRecord record(std::string process, std::uint64_t generation, std::uint64_t written_at,
                    LinkState state = LinkState::kActive) {
  MarkerRecord made;
  made.cluster = "c1";
  made.link = "l1";
  made.process = std::move(process);
  made.generation = generation;
  made.written_at = written_at;
  made.state = state;
  return made;
}

TEST(Links, TheFirstRecordOfTheHighestGenerationHolds) {
  Links links;
  links.add(record("a", 1, 10));
  links.add(record("b", 2, 5));
  links.add(record("c", 2, 6));   // the same claim, too late
  links.add(record("a", 1, 20));  // has not noticed
  EXPECT_EQ(links.find("l1")->holder.process, "b");
  links.add(record("b", 2, 15, LinkState::kReleased));
  EXPECT_EQ(links.find("l1")->holder.state, LinkState::kReleased);
  EXPECT_EQ(links.signs_of_others("l1", "b"), 3U);
  EXPECT_EQ(links.find("l2"), nullptr);
}

TEST(Links, ARecordReadTwiceChangesNothing) {
  Links links;
  links.add(record("a", 1, 10));
  links.add(record("a", 1, 20));
  links.add(record("a", 1, 10));
  links.add(record("a", 1, 20));
  EXPECT_EQ(links.find("l1")->holder.written_at, 20U);
  EXPECT_EQ(links.signs_of_others("l1", "x"), 2U);
}

TEST(Links, PromotedStaysPromoted) {
  Links links;
  links.add(record("a", 1, 10, LinkState::kPromoted));
  links.add(record("b", 2, 20));
  EXPECT_TRUE(links.find("l1")->promoted);
}

TEST(Links, ComparesHostsOnly) {
  EXPECT_TRUE(same_address("iggy://u:***@a:8090?tls=true", "iggy+tcp://x:***@a:8090"));
  EXPECT_TRUE(same_address("iggy://a:8090", "iggy://u:***@a:8090"));
  EXPECT_FALSE(same_address("iggy://a:8090", "iggy://a:8091"));
  EXPECT_FALSE(same_address("", ""));
}

class LinksInView : public ::testing::Test {
 protected:
  void SetUp() override {
    ours.link_id = "ours";
    ours.upstream = "iggy://a:8090";
    ours.downstream = "iggy://b:8090";
    ours.rules = &rules;
    ours.sources = {{"orders", "x"}};
    other.link = "other";
    other.process = "p@h:1";
    other.generation = 1;
    other.timestamp = now - 1;
    other.topics = {"*/*"};
  }
  std::vector<std::string> reverse() {
    Links links;
    links.add(other);
    return reverse_links(links, ours, now);
  }
  Rules rules = Rules::compile({"orders/*"}, {}, {}, "off").value();
  LinkInView ours;
  MarkerRecord other;
  std::uint64_t now = 10 * kLinkRecordLife;
};

TEST_F(LinksInView, FindsALinkThatBringsBackWhatWeCopy) {
  other.upstream = "iggy://u:***@b:8090";
  ASSERT_EQ(reverse().size(), 1U);
  EXPECT_NE(reverse()[0].find("orders/x"), std::string::npos);
  // By identity, under another name of the same host.
  other.upstream = "iggy://b.example:8090";
  EXPECT_TRUE(reverse().empty());
  other.upstream_identity = ours.downstream_identity = "id-b";
  EXPECT_EQ(reverse().size(), 1U);
  other.upstream_identity = "id-c";
  EXPECT_TRUE(reverse().empty());
}

TEST_F(LinksInView, LeavesReverseLinksAloneThatCopyOtherTopics) {
  other.upstream = "iggy://b:8090";
  other.topics = {"pay/*"};
  EXPECT_TRUE(reverse().empty());
  other.topics = {"*/*"};
  other.rename = {{"orders/*", "from-b/*"}};
  EXPECT_TRUE(reverse().empty()) << "from-b is not copied by us";
}

TEST_F(LinksInView, LeavesReverseLinksAloneThatAreOver) {
  other.upstream = "iggy://b:8090";
  other.state = LinkState::kReleased;
  EXPECT_TRUE(reverse().empty());
  other.state = LinkState::kPromoted;
  EXPECT_TRUE(reverse().empty());
  other.state = LinkState::kActive;
  other.timestamp = now - kLinkRecordLife;
  EXPECT_TRUE(reverse().empty());
}

TEST_F(LinksInView, FindsATwinThatWritesIntoOurTargets) {
  other.upstream = ours.upstream;
  EXPECT_TRUE(is_rival(other, ours, now));
  other.rename = {{"orders/*", "elsewhere/*"}};
  EXPECT_FALSE(is_rival(other, ours, now));
  other.rename.clear();
  other.upstream = "iggy://z:8090";
  EXPECT_FALSE(is_rival(other, ours, now)) << "another upstream";
}

TEST(ReadLinks, TellsAbsentFromForbidden) {
  asio::io_context io;
  base::testing::SimClock clock(io);
  testing::FakeBroker broker(clock);
  testing::FakeClient client(broker, clock);
  const base::TopicName topic{"iggy-replicate", "links"};
  const auto absent = base::testing::run_until_done(io, clock, read_links(client, topic));
  ASSERT_TRUE(absent);
  EXPECT_FALSE(absent->present);
  EXPECT_EQ(client.count<iggy::CreateTopic>() + client.count<iggy::CreateStream>(), 0U);
  testing::FakeTopic& made = broker.add_topic(topic, 1);
  broker.append(made, "not ours");
  broker.append(made, encode(record("a", 1, 10)));
  const auto there = base::testing::run_until_done(io, clock, read_links(client, topic));
  ASSERT_TRUE(there);
  EXPECT_TRUE(there->present);
  EXPECT_EQ(there->links.all().size(), 1U);
  EXPECT_EQ(there->links.identity(), "c1");
  client.deny<iggy::PollMessages>();
  const auto forbidden = base::testing::run_until_done(io, clock, read_links(client, topic));
  ASSERT_FALSE(forbidden);
  EXPECT_EQ(forbidden.error().code(), base::ErrorCode::kPermission);
}

}  // namespace
}  // namespace replicator
