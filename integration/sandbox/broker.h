// The broker itself: streams, topics, partitions, users, groups, offsets. Knows no sockets and no frames; what differs
// per server version comes from the Profile. Reading order: broker_state.h, this, broker.cc, broker_messages.cc,
// broker_groups.cc, broker_users.cc, broker_store.cc.
//
// Affinity: one thread. With a data folder it loads in the constructor; what was acked but not saved is gone after a
// kill, exactly as on the real servers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "iggy/replies.h"
#include "iggy/requests.h"
#include "iggy/rights.h"
#include "integration/sandbox/broker_state.h"
#include "integration/sandbox/journal.h"
#include "integration/sandbox/outcome.h"
#include "integration/sandbox/profile.h"

namespace sandbox {

using iggy::Access;

struct BrokerOptions {
  Profile profile;
  std::filesystem::path data;  // empty = in memory
  std::string username = "iggy", password = "iggy";
  // Server-wide settings of 0.8.0; on vsr the topic's own options win.
  LogSettings log;
  std::function<std::uint64_t()> wall_micros;  // null = the system's
  std::uint64_t seed = 0;                      // of generated ids and tokens; 0 = random
};

struct PollResult {
  std::uint32_t partition = 0;
  std::uint64_t current_offset = 0;
  std::uint32_t count = 0;
  std::vector<Chunk> chunks;
};

struct SendResult {
  std::uint32_t stream = 0, topic = 0, partition = 0;
  std::uint64_t base_offset = 0;
  bool duplicate = false;  // recognised as sent before: nothing was appended
};

class Broker {
 public:
  // Throws std::system_error when the data folder can't be used.
  explicit Broker(BrokerOptions options);
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  const Profile& profile() const { return options_.profile; }
  std::uint64_t now() const;

  // --- connections and logins
  void connect(Caller& caller);
  void disconnect(Caller& caller);  // leaves its groups
  Outcome<std::uint32_t> login(Caller& caller, const iggy::LoginUser& request);
  Outcome<std::uint32_t> login(Caller& caller, const iggy::LoginToken& request);
  void logout(Caller& caller);

  // --- messages
  Outcome<PollResult> poll(Caller& caller, const iggy::PollMessages& request);
  // `frame` holds what the request's batch views into; it becomes part of the log, rewritten in place.
  // `number`: vsr request number for the dedup window, else 0.
  Outcome<SendResult> send(Caller& caller, const iggy::SendMessages& request, std::shared_ptr<base::Buffer> frame,
                           std::uint64_t number);

  // Everything else but ping, login, logout. REQUIRES: the caller is logged in.
  Outcome<iggy::Reply> handle(Caller& caller, const iggy::Request& request);
  // What the server checks before it replicates an offset write on vsr: a repeated number is success without effect.
  bool is_duplicate(const Caller& caller, PartitionState& partition, std::uint64_t number) const;
  void remember(const Caller& caller, PartitionState& partition, std::uint64_t number);

  // --- time and faults
  // Saver and cleaner; call about once a second.
  void tick();
  void clean();  // retention now, whatever the interval
  void save_all(bool clean_stop);
  void set_disk_full(bool full);
  // Writers of 0.9.0-edge.5 after a failed write: no answer to sends and logins until the next start.
  bool writer_is_dead() const { return writer_dead_; }

  // --- looking around
  StreamState* find_stream(const iggy::Ident& ident);
  TopicState* find_topic(StreamState& stream, const iggy::Ident& ident);
  Outcome<TopicState*> topic_of(const iggy::Ident& stream, const iggy::Ident& topic);
  Outcome<PartitionState*> partition_of(const iggy::Ident& stream, const iggy::Ident& topic, std::uint32_t partition);
  const std::map<std::uint32_t, StreamState>& streams() const { return streams_; }
  const std::vector<Caller*>& callers() const { return callers_; }

  // --- operations that the control port shares with requests
  void purge(TopicState& topic);
  Outcome<void> recreate(StreamState& stream, const std::string& topic_name);
  void lose_tail(PartitionState& partition, std::uint64_t count);
  void jump(PartitionState& partition, std::uint64_t count);
  void trim(PartitionState& partition, std::uint64_t before);
  void expire(TopicState& topic);

