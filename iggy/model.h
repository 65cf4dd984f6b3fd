// What requests and replies are made of, independent of the dialect. Fields that a dialect does not have say so.
// Sources: the wire references of server 0.8.0 and protocol 0.11.0; layouts are in iggy/codec/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace iggy {

// Numeric id (kind 1) or name (kind 2). We address by name always; numbers exist for the test broker and golden
// vectors.
using Ident = std::variant<std::uint32_t, std::string>;

// kExternalGroup: offsets under a group name, without membership; servers from 0.10 on. We encode it, and refuse to
// send it to a server that has no such kind (requests.h).
enum class ConsumerKind : std::uint8_t { kConsumer = 1, kGroup = 2, kExternalGroup = 3 };
struct Consumer {
  ConsumerKind kind = ConsumerKind::kConsumer;
  Ident id = 0U;
  friend bool operator==(const Consumer&, const Consumer&) = default;
};

struct PollStrategy {
  enum class Kind : std::uint8_t { kOffset = 1, kTimestamp = 2, kFirst = 3, kLast = 4, kNext = 5 };
  Kind kind = Kind::kOffset;
  std::uint64_t value = 0;  // offset, or µs since the epoch; 0 for the others
  friend bool operator==(const PollStrategy&, const PollStrategy&) = default;
};

struct Partitioning {
  enum class Kind : std::uint8_t { kBalanced = 1, kPartition = 2, kKey = 3 };
  Kind kind = Kind::kPartition;
  std::uint32_t partition = 0;  // kPartition only
  base::Bytes key;              // kKey only, 1..255 bytes
  friend bool operator==(const Partitioning&, const Partitioning&) = default;
};

// Sentinels of topic settings on the wire, both dialects.
inline constexpr std::uint64_t kNeverExpire = ~0ULL;    // message_expiry, µs; 0 = the server's default
inline constexpr std::uint64_t kUnlimitedSize = ~0ULL;  // max_topic_size, bytes; 0 = the server's default
inline constexpr std::uint32_t kNoUser = 0xFFFFFFFFU;

// One key-value pair of a vsr option block (TLV). Kinds as in user headers: 2 string, 3 bool, 11 uint32, 12 uint64 …
struct Option {
  std::string key;
  std::uint8_t kind = 2;
  base::Bytes value;
  friend bool operator==(const Option&, const Option&) = default;
};

enum class Compression : std::uint8_t { kNone = 1, kGzip = 2 };  // topic metadata only; payloads are never touched

// Settings of a topic. legacy has exactly the first four. vsr carries settings as options: `options` holds every key as
// sent or reported (durability, segment_size, … and compression_algorithm, message_expiry, max_topic_size). The fields
// repeat those three and win when they differ from the list; a key that is in neither (field 0 or kNone) is not sent,
// and the server takes its default.
struct TopicSettings {
  Compression compression = Compression::kNone;
  std::uint64_t message_expiry = kNeverExpire;
  std::uint64_t max_topic_size = kUnlimitedSize;
  std::uint8_t replication_factor = 0;  // legacy only
  std::vector<Option> options{};        // vsr only
  friend bool operator==(const TopicSettings&, const TopicSettings&) = default;
};

struct Stream {
  std::uint32_t id = 0;
  std::uint64_t created_at = 0;  // µs since the epoch
  std::uint32_t topics_count = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t messages_count = 0;
  std::string name;
  std::vector<Option> options;  // vsr only
  friend bool operator==(const Stream&, const Stream&) = default;
};

struct Topic {
  std::uint32_t id = 0;
  std::uint64_t created_at = 0;
  std::uint32_t partitions_count = 0;
  TopicSettings settings;       // vsr: expiry, compression, size from the fixed part; `options` = the explicit block
  std::vector<Option> derived;  // vsr only: defaults that the server resolved at creation
  std::uint64_t size_bytes = 0;
  std::uint64_t messages_count = 0;
  std::string name;
  friend bool operator==(const Topic&, const Topic&) = default;
};

struct Partition {
  std::uint32_t id = 0;
  std::uint64_t created_at = 0;
  std::uint32_t segments_count = 0;
  // Last assigned offset; 0 also for an empty partition: read it together with messages_count.
  std::uint64_t current_offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t messages_count = 0;
  friend bool operator==(const Partition&, const Partition&) = default;
};

struct StreamDetails {
  Stream stream;
  std::vector<Topic> topics;
  friend bool operator==(const StreamDetails&, const StreamDetails&) = default;
};
struct TopicDetails {
  Topic topic;
  std::vector<Partition> partitions;
  friend bool operator==(const TopicDetails&, const TopicDetails&) = default;
};

struct ConsumerOffset {
  std::uint32_t partition = 0;
  std::uint64_t current_offset = 0;
  std::uint64_t stored_offset = 0;  // last processed
  friend bool operator==(const ConsumerOffset&, const ConsumerOffset&) = default;
};

