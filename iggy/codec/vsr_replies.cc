// Reply bodies. Each layout is written once, for both directions.
#include <concepts>
#include <string>
#include <utility>

#include "base/check.h"
#include "iggy/codec/reply_records.h"
#include "iggy/codec/status.h"
#include "iggy/codec/vsr.h"
#include "iggy/codec/vsr_layout.h"

namespace iggy::vsr {
namespace {

constexpr std::size_t kPollPrefix = 16;

// --- layouts

// layout() of an item inside another layout, whichever comes first.
template <class Io, class T>
void item(Io& io, T& value);
constexpr auto kEach = [](auto& io, auto& value) { item(io, value); };

template <class Io, Is<LoggedIn> T>
void layout(Io& io, T& r) {
  io.number(r.user_id);
  io.number(r.session);
  io.number(r.protocol_word);
  io.text8(r.server_version, "server version");
}

// As in legacy: one description for both dialects.
template <
    class Io,
    Is<Stats, ClusterNode, ClusterMetadata, ClientInfo, AccessToken, Partition, ConsumerOffset, Group, GroupDetails> T>
void layout(Io& io, T& r) {
  if constexpr (!Io::kReading) {
    if constexpr (Is<T, ClientInfo>) {
      write(io.wire(), r, true);
    } else {
      write(io.wire(), r);
    }
  } else if constexpr (Is<T, Stats>) {
    r = read_stats(io.wire());
  } else if constexpr (Is<T, ClusterNode>) {
    r = read_cluster_node(io.wire());
  } else if constexpr (Is<T, ClusterMetadata>) {
    r = read_cluster(io.wire());
  } else if constexpr (Is<T, ClientInfo>) {
    r = read_client(io.wire(), true);
  } else if constexpr (Is<T, AccessToken>) {
    r = read_access_token(io.wire());
  } else if constexpr (Is<T, Partition>) {
    r = read_partition(io.wire());
  } else if constexpr (Is<T, ConsumerOffset>) {
    r = read_consumer_offset(io.wire());
  } else if constexpr (Is<T, Group>) {
    r = read_group(io.wire());
  } else {
    r = read_group_details(io.wire());
  }
}

template <class Io, Is<Routing> T>
void layout(Io& io, T& r) {
  io.id(r.client);
  io.number(r.session);
  io.number(r.watermark);
  layout(io, r.node);
}

template <class Io, Is<OptionDescription> T>
void layout(Io& io, T& r) {
  io.name(r.key, "option key");
  io.number(r.kind);
  io.bytes32(r.default_value);
  io.text32(r.description);
}
template <class Io, Is<OptionDescriptions> T>
void layout(Io& io, T& r) {
  io.template counted<std::uint32_t>(r.options, 11, kEach);
}

template <class Io, Is<Clients> T>
void layout(Io& io, T& r) {
  io.items_to_end(r.clients, [](auto& each, auto& client) {
    if constexpr (Io::kReading) {
      client = read_client(each.wire(), false);
    } else {
      write(each.wire(), client, false);
    }
  });
}

template <class Io, Is<User> T>
void layout(Io& io, T& r) {
  io.number(r.id);
  io.number(r.created_at);
  io.number(r.status);
  io.name(r.name, "user name");
  io.options32(r.options);
}
template <class Io, Is<UserDetails> T>
void layout(Io& io, T& r) {
  layout(io, r.user);
  if constexpr (Io::kReading) {
    io.permissions(r.permissions);
    if (!r.permissions) io.wire().skip(3);
  } else {
    io.wire().reply_permissions(r.permissions);
  }
}
template <class Io, Is<Users> T>
void layout(Io& io, T& r) {
  io.items_to_end(r.users, kEach);
}
template <class Io, Is<TokenCreated> T>
void layout(Io& io, T& r) {
  io.text8(r.token, "token");
}
template <class Io, Is<Tokens> T>
void layout(Io& io, T& r) {
  io.items_to_end(r.tokens, kEach);
}

template <class Io, Is<Stream> T>
void layout(Io& io, T& r) {
  io.number(r.id);
  io.number(r.created_at);
  io.number(r.topics_count);
  io.number(r.size_bytes);
  io.number(r.messages_count);
  io.name(r.name, "stream name");
  io.options32(r.options);
}
template <class Io, Is<Streams> T>
void layout(Io& io, T& r) {
  io.items_to_end(r.streams, kEach);
}
template <class Io, Is<Topic> T>
void layout(Io& io, T& r) {
  io.number(r.id);
  io.number(r.created_at);
  io.number(r.partitions_count);
  io.number(r.settings.message_expiry);
  io.number(r.settings.compression);
  io.number(r.settings.max_topic_size);
  io.number(r.size_bytes);
  io.number(r.messages_count);
  io.name(r.name, "topic name");
  io.options32(r.settings.options);
  io.options32(r.derived);
}
template <class Io, Is<StreamDetails> T>
void layout(Io& io, T& r) {
  layout(io, r.stream);
  io.items(r.topics, r.stream.topics_count, 59, kEach);
}
template <class Io, Is<Topics> T>
void layout(Io& io, T& r) {
  io.template counted<std::uint32_t>(r.topics, 59, kEach);
}
template <class Io, Is<TopicDetails> T>
void layout(Io& io, T& r) {
  layout(io, r.topic);
  io.items(r.partitions, r.topic.partitions_count, 40, kEach);
}

template <class Io, Is<Groups> T>
void layout(Io& io, T& r) {
  io.items_to_end(r.groups, kEach);
}
template <class Io, Is<GroupAssignment> T>
void layout(Io& io, T& r) {
  io.number(r.generation);
  io.template counted<std::uint32_t>(r.partitions, 4, [](auto& each, auto& number) { each.number(number); });
}

// One confirmation, or none, behind a count; a duplicate has no body at all.
template <class Io, Is<SendConfirmed> T>
void layout(Io& io, T& r) {
  if constexpr (Io::kReading) {
    WireReader& from = io.wire();
    r.duplicate = from.at_end();
    if (r.duplicate) return;
    const std::uint32_t count = from.u32();
    if (count > 1) from.fail();
    if (!from.ok() || count == 0) return;
    r.base_offset = 0;
  } else {
    if (r.duplicate) return;
    io.wire().u32(r.base_offset ? 1 : 0);
    if (!r.base_offset) return;
  }
  io.number(r.stream);
  io.number(r.topic);
  io.number(r.partition);
  io.number(*r.base_offset);
}

template <class Io, Is<Done, NotThere> T>
void layout(Io&, T&) {}

template <class Io, class T>
void item(Io& io, T& value) {
  layout(io, value);
}

// --- reading

base::Error malformed(const Request& request, std::string message) {
  return {base::ErrorCode::kMalformed, std::string(name_of(request)), "", std::move(message)};
}

template <class T>
base::Result<Reply> parse(const Request& request, base::ByteView payload) {
  WireReader reader(payload);
  In io(reader);
  T value;
  layout(io, value);
  if (!reader.ok()) return malformed(request, "the reply ends before its content does, or breaks a length rule");
  if (!reader.at_end())
    return malformed(request, std::to_string(reader.remaining()) + " bytes behind the content of the reply");
  return Reply(std::move(value));
}

// Gets that answer "not there" with an empty body.
template <class T>
base::Result<Reply> parse_if_there(const Request& request, base::ByteView payload) {
  if (payload.empty()) return Reply(NotThere{});
  return parse<T>(request, payload);
}

base::Result<Reply> parse_poll(const Request& request, const PollMessages& poll, base::ByteView payload,
                               const base::BufferPtr& frame, bool verify_checksums) {
  if (payload.size() < kPollPrefix)
    return malformed(request, "a poll reply of " + std::to_string(payload.size()) + " bytes");
  PolledMessages polled;
  polled.batch.frame = frame;
  base::ByteReader prefix(payload);
  polled.partition = prefix.u32();
  polled.current_offset = prefix.u64();
  const std::uint32_t count = prefix.u32();
  base::ByteView rest = prefix.rest();
  if (count > rest.size() / kFrameHeaderSize)
    return malformed(request,
                     std::to_string(count) + " messages cannot fit into " + std::to_string(rest.size()) + " bytes");
  if (count > 0 && poll.partition.value_or(polled.partition) != polled.partition)
    return malformed(request, "messages of partition " + std::to_string(polled.partition));

  std::vector<base::Record>& records = polled.batch.records;
  records.reserve(count);
  while (!rest.empty()) {
    if (rest.size() < kBatchHeaderSize)
      return malformed(request, std::to_string(rest.size()) + " bytes where a batch should begin");
    const auto header = read_batch_header(rest);
    if (!header) return header.error();
    if (header->batch_length > rest.size())
      return malformed(request,
                       "batch at offset " + std::to_string(header->base_offset) + " runs over the reply's end");
    if (header->message_count > count - records.size())
      return malformed(request, "more than the " + std::to_string(count) + " messages that the reply announced");
    const auto length = static_cast<std::size_t>(header->batch_length);
    RETURN_IF_ERROR(decode_batch(rest.first(length), records, verify_checksums));
    rest = rest.subspan(length);
  }
  if (records.size() != count)
    return malformed(request,
                     "announced " + std::to_string(count) + " messages, has " + std::to_string(records.size()));
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].offset <= records[i - 1].offset)
      return malformed(
          request, "offset " + std::to_string(records[i].offset) + " follows " + std::to_string(records[i - 1].offset));
  }
  return Reply(std::move(polled));
}

