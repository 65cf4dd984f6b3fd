// Every request but messages and logins, one function each.
#include <algorithm>

#include "base/check.h"
#include "integration/sandbox/broker.h"
#include "integration/sandbox/contains.h"
#include "integration/sandbox/topic_options.h"

namespace sandbox {

struct Handlers {
  Broker& broker;
  Caller& caller;
  using Answer = Outcome<iggy::Reply>;

  bool is_vsr() const { return broker.profile().dialect != iggy::Dialect::kLegacy; }
  bool may(Access access, std::optional<std::uint32_t> stream = {}, std::optional<std::uint32_t> topic = {}) const {
    return broker.may(caller, access, stream, topic);
  }

  // The stream or topic of a request, and the right to do something with it.
  Outcome<StreamState*> stream(const iggy::Ident& ident, Access access) {
    StreamState* found = broker.find_stream(ident);
    if (found == nullptr) return refuse(status::kStreamNotFound);
    if (!may(access, found->id)) return refuse(status::kUnauthorized);
    return found;
  }
  struct Place {
    StreamState* stream;
    TopicState* topic;
  };
  Outcome<Place> topic(const iggy::Ident& stream_ident, const iggy::Ident& topic_ident, Access access) {
    StreamState* parent = broker.find_stream(stream_ident);
    if (parent == nullptr) return refuse(status::kStreamNotFound);
    TopicState* found = broker.find_topic(*parent, topic_ident);
    if (found == nullptr) return refuse(status::kTopicNotFound);
    if (!may(access, parent->id, found->id)) return refuse(status::kUnauthorized);
    return Place{parent, found};
  }
  struct GroupPlace {
    StreamState* stream;
    TopicState* topic;
    GroupState* group;
  };
  Outcome<GroupPlace> group(const iggy::Ident& stream_ident, const iggy::Ident& topic_ident,
                            const iggy::Ident& group_ident) {
    const Outcome<Place> place = topic(stream_ident, topic_ident, Access::kReadTopic);
    if (!place) return refuse(place.error());
    GroupState* found = broker.find_group(*place->topic, group_ident);
    if (found == nullptr) return refuse(status::kGroupNotFound);
    return GroupPlace{place->stream, place->topic, found};
  }
  // A get of something missing is an empty success; other refusals stay.
  static Answer missing_is_empty(std::uint32_t code) {
    if (code == status::kStreamNotFound || code == status::kTopicNotFound || code == status::kGroupNotFound)
      return iggy::NotThere{};
    return refuse(code);
  }

  // --- system

  Answer operator()(const iggy::Ping&) { return iggy::Done{}; }
  Answer operator()(const iggy::GetStats&) {
    if (!may(Access::kReadServers)) return refuse(status::kUnauthorized);
    return broker.stats();
  }
  Answer operator()(const iggy::DescribeOptions& r) {
    return iggy::OptionDescriptions{describe_options(broker.profile(), r.scope)};
  }
  Answer operator()(const iggy::GetMe&) { return broker.info_of(caller, true); }
  Answer operator()(const iggy::GetClient& r) {
    if (r.client_id == 0) return refuse(status::kInvalidClientId);
    if (!may(Access::kReadServers)) return refuse(status::kUnauthorized);
    for (const Caller* other : broker.callers())
      if (other->listed && other->client_id == r.client_id) return broker.info_of(*other, true);
    return iggy::NotThere{};
  }
  Answer operator()(const iggy::GetClients&) {
    if (!may(Access::kReadServers)) return refuse(status::kUnauthorized);
    iggy::Clients out;
    for (const Caller* other : broker.callers())
      if (other->listed && other->node == caller.node) out.clients.push_back(broker.info_of(*other, false));
    std::ranges::sort(out.clients, {}, &iggy::ClientInfo::client_id);
    return out;
  }

  // --- users

