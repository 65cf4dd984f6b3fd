// Logins, rights, connections, statistics.
#include <algorithm>
#include <charconv>

#include <sys/resource.h>
#include <unistd.h>

#include "integration/sandbox/broker.h"

namespace sandbox {

void Broker::connect(Caller& caller) { callers_.push_back(&caller); }

void Broker::disconnect(Caller& caller) {
  logout(caller);
  std::erase(callers_, &caller);
}

void Broker::logout(Caller& caller) {
  const auto groups = caller.groups;
  for (const iggy::ClientInfo::Membership& in : groups) {
    StreamState& stream = streams_.at(in.stream);
    TopicState& topic = stream.topics.at(in.topic);
    leave(caller, stream, topic, topic.groups.at(in.group));
  }
  caller.user.reset();
}

Outcome<std::uint32_t> Broker::login(Caller& caller, const iggy::LoginUser& request) {
  if (request.username.size() < 3 || request.username.size() > 50) return refuse(status::kInvalidUsername);
  if (request.password.size() < 3 || request.password.size() > 100) return refuse(status::kInvalidPassword);
  const UserState* user = find_user(request.username);
  if (user == nullptr || user->password != request.password) return refuse(status::kInvalidCredentials);
  if (user->status != 1) return refuse(status::kUserInactive);
  caller.user = user->id;
  return user->id;
}

Outcome<std::uint32_t> Broker::login(Caller& caller, const iggy::LoginToken& request) {
  for (const auto& [id, user] : users_)
    for (const TokenState& token : user.tokens) {
      if (token.token != request.token) continue;
      if (token.expiry_at != 0 && token.expiry_at <= now()) return refuse(status::kTokenExpired);
      if (user.status != 1) return refuse(status::kUserInactive);
      caller.user = id;
      return id;
    }
  return refuse(status::kNotFound);
}

bool Broker::may(const Caller& caller, Access access, std::optional<std::uint32_t> stream,
                 std::optional<std::uint32_t> topic) const {
  const auto user = caller.user ? users_.find(*caller.user) : users_.end();
  return user != users_.end() && user->second.permissions && allowed(*user->second.permissions, access, stream, topic);
}

UserState* Broker::find_user(const iggy::Ident& ident) {
  if (const auto* id = std::get_if<std::uint32_t>(&ident)) {
    const auto at = users_.find(*id);
    return at == users_.end() ? nullptr : &at->second;
  }
  for (auto& [id, user] : users_)
    if (user.name == std::get<std::string>(ident)) return &user;
  return nullptr;
}

iggy::ClientInfo Broker::info_of(const Caller& caller, bool with_groups) const {
  iggy::ClientInfo out{.client_id = caller.client_id,
                       .user_id = caller.user.value_or(iggy::kNoUser),
                       .address = caller.address,
                       .groups_count = static_cast<std::uint32_t>(caller.groups.size()),
                       .groups = {}};
  if (with_groups) out.groups = caller.groups;
  return out;
}

iggy::Stats Broker::stats() const {
  iggy::Stats out;
  out.process_id = static_cast<std::uint32_t>(::getpid());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  out.memory_usage = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  out.start_time = started_at_;
  out.run_time = now() - started_at_;
  out.streams_count = static_cast<std::uint32_t>(streams_.size());
  for (const auto& [stream_id, stream] : streams_) {
    out.topics_count += static_cast<std::uint32_t>(stream.topics.size());
    for (const auto& [topic_id, topic] : stream.topics) {
      out.groups_count += static_cast<std::uint32_t>(topic.groups.size());
      out.partitions_count += static_cast<std::uint32_t>(topic.partitions.size());
      for (const auto& partition : topic.partitions) {
        out.segments_count += partition->log.segments();
        out.messages_count += partition->log.messages();
        out.messages_size_bytes += partition->log.size_bytes();
      }
    }
  }
  out.clients_count =
      static_cast<std::uint32_t>(std::ranges::count_if(callers_, [](const Caller* caller) { return caller->listed; }));
  out.hostname = "iggy-sandbox";
  out.os_name = "Linux";
  out.server_version = std::string(options_.profile.server);
  out.server_semver = options_.profile.dialect == iggy::Dialect::kLegacy ? 8000 : 9000;
  out.threads_count = 1;
  return out;
}

}  // namespace sandbox
