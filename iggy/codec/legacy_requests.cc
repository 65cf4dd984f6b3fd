// Requests of dialect `legacy`, both directions.
#include <array>
#include <variant>

#include "iggy/codec/codes.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/legacy_message.h"
#include "iggy/codec/primitives.h"

namespace iggy::legacy {

namespace {

constexpr std::uint32_t kUnsupported = 0;

// Writes the payload and returns the command code, or kUnsupported.
class Encoder : public WireWriter {
 public:
  using WireWriter::WireWriter;

  std::uint32_t operator()(const Ping&) { return code::kPing; }
  std::uint32_t operator()(const GetStats&) { return code::kGetStats; }
  std::uint32_t operator()(const GetClusterMetadata&) { return code::kGetClusterMetadata; }
  std::uint32_t operator()(const GetMe&) { return code::kGetMe; }
  std::uint32_t operator()(const GetClient& request) {
    u32(request.client_id);
    return code::kGetClient;
  }
  std::uint32_t operator()(const GetClients&) { return code::kGetClients; }

  std::uint32_t operator()(const GetUser& request) {
    ident(request.user, "user");
    return code::kGetUser;
  }
  std::uint32_t operator()(const GetUsers&) { return code::kGetUsers; }
  std::uint32_t operator()(const CreateUser& request) {
    name(request.name, "user name");
    short_text(request.password, "password");
    u8(request.status);
    optional_permissions(request.permissions);
    return code::kCreateUser;
  }
  std::uint32_t operator()(const DeleteUser& request) {
    ident(request.user, "user");
    return code::kDeleteUser;
  }
  std::uint32_t operator()(const UpdateUser& request) {
    ident(request.user, "user");
    boolean(request.name.has_value());
    if (request.name) name(*request.name, "user name");
    boolean(request.status.has_value());
    if (request.status) u8(*request.status);
    return code::kUpdateUser;
  }
  std::uint32_t operator()(const UpdatePermissions& request) {
    ident(request.user, "user");
    optional_permissions(request.permissions);
    return code::kUpdatePermissions;
  }
  std::uint32_t operator()(const ChangePassword& request) {
    ident(request.user, "user");
    short_text(request.current, "current password");
    short_text(request.fresh, "new password");
    return code::kChangePassword;
  }
  std::uint32_t operator()(const LoginUser& request) {
    name(request.username, "user name");
    short_text(request.password, "password");
    text32(request.client_version);
    text32(request.context);
    return code::kLoginUser;
  }
  std::uint32_t operator()(const LoginToken& request) {
    name(request.token, "token");
    return code::kLoginToken;
  }
  std::uint32_t operator()(const Logout&) { return code::kLogout; }
  std::uint32_t operator()(const GetTokens&) { return code::kGetTokens; }
  std::uint32_t operator()(const CreateToken& request) {
    name(request.name, "token name");
    u64(request.expiry);
    return code::kCreateToken;
  }
  std::uint32_t operator()(const DeleteToken& request) {
    name(request.name, "token name");
    return code::kDeleteToken;
  }

  std::uint32_t operator()(const GetStream& request) { return stream(code::kGetStream, request); }
  std::uint32_t operator()(const GetStreams&) { return code::kGetStreams; }
  std::uint32_t operator()(const CreateStream& request) {
    name(request.name, "stream name");
    return code::kCreateStream;
  }
  std::uint32_t operator()(const UpdateStream& request) {
    stream(code::kUpdateStream, request);
    name(request.name, "stream name");
    return code::kUpdateStream;
  }
  std::uint32_t operator()(const DeleteStream& request) { return stream(code::kDeleteStream, request); }
  std::uint32_t operator()(const PurgeStream& request) { return stream(code::kPurgeStream, request); }

  std::uint32_t operator()(const GetTopic& request) { return topic(code::kGetTopic, request); }
  std::uint32_t operator()(const GetTopics& request) { return stream(code::kGetTopics, request); }
  std::uint32_t operator()(const CreateTopic& request) {
    ident(request.stream, "stream");
    u32(request.partitions_count);
    settings(request.settings);
    name(request.name, "topic name");
    return code::kCreateTopic;
  }
  std::uint32_t operator()(const UpdateTopic& request) {
    topic(code::kUpdateTopic, request);
    settings(request.settings);
    name(request.name, "topic name");
    return code::kUpdateTopic;
  }
  std::uint32_t operator()(const DeleteTopic& request) { return topic(code::kDeleteTopic, request); }
  std::uint32_t operator()(const PurgeTopic& request) { return topic(code::kPurgeTopic, request); }
  std::uint32_t operator()(const CreatePartitions& request) {
    topic(code::kCreatePartitions, request);
    u32(request.count);
    return code::kCreatePartitions;
  }
  std::uint32_t operator()(const DeletePartitions& request) {
    topic(code::kDeletePartitions, request);
    u32(request.count);
    return code::kDeletePartitions;
  }
  std::uint32_t operator()(const DeleteSegments& request) {
    topic(code::kDeleteSegments, request);
    partition(request.partition);
    u32(request.count);
    return code::kDeleteSegments;
  }

