// Goal: the legacy codec agrees, byte for byte, with what the official packages made and a live server 0.8.0 said.
// Method: every entry of the golden vectors and every recording goes through a handler; nothing may be left over.
#include "iggy/codec/legacy.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/digest.h"
#include "iggy/codec/codes.h"
#include "iggy/codec/golden.h"
#include "iggy/codec/legacy_message.h"
#include "iggy/codec/primitives.h"

namespace iggy {
namespace {

using golden::Vector;
using nlohmann::json;

const std::vector<Vector>& vectors() {
  static const auto loaded = golden::load_vectors("iggy/codec/golden/legacy/vectors.json");
  return loaded;
}

std::uint32_t u32(const json& value) { return static_cast<std::uint32_t>(golden::number(value)); }
std::string optional_text(const json& value) { return value.is_null() ? std::string() : value.get<std::string>(); }

Permissions permissions(const json& inputs) {
  Permissions value;
  const json& global = inputs.at("global");
  value.manage_servers = global.at("manage_servers");
  value.read_servers = global.at("read_servers");
  value.manage_users = global.at("manage_users");
  value.read_users = global.at("read_users");
  value.manage_streams = global.at("manage_streams");
  value.read_streams = global.at("read_streams");
  value.manage_topics = global.at("manage_topics");
  value.read_topics = global.at("read_topics");
  value.poll_messages = global.at("poll_messages");
  value.send_messages = global.at("send_messages");
  for (const json& of_stream : inputs.at("streams")) {
    Permissions::OfStream& stream = value.streams.emplace_back();
    stream.id = u32(of_stream.at("stream_id"));
    stream.manage_stream = of_stream.at("manage_stream");
    stream.read_stream = of_stream.at("read_stream");
    stream.manage_topics = of_stream.at("manage_topics");
    stream.read_topics = of_stream.at("read_topics");
    stream.poll_messages = of_stream.at("poll_messages");
    stream.send_messages = of_stream.at("send_messages");
    for (const json& of_topic : of_stream.at("topics")) {
      Permissions::OfTopic& topic = stream.topics.emplace_back();
      topic.id = u32(of_topic.at("topic_id"));
      topic.manage_topic = of_topic.at("manage_topic");
      topic.read_topic = of_topic.at("read_topic");
      topic.poll_messages = of_topic.at("poll_messages");
      topic.send_messages = of_topic.at("send_messages");
    }
  }
  return value;
}
std::optional<Permissions> optional_permissions(const json& inputs) {
  if (inputs.is_null()) return std::nullopt;
  if (inputs.is_object()) return permissions(inputs);
  for (const Vector& vector : vectors())  // "as permissions/example"
    if (inputs == "as " + vector.name) return permissions(vector.inputs);
  throw std::runtime_error("permissions refer to nothing");
}

TopicSettings settings(const json& in) {
  TopicSettings value;
  value.compression = static_cast<Compression>(in.at("compression_algorithm").get<int>());
  value.message_expiry = golden::number(in.at("message_expiry"));
  value.max_topic_size = golden::number(in.at("max_topic_size"));
  value.replication_factor = in.at("replication_factor");
  return value;
}

// A request from plain values alone, without looking at any bytes. `messages` keeps the records of a send alive.
Request request_from(std::uint32_t code, const json& in, golden::Messages& messages) {
  const auto stream = [&] { return golden::ident(in.at("stream")); };
  const auto topic = [&] { return golden::ident(in.at("topic")); };
  const auto group = [&] { return golden::ident(in.at("group")); };
  const auto partition = [&] { return golden::optional_partition(in.at("partition_id")); };
  switch (code) {
    case code::kPing:
      return Ping{};
    case code::kGetStats:
      return GetStats{};
    case code::kGetClusterMetadata:
      return GetClusterMetadata{};
    case code::kGetMe:
      return GetMe{};
    case code::kGetClients:
      return GetClients{};
    case code::kGetUsers:
      return GetUsers{};
    case code::kCreateUser:
      return CreateUser{
          in.at("username"), in.at("password"), in.at("status"), optional_permissions(in.at("permissions")), {}};
    case code::kDeleteUser:
      return DeleteUser{golden::ident(in.at("user"))};
    case code::kUpdatePermissions:
      return UpdatePermissions{golden::ident(in.at("user")), optional_permissions(in.at("permissions"))};
    case code::kChangePassword:
      return ChangePassword{golden::ident(in.at("user")), in.at("current"), in.at("new")};
    case code::kLoginUser:
      return LoginUser{in.at("username"),
                       in.at("password"),
                       "",
                       optional_text(in.at("version")),
                       optional_text(in.at("context")),
                       0};
    case code::kLoginToken:
      return LoginToken{in.at("token"), "", "", "", 0};
    case code::kLogout:
      return Logout{};
    case code::kGetTokens:
      return GetTokens{};
    case code::kCreateToken:
      return CreateToken{in.at("name"), golden::number(in.at("expiry"))};
    case code::kDeleteToken:
      return DeleteToken{in.at("name")};
    case code::kGetStream:
      return GetStream{stream()};
    case code::kGetStreams:
      return GetStreams{};
    case code::kCreateStream:
      return CreateStream{in.at("name"), {}};
    case code::kUpdateStream:
      return UpdateStream{stream(), in.at("name"), {}};
    case code::kDeleteStream:
      return DeleteStream{stream()};
    case code::kPurgeStream:
      return PurgeStream{stream()};
    case code::kGetTopic:
      return GetTopic{stream(), topic()};
    case code::kGetTopics:
      return GetTopics{stream()};
    case code::kCreateTopic:
      return CreateTopic{stream(), in.at("name"), u32(in.at("partitions_count")), settings(in)};
    case code::kUpdateTopic:
      return UpdateTopic{stream(), topic(), in.at("name"), settings(in), {}};
    case code::kDeleteTopic:
      return DeleteTopic{stream(), topic()};
    case code::kPurgeTopic:
      return PurgeTopic{stream(), topic()};
    case code::kCreatePartitions:
      return CreatePartitions{stream(), topic(), u32(in.at("partitions_count"))};
    case code::kDeletePartitions:
      return DeletePartitions{stream(), topic(), u32(in.at("partitions_count"))};
    case code::kDeleteSegments:
      return DeleteSegments{stream(), topic(), u32(in.at("partition_id")), u32(in.at("segments_count"))};
    case code::kPollMessages:
      return PollMessages{golden::consumer(in.at("consumer")),
                          stream(),
                          topic(),
                          partition(),
                          golden::strategy(in.at("strategy")),
                          u32(in.at("count")),
                          in.at("auto_commit")};
    case code::kSendMessages:
      messages = golden::messages(in);
      return SendMessages{stream(), topic(), golden::partitioning(in.at("partitioning")), messages.records, {}};
    case code::kFlushUnsaved:
      return FlushUnsaved{stream(), topic(), u32(in.at("partition_id")), in.at("fsync")};
    case code::kGetConsumerOffset:
      return GetConsumerOffset{golden::consumer(in.at("consumer")), stream(), topic(), partition()};
    case code::kStoreConsumerOffset:
      return StoreConsumerOffset{golden::consumer(in.at("consumer")), stream(), topic(), partition(),
                                 golden::number(in.at("offset")),     1};
    case code::kDeleteConsumerOffset:
      return DeleteConsumerOffset{golden::consumer(in.at("consumer")), stream(), topic(), partition(), 1};
    case code::kGetGroup:
      return GetGroup{stream(), topic(), group()};
    case code::kGetGroups:
      return GetGroups{stream(), topic()};
    case code::kCreateGroup:
      return CreateGroup{stream(), topic(), in.at("name")};
    case code::kDeleteGroup:
      return DeleteGroup{stream(), topic(), group()};
    case code::kJoinGroup:
      return JoinGroup{stream(), topic(), group()};
    case code::kLeaveGroup:
      return LeaveGroup{stream(), topic(), group()};
    default:
      throw std::runtime_error("no builder for code " + std::to_string(code));
  }
}

// Any request of that code, to name the layout of a reply.
Request prototype(std::uint32_t code) {
  switch (code) {
    case code::kPing:
      return Ping{};
    case code::kGetStats:
      return GetStats{};
    case code::kGetClusterMetadata:
      return GetClusterMetadata{};
    case code::kGetMe:
      return GetMe{};
    case code::kLoginUser:
      return LoginUser{};
    case code::kGetStream:
      return GetStream{};
    case code::kGetStreams:
      return GetStreams{};
    case code::kCreateStream:
      return CreateStream{};
    case code::kGetTopic:
      return GetTopic{};
    case code::kGetTopics:
      return GetTopics{};
    case code::kPollMessages:
      return PollMessages{};
    case code::kGetConsumerOffset:
      return GetConsumerOffset{};
    default:
      throw std::runtime_error("no prototype for code " + std::to_string(code));
  }
}

base::Result<Request> decode_frame(base::ByteView frame) {
  const legacy::RequestHeader header = legacy::read_request_header(frame);
  EXPECT_EQ(header.length + 4, frame.size());
  return legacy::decode_request(header.code, frame.subspan(legacy::kHeaderSize));
}

// --- vectors, by category: each handler checks one entry -------------------------------------------------------------

void check_request(const Vector& vector) {
  base::Bytes frame;
  golden::Messages messages;
  const bool captured =
      vector.is("sdk_capture/");  // their inputs are prose, so they are only decoded and encoded again
  if (!captured) {
    auto built = legacy::encode_request(request_from(vector.code, vector.inputs, messages));
    ASSERT_TRUE(built) << built.error().to_string();
    EXPECT_TRUE(vector.matches(*built)) << golden::to_hex(
        base::ByteView(*built).first(std::min<std::size_t>(built->size(), 400)));
    frame = std::move(*built);
  }
  if (vector.bytes) frame = *vector.bytes;
  EXPECT_EQ(legacy::read_request_header(frame).code, vector.code);
  auto decoded = decode_frame(frame);
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  auto again = legacy::encode_request(*decoded);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_TRUE(vector.matches(*again));
}

void check_reply(const Vector& vector) {
  const base::Bytes& frame = *vector.bytes;
  const legacy::ReplyHeader header = legacy::read_reply_header(frame);
  EXPECT_EQ(header.length + legacy::kHeaderSize, frame.size());
  if (vector.is("error_reply/")) {
    EXPECT_EQ(header.status, vector.inputs.at("status"));
    EXPECT_EQ(legacy::encode_error(header.status), frame);
    return;
  }
  EXPECT_EQ(header.status, 0U);
  const base::BufferPtr buffer = golden::buffer_of(frame);
  auto reply = legacy::decode_reply(prototype(vector.code), buffer->view().subspan(legacy::kHeaderSize), buffer);
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_EQ(golden::to_hex(legacy::encode_reply(*reply)), golden::to_hex(frame));
}

template <class Read, class Write, class Expected>
void check_block(const Vector& vector, Read read, Write write, const Expected& expected) {
  WireReader reader(*vector.bytes);
  const auto value = read(reader);
  EXPECT_TRUE(reader.ok() && reader.at_end());
  EXPECT_EQ(value, expected);
  base::Bytes out;
  WireWriter writer(out);
  write(writer, expected);
  EXPECT_TRUE(writer.status());
  EXPECT_EQ(out, *vector.bytes);
}

base::Bytes header_value(std::uint8_t kind, const json& value) {
  const auto little_endian = [](auto number) {
    base::Bytes out(sizeof(number));
    base::store(out.data(), number);
    return out;
  };
  const auto wide = [&](const std::string& decimal) {
    const base::MessageId id = decimal == "-1" ? base::MessageId{~0ULL, ~0ULL} : golden::wide_number(decimal);
    base::Bytes out(16);
    base::store(out.data(), id.low);
    base::store(out.data() + 8, id.high);
    return out;
  };
  switch (kind) {
    case 1:
      return golden::from_hex(value.at("hex").get<std::string>());
    case 2: {
      const base::ByteView view = base::as_bytes(value.get_ref<const std::string&>());
      return {view.begin(), view.end()};
    }
    case 3:
      return little_endian(static_cast<std::uint8_t>(value.get<bool>()));
    case 4:
      return little_endian(value.get<std::int8_t>());
    case 5:
      return little_endian(value.get<std::int16_t>());
    case 6:
      return little_endian(value.get<std::int32_t>());
    case 7:
      return little_endian(value.get<std::int64_t>());
    case 9:
      return little_endian(value.get<std::uint8_t>());
    case 10:
      return little_endian(value.get<std::uint16_t>());
    case 11:
      return little_endian(value.get<std::uint32_t>());
    case 12:
      return little_endian(golden::number(value));
    case 14:
      return little_endian(value.get<float>());
    case 15:
      return little_endian(value.get<double>());
    default:
      return wide(value.get<std::string>());
  }
}

void check_user_headers(const Vector& vector) {
  EXPECT_TRUE(is_tlv_block(*vector.bytes));
  WireReader reader(*vector.bytes);
  base::Bytes out;
  WireWriter writer(out);
  for (const json& entry : vector.inputs.at("entries")) {
    const TlvItem key = reader.tlv_item();
    const TlvItem value = reader.tlv_item();
    writer.tlv_item(key.kind, key.data);
    writer.tlv_item(value.kind, value.data);
    if (entry.contains("kind")) {  // values are given as text, keys are strings
      EXPECT_EQ(value.kind, entry.at("kind"));
      EXPECT_EQ(base::as_text(key.data), entry.at("key").get<std::string>());
      continue;
    }
    EXPECT_EQ(key.kind, entry.at("key_kind"));
    EXPECT_EQ(value.kind, entry.at("value_kind"));
    EXPECT_TRUE(std::ranges::equal(key.data, header_value(key.kind, entry.at("key"))));
    EXPECT_TRUE(std::ranges::equal(value.data, header_value(value.kind, entry.at("value"))));
  }
  EXPECT_TRUE(reader.ok() && reader.at_end());
  EXPECT_EQ(out, *vector.bytes);
}

// Stored messages: read them one after the other, write them again, checksums included.
void check_stored_messages(const Vector& vector) {
  base::ByteReader reader(*vector.bytes);
  base::Bytes out;
  while (!reader.at_end()) {
    const base::ByteView head = reader.bytes(legacy::kMessageHeaderSize);
    ASSERT_TRUE(reader.ok());
    const legacy::MessageHeader header = legacy::read_message_header(head.data());
    reader.bytes(header.size() - head.size());
    ASSERT_TRUE(reader.ok());
    legacy::append_stored_message(out, legacy::record_of(header, {head.data(), header.size()}));
  }
  EXPECT_EQ(golden::to_hex(out), golden::to_hex(*vector.bytes));
}

void check_entry(const Vector& vector, std::map<std::string, int>& counts) {
  const json& in = vector.inputs;
  const auto count = [&](const char* category) { ++counts[category]; };
  if (vector.layer == "frame" && vector.direction == "request") {
    count(vector.is("sdk_capture/") ? "captured request" : "request");
    check_request(vector);
  } else if (vector.layer == "frame" && vector.direction == "reply") {
    count("reply");
    check_reply(vector);
  } else if (vector.layer == "batch") {
    count("stored messages");
    check_stored_messages(vector);
  } else if (vector.is("user_headers/")) {
    count("user headers");
    check_user_headers(vector);
  } else if (vector.is("identifier/")) {
    count("primitive");
    check_block(
        vector, [](WireReader& reader) { return reader.ident(); },
        [](WireWriter& out, const Ident& value) { out.ident(value, "test"); }, golden::ident(in.at("identifier")));
  } else if (vector.is("consumer/")) {
    count("primitive");
    check_block(
        vector, [](WireReader& reader) { return reader.consumer(); },
        [](WireWriter& out, const Consumer& value) { out.consumer(value); }, golden::consumer(in.at("consumer")));
  } else if (vector.is("polling_strategy/")) {
    count("primitive");
    check_block(
        vector, [](WireReader& reader) { return reader.strategy(); },
        [](WireWriter& out, const PollStrategy& value) { out.strategy(value); }, golden::strategy(in.at("strategy")));
  } else if (vector.is("partitioning/")) {
    count("primitive");
    check_block(
        vector, [](WireReader& reader) { return reader.partitioning(); },
        [](WireWriter& out, const Partitioning& value) { out.partitioning(value); },
        golden::partitioning(in.at("partitioning")));
  } else if (vector.is("permissions/")) {
    count("primitive");
    check_block(
        vector, [](WireReader& reader) { return reader.permissions(); },
        [](WireWriter& out, const Permissions& value) { out.permissions(value); }, permissions(in));
  } else if (vector.is("hash/xxh32/")) {
    count("hash");
    EXPECT_EQ(base::xxh32(base::as_bytes(in.at("data").get_ref<const std::string&>())), u32(in.at("value")));
  } else {
    ADD_FAILURE() << "no handler covers this entry";
  }
}

TEST(LegacyGolden, EveryVectorIsReproduced) {
  std::map<std::string, int> counts;
  for (const Vector& vector : vectors()) {
    SCOPED_TRACE(vector.name);
    check_entry(vector, counts);
  }
  // A file that grew or lost entries fails here; look at what changed and adjust.
  const std::map<std::string, int> expected = {
      {"request", 143},     {"captured request", 25}, {"reply", 40}, {"stored messages", 2},
      {"user headers", 34}, {"primitive", 19},        {"hash", 3}};
  EXPECT_EQ(counts, expected);
  int total = 0;
  for (const auto& [category, count] : counts) total += count;
  EXPECT_EQ(total, 266);
}

// Symmetric mistakes (two fields swapped both ways) survive a round trip, so look at values too.
TEST(LegacyGolden, RepliesHaveTheValuesThatWentIn) {
  std::set<std::string> seen;
  for (const Vector& vector : vectors()) {
    if (vector.direction != "reply" || vector.is("error_reply/")) continue;
    SCOPED_TRACE(vector.name);
    const base::BufferPtr buffer = golden::buffer_of(*vector.bytes);
    auto reply = legacy::decode_reply(prototype(vector.code), buffer->view().subspan(legacy::kHeaderSize), buffer);
    ASSERT_TRUE(reply);
    const json& in = vector.inputs;
    seen.insert(vector.name);
    if (const auto* stats = std::get_if<Stats>(&*reply)) {
      EXPECT_EQ(stats->process_id, in.at("process_id"));
      EXPECT_EQ(stats->cpu_usage, in.at("cpu_usage"));
      EXPECT_EQ(stats->total_cpu_usage, in.at("total_cpu_usage"));
      EXPECT_EQ(stats->memory_usage, in.at("memory_usage"));
      EXPECT_EQ(stats->total_memory, in.at("total_memory"));
      EXPECT_EQ(stats->available_memory, in.at("available_memory"));
      EXPECT_EQ(stats->run_time, in.at("run_time"));
      EXPECT_EQ(stats->start_time, in.at("start_time"));
      EXPECT_EQ(stats->read_bytes, in.at("read_bytes"));
      EXPECT_EQ(stats->written_bytes, in.at("written_bytes"));
      EXPECT_EQ(stats->messages_size_bytes, in.at("messages_size_bytes"));
      EXPECT_EQ(stats->streams_count, in.at("streams_count"));
      EXPECT_EQ(stats->topics_count, in.at("topics_count"));
      EXPECT_EQ(stats->partitions_count, in.at("partitions_count"));
      EXPECT_EQ(stats->segments_count, in.at("segments_count"));
      EXPECT_EQ(stats->messages_count, in.at("messages_count"));
      EXPECT_EQ(stats->clients_count, in.at("clients_count"));
      EXPECT_EQ(stats->groups_count, in.at("consumer_groups_count"));
      EXPECT_EQ(stats->hostname, in.at("hostname").get<std::string>());
      EXPECT_EQ(stats->kernel_version, in.at("kernel_version").get<std::string>());
      EXPECT_EQ(stats->server_version, in.at("server_version").get<std::string>());
      EXPECT_EQ(stats->server_semver, in.at("semver"));
      EXPECT_EQ(stats->threads_count, in.at("threads_count"));
      EXPECT_EQ(stats->free_disk, in.at("free_disk_space"));
      EXPECT_EQ(stats->total_disk, in.at("total_disk_space"));
    } else if (const auto* client = std::get_if<ClientInfo>(&*reply)) {
      EXPECT_EQ(client->client_id, in.at("client_id"));
      EXPECT_EQ(client->user_id, in.at("user_id"));
      EXPECT_EQ(client->address, in.at("address").get<std::string>());
      ASSERT_EQ(client->groups.size(), 1U);
      EXPECT_EQ(client->groups[0], (ClientInfo::Membership{1, 2, 3}));
    } else if (const auto* cluster = std::get_if<ClusterMetadata>(&*reply)) {
      ASSERT_EQ(cluster->nodes.size(), in.at("nodes").size());
      const json& node = in.at("nodes").back();
      EXPECT_EQ(cluster->nodes.back(),
                (ClusterNode{node.at("name"), node.at("ip"), node.at("tcp"), node.at("quic"), node.at("http"),
                             node.at("websocket"), node.at("role"), node.at("status")}));
    } else if (const auto* topic = std::get_if<TopicDetails>(&*reply)) {
      const json& of = in.at("topic");
      EXPECT_EQ(topic->topic.id, of.at("id"));
      EXPECT_EQ(topic->topic.created_at, of.at("created_at"));
      EXPECT_EQ(topic->topic.settings, settings(of));
      EXPECT_EQ(topic->topic.size_bytes, of.at("size_bytes"));
      EXPECT_EQ(topic->topic.messages_count, of.at("messages_count"));
      EXPECT_EQ(topic->topic.name, of.at("name").get<std::string>());
      ASSERT_EQ(topic->partitions.size(), 2U);
      const json& last = in.at("partitions").back();
      EXPECT_EQ(topic->partitions.back(),
                (Partition{last.at("id"), last.at("created_at"), last.at("segments_count"), last.at("current_offset"),
                           last.at("size_bytes"), last.at("messages_count")}));
    } else if (const auto* stream = std::get_if<StreamDetails>(&*reply)) {
      const json& of = in.contains("stream") ? in.at("stream") : in;
      EXPECT_EQ(stream->stream.id, of.at("id"));
      EXPECT_EQ(stream->stream.name, of.at("name").get<std::string>());
      EXPECT_EQ(stream->topics.size(), of.at("topics_count"));
      if (of.contains("size_bytes")) {
        EXPECT_EQ(stream->stream.created_at, of.at("created_at"));
        EXPECT_EQ(stream->stream.size_bytes, of.at("size_bytes"));
        EXPECT_EQ(stream->stream.messages_count, of.at("messages_count"));
      }
    } else if (const auto* streams = std::get_if<Streams>(&*reply)) {
      ASSERT_EQ(streams->streams.size(), 2U);
      EXPECT_EQ(streams->streams[1].id, 5U);
      EXPECT_EQ(streams->streams[1].name, "b");
    } else if (const auto* topics = std::get_if<Topics>(&*reply)) {
      ASSERT_EQ(topics->topics.size(), 2U);
      EXPECT_EQ(topics->topics[1].partitions_count, 3U);
    } else if (const auto* offset = std::get_if<ConsumerOffset>(&*reply)) {
      EXPECT_EQ(*offset, (ConsumerOffset{2, 500, 123}));
    } else if (const auto* login = std::get_if<LoggedIn>(&*reply)) {
      EXPECT_EQ(login->user_id, in.at("user_id"));
    } else if (const auto* polled = std::get_if<PolledMessages>(&*reply)) {
      EXPECT_EQ(polled->partition, in.at("partition_id"));
      EXPECT_EQ(polled->current_offset, in.at("current_offset"));
      ASSERT_EQ(polled->batch.records.size(), in.at("count"));
      if (polled->batch.empty()) continue;
      const base::Record& record = polled->batch.records[1];  // of messages/as_stored
      EXPECT_EQ(record.offset, 101U);
      EXPECT_EQ(record.id, (base::MessageId{2, 0}));
      EXPECT_EQ(record.timestamp, 1'700'000'000'500'000U);
      EXPECT_EQ(record.origin_timestamp, 1'700'000'000'001'000U);
      EXPECT_EQ(base::as_text(record.payload()), "world!");
      EXPECT_EQ(record.headers().size(), 59U);
      EXPECT_EQ(record.raw.size(), 64 + record.body.size());
    } else {
      EXPECT_TRUE(std::holds_alternative<Done>(*reply) || std::holds_alternative<NotThere>(*reply));
    }
  }
  EXPECT_EQ(seen.size(), 16U);
}

}  // namespace
}  // namespace iggy
