#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include <fmt/format.h>

#include "integration/load/blocking_client.h"
#include "integration/load/commands.h"

namespace load {
namespace {

using iggy::Permissions;

struct Right {
  std::string_view name;
  bool Permissions::* flag;
};
constexpr std::array kRights = {
    Right{"manage_servers", &Permissions::manage_servers}, Right{"read_servers", &Permissions::read_servers},
    Right{"manage_users", &Permissions::manage_users},     Right{"read_users", &Permissions::read_users},
    Right{"manage_streams", &Permissions::manage_streams}, Right{"read_streams", &Permissions::read_streams},
    Right{"manage_topics", &Permissions::manage_topics},   Right{"read_topics", &Permissions::read_topics},
    Right{"poll_messages", &Permissions::poll_messages},   Right{"send_messages", &Permissions::send_messages},
};

// "read_streams,poll_messages"; "none" = no right at all.
base::Result<Permissions> parse_rights(const std::string& text) {
  Permissions rights;
  std::istringstream words(text == "none" ? "" : text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto* const right = std::ranges::find(kRights, word, &Right::name);
    if (right == kRights.end()) return base::Error(base::ErrorCode::kInvalidArgument, "rights", word, "no such right");
    rights.*right->flag = true;
  }
  return rights;
}

base::Result<iggy::Reply> create_topic(BlockingClient& client, const ManageOptions& options) {
  auto stream = client.call(iggy::CreateStream{options.topic.stream, {}});
  if (!stream && stream.error().code() != base::ErrorCode::kAlreadyExists) return stream;
  iggy::TopicSettings settings;
  settings.message_expiry = options.expiry_seconds == 0 ? iggy::kNeverExpire : options.expiry_seconds * 1'000'000;
  settings.max_topic_size = iggy::kUnlimitedSize;
  return client.call(iggy::CreateTopic{options.topic.stream, options.topic.topic, options.partitions, settings});
}

// Only a member may store a group's offset.
base::Result<iggy::Reply> store_offset(BlockingClient& client, const ManageOptions& options) {
  const auto& [stream, topic] = options.topic;
  const iggy::Consumer who{options.group ? iggy::ConsumerKind::kGroup : iggy::ConsumerKind::kConsumer, options.name};
  if (options.group) {
    auto created = client.call(iggy::CreateGroup{stream, topic, options.name});
    if (!created && created.error().code() != base::ErrorCode::kAlreadyExists) return created;
    auto joined = client.call(iggy::JoinGroup{stream, topic, options.name});
    if (!joined) return joined;
  }
  return client.call(iggy::StoreConsumerOffset{who, stream, topic, options.partition, options.offset});
}

base::Result<iggy::Reply> carry_out(BlockingClient& client, const ManageOptions& options) {
  const auto& [stream, topic] = options.topic;
  const auto rights = parse_rights(options.rights);
  if (!rights) return rights.error();
  switch (options.deed) {
    case Deed::kCreateTopic:
      return create_topic(client, options);
    case Deed::kDeleteTopic:
      return client.call(iggy::DeleteTopic{stream, topic});
    case Deed::kPurgeTopic:
      return client.call(iggy::PurgeTopic{stream, topic});
    case Deed::kAddPartitions:
      return client.call(iggy::CreatePartitions{stream, topic, options.partitions});
    case Deed::kCreateUser: {
      iggy::CreateUser user;
      user.name = options.name;
      user.password = options.password;
      user.permissions = *rights;
      return client.call(user);
    }
    case Deed::kSetRights:
      return client.call(iggy::UpdatePermissions{options.name, *rights});
    case Deed::kCreateToken:
      return client.call(iggy::CreateToken{options.name, 0});
    case Deed::kStoreOffset:
      return store_offset(client, options);
    case Deed::kGetOffset: {
      const iggy::Consumer who{options.group ? iggy::ConsumerKind::kGroup : iggy::ConsumerKind::kConsumer,
                               options.name};
      return client.call(iggy::GetConsumerOffset{who, stream, topic, options.partition});
    }
    case Deed::kDeleteOffset:
      return client.call(iggy::DeleteConsumerOffset{iggy::Consumer{iggy::ConsumerKind::kConsumer, options.name}, stream,
                                                    topic, options.partition});
  }
  return base::Error(base::ErrorCode::kInternal, "manage", "", "unknown deed");
}

}  // namespace

int run_manage(const ManageOptions& options) {
  auto client = BlockingClient::connect(options.url);
  if (!client) {
    std::fprintf(stderr, "iggy-load: %s\n", client.error().to_string().c_str());
    return 1;
  }
  const auto reply = carry_out(*client, options);
  if (!reply) {
    std::fprintf(stderr, "iggy-load: %s\n", reply.error().to_string().c_str());
    return 1;
  }
  if (const auto* token = std::get_if<iggy::TokenCreated>(&*reply)) fmt::print("{}\n", token->token);
  if (options.deed == Deed::kGetOffset) {
    const auto* offset = std::get_if<iggy::ConsumerOffset>(&*reply);
    fmt::print("{}\n", offset == nullptr ? "none" : std::to_string(offset->stored_offset));
  }
  return 0;
}

}  // namespace load