  static iggy::User user_of(const UserState& user) {
    return {.id = user.id, .created_at = user.created_at, .status = user.status, .name = user.name, .options = {}};
  }
  Answer operator()(const iggy::GetUser& r) {
    const UserState* user = broker.find_user(r.user);
    if (user == nullptr) return iggy::NotThere{};
    if (user->id != caller.user && !may(Access::kReadUsers)) return refuse(status::kUnauthorized);
    return iggy::UserDetails{user_of(*user), user->permissions};
  }
  Answer operator()(const iggy::GetUsers&) {
    if (!may(Access::kReadUsers)) return refuse(status::kUnauthorized);
    iggy::Users out;
    for (const auto& [id, user] : broker.users_) out.users.push_back(user_of(user));
    return out;
  }
  Answer operator()(const iggy::CreateUser& r) {
    if (!may(Access::kManageUsers)) return refuse(status::kUnauthorized);
    if (r.name.size() < 3 || r.name.size() > 50) return refuse(status::kInvalidUsername);
    if (r.password.size() < 3 || r.password.size() > 100) return refuse(status::kInvalidPassword);
    if (broker.find_user(r.name) != nullptr) return refuse(status::kUserExists);
    const std::uint32_t id = broker.user_ids_.take();
    UserState& user = broker.users_[id];
    user = {.id = id,
            .created_at = broker.now(),
            .status = r.status,
            .name = r.name,
            .password = r.password,
            .permissions = r.permissions,
            .tokens = {}};
    broker.store(user);
    return iggy::UserDetails{user_of(user), user.permissions};
  }
  Answer operator()(const iggy::DeleteUser& r) {
    if (!may(Access::kManageUsers)) return refuse(status::kUnauthorized);
    const UserState* user = broker.find_user(r.user);
    if (user == nullptr) return refuse(status::kNotFound);
    if (user->id == 0) return refuse(status::kCannotDeleteUser);
    const std::uint32_t id = user->id;
    for (Caller* other : broker.callers_)
      if (other->user == id) broker.logout(*other);
    broker.user_ids_.release(id);
    broker.journal_.erase("user/" + std::to_string(id));
    broker.users_.erase(id);
    return iggy::Done{};
  }
  Answer operator()(const iggy::UpdateUser& r) {
    if (!may(Access::kManageUsers)) return refuse(status::kUnauthorized);
    UserState* user = broker.find_user(r.user);
    if (user == nullptr) return refuse(status::kNotFound);
    if (r.name) {
      if (const UserState* other = broker.find_user(*r.name); other != nullptr && other != user)
        return refuse(status::kUserExists);
      user->name = *r.name;
    }
    if (r.status) user->status = *r.status;
    broker.store(*user);
    return iggy::Done{};
  }
  Answer operator()(const iggy::UpdatePermissions& r) {
    if (!may(Access::kManageUsers)) return refuse(status::kUnauthorized);
    UserState* user = broker.find_user(r.user);
    if (user == nullptr) return refuse(status::kNotFound);
    user->permissions = r.permissions;
    broker.store(*user);
    return iggy::Done{};
  }
  Answer operator()(const iggy::ChangePassword& r) {
    UserState* user = broker.find_user(r.user);
    if (user == nullptr) return refuse(status::kNotFound);
    if (user->id != caller.user && !may(Access::kManageUsers)) return refuse(status::kUnauthorized);
    if (user->password != r.current) return refuse(status::kInvalidCredentials);
    if (r.fresh.size() < 3 || r.fresh.size() > 100) return refuse(status::kInvalidPassword);
    user->password = r.fresh;
    broker.store(*user);
    return iggy::Done{};
  }
  Answer operator()(const iggy::GetTokens&) {
    iggy::Tokens out;
    for (const TokenState& token : broker.users_.at(*caller.user).tokens)
      out.tokens.push_back({token.name, token.expiry_at});
    return out;
  }
  Answer operator()(const iggy::CreateToken& r) {
    if (r.name.size() < 3 || r.name.size() > 30) return refuse(status::kTokenName);
    UserState& user = broker.users_.at(*caller.user);
    if (contains(user.tokens, r.name, &TokenState::name)) return refuse(status::kTokenExists);
    const bool forever = r.expiry == 0 || r.expiry == iggy::kNeverExpire;
    user.tokens.push_back({r.name, broker.random_text(68), forever ? 0 : broker.now() + r.expiry});
    broker.store(user);
    return iggy::TokenCreated{user.tokens.back().token};
  }
  Answer operator()(const iggy::DeleteToken& r) {
    UserState& user = broker.users_.at(*caller.user);
    if (std::erase_if(user.tokens, [&](const TokenState& token) { return token.name == r.name; }) == 0)
      return refuse(status::kNotFound);
    broker.store(user);
    return iggy::Done{};
  }

  // --- streams