struct Group {
  std::uint32_t id = 0;
  std::uint32_t partitions_count = 0;
  std::uint32_t members_count = 0;
  std::string name;
  friend bool operator==(const Group&, const Group&) = default;
};
struct GroupMember {
  std::uint32_t id = 0;
  std::vector<std::uint32_t> partitions;
  friend bool operator==(const GroupMember&, const GroupMember&) = default;
};
struct GroupDetails {
  Group group;
  std::vector<GroupMember> members;
  friend bool operator==(const GroupDetails&, const GroupDetails&) = default;
};

struct ClientInfo {
  struct Membership {
    std::uint32_t stream = 0, topic = 0, group = 0;
    friend bool operator==(const Membership&, const Membership&) = default;
  };
  std::uint32_t client_id = 0;
  std::uint32_t user_id = kNoUser;
  std::uint8_t transport = 1;  // 1 TCP, 2 QUIC, 3 HTTP, 4 WebSocket
  std::string address;         // "ip:port" as the server sees it
  std::uint32_t groups_count = 0;
  std::vector<Membership> groups;  // get_me, get_client only
  friend bool operator==(const ClientInfo&, const ClientInfo&) = default;
};

struct Stats {
  std::uint32_t process_id = 0;
  float cpu_usage = 0, total_cpu_usage = 0;
  std::uint64_t memory_usage = 0, total_memory = 0, available_memory = 0;
  std::uint64_t run_time = 0, start_time = 0;  // µs, µs since the epoch
  std::uint64_t read_bytes = 0, written_bytes = 0, messages_size_bytes = 0;
  std::uint32_t streams_count = 0, topics_count = 0, partitions_count = 0, segments_count = 0;
  std::uint64_t messages_count = 0;
  std::uint32_t clients_count = 0, groups_count = 0;
  std::string hostname, os_name, os_version, kernel_version, server_version;
  std::uint32_t server_semver = 0;  // major·10⁶ + minor·10³ + patch; 0 = absent
  struct CacheMetrics {
    std::uint32_t stream = 0, topic = 0, partition = 0;
    std::uint64_t hits = 0, misses = 0;
    float ratio = 0;
    friend bool operator==(const CacheMetrics&, const CacheMetrics&) = default;
  };
  std::vector<CacheMetrics> cache;
  std::uint32_t threads_count = 0;
  std::uint64_t free_disk = 0, total_disk = 0;
  friend bool operator==(const Stats&, const Stats&) = default;
};

struct ClusterNode {
  std::string name, ip;
  std::uint16_t tcp = 0, quic = 0, http = 0, websocket = 0;
  std::uint8_t role = 0;    // 0 leader, 1 follower
  std::uint8_t status = 0;  // 0 healthy, 1 starting, 2 stopping, 3 unreachable, 4 maintenance, 5 unknown
  friend bool operator==(const ClusterNode&, const ClusterNode&) = default;
};

struct ClusterMetadata {
  std::string name;
  std::vector<ClusterNode> nodes;
  friend bool operator==(const ClusterMetadata&, const ClusterMetadata&) = default;
};

// Entry of describe_options (vsr).
struct OptionDescription {
  std::string key;
  std::uint8_t kind = 0;
  base::Bytes default_value;
  std::string description;
  friend bool operator==(const OptionDescription&, const OptionDescription&) = default;
};

struct User {
  std::uint32_t id = 0;
  std::uint64_t created_at = 0;
  std::uint8_t status = 1;  // 1 active, 2 inactive
  std::string name;
  std::vector<Option> options;  // vsr only
  friend bool operator==(const User&, const User&) = default;
};

struct Permissions {
  // Global, in wire order.
  bool manage_servers = false, read_servers = false, manage_users = false, read_users = false, manage_streams = false,
       read_streams = false, manage_topics = false, read_topics = false, poll_messages = false, send_messages = false;
  struct OfTopic {
    std::uint32_t id = 0;
    bool manage_topic = false, read_topic = false, poll_messages = false, send_messages = false;
    friend bool operator==(const OfTopic&, const OfTopic&) = default;
  };
  struct OfStream {
    std::uint32_t id = 0;
    bool manage_stream = false, read_stream = false, manage_topics = false, read_topics = false, poll_messages = false,
         send_messages = false;
    std::vector<OfTopic> topics;
    friend bool operator==(const OfStream&, const OfStream&) = default;
  };
  std::vector<OfStream> streams;
  friend bool operator==(const Permissions&, const Permissions&) = default;
};

struct UserDetails {
  User user;
  std::optional<Permissions> permissions;
  friend bool operator==(const UserDetails&, const UserDetails&) = default;
};

struct AccessToken {
  std::string name;
  std::uint64_t expiry_at = 0;  // µs since the epoch, 0 = never
  friend bool operator==(const AccessToken&, const AccessToken&) = default;
};

}  // namespace iggy