  std::uint32_t operator()(const PollMessages& request) {
    target(request);
    strategy(request.strategy);
    u32(request.count);
    boolean(request.auto_commit);
    return code::kPollMessages;
  }
  std::uint32_t operator()(const SendMessages& request) {
    check_partition(request.partitioning.partition);
    send_metadata(request.stream, request.topic, request.partitioning,
                  static_cast<std::uint32_t>(request.records.size()));
    std::uint32_t end = 0;
    for (const base::Record& record : request.records) {
      end += static_cast<std::uint32_t>(kMessageHeaderSize + record.body.size());
      u32(0);
      u32(end);
      u64(0);
    }
    for (const base::Record& record : request.records) message(record);
    return code::kSendMessages;
  }
  std::uint32_t operator()(const FlushUnsaved& request) {
    topic(code::kFlushUnsaved, request);
    partition(request.partition);
    boolean(request.fsync);
    return code::kFlushUnsaved;
  }

  std::uint32_t operator()(const GetConsumerOffset& request) {
    target(request);
    return code::kGetConsumerOffset;
  }
  std::uint32_t operator()(const StoreConsumerOffset& request) {
    target(request);
    u64(request.offset);
    return code::kStoreConsumerOffset;
  }
  std::uint32_t operator()(const DeleteConsumerOffset& request) {
    target(request);
    return code::kDeleteConsumerOffset;
  }

  std::uint32_t operator()(const GetGroup& request) { return group(code::kGetGroup, request); }
  std::uint32_t operator()(const GetGroups& request) { return topic(code::kGetGroups, request); }
  std::uint32_t operator()(const CreateGroup& request) {
    topic(code::kCreateGroup, request);
    name(request.name, "group name");
    return code::kCreateGroup;
  }
  std::uint32_t operator()(const DeleteGroup& request) { return group(code::kDeleteGroup, request); }
  std::uint32_t operator()(const JoinGroup& request) { return group(code::kJoinGroup, request); }
  std::uint32_t operator()(const LeaveGroup& request) { return group(code::kLeaveGroup, request); }

  std::uint32_t operator()(const DescribeOptions&) { return kUnsupported; }
  std::uint32_t operator()(const SyncGroup&) { return kUnsupported; }
  std::uint32_t operator()(const AttachConsumerSession&) { return kUnsupported; }
  std::uint32_t operator()(const GetPollRouting&) { return kUnsupported; }
  std::uint32_t operator()(const PollMessagesOnPrimary&) { return kUnsupported; }
  std::uint32_t operator()(const GetConsumerOffsetRouting&) { return kUnsupported; }

 private:
  std::uint32_t stream(std::uint32_t code, const auto& request) {
    ident(request.stream, "stream");
    return code;
  }
  std::uint32_t topic(std::uint32_t code, const auto& request) {
    ident(request.stream, "stream");
    ident(request.topic, "topic");
    return code;
  }
  std::uint32_t group(std::uint32_t code, const auto& request) {
    topic(code, request);
    ident(request.group, "group");
    return code;
  }
  void target(const auto& request) {
    consumer(request.consumer);
    ident(request.stream, "stream");
    ident(request.topic, "topic");
    check_partition(request.partition.value_or(0));
    optional_partition(request.partition);
  }
  // As it arrived, or with the fields that the server sets left 0.
  void message(const base::Record& record) {
    if (!record.raw.empty()) {
      bytes(record.raw);
      return;
    }
    std::array<std::byte, kMessageHeaderSize> header;
    write_message_header(header.data(), header_to_send(record, 0));
    bytes(header);
    bytes(record.body);
  }
  void settings(const TopicSettings& value) {
    u8(static_cast<std::uint8_t>(value.compression));
    u64(value.message_expiry);
    u64(value.max_topic_size);
    u8(value.replication_factor);
  }
  void partition(std::uint32_t value) {
    check_partition(value);
    u32(value);
  }
  void check_partition(std::uint32_t value) {
    if (value >= kPartitionLimit)
      refuse("partition", std::to_string(value) + " would alias a smaller one in the server");
  }
};

// Reads the payload of one command. Callers ask the base class whether all of it was there.
class Decoder : public WireReader {
 public:
  using WireReader::WireReader;

