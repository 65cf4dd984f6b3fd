#include "iggy/codec/vsr_golden.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"

namespace iggy::golden {

using Json = nlohmann::json;
using namespace vsr;  // NOLINT(google-build-using-namespace)

base::MessageId wide(const Json& value) {
  if (value.is_number()) return {value.get<std::uint64_t>(), 0};
  return wide_number(value.get<std::string>());
}

base::Bytes build_batch(const std::vector<Message>& messages, std::uint64_t partition, std::uint64_t base_offset,
                        std::uint64_t base_timestamp) {
  std::uint64_t origin = ~0ULL;
  for (const Message& message : messages) origin = std::min(origin, message.origin);
  base::Bytes checksums;
  base::Bytes frames;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    base::Bytes rest;  // everything behind the checksum
    base::ByteWriter out(rest);
    out.id(messages[i].id);
    out.u32(static_cast<std::uint32_t>(i));
    out.u32(static_cast<std::uint32_t>(messages[i].origin - origin));
    out.u32(static_cast<std::uint32_t>(messages[i].headers.size()));
    out.u32(static_cast<std::uint32_t>(messages[i].payload.size()));
    out.u64(0);
    out.bytes(messages[i].payload);
    out.bytes(messages[i].headers);
    base::ByteWriter(checksums).u64(base::xxh3_64(rest));
    base::ByteWriter(frames).u64(base::xxh3_64(rest));
    base::ByteWriter(frames).bytes(rest);
  }
  base::Bytes header;
  base::ByteWriter out(header);
  out.u64(partition);
  out.u64(base_offset);
  out.u64(base_timestamp);
  out.u64(origin);
  out.u64(256 + frames.size());
  base::Bytes hashed = header;
  base::ByteWriter(hashed).u32(static_cast<std::uint32_t>(messages.size()));
  base::ByteWriter(hashed).bytes(checksums);
  out.u64(base::xxh3_64(hashed));
  out.u32(static_cast<std::uint32_t>(messages.size()));
  out.zeros(204);
  out.bytes(frames);
  return header;
}

Permissions permissions_of(const Json& json) {
  Permissions all;
  const Json& global = json["global"];
  all.manage_servers = global["manage_servers"];
  all.read_servers = global["read_servers"];
  all.manage_users = global["manage_users"];
  all.read_users = global["read_users"];
  all.manage_streams = global["manage_streams"];
  all.read_streams = global["read_streams"];
  all.manage_topics = global["manage_topics"];
  all.read_topics = global["read_topics"];
  all.poll_messages = global["poll_messages"];
  all.send_messages = global["send_messages"];
  for (const Json& each : json["streams"]) {
    Permissions::OfStream stream{.id = each["stream_id"],
                                 .manage_stream = each["manage_stream"],
                                 .read_stream = each["read_stream"],
                                 .manage_topics = each["manage_topics"],
                                 .read_topics = each["read_topics"],
                                 .poll_messages = each["poll_messages"],
                                 .send_messages = each["send_messages"],
                                 .topics = {}};
    for (const Json& topic : each["topics"])
      stream.topics.push_back({.id = topic["topic_id"],
                               .manage_topic = topic["manage_topic"],
                               .read_topic = topic["read_topic"],
                               .poll_messages = topic["poll_messages"],
                               .send_messages = topic["send_messages"]});
    all.streams.push_back(stream);
  }
  return all;
}

template <class T>
base::Bytes little_endian(T value) {
  base::Bytes bytes;
  base::ByteWriter(bytes).write(value);
  return bytes;
}

// The value of an option as `kind`: 2 string, 3 bool, 11 u32, 12 u64.
Option option_from(const std::string& key, const Json& value, std::uint8_t kind) {
  if (kind == 2) {
    const base::ByteView text = base::as_bytes(value.get_ref<const std::string&>());
    return {key, kind, {text.begin(), text.end()}};
  }
  if (kind == 3) return {key, kind, little_endian<std::uint8_t>(value.get<bool>() ? 1 : 0)};
  if (kind == 11) return {key, kind, little_endian(static_cast<std::uint32_t>(number(value)))};
  return {key, kind, little_endian(number(value))};
}

