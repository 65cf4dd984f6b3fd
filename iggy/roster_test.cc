// Goal: a roster says where to go: to the leader, to what is left when that is gone, and to the node that takes sends.
#include "iggy/roster.h"

#include <gtest/gtest.h>

namespace iggy {
namespace {

const base::TopicName kTopic{"orders", "events"};

HostPort at(std::uint16_t port) { return {"10.0.0.1", port}; }
ClusterMetadata cluster(int leader, std::uint16_t nodes = 3) {
  ClusterMetadata metadata;
  for (std::uint16_t i = 1; i <= nodes; ++i) {
    ClusterNode node;
    node.name = "node-" + std::to_string(i);
    node.ip = "10.0.0.1";
    node.tcp = i;
    node.role = i == leader ? 0 : 1;
    metadata.nodes.push_back(node);
  }
  return metadata;
}

TEST(Roster, AServerThatNamesItselfAloneIsNoCluster) {
  Roster roster({{"proxy", 8090}});
  roster.learn(cluster(1, 1));
  EXPECT_FALSE(roster.is_cluster());
  EXPECT_FALSE(roster.leader());
  EXPECT_EQ(roster.candidates(std::nullopt), (std::vector<HostPort>{{"proxy", 8090}}));
}

TEST(Roster, TheLeaderComesFirstThenTheNodeInUseThenTheStringsHostsThenAllOthers) {
  Roster roster({{"a", 1}, {"b", 1}, {"c", 1}});
  EXPECT_EQ(roster.candidates(HostPort{"b", 1}), (std::vector<HostPort>{{"b", 1}, {"c", 1}, {"a", 1}}));
  roster.learn(cluster(2));
  EXPECT_EQ(roster.leader(), at(2));
  EXPECT_EQ(roster.name_of(at(2)), "node-2");
  EXPECT_EQ(roster.candidates(HostPort{"b", 1}),
            (std::vector<HostPort>{at(2), {"b", 1}, {"c", 1}, {"a", 1}, at(1), at(3)}));
}

TEST(Roster, ALeaderIsBelievedOnlyWhenItIsTheOnlyOneAndHealthy) {
  Roster roster({at(1)});
  roster.learn(cluster(0));
  EXPECT_FALSE(roster.leader()) << "all follow, for a moment";
  ClusterMetadata two = cluster(1);
  two.nodes[2].role = 0;
  roster.learn(two);
  EXPECT_FALSE(roster.leader());
  ClusterMetadata sick = cluster(1);
  sick.nodes[0].status = 3;
  roster.learn(sick);
  EXPECT_FALSE(roster.leader());
}

TEST(Roster, TwoRefusalsInARowMoveAPartitionToTheNextNode) {
  Roster roster({at(1)});
  roster.learn(cluster(1));
  const auto refuse = [&](int port) { roster.refused(kTopic, 0, at(static_cast<std::uint16_t>(port)), at(1)); };
  refuse(1);
  roster.accepted(kTopic, 0);
  refuse(1);
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(1)) << "it had taken one in between";
  refuse(1);
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(2));
  EXPECT_EQ(roster.route(kTopic, 1, at(1)), at(1)) << "another partition";
  refuse(1);  // late
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(2));
  roster.accepted(kTopic, 0);
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(2)) << "it takes them";
  refuse(2);
  refuse(2);
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(3));
  refuse(3);
  refuse(3);
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(1)) << "once around";
}

TEST(Roster, ANodeThatIsGoneIsNoRoute) {
  Roster roster({at(1)});
  roster.learn(cluster(1));
  for (int i = 0; i < 2; ++i) roster.refused(kTopic, 0, at(1), at(1));
  roster.forget_routes_to(at(3));
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(2));
  roster.forget_routes_to(at(2));
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(1));
  for (int i = 0; i < 2; ++i) roster.refused(kTopic, 0, at(1), at(1));
  roster.forget_routes();
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(1));
}

TEST(Roster, OneServerRefusesForOtherReasons) {
  Roster roster({at(1)});
  for (int i = 0; i < 5; ++i) roster.refused(kTopic, 0, at(1), at(1));
  EXPECT_EQ(roster.route(kTopic, 0, at(1)), at(1));
}

}  // namespace
}  // namespace iggy
