// The verbs of iggy-load. Each returns the exit code of the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "iggy/connection_string.h"
#include "integration/load/message_source.h"

namespace load {

struct WriteOptions {
  iggy::ConnectionString url;
  base::TopicName topic;
  bool create = false;
  std::uint32_t partitions = 1;  // for --create
  std::uint64_t count = 0;
  double rate = 0;  // messages per second, 0 = as fast as it goes
  std::uint32_t batch = 100;
  std::uint64_t first_sequence = 0;
  std::optional<std::uint32_t> only_partition;
  MessageOptions message;
  std::string journal;
  bool retry = false;
};
int run_write(const WriteOptions& options);

struct ReadOptions {
  iggy::ConnectionString url;
  base::TopicName topic;
  std::optional<std::uint32_t> partition;
  std::string out;  // of the message lines; empty = stdout
  bool quiet = false;
};
int run_read(const ReadOptions& options);

struct CompareOptions {
  iggy::ConnectionString a, b;
  base::TopicName topic_a, topic_b;
  bool ignore_zero_ids = false;
  bool prefix = false;
};
int run_compare(const CompareOptions& options);

// What an operator of the cluster does to it while a link runs.
enum class Deed : std::uint8_t {
  kCreateTopic,  // its stream as well, when that is missing
  kDeleteTopic,
  kPurgeTopic,
  kAddPartitions,
  kCreateUser,
  kSetRights,
  kDeleteUser,
  kStoredOffset,  // of the consumer `name`, of every partition; printed
  kCreateToken,   // of the user who is logged in; printed
  kStoreOffset,   // of a consumer, or of a group, which is made and joined for it
  kGetOffset,     // printed; "none"
  kDeleteOffset,  // of a consumer
};
struct ManageOptions {
  iggy::ConnectionString url;
  Deed deed = Deed::kCreateTopic;
  base::TopicName topic;
  std::uint32_t partitions = 1;
  std::uint64_t expiry_seconds = 0;  // 0 = never
  std::string name, password;        // of a user; of a token; of a consumer or group
  std::uint32_t partition = 0;
  std::uint64_t offset = 0;
  bool group = false;
  std::string rights = "none";  // "read_servers,orders:read_stream,orders/events:send_messages"
};
int run_manage(const ManageOptions& options);

}  // namespace load
