// Goal: a fenced user can't send by any right, and keeps every other one. Method: rights by hand.
#include "replicator/failover/fence.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

TEST(Fence, TakesEveryRightThatImpliesSendingAndLeavesReading) {
  iggy::Permissions all;
  all.send_messages = all.poll_messages = all.manage_streams = all.manage_topics = all.read_servers = true;
  iggy::Permissions::OfStream stream;
  stream.id = 3;
  stream.manage_stream = stream.manage_topics = stream.send_messages = stream.read_stream = true;
  iggy::Permissions::OfTopic topic;
  topic.id = 1;
  topic.manage_topic = topic.send_messages = topic.poll_messages = true;
  stream.topics.push_back(topic);
  all.streams.push_back(stream);

  const Fence fence = without_sending(all);
  EXPECT_EQ(fence.taken.size(), 8U);
  EXPECT_EQ(fence.taken.front(), "send_messages");
  EXPECT_EQ(fence.taken.back(), "stream 3 topic 1: manage_topic");
  EXPECT_TRUE(fence.permissions.poll_messages);
  EXPECT_TRUE(fence.permissions.read_servers);
  EXPECT_TRUE(fence.permissions.streams[0].read_stream);
  EXPECT_TRUE(fence.permissions.streams[0].topics[0].poll_messages);
  EXPECT_FALSE(fence.permissions.streams[0].topics[0].send_messages);
  EXPECT_TRUE(without_sending(fence.permissions).taken.empty()) << "once is enough";
}

}  // namespace
}  // namespace replicator
