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

template <class T>
struct Right {
  std::string_view name;
  bool T::* flag;
};
constexpr std::array kRights = {
    Right<Permissions>{"manage_servers", &Permissions::manage_servers},
    Right<Permissions>{"read_servers", &Permissions::read_servers},
    Right<Permissions>{"manage_users", &Permissions::manage_users},
    Right<Permissions>{"read_users", &Permissions::read_users},
    Right<Permissions>{"manage_streams", &Permissions::manage_streams},
    Right<Permissions>{"read_streams", &Permissions::read_streams},
    Right<Permissions>{"manage_topics", &Permissions::manage_topics},
    Right<Permissions>{"read_topics", &Permissions::read_topics},
    Right<Permissions>{"poll_messages", &Permissions::poll_messages},
    Right<Permissions>{"send_messages", &Permissions::send_messages},
};

constexpr std::array kStreamRights = {
    Right<Permissions::OfStream>{"manage_stream", &Permissions::OfStream::manage_stream},
    Right<Permissions::OfStream>{"read_stream", &Permissions::OfStream::read_stream},
    Right<Permissions::OfStream>{"manage_topics", &Permissions::OfStream::manage_topics},
    Right<Permissions::OfStream>{"read_topics", &Permissions::OfStream::read_topics},
    Right<Permissions::OfStream>{"poll_messages", &Permissions::OfStream::poll_messages},
    Right<Permissions::OfStream>{"send_messages", &Permissions::OfStream::send_messages},
};
constexpr std::array kTopicRights = {
    Right<Permissions::OfTopic>{"manage_topic", &Permissions::OfTopic::manage_topic},
    Right<Permissions::OfTopic>{"read_topic", &Permissions::OfTopic::read_topic},
    Right<Permissions::OfTopic>{"poll_messages", &Permissions::OfTopic::poll_messages},
    Right<Permissions::OfTopic>{"send_messages", &Permissions::OfTopic::send_messages},
};

template <class T, std::size_t n>
base::Status grant(T& to, const std::array<Right<T>, n>& rights, const std::string& name) {
  const auto right = std::ranges::find(rights, name, &Right<T>::name);
  if (right == rights.end()) return base::Error(base::ErrorCode::kInvalidArgument, "rights", name, "no such right");
  to.*right->flag = true;
  return base::ok();
}

// The entry of `id`, made when it is not there yet.
template <class T>
T& entry(std::vector<T>& entries, std::uint32_t id) {
  const auto found = std::ranges::find(entries, id, &T::id);
  if (found != entries.end()) return *found;
  entries.emplace_back().id = id;
  return entries.back();
}

base::Error not_there(const std::string& place) {
  return {base::ErrorCode::kNotFound, "rights", place, "is not there; rights are kept by its number"};
}

// One right on a stream or topic: "orders" or "orders/events".
base::Status grant_on(BlockingClient& client, Permissions& to, const std::string& place, const std::string& right) {
  const std::size_t slash = place.find('/');
  const std::string name = place.substr(0, slash);
  const auto stream_reply = client.call(iggy::GetStream{name});
  if (!stream_reply) return stream_reply.error();
  const auto* stream = std::get_if<iggy::StreamDetails>(&*stream_reply);
  if (stream == nullptr) return not_there(name);
  Permissions::OfStream& of_stream = entry(to.streams, stream->stream.id);
  if (slash == std::string::npos) return grant(of_stream, kStreamRights, right);
  const auto topic = std::ranges::find(stream->topics, place.substr(slash + 1), &iggy::Topic::name);
  if (topic == stream->topics.end()) return not_there(place);
  return grant(entry(of_stream.topics, topic->id), kTopicRights, right);
}

// "read_servers,orders:read_stream,orders/events:send_messages"; "none" = no right at all.
base::Result<Permissions> parse_rights(BlockingClient& client, const std::string& text) {
  Permissions rights;
  std::istringstream words(text == "none" ? "" : text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t colon = word.find(':');
    const base::Status granted = colon == std::string::npos
                                     ? grant(rights, kRights, word)
                                     : grant_on(client, rights, word.substr(0, colon), word.substr(colon + 1));
    if (!granted) return granted.error();
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

// "0 41", a line per partition that has one.
base::Result<iggy::Reply> print_stored_offsets(BlockingClient& client, const ManageOptions& options) {
  auto topic = client.call(iggy::GetTopic{options.topic.stream, options.topic.topic});
  const auto* details = topic ? std::get_if<iggy::TopicDetails>(&*topic) : nullptr;
  for (std::uint32_t id = 0; details != nullptr && id < details->partitions.size(); ++id) {
    const iggy::Consumer consumer{iggy::ConsumerKind::kConsumer, options.name};
    const auto reply = client.call(iggy::GetConsumerOffset{consumer, options.topic.stream, options.topic.topic, id});
    if (!reply) return reply.error();
    if (const auto* stored = std::get_if<iggy::ConsumerOffset>(&*reply))
      fmt::print("{} {}\n", id, stored->stored_offset);
  }
  return topic;
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
  const auto rights = parse_rights(client, options.rights);
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
    case Deed::kStoredOffset:
      return print_stored_offsets(client, options);
    case Deed::kDeleteUser:
      return client.call(iggy::DeleteUser{options.name});
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