  Answer operator()(const iggy::GetStream& r) {
    const Outcome<StreamState*> found = stream(r.stream, Access::kReadStream);
    if (!found) return missing_is_empty(found.error());
    iggy::StreamDetails out{.stream = broker.describe(**found), .topics = {}};
    for (const auto& [id, topic] : (*found)->topics) out.topics.push_back(broker.describe(topic));
    return out;
  }
  Answer operator()(const iggy::GetStreams&) {
    if (!may(Access::kListStreams)) return refuse(status::kUnauthorized);
    iggy::Streams out;
    for (const auto& [id, stream] : broker.streams_) out.streams.push_back(broker.describe(stream));
    return out;
  }
  Answer operator()(const iggy::CreateStream& r) {
    if (!may(Access::kManageStreams)) return refuse(status::kUnauthorized);
    if (!r.options.empty()) return refuse(status::kOptionKey);
    if (broker.find_stream(r.name) != nullptr) return refuse(status::kStreamExists);
    const std::uint32_t id = broker.stream_ids_.take();
    StreamState& stream = broker.streams_[id];
    stream.id = id;
    stream.created_at = broker.now();
    stream.name = r.name;
    stream.topic_ids = IdPool(broker.profile().lowest_id_first);
    broker.store(stream);
    return iggy::StreamDetails{.stream = broker.describe(stream), .topics = {}};
  }
  Answer operator()(const iggy::UpdateStream& r) {
    const Outcome<StreamState*> found = stream(r.stream, Access::kManageStream);
    if (!found) return refuse(found.error());
    if (!r.options.empty()) return refuse(status::kOptionKey);
    if (const StreamState* other = broker.find_stream(r.name); other != nullptr && other != *found)
      return refuse(status::kStreamExists);
    (*found)->name = r.name;
    broker.store(**found);
    return iggy::Done{};
  }
  Answer operator()(const iggy::DeleteStream& r) {
    const Outcome<StreamState*> found = stream(r.stream, Access::kManageStream);
    if (!found) return refuse(found.error());
    broker.drop_stream((*found)->id);
    return iggy::Done{};
  }
  Answer operator()(const iggy::PurgeStream& r) {
    const Outcome<StreamState*> found = stream(r.stream, Access::kManageStream);
    if (!found) return refuse(found.error());
    for (auto& [id, topic] : (*found)->topics) broker.purge(topic);
    return iggy::Done{};
  }

  // --- topics, partitions, segments

