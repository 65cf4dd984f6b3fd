// Every reply as a value. A client decodes them, the test broker encodes them. Errors are statuses, not replies: see
// codec/.
#pragma once

#include <variant>

#include "base/record.h"
#include "iggy/model.h"

namespace iggy {

struct Done {};  // success without content
// A get that found nothing (status 0, empty body).
struct NotThere {};
struct LoggedIn {
  std::uint32_t user_id = 0;
  std::uint64_t session = 0;        // vsr only
  std::uint32_t protocol_word = 0;  // vsr only: major<<20 | minor<<10 | patch
  std::string server_version;       // vsr only, "0.9.0-edge.5"
};
struct Clients {
  std::vector<ClientInfo> clients;
};
struct Users {
  std::vector<User> users;
};
struct TokenCreated {
  std::string token;
};
struct Tokens {
  std::vector<AccessToken> tokens;
};
struct Streams {
  std::vector<Stream> streams;
};
struct Topics {
  std::vector<Topic> topics;
};
struct Groups {
  std::vector<Group> groups;
};
struct GroupAssignment {
  std::uint64_t generation = 0;
  std::vector<std::uint32_t> partitions;
};  // sync, vsr
struct OptionDescriptions {
  std::vector<OptionDescription> options;
};
// `current_offset` as the server said: the newest offset of the partition, 0 also when empty.
struct PolledMessages {
  std::uint32_t partition = 0;
  std::uint64_t current_offset = 0;
  base::RecordBatch batch;  // offsets ascend
};
// vsr: exactly one confirmation, or none ("committed, offsets not known"), or duplicate (empty body: recognised as sent
// before). legacy: nothing of it (base_offset absent, duplicate false).
struct SendConfirmed {
  std::optional<std::uint64_t> base_offset;
  bool duplicate = false;
  std::uint32_t stream = 0, topic = 0, partition = 0;  // numeric ids in the confirmation
};
// vsr 103/123: where the partition's primary is.
struct Routing {
  base::MessageId client;
  std::uint64_t session = 0, watermark = 0;
  ClusterNode node;
};

using Reply =
    std::variant<Done, NotThere, LoggedIn, Stats, ClusterMetadata, OptionDescriptions, ClientInfo, Clients, UserDetails,
                 Users, TokenCreated, Tokens, StreamDetails, Streams, TopicDetails, Topics, PolledMessages,
                 SendConfirmed, ConsumerOffset, GroupDetails, Groups, GroupAssignment, Routing>;

}  // namespace iggy
