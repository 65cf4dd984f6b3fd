#include "replicator/failover/fence.h"

#include <utility>

#include <fmt/format.h>

namespace replicator {

Fence without_sending(iggy::Permissions permissions) {
  Fence fence;
  const auto take = [&fence](bool& right, const std::string& where, const char* name) {
    if (std::exchange(right, false)) fence.taken.push_back(where + name);
  };
  take(permissions.send_messages, "", "send_messages");
  take(permissions.manage_streams, "", "manage_streams");
  take(permissions.manage_topics, "", "manage_topics");
  for (iggy::Permissions::OfStream& stream : permissions.streams) {
    const std::string of_stream = fmt::format("stream {}: ", stream.id);
    take(stream.send_messages, of_stream, "send_messages");
    take(stream.manage_stream, of_stream, "manage_stream");
    take(stream.manage_topics, of_stream, "manage_topics");
    for (iggy::Permissions::OfTopic& topic : stream.topics) {
      const std::string of_topic = fmt::format("stream {} topic {}: ", stream.id, topic.id);
      take(topic.send_messages, of_topic, "send_messages");
      take(topic.manage_topic, of_topic, "manage_topic");
    }
  }
  fence.permissions = std::move(permissions);
  return fence;
}

base::Task<base::Result<std::vector<std::string>>> fence_user(iggy::Client& upstream, std::string user, bool dry_run) {
  auto asking = upstream.call(iggy::GetUser{user});
  auto reply = co_await std::move(asking);
  if (!reply) {
    reply.error().with_object("user " + user);
    co_return std::move(reply).error();
  }
  const auto* details = std::get_if<iggy::UserDetails>(&*reply);
  if (details == nullptr) {
    co_return base::Error(base::ErrorCode::kNotFound, "fence", "user " + user, "there is no such user upstream");
  }
  Fence fence = without_sending(details->permissions.value_or(iggy::Permissions{}));
  if (dry_run || fence.taken.empty()) co_return fence.taken;
  iggy::UpdatePermissions request;
  request.user = user;
  request.permissions = fence.permissions;
  auto updating = upstream.call(std::move(request));
  auto updated = co_await std::move(updating);
  if (!updated) {
    updated.error().with_object("user " + user);
    co_return std::move(updated).error();
  }
  co_return fence.taken;
}

}  // namespace replicator
