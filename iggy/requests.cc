#include "iggy/requests.h"

#include <array>

namespace iggy {

namespace {

// In the order of the variant.
constexpr std::array<std::string_view, std::variant_size_v<Request>> kNames = {
    "ping",
    "get_stats",
    "get_cluster_metadata",
    "describe_options",
    "get_me",
    "get_client",
    "get_clients",
    "get_user",
    "get_users",
    "create_user",
    "delete_user",
    "update_user",
    "update_permissions",
    "change_password",
    "login_user",
    "login_with_token",
    "logout",
    "get_tokens",
    "create_token",
    "delete_token",
    "get_stream",
    "get_streams",
    "create_stream",
    "update_stream",
    "delete_stream",
    "purge_stream",
    "get_topic",
    "get_topics",
    "create_topic",
    "update_topic",
    "delete_topic",
    "purge_topic",
    "create_partitions",
    "delete_partitions",
    "delete_segments",
    "poll_messages",
    "send_messages",
    "flush_unsaved",
    "get_consumer_offset",
    "store_consumer_offset",
    "delete_consumer_offset",
    "get_group",
    "get_groups",
    "create_group",
    "delete_group",
    "join_group",
    "leave_group",
    "sync_group",
    "attach_consumer_session",
    "get_poll_routing",
    "poll_messages_on_primary",
    "get_consumer_offset_routing",
};

}  // namespace

std::string_view name_of(const Request& request) { return kNames[request.index()]; }

base::Status refuse_external_group(const Request& request) {
  const bool external = std::visit(
      [](const auto& each) {
        if constexpr (requires { each.consumer; }) {
          return each.consumer.kind == ConsumerKind::kExternalGroup;
        } else {
          return false;
        }
      },
      request);
  if (!external) return base::ok();
  return base::Error(base::ErrorCode::kUnsupported, "encode", std::string(name_of(request)),
                     "external groups (kind 3) are there from server 0.10 on",
                     "store the position as a plain consumer's");
}

}  // namespace iggy