  Request decode(std::uint32_t code);

 private:
  template <class T>
  T stream() {
    T request;
    request.stream = ident();
    return request;
  }
  template <class T>
  T topic() {
    T request = stream<T>();
    request.topic = ident();
    return request;
  }
  template <class T>
  T group() {
    T request = topic<T>();
    request.group = ident();
    return request;
  }
  template <class T>
  T target() {
    T request;
    request.consumer = consumer();
    request.stream = ident();
    request.topic = ident();
    request.partition = optional_partition();
    return request;
  }
  template <class T>
  T counted() {
    T request = topic<T>();
    request.count = u32();
    return request;
  }
  TopicSettings settings() {
    TopicSettings value;
    compression_ = u8();
    value.compression = static_cast<Compression>(compression_);
    value.message_expiry = u64();
    value.max_topic_size = u64();
    value.replication_factor = u8();
    return value;
  }
  // The server looks at the byte only after the whole payload has been read.
  void check_compression() {
    if (compression_ != 1 && compression_ != 2) refuse(kStatusInvalidCommand);
  }
  CreateUser create_user();
  UpdateUser update_user();
  UpdatePermissions update_permissions();
  ChangePassword change_password();
  LoginUser login_user();
  LoginToken login_token();
  CreateToken create_token();
  UpdateStream update_stream();
  CreateTopic create_topic();
  UpdateTopic update_topic();
  DeleteSegments delete_segments();
  PollMessages poll_messages();
  FlushUnsaved flush_unsaved();
  StoreConsumerOffset store_consumer_offset();
  CreateGroup create_group();