  Answer operator()(const iggy::GetTopic& r) {
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kReadTopic);
    if (!place) return missing_is_empty(place.error());
    return broker.details(*place->topic);
  }
  Answer operator()(const iggy::GetTopics& r) {
    const Outcome<StreamState*> found = stream(r.stream, Access::kListTopics);
    iggy::Topics out;
    if (!found && found.error() == status::kStreamNotFound) return out;
    if (!found) return refuse(found.error());
    for (const auto& [id, topic] : (*found)->topics) out.topics.push_back(broker.describe(topic));
    return out;
  }
  Answer operator()(const iggy::CreateTopic& r) {
    // vsr looks at the request before it is replicated, so its refusals come first there.
    iggy::TopicSettings settings = r.settings;
    std::vector<iggy::Option> derived;
    LogSettings log = broker.options_.log;
    if (r.partitions_count > 1000) {
      if (is_vsr()) return refuse(status::kTooManyPartitions);
    }
    if (is_vsr()) {
      Outcome<ResolvedOptions> resolved = resolve_topic_options(broker.profile(), r.settings);
      if (!resolved) return refuse(resolved.error());
      settings = std::move(resolved->settings);
      derived = std::move(resolved->derived);
      log = resolved->log;
    }
    const Outcome<StreamState*> parent = stream(r.stream, Access::kManageTopics);
    if (!parent) return refuse(parent.error());
    if (r.partitions_count > 1000) return refuse(status::kTooManyPartitions);
    if (!is_vsr()) {
      if (settings.message_expiry == 0) settings.message_expiry = iggy::kNeverExpire;
      if (settings.max_topic_size == 0) settings.max_topic_size = iggy::kUnlimitedSize;
      if (settings.replication_factor == 0) settings.replication_factor = 1;
      if (settings.max_topic_size < log.segment_size) return refuse(status::kTopicSize);
    }
    if (broker.find_topic(**parent, r.name) != nullptr) return refuse(status::kTopicExists);
    iggy::TopicDetails out = broker.details(
        broker.add_topic(**parent, r.name, r.partitions_count, std::move(settings), std::move(derived), log));
    // The reply is written before the partitions are built.
    for (iggy::Partition& partition : out.partitions) partition.segments_count = 0;
    return out;
  }
  Answer operator()(const iggy::UpdateTopic& r) {
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kManageTopic);
    if (!place) return refuse(place.error());
    if (const TopicState* other = broker.find_topic(*place->stream, r.name); other != nullptr && other != place->topic)
      return refuse(status::kTopicExists);
    if (is_vsr()) {
      const Outcome<void> patched =
          patch_topic_options(broker.profile(), r.patch, place->topic->settings, place->topic->derived);
      if (!patched) return refuse(patched.error());
    } else {
      place->topic->settings = r.settings;
    }
    place->topic->name = r.name;
    broker.store(*place->stream, *place->topic);
    return iggy::Done{};
  }
  Answer operator()(const iggy::DeleteTopic& r) {
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kManageTopic);
    if (!place) return refuse(place.error());
    broker.drop_topic(*place->stream, place->topic->id);
    return iggy::Done{};
  }
  Answer operator()(const iggy::PurgeTopic& r) {
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kManageTopic);
    if (!place) return refuse(place.error());
    broker.purge(*place->topic);
    return iggy::Done{};
  }
  Answer operator()(const iggy::CreatePartitions& r) {
    if (is_vsr() && (r.count == 0 || r.count > 1000)) return refuse(status::kTooManyPartitions);
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kManageTopic);
    if (!place) return refuse(place.error());
    if (r.count == 0 || r.count > 1000) return refuse(status::kTooManyPartitions);
    broker.add_partitions(*place->stream, *place->topic, r.count, broker.now());
    return iggy::Done{};
  }
  Answer operator()(const iggy::DeletePartitions& r) {
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kManageTopic);
    if (!place) return refuse(place.error());
    if (r.count == 0) return refuse(status::kTooManyPartitions);
    if (r.count > place->topic->partitions.size()) return refuse(status::kPartitionsCount);
    for (std::uint32_t i = 0; i < r.count; ++i) {
      if (is_vsr()) {  // the topic's own counters keep what the partition held
        place->topic->deleted_bytes += place->topic->partitions.back()->log.size_bytes();
        place->topic->deleted_messages += place->topic->partitions.back()->log.messages();
      }
      broker.drop_partition(*place->topic);
    }
    broker.add_partitions(*place->stream, *place->topic, 0, 0);  // rebalance and store
    return iggy::Done{};
  }
  Answer operator()(const iggy::DeleteSegments& r) {
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kManageTopic);
    if (!place) return refuse(place.error());
    if (r.partition >= place->topic->partitions.size()) return refuse(status::kPartitionNotFound);
    PartitionState& partition = *place->topic->partitions[r.partition];
    partition.log.delete_segments(r.count, broker.barrier(partition));
    broker.store(partition);
    return iggy::Done{};
  }
  Answer operator()(const iggy::FlushUnsaved& r) {
    if (is_vsr()) return refuse(status::kFeatureUnavailable);
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kSend);
    if (!place) return refuse(place.error());
    if (r.partition >= place->topic->partitions.size()) return refuse(status::kPartitionNotFound);
    if (!place->topic->partitions[r.partition]->log.save()) return refuse(status::kWriteFailed);
    return iggy::Done{};
  }

  // --- consumer offsets

  struct OffsetPlace {
    TopicState* topic;
    std::uint32_t number;
    PartitionState* partition;
    OffsetKey key;
  };
  Outcome<OffsetPlace> offset_place(const iggy::Consumer& consumer, const iggy::Ident& stream_ident,
                                    const iggy::Ident& topic_ident, const std::optional<std::uint32_t>& wanted) {
    const Outcome<Place> place = topic(stream_ident, topic_ident, Access::kPoll);
    if (!place) return refuse(place.error());
    const Outcome<OffsetKey> key = broker.offset_key(*place->topic, consumer);
    if (!key) return refuse(key.error());
    const std::uint32_t number = wanted.value_or(0);
    if (number >= place->topic->partitions.size()) return refuse(status::kPartitionNotFound);
    return OffsetPlace{place->topic, number, place->topic->partitions[number].get(), *key};
  }
  Answer operator()(const iggy::GetConsumerOffset& r) {
    const Outcome<OffsetPlace> place = offset_place(r.consumer, r.stream, r.topic, r.partition);
    if (!place && place.error() == status::kPartitionNotFound && !is_vsr()) return iggy::NotThere{};
    if (!place) return missing_is_empty(place.error());
    const auto stored = place->partition->offsets.find(place->key);
    if (stored == place->partition->offsets.end()) return iggy::NotThere{};
    return iggy::ConsumerOffset{.partition = place->number,
                                .current_offset = place->partition->log.current_offset(),
                                .stored_offset = stored->second};
  }
  // On vsr every missing target of an offset write is 20.
  std::uint32_t write_refusal(std::uint32_t code) const {
    return is_vsr() && code != status::kUnauthorized ? status::kNotFound : code;
  }
  Answer operator()(const iggy::StoreConsumerOffset& r) {
    const Outcome<OffsetPlace> place = offset_place(r.consumer, r.stream, r.topic, r.partition);
    if (!place) return refuse(write_refusal(place.error()));
    const Outcome<void> owner = broker.check_owner(caller, *place->topic, r.consumer, place->key, place->number);
    if (!owner) return refuse(owner.error());
    const PartitionLog& log = place->partition->log;
    if (log.next_offset() == 0 || r.offset > log.current_offset()) return refuse(status::kInvalidOffset);
    broker.store_offset(*place->partition, place->key, r.offset);
    return iggy::Done{};
  }
  Answer operator()(const iggy::DeleteConsumerOffset& r) {
    const Outcome<OffsetPlace> place = offset_place(r.consumer, r.stream, r.topic, r.partition);
    if (!place) return refuse(write_refusal(place.error()));
    const Outcome<void> owner = broker.check_owner(caller, *place->topic, r.consumer, place->key, place->number);
    if (!owner) return refuse(owner.error());
    if (!place->partition->offsets.contains(place->key)) return refuse(status::kOffsetNotStored);
    broker.erase_offset(*place->partition, place->key);
    return iggy::Done{};
  }

  // --- groups

  static iggy::Group group_of(const TopicState& topic, const GroupState& group) {
    return {.id = group.id,
            .partitions_count = static_cast<std::uint32_t>(topic.partitions.size()),
            .members_count = static_cast<std::uint32_t>(group.members.size()),
            .name = group.name};
  }
  Answer operator()(const iggy::GetGroup& r) {
    const Outcome<GroupPlace> place = group(r.stream, r.topic, r.group);
    if (!place) return missing_is_empty(place.error());
    iggy::GroupDetails out{.group = group_of(*place->topic, *place->group), .members = {}};
    for (const GroupMember& member : place->group->members) out.members.push_back({member.id, member.partitions});
    return out;
  }
  Answer operator()(const iggy::GetGroups& r) {
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kReadTopic);
    iggy::Groups out;
    if (!place && place.error() != status::kUnauthorized) return out;
    if (!place) return refuse(place.error());
    for (const auto& [id, group] : place->topic->groups) out.groups.push_back(group_of(*place->topic, group));
    return out;
  }
  Answer operator()(const iggy::CreateGroup& r) {
    const Outcome<Place> place = topic(r.stream, r.topic, Access::kReadTopic);
    if (!place) return refuse(place.error());
    if (broker.find_group(*place->topic, r.name) != nullptr) return refuse(status::kGroupExists);
    const std::uint32_t id = place->topic->group_ids.take();
    GroupState& group = place->topic->groups[id];
    group.id = id;
    group.name = r.name;
    broker.store(*place->stream, *place->topic, group);
    return iggy::GroupDetails{.group = group_of(*place->topic, group), .members = {}};
  }
  Answer operator()(const iggy::DeleteGroup& r) {
    const Outcome<GroupPlace> place = group(r.stream, r.topic, r.group);
    if (!place) return refuse(place.error());
    broker.drop_group(*place->stream, *place->topic, *place->group);
    return iggy::Done{};
  }
  Answer operator()(const iggy::JoinGroup& r) {
    const Outcome<GroupPlace> place = group(r.stream, r.topic, r.group);
    if (!place) return refuse(place.error());
    broker.join(caller, *place->stream, *place->topic, *place->group);
    return iggy::Done{};
  }
  Answer operator()(const iggy::LeaveGroup& r) {
    const Outcome<GroupPlace> place = group(r.stream, r.topic, r.group);
    if (!place) return refuse(place.error());
    if (!broker.leave(caller, *place->stream, *place->topic, *place->group)) return refuse(status::kNotMember);
    return iggy::Done{};
  }
  Answer operator()(const iggy::SyncGroup& r) {
    const Outcome<GroupPlace> place = group(r.stream, r.topic, r.group);
    if (!place) return missing_is_empty(place.error());
    const auto member = std::ranges::find(place->group->members, &caller, &GroupMember::caller);
    if (member == place->group->members.end()) return iggy::NotThere{};
    return iggy::GroupAssignment{.generation = place->group->generation, .partitions = member->partitions};
  }

  // Sessions answer these themselves, or this server has no such command.
  template <class Other>
  Answer operator()(const Other&) {
    return refuse(status::kInvalidCommand);
  }
};

Outcome<iggy::Reply> Broker::handle(Caller& caller, const iggy::Request& request) {
  base::check(caller.user.has_value(), "sessions ask only when logged in");
  return std::visit(Handlers{*this, caller}, request);
}

}  // namespace sandbox
