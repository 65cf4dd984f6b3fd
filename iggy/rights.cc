#include "iggy/rights.h"

#include <algorithm>

namespace iggy {

bool allowed(const Permissions& permissions, Access access, std::optional<std::uint32_t> stream,
             std::optional<std::uint32_t> topic) {
  const Permissions& p = permissions;
  Permissions::OfStream of_stream;
  Permissions::OfTopic of_topic;
  if (stream) {
    const auto found = std::ranges::find(p.streams, *stream, &Permissions::OfStream::id);
    if (found != p.streams.end()) of_stream = *found;
    const auto inner =
        topic ? std::ranges::find(of_stream.topics, *topic, &Permissions::OfTopic::id) : of_stream.topics.end();
    if (inner != of_stream.topics.end()) of_topic = *inner;
  }
  const bool list_streams = p.read_streams || p.manage_streams;
  const bool read_stream = list_streams || of_stream.read_stream || of_stream.manage_stream;
  const bool manage_stream = p.manage_streams || of_stream.manage_stream;
  const bool manage_topics = manage_stream || p.manage_topics || of_stream.manage_topics;
  const bool list_topics = read_stream || manage_topics || p.read_topics || of_stream.read_topics;
  switch (access) {
    case Access::kReadServers:
      return p.read_servers || p.manage_servers;
    case Access::kReadUsers:
      return p.read_users || p.manage_users;
    case Access::kManageUsers:
      return p.manage_users;
    case Access::kListStreams:
      return list_streams;
    case Access::kReadStream:
      return read_stream;
    case Access::kManageStreams:
      return p.manage_streams;
    case Access::kManageStream:
      return manage_stream;
    case Access::kListTopics:
      return list_topics;
    case Access::kReadTopic:
      return list_topics || of_topic.read_topic || of_topic.manage_topic;
    case Access::kManageTopics:
      return manage_topics;
    case Access::kManageTopic:
      return manage_topics || of_topic.manage_topic;
    case Access::kPoll:
      return p.poll_messages || of_stream.poll_messages || of_topic.poll_messages || list_topics ||
             of_topic.read_topic || of_topic.manage_topic;
    case Access::kSend:
      return p.send_messages || of_stream.send_messages || of_topic.send_messages || manage_topics ||
             of_topic.manage_topic;
  }
  return false;
}

std::string_view name_of(Access access) {
  switch (access) {
    case Access::kReadServers:
      return "read_servers";
    case Access::kReadUsers:
      return "read_users";
    case Access::kManageUsers:
      return "manage_users";
    case Access::kListStreams:
      return "read_streams";
    case Access::kReadStream:
      return "read_stream";
    case Access::kManageStreams:
      return "manage_streams";
    case Access::kManageStream:
      return "manage_stream";
    case Access::kListTopics:
      return "read_topics";
    case Access::kReadTopic:
      return "read_topic";
    case Access::kManageTopics:
      return "manage_topics";
    case Access::kManageTopic:
      return "manage_topic";
    case Access::kPoll:
      return "poll_messages";
    case Access::kSend:
      return "send_messages";
  }
  return "unknown";
}

Permissions all_permissions() {
  Permissions p;
  p.manage_servers = p.read_servers = p.manage_users = p.read_users = p.manage_streams = p.read_streams =
      p.manage_topics = p.read_topics = p.poll_messages = p.send_messages = true;
  return p;
}

}  // namespace iggy
