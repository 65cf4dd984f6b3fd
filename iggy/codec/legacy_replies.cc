// Replies of dialect `legacy`, both directions.
#include <algorithm>
#include <type_traits>
#include <variant>

#include "base/check.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/legacy_message.h"
#include "iggy/codec/reply_records.h"

namespace iggy::legacy {

namespace {

Stream read_stream(WireReader& reader) {
  Stream stream;
  stream.id = reader.u32();
  stream.created_at = reader.u64();
  stream.topics_count = reader.u32();
  stream.size_bytes = reader.u64();
  stream.messages_count = reader.u64();
  stream.name = reader.name();
  return stream;
}

void write(WireWriter& out, const Stream& stream) {
  out.u32(stream.id);
  out.u64(stream.created_at);
  out.u32(stream.topics_count);
  out.u64(stream.size_bytes);
  out.u64(stream.messages_count);
  out.name(stream.name, "stream name");
}

Topic read_topic(WireReader& reader) {
  Topic topic;
  topic.id = reader.u32();
  topic.created_at = reader.u64();
  topic.partitions_count = reader.u32();
  topic.settings.message_expiry = reader.u64();
  topic.settings.compression = static_cast<Compression>(reader.u8());
  topic.settings.max_topic_size = reader.u64();
  topic.settings.replication_factor = reader.u8();
  topic.size_bytes = reader.u64();
  topic.messages_count = reader.u64();
  topic.name = reader.name();
  return topic;
}

void write(WireWriter& out, const Topic& topic) {
  out.u32(topic.id);
  out.u64(topic.created_at);
  out.u32(topic.partitions_count);
  out.u64(topic.settings.message_expiry);
  out.u8(static_cast<std::uint8_t>(topic.settings.compression));
  out.u64(topic.settings.max_topic_size);
  out.u8(topic.settings.replication_factor);
  out.u64(topic.size_bytes);
  out.u64(topic.messages_count);
  out.name(topic.name, "topic name");
}

User read_user(WireReader& reader) {
  User user;
  user.id = reader.u32();
  user.created_at = reader.u64();
  user.status = reader.u8();
  user.name = reader.name();
  return user;
}

void write(WireWriter& out, const User& user) {
  out.u32(user.id);
  out.u64(user.created_at);
  out.u8(user.status);
  out.name(user.name, "user name");
}

StreamDetails read_stream_details(WireReader& reader) {
  StreamDetails details;
  details.stream = read_stream(reader);
  for (std::uint32_t i = 0; i < details.stream.topics_count && reader.ok(); ++i)
    details.topics.push_back(read_topic(reader));
  return details;
}

TopicDetails read_topic_details(WireReader& reader) {
  TopicDetails details;
  details.topic = read_topic(reader);
  for (std::uint32_t i = 0; i < details.topic.partitions_count && reader.ok(); ++i)
    details.partitions.push_back(read_partition(reader));
  return details;
}

// With permissions: u8 1, u32 length, block. Without: four zero bytes.
UserDetails read_user_details(WireReader& reader) {
  UserDetails details;
  details.user = read_user(reader);
  if (reader.remaining() == sizeof(std::uint32_t)) {
    if (reader.u32() != 0) reader.refuse(kStatusInvalidCommand);
  } else {
    details.permissions = reader.optional_permissions();
  }
  return details;
}

// Records without a count, to the end of the payload.
template <class T>
std::vector<T> read_all(WireReader& reader, T (*read)(WireReader&)) {
  std::vector<T> all;
  while (!reader.at_end()) all.push_back(read(reader));
  return all;
}

PolledMessages read_polled(WireReader& reader, const base::BufferPtr& frame) {
  PolledMessages polled;
  polled.partition = reader.u32();
  polled.current_offset = reader.u64();
  const std::uint32_t count = reader.u32();
  polled.batch.frame = frame;
  polled.batch.records.reserve(std::min<std::size_t>(count, reader.remaining() / kMessageHeaderSize));
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const base::ByteView head = reader.bytes(kMessageHeaderSize);
    if (!reader.ok()) break;
    const MessageHeader header = read_message_header(head.data());
    reader.bytes(header.size() - kMessageHeaderSize);
    if (!reader.ok()) break;
    if (!polled.batch.records.empty() && header.offset <= polled.batch.records.back().offset) {
      reader.refuse(kStatusInvalidCommand);
      break;
    }
    polled.batch.records.push_back(record_of(header, base::ByteView(head.data(), header.size())));
  }
  return polled;
}

// Which layout answers which request.
class Decoder {
 public:
  Decoder(base::ByteView payload, const base::BufferPtr& frame) : reader_(payload), frame_(frame) {}

