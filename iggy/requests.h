// Every request as a value: what a client sends, what the test broker receives. One struct per command, no I/O.
// send_messages is special: a client encodes it from Records into pieces (codec/send.h); here it is what a broker
// decodes.
#pragma once

#include <variant>

#include "base/record.h"
#include "base/result.h"
#include "iggy/model.h"

namespace iggy {

struct Ping {};
struct GetStats {};
struct GetClusterMetadata {};
struct DescribeOptions {
  std::uint8_t scope = 1;
};  // vsr; 1 topic, 2 stream, 3 user
struct GetMe {};
struct GetClient {
  std::uint32_t client_id = 0;
};
struct GetClients {};
struct GetUser {
  Ident user;
};
struct GetUsers {};
struct CreateUser {
  std::string name, password;
  std::uint8_t status = 1;
  std::optional<Permissions> permissions;
  std::vector<Option> options;  // vsr only
};
struct DeleteUser {
  Ident user;
};
struct UpdateUser {
  Ident user;
  std::optional<std::string> name;
  std::optional<std::uint8_t> status;
  std::vector<Option> options;  // vsr only
};
struct UpdatePermissions {
  Ident user;
  std::optional<Permissions> permissions;
};
struct ChangePassword {
  Ident user;
  std::string current, fresh;
};
// Login. `client_version`: legacy version text, or vsr sdk_version. `protocol_word`, `client_name`: vsr only.
struct LoginUser {
  std::string username, password;
  std::string client_name = "iggy-replicate";
  std::string client_version;
  std::string context;
  std::uint32_t protocol_word = 0x2C00;
};
struct LoginToken {
  std::string token;
  std::string client_name = "iggy-replicate";
  std::string client_version;
  std::string context;
  std::uint32_t protocol_word = 0x2C00;
};
struct Logout {};
struct GetTokens {};
struct CreateToken {
  std::string name;
  std::uint64_t expiry = 0;
};  // µs; 0 = never
struct DeleteToken {
  std::string name;
};

struct GetStream {
  Ident stream;
};
struct GetStreams {};
struct CreateStream {
  std::string name;
  std::vector<Option> options;
};
struct UpdateStream {
  Ident stream;
  std::string name;
  std::vector<Option> options;
};
struct DeleteStream {
  Ident stream;
};
struct PurgeStream {
  Ident stream;
};

struct GetTopic {
  Ident stream, topic;
};
struct GetTopics {
  Ident stream;
};
struct CreateTopic {
  Ident stream;
  std::string name;
  std::uint32_t partitions_count = 1;
  TopicSettings settings;
};
// legacy: every field is overwritten. vsr: `patch` lists the keys to change (compression_algorithm, message_expiry,
// max_topic_size).
struct UpdateTopic {
  Ident stream, topic;
  std::string name;
  TopicSettings settings;
  std::vector<Option> patch;
};
struct DeleteTopic {
  Ident stream, topic;
};
struct PurgeTopic {
  Ident stream, topic;
};
struct CreatePartitions {
  Ident stream, topic;
  std::uint32_t count = 1;
};
struct DeletePartitions {
  Ident stream, topic;
  std::uint32_t count = 1;
};
struct DeleteSegments {
  Ident stream, topic;
  std::uint32_t partition = 0, count = 1;
};

// A poll has no byte limit on the wire: what the caller has room for is kept here, and a message of the largest size
// beside it. An answer that is announced larger is kMalformed, and ends its connection before a byte of it is stored.
inline constexpr std::uint64_t kLargestMessage = 65ULL << 20;  // of either dialect, with all that stands around it
inline constexpr std::uint64_t kPollRoom = 4ULL << 20;
struct PollMessages {
  Consumer consumer;
  Ident stream, topic;
  std::optional<std::uint32_t> partition;
  PollStrategy strategy;
  std::uint32_t count = 1;
  bool auto_commit = false;
  std::uint64_t room_bytes = kPollRoom;  // not on the wire
};
// As a broker receives it: the records view into the request frame. vsr: `batch` is the whole batch as sent (256-byte
// header, then frames), already validated as section 5.4 of the wire reference says; legacy: the whole message area.
struct SendMessages {
  Ident stream, topic;
  Partitioning partitioning;
  std::vector<base::Record> records;
  base::ByteView batch;
};
struct FlushUnsaved {
  Ident stream, topic;
  std::uint32_t partition = 0;
  bool fsync = false;
};

struct GetConsumerOffset {
  Consumer consumer;
  Ident stream, topic;
  std::optional<std::uint32_t> partition;
};
struct StoreConsumerOffset {
  Consumer consumer;
  Ident stream, topic;
  std::optional<std::uint32_t> partition;
  std::uint64_t offset = 0;
  std::uint8_t ack = 1;  // vsr only: 0 none, 1 quorum
};
struct DeleteConsumerOffset {
  Consumer consumer;
  Ident stream, topic;
  std::optional<std::uint32_t> partition;
  std::uint8_t ack = 1;  // vsr only
};

struct GetGroup {
  Ident stream, topic, group;
};
struct GetGroups {
  Ident stream, topic;
};
struct CreateGroup {
  Ident stream, topic;
  std::string name;
};
struct DeleteGroup {
  Ident stream, topic, group;
};
struct JoinGroup {
  Ident stream, topic, group;
};
struct LeaveGroup {
  Ident stream, topic, group;
};
struct SyncGroup {
  Ident stream, topic, group;
};  // vsr only

// Commands of released 0.11.0 for clusters (14, 103, 104, 123): encoded and decoded, not used by the replicator.
struct AttachConsumerSession {
  base::MessageId client;
  std::uint64_t session = 0, watermark = 0;
};
struct GetPollRouting {
  PollMessages poll;
};
struct PollMessagesOnPrimary {
  PollMessages poll;
};
struct GetConsumerOffsetRouting {
  GetConsumerOffset get;
};

using Request =
    std::variant<Ping, GetStats, GetClusterMetadata, DescribeOptions, GetMe, GetClient, GetClients, GetUser, GetUsers,
                 CreateUser, DeleteUser, UpdateUser, UpdatePermissions, ChangePassword, LoginUser, LoginToken, Logout,
                 GetTokens, CreateToken, DeleteToken, GetStream, GetStreams, CreateStream, UpdateStream, DeleteStream,
                 PurgeStream, GetTopic, GetTopics, CreateTopic, UpdateTopic, DeleteTopic, PurgeTopic, CreatePartitions,
                 DeletePartitions, DeleteSegments, PollMessages, SendMessages, FlushUnsaved, GetConsumerOffset,
                 StoreConsumerOffset, DeleteConsumerOffset, GetGroup, GetGroups, CreateGroup, DeleteGroup, JoinGroup,
                 LeaveGroup, SyncGroup, AttachConsumerSession, GetPollRouting, PollMessagesOnPrimary,
                 GetConsumerOffsetRouting>;

// kUnsupported when it names a consumer of kind 3: no server of a dialect that is spoken here has external groups.
base::Status refuse_external_group(const Request& request);

// "poll_messages", "create_topic", … for logs and errors.
std::string_view name_of(const Request& request);

}  // namespace iggy