class Payload {
 public:
  Payload(const Request& request, base::ByteView payload, const base::BufferPtr& frame, bool verify_checksums)
      : request_(request), payload_(payload), frame_(frame), verify_checksums_(verify_checksums) {}

  using Result = base::Result<Reply>;
  Result operator()(const GetStats&) { return parse<Stats>(request_, payload_); }
  Result operator()(const GetClusterMetadata&) { return parse<ClusterMetadata>(request_, payload_); }
  Result operator()(const DescribeOptions&) { return parse<OptionDescriptions>(request_, payload_); }
  Result operator()(const GetMe&) { return parse<ClientInfo>(request_, payload_); }
  Result operator()(const GetClient&) { return parse_if_there<ClientInfo>(request_, payload_); }
  Result operator()(const GetClients&) { return parse<Clients>(request_, payload_); }
  Result operator()(const GetUser&) { return parse_if_there<UserDetails>(request_, payload_); }
  Result operator()(const GetUsers&) { return parse<Users>(request_, payload_); }
  Result operator()(const CreateUser&) { return parse<UserDetails>(request_, payload_); }
  Result operator()(const LoginUser&) { return parse<LoggedIn>(request_, payload_); }
  Result operator()(const LoginToken&) { return parse<LoggedIn>(request_, payload_); }
  Result operator()(const GetTokens&) { return parse<Tokens>(request_, payload_); }
  Result operator()(const CreateToken&) { return parse<TokenCreated>(request_, payload_); }
  Result operator()(const GetStream&) { return parse_if_there<StreamDetails>(request_, payload_); }
  Result operator()(const GetStreams&) { return parse<Streams>(request_, payload_); }
  // A new stream: its topics never follow, whatever it counts.
  Result operator()(const CreateStream&) {
    WireReader reader(payload_);
    In io(reader);
    StreamDetails value;
    layout(io, value.stream);
    if (!reader.ok() || !reader.at_end()) return malformed(request_, "the reply is not one stream");
    return Reply(std::move(value));
  }
  Result operator()(const GetTopic&) { return parse_if_there<TopicDetails>(request_, payload_); }
  Result operator()(const GetTopics&) { return parse<Topics>(request_, payload_); }
  Result operator()(const CreateTopic&) { return parse<TopicDetails>(request_, payload_); }
  Result operator()(const PollMessages& poll) {
    return parse_poll(request_, poll, payload_, frame_, verify_checksums_);
  }
  Result operator()(const PollMessagesOnPrimary& r) { return (*this)(r.poll); }
  Result operator()(const SendMessages&) { return parse<SendConfirmed>(request_, payload_); }
  Result operator()(const GetConsumerOffset&) { return parse_if_there<ConsumerOffset>(request_, payload_); }
  Result operator()(const GetGroup&) { return parse_if_there<GroupDetails>(request_, payload_); }
  Result operator()(const GetGroups&) { return parse<Groups>(request_, payload_); }
  Result operator()(const CreateGroup&) { return parse<GroupDetails>(request_, payload_); }
  Result operator()(const SyncGroup&) { return parse_if_there<GroupAssignment>(request_, payload_); }
  Result operator()(const GetPollRouting&) { return parse<Routing>(request_, payload_); }
  Result operator()(const GetConsumerOffsetRouting&) { return parse<Routing>(request_, payload_); }
  // No client looks into it.
  Result operator()(const AttachConsumerSession&) { return Reply(Done{}); }
  template <
      Is<Ping, DeleteUser, UpdateUser, UpdatePermissions, ChangePassword, Logout, DeleteToken, UpdateStream,
         DeleteStream, PurgeStream, UpdateTopic, DeleteTopic, PurgeTopic, CreatePartitions, DeletePartitions,
         DeleteSegments, FlushUnsaved, StoreConsumerOffset, DeleteConsumerOffset, DeleteGroup, JoinGroup, LeaveGroup>
          T>
  Result operator()(const T&) {
    return parse<Done>(request_, payload_);
  }

