#include "replicator/topics/rights.h"

#include <utility>

#include <fmt/format.h>

#include "iggy/codec/legacy.h"

namespace replicator {
namespace {

using iggy::Access;

// No server has it: a send to it is refused, for lack of the right or for lack of the partition.
constexpr std::uint32_t kNoPartition = iggy::legacy::kPartitionLimit - 1;

std::optional<bool> verdict(const base::Error& error) {
  switch (error.code()) {
    case base::ErrorCode::kPermission:
      return false;
    case base::ErrorCode::kNotFound:  // looked for after the right
      return true;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string lacks(std::string_view side, const iggy::Client& client, Access access, std::string_view object) {
  const std::string& name = client.server().user;
  return fmt::format("{} user {} lacks {}{}{}", side, name.empty() ? "of the token" : fmt::format("`{}`", name),
                     iggy::name_of(access), object.empty() ? "" : " on ", object);
}

base::Error name_right(base::Error error, std::string_view side, const iggy::Client& client, Access access,
                       const base::TopicName& topic) {
  if (error.code() != base::ErrorCode::kPermission) return error;
  base::Error named(base::ErrorCode::kPermission, error.operation(), topic.to_string(),
                    lacks(side, client, access, topic.to_string()),
                    "a right that was given on the topic itself is lost when the topic is re-created");
  return named.with_status(error.wire_status());
}

base::Task<Rights> Rights::look(iggy::Client& client) {
  Rights rights(client);
  auto asking_me = client.call(iggy::GetMe{});
  auto me = co_await std::move(asking_me);
  const auto* info = me ? std::get_if<iggy::ClientInfo>(&*me) : nullptr;
  if (info == nullptr || info->user_id == iggy::kNoUser) co_return rights;
  auto asking = client.call(iggy::GetUser{info->user_id});
  auto user = co_await std::move(asking);
  const auto* details = user ? std::get_if<iggy::UserDetails>(&*user) : nullptr;
  if (details != nullptr) rights.permissions_ = details->permissions.value_or(iggy::Permissions{});
  co_return rights;
}

base::Task<const Rights::Numbers*> Rights::numbers_of(std::string stream) {
  const auto [at, is_new] = streams_.try_emplace(stream);
  Numbers& numbers = at->second;
  if (!is_new) co_return &numbers;
  auto asking = client_->call(iggy::GetStream{std::move(stream)});
  auto reply = co_await std::move(asking);
  numbers.exists =
      reply ? std::holds_alternative<iggy::StreamDetails>(*reply) : reply.error().code() != base::ErrorCode::kNotFound;
  if (const auto* details = reply ? std::get_if<iggy::StreamDetails>(&*reply) : nullptr) {
    numbers.stream = details->stream.id;
    for (const iggy::Topic& topic : details->topics) numbers.topics.emplace(topic.name, topic.id);
  }
  co_return &numbers;
}

base::Task<std::optional<bool>> Rights::have(Access access, base::TopicName object) {
  if (permissions_) {
    if (iggy::allowed(*permissions_, access)) co_return true;
    if (object.stream.empty()) co_return false;
    auto looking = numbers_of(object.stream);
    const Numbers* numbers = co_await std::move(looking);
    if (!numbers->exists) co_return false;  // nothing is granted on what is not there
    if (numbers->stream) {
      const auto topic = numbers->topics.find(object.topic);
      co_return iggy::allowed(*permissions_, access, numbers->stream,
                              topic == numbers->topics.end() ? std::nullopt : std::optional(topic->second));
    }
  }
  auto trying = try_it(access, std::move(object));
  co_return co_await std::move(trying);
}

base::Task<std::optional<bool>> Rights::try_it(Access access, base::TopicName object) {
  iggy::Request request;
  switch (access) {
    case Access::kReadServers:
      request = iggy::GetClients{};
      break;
    case Access::kListStreams:
      request = iggy::GetStreams{};
      break;
    case Access::kReadStream:
      request = iggy::GetStream{object.stream};
      break;
    case Access::kListTopics:
      request = iggy::GetTopics{object.stream};
      break;
    case Access::kReadTopic:
      request = iggy::GetTopic{object.stream, object.topic};
      break;
    case Access::kPoll: {
      iggy::PollMessages poll;
      poll.consumer.id = std::string("iggy-replicate");
      poll.stream = object.stream;
      poll.topic = object.topic;
      poll.partition = 0;
      poll.strategy = {iggy::PollStrategy::Kind::kLast, 0};
      poll.count = 1;
      request = std::move(poll);
      break;
    }
    case Access::kSend: {
      base::Record record;
      const std::byte payload[1] = {};
      record.body = payload;
      record.payload_length = 1;
      auto frame = iggy::encode_send(client_->server().dialect, object, kNoPartition, std::span(&record, 1));
      if (!frame) co_return std::nullopt;
      auto sending = client_->send(object, kNoPartition, std::move(*frame), 1, 0, nullptr);
      auto sent = co_await std::move(sending);
      if (sent) co_return true;
      co_return verdict(sent.error());
    }
    default:
      co_return std::nullopt;
  }
  auto asking = client_->call(std::move(request));
  auto reply = co_await std::move(asking);
  if (reply) co_return true;
  co_return verdict(reply.error());
}

}  // namespace replicator