  std::uint8_t compression_ = 0;
};

CreateUser Decoder::create_user() {
  CreateUser request;
  request.name = name();
  request.password = short_text();
  request.status = u8();
  request.permissions = optional_permissions();
  return request;
}
UpdateUser Decoder::update_user() {
  UpdateUser request;
  request.user = ident();
  if (boolean()) request.name = name();
  if (boolean()) request.status = u8();
  return request;
}
UpdatePermissions Decoder::update_permissions() {
  UpdatePermissions request;
  request.user = ident();
  request.permissions = optional_permissions();
  return request;
}
ChangePassword Decoder::change_password() {
  ChangePassword request;
  request.user = ident();
  request.current = short_text();
  request.fresh = short_text();
  return request;
}
LoginUser Decoder::login_user() {
  LoginUser request;
  request.username = name();
  request.password = short_text();
  request.client_name.clear();
  request.client_version = long_text();
  request.context = long_text();
  return request;
}
LoginToken Decoder::login_token() {
  LoginToken request;
  request.token = name();
  request.client_name.clear();
  return request;
}
CreateToken Decoder::create_token() {
  CreateToken request;
  request.name = name();
  request.expiry = u64();
  return request;
}
UpdateStream Decoder::update_stream() {
  auto request = stream<UpdateStream>();
  request.name = name();
  return request;
}
CreateTopic Decoder::create_topic() {
  auto request = stream<CreateTopic>();
  request.partitions_count = u32();
  request.settings = settings();
  request.name = name();
  check_compression();
  return request;
}
UpdateTopic Decoder::update_topic() {
  auto request = topic<UpdateTopic>();
  request.settings = settings();
  request.name = name();
  check_compression();
  return request;
}
DeleteSegments Decoder::delete_segments() {
  auto request = topic<DeleteSegments>();
  request.partition = u32();
  request.count = u32();
  return request;
}
PollMessages Decoder::poll_messages() {
  auto request = target<PollMessages>();
  request.strategy = strategy();
  request.count = u32();
  request.auto_commit = boolean();
  return request;
}
FlushUnsaved Decoder::flush_unsaved() {
  auto request = topic<FlushUnsaved>();
  request.partition = u32();
  request.fsync = boolean();
  return request;
}
StoreConsumerOffset Decoder::store_consumer_offset() {
  auto request = target<StoreConsumerOffset>();
  request.offset = u64();
  return request;
}
CreateGroup Decoder::create_group() {
  auto request = topic<CreateGroup>();
  request.name = name();
  return request;
}

Request Decoder::decode(std::uint32_t code) {
  switch (code) {
    case code::kPing:
      return Ping{};
    case code::kGetStats:
      return GetStats{};
    case code::kGetClusterMetadata:
      return GetClusterMetadata{};
    case code::kGetMe:
      return GetMe{};
    case code::kGetClient:
      return GetClient{u32()};
    case code::kGetClients:
      return GetClients{};
    case code::kGetUser:
      return GetUser{ident()};
    case code::kGetUsers:
      return GetUsers{};
    case code::kCreateUser:
      return create_user();
    case code::kDeleteUser:
      return DeleteUser{ident()};
    case code::kUpdateUser:
      return update_user();
    case code::kUpdatePermissions:
      return update_permissions();
    case code::kChangePassword:
      return change_password();
    case code::kLoginUser:
      return login_user();
    case code::kLoginToken:
      return login_token();
    case code::kLogout:
      return Logout{};
    case code::kGetTokens:
      return GetTokens{};
    case code::kCreateToken:
      return create_token();
    case code::kDeleteToken:
      return DeleteToken{name()};
    case code::kGetStream:
      return stream<GetStream>();
    case code::kGetStreams:
      return GetStreams{};
    case code::kCreateStream:
      return CreateStream{name(), {}};
    case code::kUpdateStream:
      return update_stream();
    case code::kDeleteStream:
      return stream<DeleteStream>();
    case code::kPurgeStream:
      return stream<PurgeStream>();
    case code::kGetTopic:
      return topic<GetTopic>();
    case code::kGetTopics:
      return stream<GetTopics>();
    case code::kCreateTopic:
      return create_topic();
    case code::kUpdateTopic:
      return update_topic();
    case code::kDeleteTopic:
      return topic<DeleteTopic>();
    case code::kPurgeTopic:
      return topic<PurgeTopic>();
    case code::kCreatePartitions:
      return counted<CreatePartitions>();
    case code::kDeletePartitions:
      return counted<DeletePartitions>();
    case code::kDeleteSegments:
      return delete_segments();
    case code::kPollMessages:
      return poll_messages();
    case code::kFlushUnsaved:
      return flush_unsaved();
    case code::kGetConsumerOffset:
      return target<GetConsumerOffset>();
    case code::kStoreConsumerOffset:
      return store_consumer_offset();
    case code::kDeleteConsumerOffset:
      return target<DeleteConsumerOffset>();
    case code::kGetGroup:
      return group<GetGroup>();
    case code::kGetGroups:
      return topic<GetGroups>();
    case code::kCreateGroup:
      return create_group();
    case code::kDeleteGroup:
      return group<DeleteGroup>();
    case code::kJoinGroup:
      return group<JoinGroup>();
    case code::kLeaveGroup:
      return group<LeaveGroup>();
    default:
      refuse(kStatusInvalidCommand);
      return Ping{};
  }
}

base::Error refused(std::uint32_t status, std::string_view what) {
  return base::Error(base::ErrorCode::kMalformed, "decode", std::string(what), "status " + std::to_string(status))
      .with_status(status);
}

}  // namespace

RequestHeader read_request_header(base::ByteView bytes) {
  return {base::load<std::uint32_t>(bytes.data()), base::load<std::uint32_t>(bytes.data() + 4)};
}

base::Result<base::Bytes> encode_request(const Request& request) {
  RETURN_IF_ERROR(refuse_external_group(request));
  base::Bytes frame(kHeaderSize);
  Encoder encoder(frame);
  const std::uint32_t code = std::visit(encoder, request);
  if (code == kUnsupported)
    return base::Error(base::ErrorCode::kUnsupported, "encode", std::string(name_of(request)),
                       "server 0.8 has no such command");
  RETURN_IF_ERROR(encoder.status());
  base::store(frame.data(), static_cast<std::uint32_t>(frame.size() - sizeof(std::uint32_t)));
  base::store(frame.data() + sizeof(std::uint32_t), code);
  return frame;
}

base::Result<Request> decode_request(std::uint32_t code, base::ByteView payload) {
  if (code == code::kSendMessages) {
    auto request = decode_send(payload);
    if (!request) return std::move(request).error();
    return Request(std::move(*request));
  }
  Decoder decoder(payload);
  Request request = decoder.decode(code);
  if (!decoder.ok()) return refused(decoder.status(), "request " + std::to_string(code));
  return request;
}

}  // namespace iggy::legacy
