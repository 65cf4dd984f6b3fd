// What a broker holds: streams, topics, partitions, groups, users, and who is connected.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iggy/model.h"
#include "integration/sandbox/partition_log.h"

namespace sandbox {

// Numbers of streams, topics, users: the next one, or a freed one as the profile says.
class IdPool {
 public:
  explicit IdPool(bool lowest_first = false) : lowest_first_(lowest_first) {}
  std::uint32_t take();
  void release(std::uint32_t id) { free_.push_back(id); }
  void mark_used(std::uint32_t id);  // while loading: ids between become free

 private:
  bool lowest_first_;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> free_;
};

// One connection, as far as the broker knows it. Owned by the session; registered with connect() until disconnect().
struct Caller {
  std::uint32_t client_id = 0;  // legacy: XXH32 of the address; vsr: a small counter
  std::string address;          // "ip:port"
  std::optional<std::uint32_t> user;
  base::MessageId vsr_client;  // vsr: bound at login
  bool listed = false;         // shown in get_clients
  std::size_t node = 0;        // that it is connected to: get_clients shows those of the same one
  std::vector<iggy::ClientInfo::Membership> groups;
};

// Request numbers seen from one (client, user): bit i is set when number `newest - i` has been executed.
struct DedupWindow {
  std::uint64_t newest = 0;
  std::bitset<128> seen;
};
struct DedupKey {
  base::MessageId client;
  std::uint32_t user = 0;
  friend bool operator<(const DedupKey& a, const DedupKey& b) {
    return std::tie(a.client.high, a.client.low, a.user) < std::tie(b.client.high, b.client.low, b.user);
  }
};

using OffsetKey = std::pair<iggy::ConsumerKind, std::uint32_t>;  // consumer number or group id

struct PartitionState {
  PartitionState(std::uint64_t log_uid, std::uint64_t created, PartitionLog partition_log)
      : uid(log_uid), created_at(created), log(std::move(partition_log)) {}
  std::uint64_t uid = 0;  // of this incarnation of the log; names its file
  std::uint64_t created_at = 0;
  bool shifted = false;  // created_at has made its move; 0.8.0
  PartitionLog log;
  std::uint64_t reserved = 0;  // offsets below it may have been given out; 0.9.0
  std::map<OffsetKey, std::uint64_t> offsets;
  std::map<DedupKey, DedupWindow> dedup;
};

struct GroupMember {
  std::uint32_t id = 0;
  Caller* caller = nullptr;
  std::vector<std::uint32_t> partitions;
  std::size_t turn = 0;  // next of `partitions` for a poll that names none
};
struct GroupState {
  std::uint32_t id = 0;
  std::string name;
  std::uint32_t next_member = 0;
  std::uint64_t generation = 0;
  std::vector<GroupMember> members;
};

struct TopicState {
  std::uint32_t id = 0;
  std::uint64_t created_at = 0;
  bool shifted = false;  // created_at has made its move
  std::string name;
  iggy::TopicSettings settings;
  std::vector<iggy::Option> derived;
  LogSettings log_settings;
  std::vector<std::unique_ptr<PartitionState>> partitions;
  std::map<std::uint32_t, GroupState> groups;
  IdPool group_ids;
  std::uint32_t balanced = 0;                             // next partition of a balanced send
  std::uint64_t deleted_bytes = 0, deleted_messages = 0;  // still counted; vsr, until a restart
};

struct StreamState {
  std::uint32_t id = 0;
  std::uint64_t created_at = 0;
  bool shifted = false;
  std::string name;
  std::vector<iggy::Option> options;
  std::map<std::uint32_t, TopicState> topics;
  IdPool topic_ids;
};

struct TokenState {
  std::string name, token;
  std::uint64_t expiry_at = 0;  // µs since the epoch, 0 = never
};
struct UserState {
  std::uint32_t id = 0;
  std::uint64_t created_at = 0;
  std::uint8_t status = 1;
  std::string name, password;
  std::optional<iggy::Permissions> permissions;
  std::vector<TokenState> tokens;
};

}  // namespace sandbox