 private:
  const Request& request_;
  base::ByteView payload_;
  const base::BufferPtr& frame_;
  bool verify_checksums_;
};

base::Error empty_result(const Request& request, Operation operation) {
  const std::string name(name_of(request));
  switch (operation) {
    case Operation::kRegister:
      return {base::ErrorCode::kCredentials, name, "", "refused without a reason"};
    case Operation::kStoreConsumerOffset:
    case Operation::kDeleteConsumerOffset:
      return {base::ErrorCode::kNotFound, name, "", "the consumer group is not there"};
    default:
      return malformed(request, "no result section");
  }
}

}  // namespace

base::Result<Reply> decode_payload(const Request& request, base::ByteView payload, const base::BufferPtr& frame,
                                   bool verify_checksums) {
  return std::visit(Payload(request, payload, frame, verify_checksums), request);
}

base::Result<Reply> decode_reply(const Request& request, const ReplyHeader& header, base::ByteView body,
                                 const base::BufferPtr& frame, bool verify_checksums) {
  const Operation operation = operation_of(request);
  if (header.operation != std::to_underlying(operation) &&
      header.operation != std::to_underlying(reply_operation(operation)))
    return malformed(request, "answered by operation " + std::to_string(header.operation));
  if (header.status != 0) return error_of_status(header.status, std::string(name_of(request)));
  if (is_result_framed(operation)) {
    if (body.empty()) return empty_result(request, operation);
    base::ByteReader reader(body);
    const std::uint32_t count = reader.u32();
    if (count > reader.remaining() / 8) return malformed(request, "a result section that does not fit the body");
    if (!reader.ok()) return malformed(request, "a result section of " + std::to_string(body.size()) + " bytes");
    if (count > 0) {
      reader.u32();
      const std::uint32_t code = reader.u32();
      if (code == 0) return malformed(request, "a rejection without a code");
      return error_of_status(code, std::string(name_of(request)));
    }
    body = reader.rest();
  }
  return decode_payload(request, body, frame, verify_checksums);
}

base::Bytes encode_payload(const Reply& reply) {
  base::Bytes payload;
  WireWriter writer(payload);
  Out io(writer);
  if (const auto* polled = std::get_if<PolledMessages>(&reply)) {
    writer.u32(polled->partition);
    writer.u64(polled->current_offset);
    writer.u32(static_cast<std::uint32_t>(polled->batch.records.size()));
    append_records(polled->batch.records, polled->partition, payload);
  } else {
    std::visit(
        [&io](const auto& value) {
          if constexpr (!Is<decltype(value), const PolledMessages&>) layout(io, value);
        },
        reply);
  }
  base::check(writer.status().has_value(), "a reply has an encoding");
  return payload;
}

base::Bytes encode_reply(const Request& request, const RequestHeader& header, const Reply& reply,
                         std::uint64_t commit) {
  const Operation operation = operation_of(request);
  base::Bytes body;
  if (is_result_framed(operation)) base::ByteWriter(body).u32(0);
  const base::Bytes payload = encode_payload(reply);
  body.insert(body.end(), payload.begin(), payload.end());
  return reply_frame(header, reply_operation(operation), 0, commit, body);
}

}  // namespace iggy::vsr