  Reply operator()(const GetStats&) { return read_stats(reader_); }
  Reply operator()(const GetClusterMetadata&) { return read_cluster(reader_); }
  Reply operator()(const GetMe&) { return read_client(reader_, true); }
  Reply operator()(const GetClient&) {
    if (reader_.at_end()) return NotThere{};
    return read_client(reader_, true);
  }
  Reply operator()(const GetClients&) {
    return Clients{read_all<ClientInfo>(reader_, [](WireReader& reader) { return read_client(reader, false); })};
  }
  Reply operator()(const GetUser&) { return found(read_user_details); }
  Reply operator()(const GetUsers&) { return Users{read_all(reader_, read_user)}; }
  Reply operator()(const CreateUser&) { return read_user_details(reader_); }
  Reply operator()(const LoginUser&) { return logged_in(); }
  Reply operator()(const LoginToken&) { return logged_in(); }
  Reply operator()(const GetTokens&) { return Tokens{read_all(reader_, read_access_token)}; }
  Reply operator()(const CreateToken&) { return TokenCreated{reader_.name()}; }
  Reply operator()(const GetStream&) { return found(read_stream_details); }
  Reply operator()(const GetStreams&) { return Streams{read_all(reader_, read_stream)}; }
  Reply operator()(const CreateStream&) { return read_stream_details(reader_); }
  Reply operator()(const GetTopic&) { return found(read_topic_details); }
  Reply operator()(const GetTopics&) { return Topics{read_all(reader_, read_topic)}; }
  Reply operator()(const CreateTopic&) { return read_topic_details(reader_); }
  Reply operator()(const PollMessages&) { return read_polled(reader_, frame_); }
  Reply operator()(const SendMessages&) { return SendConfirmed{}; }
  Reply operator()(const GetConsumerOffset&) { return found(read_consumer_offset); }
  Reply operator()(const GetGroup&) { return found(read_group_details); }
  Reply operator()(const GetGroups&) { return Groups{read_all(reader_, read_group)}; }
  Reply operator()(const CreateGroup&) { return read_group_details(reader_); }
  // Everything else is answered without content.
  template <class T>
  Reply operator()(const T&) {
    return Done{};
  }

  bool ok() const { return reader_.ok() && reader_.at_end(); }

 private:
  template <class T>
  Reply found(T (*read)(WireReader&)) {
    if (reader_.at_end()) return NotThere{};
    return read(reader_);
  }
  Reply logged_in() {
    LoggedIn reply;
    reply.user_id = reader_.u32();
    return reply;
  }

  WireReader reader_;
  const base::BufferPtr& frame_;
};

// Writes the payload of a reply.
class Encoder {
 public:
  explicit Encoder(base::Bytes& frame) : frame_(frame), out_(frame) {}

  void operator()(const Done&) {}
  void operator()(const NotThere&) {}
  void operator()(const SendConfirmed&) {}
  void operator()(const LoggedIn& reply) { out_.u32(reply.user_id); }
  void operator()(const Stats& reply) { write(out_, reply); }
  void operator()(const ClusterMetadata& reply) { write(out_, reply); }
  void operator()(const ClientInfo& reply) { write(out_, reply, true); }
  void operator()(const Clients& reply) {
    for (const ClientInfo& client : reply.clients) write(out_, client, false);
  }
  void operator()(const UserDetails& reply) {
    write(out_, reply.user);
    out_.reply_permissions(reply.permissions);
  }
  void operator()(const Users& reply) { all(reply.users); }
  void operator()(const TokenCreated& reply) { out_.name(reply.token, "token"); }
  void operator()(const Tokens& reply) { all(reply.tokens); }
  void operator()(const StreamDetails& reply) {
    write(out_, reply.stream);
    all(reply.topics);
  }
  void operator()(const Streams& reply) { all(reply.streams); }
  void operator()(const TopicDetails& reply) {
    write(out_, reply.topic);
    all(reply.partitions);
  }
  void operator()(const Topics& reply) { all(reply.topics); }
  void operator()(const PolledMessages& reply) {
    std::size_t size = 0;
    for (const base::Record& record : reply.batch.records) size += kMessageHeaderSize + record.body.size();
    frame_.reserve(frame_.size() + 16 + size);
    out_.u32(reply.partition);
    out_.u64(reply.current_offset);
    out_.u32(static_cast<std::uint32_t>(reply.batch.records.size()));
    for (const base::Record& record : reply.batch.records) append_stored_message(frame_, record);
  }
  void operator()(const ConsumerOffset& reply) { write(out_, reply); }
  void operator()(const GroupDetails& reply) { write(out_, reply); }
  void operator()(const Groups& reply) { all(reply.groups); }
  void operator()(const OptionDescriptions&) { not_legacy(); }
  void operator()(const GroupAssignment&) { not_legacy(); }
  void operator()(const Routing&) { not_legacy(); }

  bool ok() const { return out_.status().has_value(); }

 private:
  void all(const auto& records) {
    for (const auto& record : records) write(out_, record);
  }
  static void not_legacy() { base::check(false, "legacy has no such reply"); }

  base::Bytes& frame_;
  WireWriter out_;
};

}  // namespace

ReplyHeader read_reply_header(base::ByteView bytes) {
  return {base::load<std::uint32_t>(bytes.data()), base::load<std::uint32_t>(bytes.data() + 4)};
}

base::Result<Reply> decode_reply(const Request& request, base::ByteView payload, const base::BufferPtr& frame) {
  Decoder decoder(payload, frame);
  Reply reply = std::visit(decoder, request);
  if (!decoder.ok())
    return base::Error(base::ErrorCode::kMalformed, "decode", "reply to " + std::string(name_of(request)),
                       std::to_string(payload.size()) + " bytes do not parse to their end");
  return reply;
}

base::Bytes encode_reply(const Reply& reply) {
  base::Bytes frame(kHeaderSize);
  Encoder encoder(frame);
  std::visit(encoder, reply);
  base::check(encoder.ok(), "a reply holds only names that the wire can carry");
  base::store(frame.data() + 4, static_cast<std::uint32_t>(frame.size() - kHeaderSize));
  return frame;
}

base::Bytes encode_error(std::uint32_t status) {
  base::Bytes frame(kHeaderSize);
  base::store(frame.data(), status);
  return frame;
}

}  // namespace iggy::legacy