// [{key, kind, value}], or {key: value} where strings, bools and numbers have their natural kind.
std::vector<Option> options_from(const Json& json) {
  std::vector<Option> options;
  if (json.is_array()) {
    for (const Json& each : json) options.push_back(option_from(each["key"], each["value"], each["kind"]));
    return options;
  }
  // The file's order of an object is lost in JSON; the vectors use this one.
  for (const char* key :
       {"durability", "consumer_offset_durability", "compression_algorithm", "segment_size", "preallocate_segments"}) {
    if (!json.contains(key)) continue;
    const Json& value = json[key];
    options.push_back(option_from(key, value, value.is_string() ? 2 : value.is_boolean() ? 3 : 12));
  }
  return options;
}

base::Bytes payload_from(const Json& message) {
  if (!message.contains("payload_fill")) return from_hex(message["payload_hex"].get<std::string>());
  base::Bytes payload(message["payload_fill"]["length"].get<std::size_t>());
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>((31 * i + 7) % 251);
  return payload;
}

std::vector<Message> messages_from(const Json& inputs) {
  std::vector<Message> messages;
  if (inputs.contains("messages_rule")) {
    for (std::uint32_t i = 0; i < 1000; ++i)
      messages.push_back({{1000 + i, 0}, 1'700'000'000'000'000ULL + i, little_endian(i), {}});
    return messages;
  }
  for (const Json& each : inputs["messages"]) {
    Message message{wide(each["id"]), number(each["origin_timestamp"]), payload_from(each), {}};
    if (!each["user_headers_hex"].is_null()) message.headers = from_hex(each["user_headers_hex"].get<std::string>());
    messages.push_back(std::move(message));
  }
  return messages;
}

// The request of a vector of layer `body`, from command code and inputs.
Built request_of(const Vector& vector) {
  const Json& in = vector.inputs;
  Built built;
  const auto text = [&](const char* key) { return in.at(key).get<std::string>(); };
  const auto ident = [&](const char* key) { return golden::ident(in.at(key)); };
  const auto u32 = [&](const char* key) { return static_cast<std::uint32_t>(number(in.at(key))); };
  const auto partition = [&]() -> std::optional<std::uint32_t> {
    if (in.at("partition_id").is_null()) return std::nullopt;
    return u32("partition_id");
  };
  const auto permissions = [&]() -> std::optional<Permissions> {
    if (in.at("permissions").is_null()) return std::nullopt;
    if (in.at("permissions").is_object()) return permissions_of(in.at("permissions"));
    for (const Vector& each : load_vectors("iggy/codec/golden/vsr/vectors.json"))
      if (each.name == "permissions/example") return permissions_of(each.inputs);
    return std::nullopt;
  };
  const auto poll = [&]() -> PollMessages {
    if (!in.contains("consumer"))  // "same_as": the poll of 103
      return {{ConsumerKind::kConsumer, 1U}, 1U, 0U, 0U, {PollStrategy::Kind::kOffset, 101}, 50, false};
    return {consumer(in.at("consumer")),
            ident("stream"),
            ident("topic"),
            partition(),
            strategy(in.at("strategy")),
            u32("count"),
            in.at("auto_commit").get<bool>()};
  };
  const auto get_offset = [&]() -> GetConsumerOffset {
    return {consumer(in.at("consumer")), ident("stream"), ident("topic"), partition()};
  };
  std::optional<Request>& r = built.request;
  const std::string context = in.contains("context") && in["context"].is_string() ? text("context") : "";
  switch (vector.code) {
    case 1:
      r = Ping{};
      break;
    case 10:
      r = GetStats{};
      break;
    case 12:
      r = GetClusterMetadata{};
      break;
    case 13:
      r = DescribeOptions{static_cast<std::uint8_t>(u32("scope"))};
      break;
    case 14:
      r = AttachConsumerSession{wide(in["client_id"]), number(in["session"]), number(in["metadata_watermark"])};
      break;
    case 20:
      r = GetMe{};
      break;
    case 22:
      r = GetClients{};
      break;
    case 31:
      r = GetUser{ident("user")};
      break;
    case 32:
      r = GetUsers{};
      break;
    case 33:
      r = CreateUser{text("username"), text("password"), static_cast<std::uint8_t>(u32("status")), permissions(),
                     options_from(in["options"])};
      break;
    case 34:
      r = DeleteUser{ident("user")};
      break;
    case 35:
      r = UpdateUser{ident("user"), text("username"), static_cast<std::uint8_t>(u32("status")),
                     options_from(in["options"])};
      break;
    case 36:
      r = UpdatePermissions{ident("user"), permissions()};
      break;
    case 37:
      r = ChangePassword{ident("user"), text("current"), text("new")};
      break;
    case 39:
      r = Logout{};
      break;
    case 40:
      r = LoginUser{text("username"),    text("password"), text("sdk_name"),
                    text("sdk_version"), context,          u32("protocol_version")};
      break;
    case 41:
      r = GetTokens{};
      break;
    case 42:
      r = CreateToken{text("name"), number(in["expiry"])};
      break;
    case 43:
      r = DeleteToken{text("name")};
      break;
    case 45:
      r = LoginToken{text("token"), text("sdk_name"), text("sdk_version"), context, u32("protocol_version")};
      break;
    case 100:
      r = poll();
      break;
    case 101: {
      built.storage = build_batch(messages_from(in));
      SendMessages send{ident("stream"), ident("topic"), partitioning(in["partitioning"]), {}, built.storage};
      if (decode_batch(send.batch, send.records, true)) r = std::move(send);
      break;
    }
    case 102:
      r = FlushUnsaved{ident("stream"), ident("topic"), u32("partition_id"), in["fsync"].get<bool>()};
      break;
    case 103:
      r = GetPollRouting{poll()};
      break;
    case 104:
      r = PollMessagesOnPrimary{poll()};
      break;
    case 120:
      r = get_offset();
      break;
    case 121:
      r = StoreConsumerOffset{consumer(in["consumer"]), ident("stream"),
                              ident("topic"),           partition(),
                              number(in["offset"]),     static_cast<std::uint8_t>(u32("ack"))};
      break;
    case 122:
      r = DeleteConsumerOffset{consumer(in["consumer"]), ident("stream"), ident("topic"), partition(),
                               static_cast<std::uint8_t>(u32("ack"))};
      break;
    case 123:
      r = GetConsumerOffsetRouting{get_offset()};
      break;
    case 200:
      r = GetStream{ident("stream")};
      break;
    case 201:
      r = GetStreams{};
      break;
    case 202:
      r = CreateStream{text("name"), options_from(in["options"])};
      break;
    case 203:
      r = DeleteStream{ident("stream")};
      break;
    case 204:
      r = UpdateStream{ident("stream"), text("name"), options_from(in["options"])};
      break;
    case 205:
      r = PurgeStream{ident("stream")};
      break;
    case 300:
      r = GetTopic{ident("stream"), ident("topic")};
      break;
    case 301:
      r = GetTopics{ident("stream")};
      break;
    case 302: {
      CreateTopic create{ident("stream"), text("name"), u32("partitions_count"), {}};
      TopicSettings& settings = create.settings;
      settings.message_expiry = settings.max_topic_size = 0;
      settings.options = options_from(in["options"]);
      for (const Option& option : settings.options) {
        if (option.key == "message_expiry") settings.message_expiry = base::load<std::uint64_t>(option.value.data());
        if (option.key == "max_topic_size") settings.max_topic_size = base::load<std::uint64_t>(option.value.data());
        if (option.key == "compression_algorithm")
          settings.compression = base::as_text(option.value) == "gzip" ? Compression::kGzip : Compression::kNone;
      }
      r = std::move(create);
      break;
    }
    case 303:
      r = DeleteTopic{ident("stream"), ident("topic")};
      break;
    case 304:
      r = UpdateTopic{ident("stream"), ident("topic"), text("name"), {}, options_from(in["options"])};
      break;
    case 305:
      r = PurgeTopic{ident("stream"), ident("topic")};
      break;
    case 402:
      r = CreatePartitions{ident("stream"), ident("topic"), u32("partitions_count")};
      break;
    case 403:
      r = DeletePartitions{ident("stream"), ident("topic"), u32("partitions_count")};
      break;
    case 503:
      r = DeleteSegments{ident("stream"), ident("topic"), u32("partition_id"), u32("segments_count")};
      break;
    case 600:
      r = GetGroup{ident("stream"), ident("topic"), ident("group")};
      break;
    case 601:
      r = GetGroups{ident("stream"), ident("topic")};
      break;
    case 602:
      r = CreateGroup{ident("stream"), ident("topic"), text("name")};
      break;
    case 603:
      r = DeleteGroup{ident("stream"), ident("topic"), ident("group")};
      break;
    case 604:
      r = JoinGroup{ident("stream"), ident("topic"), ident("group")};
      break;
    case 605:
      r = LeaveGroup{ident("stream"), ident("topic"), ident("group")};
      break;
    case 606:
      r = SyncGroup{ident("stream"), ident("topic"), ident("group")};
      break;
    default:
      break;
  }
  return built;
}

// Streams and topics of the vectors name only what differs from these values.
Stream stream_from(const Json& in) {
  return {.id = in["id"],
          .created_at = number(in.value("created_at", Json(1'700'000'000'000'000ULL))),
          .topics_count = in.value("topics_count", 1U),
          .size_bytes = number(in.value("size_bytes", Json(12345))),
          .messages_count = number(in.value("messages_count", Json(67))),
          .name = in["name"],
          .options = {}};
}
Topic topic_from(const Json& in) {
  Topic topic{.id = in["id"],
              .created_at = number(in.value("created_at", Json(1'700'000'000'000'001ULL))),
              .partitions_count = in.value("partitions_count", 2U),
              .settings = {},
              .derived = options_from(in["derived_options"]),
              .size_bytes = number(in.value("size_bytes", Json(12345))),
              .messages_count = number(in.value("messages_count", Json(67))),
              .name = in["name"]};
  topic.settings.message_expiry = number(in.value("message_expiry", Json(~0ULL)));
  topic.settings.max_topic_size = number(in.value("max_topic_size", Json(~0ULL)));
  topic.settings.compression = static_cast<Compression>(in.value("compression_algorithm", 1));
  topic.settings.options = options_from(in["options"]);
  return topic;
}
ClusterNode node_from(const Json& in) {
  return {in["name"], in["ip"], in["tcp"], in["quic"], in["http"], in["websocket"], in["role"], in["status"]};
}

// The reply of a vector of layer `payload`. Nothing for polls with records: those are made of batches.
std::optional<Reply> reply_of(const Vector& vector) {
  const Json& in = vector.inputs;
  const auto u64 = [&](const char* key) { return number(in.at(key)); };
  const auto u32 = [&](const char* key) { return static_cast<std::uint32_t>(number(in.at(key))); };
  if (vector.is("login/"))
    return LoggedIn{u32("user_id"), u64("session"), u32("server_protocol_version"), in["server_version"]};
  if (vector.is("describe_options/")) {
    OptionDescriptions all;
    for (const Json& each : in["entries"])
      all.options.push_back(
          {each["key"], each["kind"], option_from("", each["default"], each["kind"]).value, each["description"]});
    return all;
  }
  if (vector.is("get_stats/")) {
    Stats s;
    s.process_id = u32("process_id");
    s.cpu_usage = in["cpu_usage"];
    s.total_cpu_usage = in["total_cpu_usage"];
    s.memory_usage = u64("memory_usage");
    s.total_memory = u64("total_memory");
    s.available_memory = u64("available_memory");
    s.run_time = u64("run_time");
    s.start_time = u64("start_time");
    s.read_bytes = u64("read_bytes");
    s.written_bytes = u64("written_bytes");
    s.messages_size_bytes = u64("messages_size_bytes");
    s.streams_count = u32("streams_count");
    s.topics_count = u32("topics_count");
    s.partitions_count = u32("partitions_count");
    s.segments_count = u32("segments_count");
    s.messages_count = u64("messages_count");
    s.clients_count = u32("clients_count");
    s.groups_count = u32("consumer_groups_count");
    s.hostname = in["hostname"];
    s.os_name = in["os_name"];
    s.os_version = in["os_version"];
    s.kernel_version = in["kernel_version"];
    s.server_version = in["server_version"];
    s.server_semver = u32("semver");
    s.threads_count = u32("threads_count");
    s.free_disk = u64("free_disk_space");
    s.total_disk = u64("total_disk_space");
    return s;
  }
  if (vector.is("get_me/")) {
    ClientInfo me{.client_id = u32("client_id"),
                  .user_id = u32("user_id"),
                  .transport = in["transport"],
                  .address = in["address"],
                  .groups_count = 0,
                  .groups = {}};
    for (const Json& each : in["groups"]) me.groups.push_back({each["stream"], each["topic"], each["group"]});
    me.groups_count = static_cast<std::uint32_t>(me.groups.size());
    return me;
  }
  if (vector.is("get_cluster_metadata/")) {
    ClusterMetadata cluster{.name = in["name"], .nodes = {}};
    for (const Json& each : in["nodes"]) cluster.nodes.push_back(node_from(each));
    return cluster;
  }
  if (vector.is("poll_routing/"))
    return Routing{wide(in["client_id"]), u64("session"), u64("metadata_watermark"), node_from(in["primary"])};
  if (vector.is("create_stream/")) return StreamDetails{stream_from(in), {}};
  if (vector.is("get_stream/")) {
    StreamDetails details{stream_from(in["stream"]), {}};
    for (const Json& each : in["topics"]) details.topics.push_back(topic_from(each));
    return details;
  }
  if (vector.is("get_streams/")) {
    Streams all;
    for (const Json& each : in["streams"]) all.streams.push_back(stream_from(each));
    all.streams.back().topics_count = 0;  // not named in the inputs
    return all;
  }
  if (vector.is("get_topic/")) {
    TopicDetails details{topic_from(in["topic"]), {}};
    for (const Json& each : in["partitions"])
      details.partitions.push_back({each["id"], number(each["created_at"]), each["segments_count"],
                                    number(each["current_offset"]), number(each["size_bytes"]),
                                    number(each["messages_count"])});
    return details;
  }
  if (vector.is("get_topics/")) {
    Topics all;
    for (const Json& each : in["topics"]) all.topics.push_back(topic_from(each));
    return all;
  }
  if (vector.is("send_messages/")) {
    SendConfirmed confirmed;
    for (const Json& each : in["confirmations"])
      confirmed = {number(each["base_offset"]), false, each["stream"], each["topic"], each["partition"]};
    return confirmed;
  }
  if (vector.is("poll_messages/") && in["messages_count"] == 0)
    return PolledMessages{u32("partition_id"), u64("current_offset"), {}};
  if (vector.is("get_consumer_offset/"))
    return ConsumerOffset{u32("partition_id"), u64("current_offset"), u64("stored_offset")};
  if (vector.is("sync_consumer_group/")) return GroupAssignment{u64("generation"), in["partitions"]};
  if (vector.is("get_consumer_group/")) {
    GroupDetails details{{u32("id"), u32("partitions_count"), u32("members_count"), in["name"]}, {}};
    for (const Json& each : in["members"]) details.members.push_back({each["id"], each["partitions"]});
    return details;
  }
  return std::nullopt;
}

Request request_with(Operation operation, std::uint32_t code) {
  Request found;
  const auto look = [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&](Request request) {
      if (operation_of(request) == operation && code_of(request) == code) found = std::move(request);
    };
    (one(Request(std::in_place_index<I>)), ...);
  };
  look(std::make_index_sequence<std::variant_size_v<Request>>{});
  return found;
}

}  // namespace iggy::golden