 private:
  friend struct Handlers;

  // broker.cc
  TopicState& add_topic(StreamState& stream, const std::string& name, std::uint32_t partitions,
                        iggy::TopicSettings settings, std::vector<iggy::Option> derived, LogSettings log);
  void add_partitions(StreamState& stream, TopicState& topic, std::uint32_t count, std::uint64_t created_at);
  void drop_partition(TopicState& topic);
  void drop_topic(StreamState& stream, std::uint32_t id);
  void drop_stream(std::uint32_t id);
  std::unique_ptr<PartitionState> make_partition(std::uint64_t uid, std::uint64_t created_at, const LogSettings& log);
  std::filesystem::path log_path(std::uint64_t uid) const;
  std::uint64_t barrier(const PartitionState& partition) const;
  void clean(TopicState& topic);
  iggy::Stream describe(const StreamState& stream) const;
  iggy::Topic describe(const TopicState& topic) const;
  iggy::TopicDetails details(const TopicState& topic) const;

  // broker_messages.cc
  Outcome<std::uint32_t> choose_partition(TopicState& topic, const iggy::Partitioning& partitioning);
  Chunk stamp(PartitionState& partition, std::uint32_t id, const iggy::SendMessages& request,
              std::shared_ptr<base::Buffer> frame);
  // The number under which a consumer's offset is kept; 5000 for a missing group.
  Outcome<OffsetKey> offset_key(TopicState& topic, const iggy::Consumer& consumer);
  Outcome<std::uint32_t> member_partition(Caller& caller, TopicState& topic, std::uint32_t group,
                                          std::optional<std::uint32_t> wanted);
  Outcome<void> check_owner(Caller& caller, TopicState& topic, const iggy::Consumer& consumer, OffsetKey key,
                            std::uint32_t partition);

  // broker_groups.cc
  GroupState* find_group(TopicState& topic, const iggy::Ident& ident);
  void rebalance(TopicState& topic, GroupState& group);
  void join(Caller& caller, const StreamState& stream, TopicState& topic, GroupState& group);
  bool leave(Caller& caller, const StreamState& stream, TopicState& topic, GroupState& group);
  void drop_group(const StreamState& stream, TopicState& topic, GroupState& group);

  // broker_users.cc
  bool may(const Caller& caller, Access access, std::optional<std::uint32_t> stream = {},
           std::optional<std::uint32_t> topic = {}) const;
  UserState* find_user(const iggy::Ident& ident);
  iggy::ClientInfo info_of(const Caller& caller, bool with_groups) const;
  iggy::Stats stats() const;
  std::string random_text(std::size_t length);

  // broker_store.cc
  void load();
  void shift_created_at();
  void store(const StreamState& stream);
  void store(const StreamState& stream, const TopicState& topic);
  void store(const StreamState& stream, const TopicState& topic, const GroupState& group);
  void store(const PartitionState& partition);
  void store(const UserState& user);
  void erase_partition(const PartitionState& partition);
  void store_offset(PartitionState& partition, OffsetKey key, std::uint64_t offset);
  void erase_offset(PartitionState& partition, OffsetKey key);
  static std::string key_of(const StreamState& stream);
  static std::string key_of(const StreamState& stream, const TopicState& topic);
  static std::string key_of(const StreamState& stream, const TopicState& topic, const GroupState& group);

  BrokerOptions options_;
  Journal journal_;
  std::map<std::uint32_t, StreamState> streams_;
  IdPool stream_ids_;
  std::map<std::uint32_t, UserState> users_;
  IdPool user_ids_;
  std::vector<Caller*> callers_;
  std::uint64_t next_uid_ = 1;  // of partition logs
  std::uint64_t started_at_ = 0;
  std::uint64_t last_saved_at_ = 0, last_cleaned_at_ = 0;
  bool disk_full_ = false;
  bool writer_dead_ = false;
  std::uint64_t random_state_;
};

}  // namespace sandbox
