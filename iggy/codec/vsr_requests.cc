// Request bodies. Each layout is written once, for both directions.
#include <algorithm>
#include <concepts>
#include <iterator>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/digest.h"
#include "iggy/codec/codes.h"
#include "iggy/codec/vsr.h"
#include "iggy/codec/vsr_layout.h"

namespace iggy::vsr {
namespace {

constexpr std::uint32_t kStatusUnsupported = 5;
constexpr std::uint32_t kStatusNotFound = 20;
constexpr std::uint32_t kStatusIncompatible = 14003;

struct Address {
  Operation operation = Operation::kRead;
  std::uint32_t code = 0;  // reads only
  friend bool operator==(const Address&, const Address&) = default;
};

constexpr Address read(std::uint32_t code) { return {Operation::kRead, code}; }
constexpr Address write(Operation operation) { return {operation, 0}; }

template <class T>
constexpr Address kAddress = {};
template <>
constexpr Address kAddress<Ping> = read(code::kPing);
template <>
constexpr Address kAddress<GetStats> = read(code::kGetStats);
template <>
constexpr Address kAddress<GetClusterMetadata> = read(code::kGetClusterMetadata);
template <>
constexpr Address kAddress<DescribeOptions> = read(code::kDescribeOptions);
template <>
constexpr Address kAddress<AttachConsumerSession> = read(code::kAttachConsumerSession);
template <>
constexpr Address kAddress<GetMe> = read(code::kGetMe);
template <>
constexpr Address kAddress<GetClient> = read(code::kGetClient);
template <>
constexpr Address kAddress<GetClients> = read(code::kGetClients);
template <>
constexpr Address kAddress<GetUser> = read(code::kGetUser);
template <>
constexpr Address kAddress<GetUsers> = read(code::kGetUsers);
template <>
constexpr Address kAddress<GetTokens> = read(code::kGetTokens);
template <>
constexpr Address kAddress<PollMessages> = read(code::kPollMessages);
template <>
constexpr Address kAddress<FlushUnsaved> = read(code::kFlushUnsaved);
template <>
constexpr Address kAddress<GetPollRouting> = read(code::kGetPollRouting);
template <>
constexpr Address kAddress<PollMessagesOnPrimary> = read(code::kPollMessagesOnPrimary);
template <>
constexpr Address kAddress<GetConsumerOffset> = read(code::kGetConsumerOffset);
template <>
constexpr Address kAddress<GetConsumerOffsetRouting> = read(code::kGetConsumerOffsetRouting);
template <>
constexpr Address kAddress<GetStream> = read(code::kGetStream);
template <>
constexpr Address kAddress<GetStreams> = read(code::kGetStreams);
template <>
constexpr Address kAddress<GetTopic> = read(code::kGetTopic);
template <>
constexpr Address kAddress<GetTopics> = read(code::kGetTopics);
template <>
constexpr Address kAddress<GetGroup> = read(code::kGetGroup);
template <>
constexpr Address kAddress<GetGroups> = read(code::kGetGroups);
template <>
constexpr Address kAddress<SyncGroup> = read(code::kSyncGroup);
template <>
constexpr Address kAddress<LoginUser> = write(Operation::kRegister);
template <>
constexpr Address kAddress<LoginToken> = write(Operation::kRegister);
template <>
constexpr Address kAddress<Logout> = write(Operation::kLogout);
template <>
constexpr Address kAddress<CreateStream> = write(Operation::kCreateStream);
template <>
constexpr Address kAddress<UpdateStream> = write(Operation::kUpdateStream);
template <>
constexpr Address kAddress<DeleteStream> = write(Operation::kDeleteStream);
template <>
constexpr Address kAddress<PurgeStream> = write(Operation::kPurgeStream);
template <>
constexpr Address kAddress<CreateTopic> = write(Operation::kCreateTopic);
template <>
constexpr Address kAddress<UpdateTopic> = write(Operation::kUpdateTopic);
template <>
constexpr Address kAddress<DeleteTopic> = write(Operation::kDeleteTopic);
template <>
constexpr Address kAddress<PurgeTopic> = write(Operation::kPurgeTopic);
template <>
constexpr Address kAddress<CreatePartitions> = write(Operation::kCreatePartitions);
template <>
constexpr Address kAddress<DeletePartitions> = write(Operation::kDeletePartitions);
template <>
constexpr Address kAddress<DeleteSegments> = write(Operation::kDeleteSegments);
template <>
constexpr Address kAddress<CreateGroup> = write(Operation::kCreateGroup);
template <>
constexpr Address kAddress<DeleteGroup> = write(Operation::kDeleteGroup);
template <>
constexpr Address kAddress<JoinGroup> = write(Operation::kJoinGroup);
template <>
constexpr Address kAddress<LeaveGroup> = write(Operation::kLeaveGroup);
template <>
constexpr Address kAddress<CreateUser> = write(Operation::kCreateUser);
template <>
constexpr Address kAddress<UpdateUser> = write(Operation::kUpdateUser);
template <>
constexpr Address kAddress<DeleteUser> = write(Operation::kDeleteUser);
template <>
constexpr Address kAddress<ChangePassword> = write(Operation::kChangePassword);
template <>
constexpr Address kAddress<UpdatePermissions> = write(Operation::kUpdatePermissions);
template <>
constexpr Address kAddress<CreateToken> = write(Operation::kCreateToken);
template <>
constexpr Address kAddress<DeleteToken> = write(Operation::kDeleteToken);
template <>
constexpr Address kAddress<SendMessages> = write(Operation::kSendMessages);
template <>
constexpr Address kAddress<StoreConsumerOffset> = write(Operation::kStoreConsumerOffset);
template <>
constexpr Address kAddress<DeleteConsumerOffset> = write(Operation::kDeleteConsumerOffset);

// --- layouts

template <class Io, class T>
  requires std::is_empty_v<T>
void layout(Io&, T&) {}

template <class Io, Is<DescribeOptions> T>
void layout(Io& io, T& r) {
  io.number(r.scope);
}
template <class Io, Is<GetClient> T>
void layout(Io& io, T& r) {
  io.number(r.client_id);
}

template <class Io, Is<LoginUser, LoginToken> T>
void layout(Io& io, T& r) {
  io.number(r.protocol_word);
  io.name(r.client_name, "client name");
  io.name(r.client_version, "client version");
  if constexpr (Is<T, LoginUser>) {
    io.text8(r.username, "username");
    io.text8(r.password, "password");
  } else {
    io.text8(r.token, "token");
  }
  io.text32(r.context);
}

template <class Io, Is<GetUser, DeleteUser> T>
void layout(Io& io, T& r) {
  io.ident(r.user, "user");
}
template <class Io, Is<CreateUser> T>
void layout(Io& io, T& r) {
  io.name(r.name, "user name");
  io.text8(r.password, "password");
  io.number(r.status);
  io.permissions(r.permissions);
  io.options(r.options);
}
template <class Io, Is<UpdateUser> T>
void layout(Io& io, T& r) {
  io.ident(r.user, "user");
  io.optional(r.name, [](auto& each, auto& name) { each.name(name, "user name"); });
  io.optional(r.status, [](auto& each, auto& status) { each.number(status); });
  io.options(r.options);
}
template <class Io, Is<UpdatePermissions> T>
void layout(Io& io, T& r) {
  io.ident(r.user, "user");
  io.permissions(r.permissions);
}
template <class Io, Is<ChangePassword> T>
void layout(Io& io, T& r) {
  io.ident(r.user, "user");
  io.text8(r.current, "current password");
  io.text8(r.fresh, "new password");
}
template <class Io, Is<CreateToken> T>
void layout(Io& io, T& r) {
  io.name(r.name, "token name");
  io.number(r.expiry);
}
template <class Io, Is<DeleteToken> T>
void layout(Io& io, T& r) {
  io.name(r.name, "token name");
}

template <class Io, Is<GetStream, GetTopics, DeleteStream, PurgeStream> T>
void layout(Io& io, T& r) {
  io.ident(r.stream, "stream");
}
template <class Io, Is<CreateStream> T>
void layout(Io& io, T& r) {
  io.name(r.name, "stream name");
  io.options(r.options);
}
template <class Io, Is<UpdateStream> T>
void layout(Io& io, T& r) {
  io.ident(r.stream, "stream");
  io.name(r.name, "stream name");
  io.options(r.options);
}

template <class Io, class T>
void target(Io& io, T& r) {
  io.ident(r.stream, "stream");
  io.ident(r.topic, "topic");
}
template <class Io, Is<GetTopic, DeleteTopic, PurgeTopic, GetGroups> T>
void layout(Io& io, T& r) {
  target(io, r);
}
template <class Io, Is<CreateTopic> T>
void layout(Io& io, T& r) {
  io.ident(r.stream, "stream");
  io.number(r.partitions_count);
  io.name(r.name, "topic name");
  if constexpr (Io::kReading) {
    io.options(r.settings.options);
    read_settings(r.settings);
  } else {
    io.options(settings_to_options(r.settings));
  }
}
template <class Io, Is<UpdateTopic> T>
void layout(Io& io, T& r) {
  target(io, r);
  io.name(r.name, "topic name");
  io.options(r.patch);
}
template <class Io, Is<CreatePartitions, DeletePartitions> T>
void layout(Io& io, T& r) {
  target(io, r);
  io.number(r.count);
}
template <class Io, Is<DeleteSegments> T>
void layout(Io& io, T& r) {
  target(io, r);
  io.number(r.partition);
  io.number(r.count);
}
template <class Io, Is<FlushUnsaved> T>
void layout(Io& io, T& r) {
  target(io, r);
  io.number(r.partition);
  io.boolean(r.fsync);
}

template <class Io, Is<PollMessages> T>
void layout(Io& io, T& r) {
  io.consumer(r.consumer);
  target(io, r);
  io.partition(r.partition);
  io.strategy(r.strategy);
  io.number(r.count);
  io.boolean(r.auto_commit);
}
template <class Io, Is<GetPollRouting, PollMessagesOnPrimary> T>
void layout(Io& io, T& r) {
  layout(io, r.poll);
}
template <class Io, Is<GetConsumerOffset, StoreConsumerOffset, DeleteConsumerOffset> T>
void layout(Io& io, T& r) {
  io.consumer(r.consumer);
  target(io, r);
  io.partition(r.partition);
  if constexpr (Is<T, StoreConsumerOffset>) io.number(r.offset);
  if constexpr (!Is<T, GetConsumerOffset>) io.number(r.ack);
}
template <class Io, Is<GetConsumerOffsetRouting> T>
void layout(Io& io, T& r) {
  layout(io, r.get);
}
template <class Io, Is<AttachConsumerSession> T>
void layout(Io& io, T& r) {
  io.id(r.client);
  io.number(r.session);
  io.number(r.watermark);
}

template <class Io, Is<CreateGroup> T>
void layout(Io& io, T& r) {
  target(io, r);
  io.name(r.name, "group name");
}
template <class Io, Is<GetGroup, DeleteGroup, JoinGroup, LeaveGroup, SyncGroup> T>
void layout(Io& io, T& r) {
  target(io, r);
  io.ident(r.group, "group");
}

// --- writing

base::Status write_body(const Request& request, base::Bytes& out) {
  WireWriter writer(out);
  Out io(writer);
  if (const auto* send = std::get_if<SendMessages>(&request)) {
    if (send->batch.size() < kBatchHeaderSize)
      return base::Error(base::ErrorCode::kInvalidArgument, "encode", "send_messages", "has no batch");
    writer.send_metadata(send->stream, send->topic, send->partitioning,
                         static_cast<std::uint32_t>(send->records.size()));
    writer.bytes(send->batch);
    return writer.status();
  }
  std::visit(
      [&io](const auto& value) {
        if constexpr (!Is<decltype(value), const SendMessages&>) layout(io, value);
      },
      request);
  return writer.status();
}

// Metadata and session operations carry the hash of their body; reads and partition operations do not.
bool is_stamped(Operation operation) {
  switch (operation) {
    case Operation::kRead:
    case Operation::kSendMessages:
    case Operation::kStoreConsumerOffset:
    case Operation::kDeleteConsumerOffset:
      return false;
    default:
      return true;
  }
}

Address address_of(const Request& request) {
  return std::visit([]<class T>(const T&) { return kAddress<T>; }, request);
}

// --- reading

base::Error refused(std::uint32_t status, std::string_view what, std::string message) {
  base::Error error(base::ErrorCode::kMalformed, "decode request", std::string(what), std::move(message));
  error.with_status(status);
  return error;
}

// Codes of replicated operations and, 40 and 45, of the logins with a version prefix.
bool has_own_operation(std::uint32_t code) {
  using namespace code;
  static constexpr std::uint32_t kCodes[] = {40,
                                             45,
                                             kCreateUser,
                                             kDeleteUser,
                                             kUpdateUser,
                                             kUpdatePermissions,
                                             kChangePassword,
                                             kLogout,
                                             kCreateToken,
                                             kDeleteToken,
                                             kSendMessages,
                                             kStoreConsumerOffset,
                                             kDeleteConsumerOffset,
                                             kCreateStream,
                                             kDeleteStream,
                                             kUpdateStream,
                                             kPurgeStream,
                                             kCreateTopic,
                                             kDeleteTopic,
                                             kUpdateTopic,
                                             kPurgeTopic,
                                             kCreatePartitions,
                                             kDeletePartitions,
                                             kDeleteSegments,
                                             kCreateGroup,
                                             kDeleteGroup,
                                             kJoinGroup,
                                             kLeaveGroup};
  return std::ranges::find(kCodes, code) != std::end(kCodes);
}

base::Result<Request> decode_login(base::ByteView body) {
  WireReader prefix(body);
  const std::uint32_t word = prefix.u32();
  prefix.name();
  prefix.name();
  if (!prefix.ok()) return refused(4, "login", "the version prefix is missing");
  if (word >> 10U != kProtocolWord >> 10U)
    return refused(kStatusIncompatible, "login", "protocol word " + std::to_string(word));
  // The password shape first, then the token shape on the same bytes; bytes behind either are ignored.
  WireReader as_user(body);
  In user_io(as_user);
  LoginUser user;
  layout(user_io, user);
  if (as_user.ok()) return Request(std::move(user));
  WireReader as_token(body);
  In token_io(as_token);
  LoginToken token;
  layout(token_io, token);
  if (as_token.ok()) return Request(std::move(token));
  return refused(4, "login", "neither a password nor a token");
}

base::Result<Request> decode_send(base::ByteView body) {
  const auto silent = [](std::string message) { return refused(0, "send_messages", std::move(message)); };
  base::ByteReader reader(body);
  const std::uint32_t length = reader.u32();
  WireReader metadata(reader.bytes(length));
  SendMessages send;
  send.stream = metadata.ident();
  send.topic = metadata.ident();
  send.partitioning = metadata.partitioning();
  const std::uint32_t count = metadata.u32();
  if (!reader.ok() || !metadata.ok() || !metadata.at_end())
    return refused(kStatusNotFound, "send_messages", "malformed metadata");
  send.batch = reader.rest();
  if (send.batch.size() < kBatchHeaderSize) return silent("no batch");
  if (count > (send.batch.size() - kBatchHeaderSize) / kFrameHeaderSize) return silent("more messages than can fit");
  send.records.reserve(count);
  if (const base::Status valid = decode_batch(send.batch, send.records, true); !valid)
    return silent(valid.error().message());
  if (send.records.size() != count)
    return silent("metadata says " + std::to_string(count) + " messages, the batch has " +
                  std::to_string(send.records.size()));
  return Request(std::move(send));
}

template <class T>
base::Result<Request> decode_as(const Address& address, base::ByteView body) {
  if constexpr (Is<T, LoginUser, LoginToken>) {
    return decode_login(body);
  } else if constexpr (Is<T, SendMessages>) {
    return decode_send(body);
  } else {
    WireReader reader(body);
    In io(reader);
    T value;
    layout(io, value);
    if (reader.ok() && reader.at_end()) return Request(std::move(value));
    // A malformed offset write gets no answer.
    const bool silent =
        address.operation == Operation::kStoreConsumerOffset || address.operation == Operation::kDeleteConsumerOffset;
    return refused(silent ? 0 : kStatusInvalidCommand, name_of(Request(T{})),
                   reader.ok() ? "bytes behind its end" : "malformed body");
  }
}

template <std::size_t I = 0>
base::Result<Request> decode_at(const Address& address, base::ByteView body) {
  if constexpr (I == std::variant_size_v<Request>) {
    if (address.operation != Operation::kRead) return refused(0, "", "undefined operation");
    if (is_old_login(address.code)) return refused(4, "", "login of an older protocol");
    return refused(has_own_operation(address.code) ? kStatusUnsupported : kStatusInvalidCommand, "",
                   "unknown read code " + std::to_string(address.code));
  } else {
    using T = std::variant_alternative_t<I, Request>;
    return kAddress<T> == address ? decode_as<T>(address, body) : decode_at<I + 1>(address, body);
  }
}

}  // namespace

Operation operation_of(const Request& request) { return address_of(request).operation; }

std::uint32_t code_of(const Request& request) { return address_of(request).code; }

base::Result<base::Bytes> encode_body(const Request& request) {
  base::Bytes body;
  RETURN_IF_ERROR(write_body(request, body));
  return body;
}

base::Result<base::Bytes> encode_request(const Request& request, const RequestIdentity& identity) {
  base::check(!identity.client.is_zero(), "a client id is never 0");
  RETURN_IF_ERROR(refuse_external_group(request));
  const auto [operation, code] = address_of(request);
  base::Bytes frame(kHeaderSize);
  RETURN_IF_ERROR(write_body(request, frame));
  if (frame.size() > kMaxFrame)
    return base::Error(base::ErrorCode::kInvalidArgument, "encode", std::string(name_of(request)),
                       "has " + std::to_string(frame.size()) + " bytes, a frame can have 64 MiB");
  RequestHeader header{.size = static_cast<std::uint32_t>(frame.size()),
                       .command = std::to_underlying(Command::kRequest),
                       .client = identity.client,
                       .request_checksum = {},
                       .request = identity.request,
                       .operation = std::to_underlying(operation),
                       .session = identity.session,
                       .code = code};
  if (is_stamped(operation)) header.request_checksum.low = base::xxh3_64(base::ByteView(frame).subspan(kHeaderSize));
  write_request_header(frame.data(), header);
  return frame;
}

base::Result<Request> decode_request(const RequestHeader& header, base::ByteView body) {
  const auto operation = static_cast<Operation>(header.operation);
  if (header.command != std::to_underlying(Command::kRequest))
    return refused(0, "", "command byte " + std::to_string(header.command));
  if (header.client.is_zero()) return refused(0, "", "client 0");
  const bool numbered = header.session > 0 && header.request > 0;
  const bool unnumbered = header.session == 0 && header.request == 0;
  if (operation != Operation::kRead && !(operation == Operation::kRegister ? unnumbered : numbered))
    return refused(0, "", "session or request number does not fit the operation");
  if (!header.request_checksum.is_zero() && header.request_checksum != base::MessageId{base::xxh3_64(body), 0})
    return refused(kStatusInvalidFormat, "", "wrong request checksum");
  return decode_at({operation, operation == Operation::kRead ? header.code : 0}, body);
}

}  // namespace iggy::vsr
