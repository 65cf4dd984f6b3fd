// Goal: the sandbox answers like the recorded servers. Method: for every recording, a fresh sandbox with the
// recording's setup, the recorded requests one by one, and each reply compared with the recorded one. What can't be
// equal is masked: times, generated ids and tokens, client ids, addresses and ports, statistics, texts of descriptions,
// checksums over them (which are checked instead), and on vsr the cluster id, log positions and client in the reply
// header.
//
// Recordings of one server that build on each other are replayed on one sandbox.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/digest.h"
#include "iggy/codec/golden.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/vsr.h"
#include "integration/load/blocking_client.h"
#include "integration/sandbox/testing_server.h"

namespace sandbox {
namespace {

namespace golden = iggy::golden;
namespace vsr = iggy::vsr;
using iggy::Dialect;

struct Left {
  std::string file, reason;
};
const std::vector<Left> kLegacyLeftOut = {
    {"15-purge-unflushed.json", "a purge with unsaved messages leaves no shadow here (see README)"},
    {"27-purge-unsaved-then-flush.json", "the same"},
    {"33-disk-full.json", "disk-full is a command here; broker_test covers it"},
    {"34-message-deduplication.json", "deduplication by message id is not imitated"},
    {"35-tls-and-plain.json", "bytes of a TLS handshake: server_test covers the end without a byte"},
};
const std::vector<Left> kVsrLeftOut = {
    {"27-purge-then-send-race.json", "a race inside the server, which one thread does not have"},
    {"29-recreate-then-poll-race.json", "the same"},
    {"35-tls-and-plain.json", "bytes of a TLS handshake: server_test covers the end without a byte"},
    {"36-cluster-of-three.json", "one sandbox is one node"},
    {"39-read-overtakes-send.json", "sends are executed in order here (see README)"},
};

std::string folder(Dialect dialect) {
  return dialect == Dialect::kLegacy ? "iggy/codec/golden/legacy/recordings" : "iggy/codec/golden/vsr/recordings";
}

const golden::Recording& recording(Dialect dialect, const std::string& number) {
  static const std::map<Dialect, std::vector<golden::Recording>> all = {
      {Dialect::kLegacy, golden::load_recordings(folder(Dialect::kLegacy))},
      {Dialect::kVsr11, golden::load_recordings(folder(Dialect::kVsr11))}};
  for (const golden::Recording& found : all.at(dialect))
    if (found.file.starts_with(number + "-")) return found;
  throw std::runtime_error("no recording " + number);
}

bool is_uuid4(const base::MessageId& id) {
  std::array<std::byte, 16> bytes{};
  base::store(bytes.data(), id.low);
  base::store(bytes.data() + 8, id.high);
  return (bytes[6] & std::byte{0xF0}) == std::byte{0x40} && (bytes[8] & std::byte{0xC0}) == std::byte{0x80};
}

// --- masks, on decoded replies

struct Mask {
  std::string operator()(iggy::Done&) { return "done"; }
  std::string operator()(iggy::NotThere&) { return "not there"; }
  std::string operator()(iggy::LoggedIn& r) {
    return "user " + std::to_string(r.user_id) + " word " + std::to_string(r.protocol_word) + " " + r.server_version;
  }
  std::string operator()(iggy::Stats& r) { return "stats of " + r.server_version; }
  std::string operator()(iggy::ClusterMetadata& r) {
    std::string out = r.name;
    for (const auto& node : r.nodes)
      out += " " + node.name + " " + node.ip + " " + std::to_string(node.role) + std::to_string(node.status);
    return out;
  }
  std::string operator()(iggy::OptionDescriptions& r) {
    std::string out;
    for (const auto& option : r.options)
      out += option.key + " " + std::to_string(option.kind) + " " + golden::to_hex(option.default_value) + "; ";
    return out;
  }
  std::string operator()(iggy::ClientInfo& r) {
    std::string out = "user " + std::to_string(r.user_id) + " over " + std::to_string(r.transport) + " groups";
    out += std::to_string(r.groups_count);
    // The stream's number is that of the server it was recorded on.
    for (const auto& group : r.groups) out += " " + std::to_string(group.topic) + "/" + std::to_string(group.group);
    return out;
  }
  std::string operator()(iggy::Clients& r) {
    std::string out;
    for (auto& client : r.clients) out += (*this)(client) + "; ";
    return out;
  }
  static std::string text(const std::vector<iggy::Option>& options) {
    std::string out = " [";
    for (const auto& option : options)
      out += option.key + ":" + std::to_string(option.kind) + "=" + golden::to_hex(option.value) + " ";
    return out + "]";
  }
  static std::string text(const iggy::Stream& r) {
    return "stream " + r.name + " topics " + std::to_string(r.topics_count) + " bytes " + std::to_string(r.size_bytes) +
           " messages " + std::to_string(r.messages_count) + text(r.options);
  }
  static std::string text(const iggy::Topic& r) {
    return "\n  topic " + std::to_string(r.id) + " " + r.name + " partitions " + std::to_string(r.partitions_count) +
           " expiry " + std::to_string(r.settings.message_expiry) + " size " +
           std::to_string(r.settings.max_topic_size) + " compression " +
           std::to_string(static_cast<int>(r.settings.compression)) + " replicas " +
           std::to_string(r.settings.replication_factor) + text(r.settings.options) + text(r.derived) + " bytes " +
           std::to_string(r.size_bytes) + " messages " + std::to_string(r.messages_count);
  }
  std::string operator()(iggy::StreamDetails& r) {
    std::string out = text(r.stream);
    for (const auto& topic : r.topics) out += text(topic);
    return out;
  }
  std::string operator()(iggy::Streams& r) {
    std::string out;
    for (const auto& stream : r.streams) out += text(stream) + "; ";
    return out;
  }
  std::string operator()(iggy::TopicDetails& r) {
    std::string out = text(r.topic);
    for (const auto& p : r.partitions)
      out += "\n    partition " + std::to_string(p.id) + " segments " + std::to_string(p.segments_count) + " current " +
             std::to_string(p.current_offset) + " bytes " + std::to_string(p.size_bytes) + " messages " +
             std::to_string(p.messages_count);
    return out;
  }
  std::string operator()(iggy::Topics& r) {
    std::string out;
    for (const auto& topic : r.topics) out += text(topic);
    return out;
  }
  std::string operator()(iggy::PolledMessages& r) {
    std::string out = "partition " + std::to_string(r.partition) + " current " + std::to_string(r.current_offset);
    const std::byte* envelope = nullptr;
    for (const base::Record& m : r.batch.records) {
      if (!m.envelope.empty() && m.envelope.data() != envelope) {
        envelope = m.envelope.data();
        const auto header = vsr::read_batch_header(m.envelope).value();
        out += "\n  batch of " + std::to_string(header.message_count) + " at " + std::to_string(header.base_offset) +
               " partition " + std::to_string(header.partition_id) + " origin " +
               std::to_string(header.origin_timestamp) + " length " + std::to_string(header.batch_length);
      }
      if (m.envelope.empty())
        EXPECT_EQ(base::load<std::uint64_t>(m.raw.data()), base::xxh3_64(m.raw.subspan(8))) << "stored checksum";
      out += "\n  " + std::to_string(m.offset) + " id " + (is_uuid4(m.id) ? "generated" : m.id.to_string()) +
             " origin " + std::to_string(m.origin_timestamp) + " payload " + std::to_string(m.payload_length) + " " +
             golden::to_hex(m.body);
    }
    return out;
  }
  std::string operator()(iggy::SendConfirmed& r) {
    if (!r.base_offset) return r.duplicate ? "duplicate" : "sent";
    return "sent to topic " + std::to_string(r.topic) + " partition " + std::to_string(r.partition) + " offset " +
           std::to_string(*r.base_offset);
  }
  std::string operator()(iggy::ConsumerOffset& r) {
    return "offset " + std::to_string(r.stored_offset) + " of " + std::to_string(r.current_offset) + " partition " +
           std::to_string(r.partition);
  }
  static std::string text(const iggy::Group& r) {
    return "group " + r.name + " partitions " + std::to_string(r.partitions_count) + " members " +
           std::to_string(r.members_count);
  }
  std::string operator()(iggy::GroupDetails& r) {
    std::string out = text(r.group);
    for (const auto& member : r.members) {
      out += " member " + std::to_string(member.id) + ":";
      for (std::uint32_t partition : member.partitions) out += " " + std::to_string(partition);
    }
    return out;
  }
  std::string operator()(iggy::Groups& r) {
    std::string out;
    for (const auto& group : r.groups) out += text(group) + "; ";
    return out;
  }
  std::string operator()(iggy::GroupAssignment& r) {
    std::string out = "generation " + std::to_string(r.generation);
    for (std::uint32_t partition : r.partitions) out += " " + std::to_string(partition);
    return out;
  }
  std::string operator()(iggy::TokenCreated& r) { return "token of " + std::to_string(r.token.size()); }
  std::string operator()(iggy::Tokens& r) {
    std::string out;
    for (const auto& token : r.tokens) out += token.name + (token.expiry_at == 0 ? " for ever; " : "; ");
    return out;
  }
  std::string operator()(iggy::UserDetails& r) { return "user " + r.user.name; }
  std::string operator()(iggy::Users& r) { return "users " + std::to_string(r.users.size()); }
  std::string operator()(iggy::Routing&) { return "routing"; }
};

// The request of a recorded frame, where it is one.
std::optional<iggy::Request> request_of(Dialect dialect, base::ByteView frame) {
  base::Result<iggy::Request> out = base::Error(base::ErrorCode::kMalformed, "", "", "");
  if (dialect == Dialect::kLegacy) {
    if (frame.size() < iggy::legacy::kHeaderSize) return std::nullopt;
    out = iggy::legacy::decode_request(iggy::legacy::read_request_header(frame).code,
                                       frame.subspan(iggy::legacy::kHeaderSize));
  } else {
    if (frame.size() < vsr::kHeaderSize) return std::nullopt;
    const auto header = vsr::read_request_header(frame);
    if (!header) return std::nullopt;
    out = vsr::decode_request(*header, frame.subspan(vsr::kHeaderSize));
  }
  if (!out) return std::nullopt;
  return std::move(*out);
}

// A reply in words, without what is volatile.
std::string describe(Dialect dialect, const std::optional<iggy::Request>& request, base::ByteView frame) {
  const base::BufferPtr buffer = golden::buffer_of(frame);
  std::string out;
  base::Result<iggy::Reply> reply = base::Error(base::ErrorCode::kMalformed, "", "", "");
  if (dialect == Dialect::kLegacy) {
    const auto header = iggy::legacy::read_reply_header(buffer->view());
    out = "status " + std::to_string(header.status) + ": ";
    if (header.status != 0 || !request) return out;
    if (std::holds_alternative<iggy::SendMessages>(*request)) return out + "sent";
    reply = iggy::legacy::decode_reply(*request, buffer->view().subspan(iggy::legacy::kHeaderSize), buffer);
  } else {
    const auto header = vsr::read_reply_header(buffer->view()).value();
    if (const auto* eviction = std::get_if<vsr::Eviction>(&header))
      return "eviction " + std::to_string(eviction->reason) + " window " + std::to_string(eviction->protocol_min) +
             " to " + std::to_string(eviction->protocol_max);
    const auto& plain = std::get<vsr::ReplyHeader>(header);
    out = "status " + std::to_string(plain.status) + " operation " + std::to_string(plain.operation) + " request " +
          std::to_string(plain.request) + " body of " +
          (request && std::holds_alternative<iggy::DescribeOptions>(*request)
               ? "some"
               : std::to_string(frame.size() - vsr::kHeaderSize)) +
          ": ";
    if (plain.status != 0 || !request) return out;
    reply = vsr::decode_reply(*request, plain, buffer->view().subspan(vsr::kHeaderSize), buffer, true);
  }
  if (!reply) return out + reply.error().to_string();
  return out + std::visit(Mask{}, *reply);
}

// --- replaying

base::Bytes login_frame(Dialect dialect, const base::MessageId& client, const std::string& user = "iggy",
                        const std::string& password = "iggy") {
  const iggy::LoginUser login{.username = user, .password = password, .client_version = "0.1.0", .context = {}};
  return dialect == Dialect::kLegacy
             ? iggy::legacy::encode_request(login).value()
             : vsr::encode_request(login, {.client = client, .session = 0, .request = 0}).value();
}

base::MessageId client_of(base::ByteView frame) {
  return {base::load<std::uint64_t>(frame.data() + 128), base::load<std::uint64_t>(frame.data() + 136)};
}

class Replay {
 public:
  Replay(std::string_view version, std::filesystem::path data = {}, std::uint64_t segment_size = kDefaultSegmentSize)
      : version_(version), data_(std::move(data)), segment_size_(segment_size) {
    restart();
  }

  Dialect dialect() const { return server_->dialect(); }
  TestingServer& server() { return *server_; }
  void restart() {
    connections_.clear();
    server_.reset();
    server_ = std::make_unique<TestingServer>(version_, data_, segment_size_);
  }

  // Setup, by a client of its own.
  iggy::Reply call(const iggy::Request& request) {
    auto client = load::BlockingClient::connect(server_->url()).value();
    auto reply = client.call(request);
    EXPECT_TRUE(reply.has_value()) << iggy::name_of(request) << ": " << (reply ? "" : reply.error().to_string());
    return reply.value();
  }
  void stream(const std::string& name) { call(iggy::CreateStream{.name = name, .options = {}}); }
  void topic(const std::string& stream, const std::string& name, std::uint32_t partitions,
             std::vector<iggy::Option> options = {}) {
    iggy::TopicSettings settings;
    if (dialect() != Dialect::kLegacy) settings.message_expiry = settings.max_topic_size = 0;
    settings.options = std::move(options);
    if (dialect() == Dialect::kLegacy) settings.replication_factor = 1;
    call(iggy::CreateTopic{.stream = stream, .name = name, .partitions_count = partitions, .settings = settings});
  }
  void send(const std::string& stream, const std::string& topic, std::uint32_t partition,
            std::span<const base::Record> records) {
    auto client = load::BlockingClient::connect(server_->url()).value();
    auto frame = iggy::encode_send(dialect(), {stream, topic}, partition, records).value();
    const auto sent = client.send(frame);
    EXPECT_TRUE(sent.has_value()) << (sent ? "" : sent.error().to_string());
  }
  void send_text(const std::string& stream, const std::string& topic, std::uint32_t partition, std::size_t count,
                 std::size_t size, std::size_t per_send) {
    const std::string payload(size, 'x');
    std::vector<base::Record> records(per_send, base::Record{.id = {1, 1},
                                                             .origin_timestamp = 1,
                                                             .payload_length = static_cast<std::uint32_t>(size),
                                                             .body = base::as_bytes(payload),
                                                             .raw = {},
                                                             .envelope = {}});
    for (std::size_t done = 0; done < count; done += per_send) send(stream, topic, partition, records);
  }
  // Stores what a recorded poll reply shows, at the recorded times, in sends of `per_send` messages (vsr: batch by
  // batch, as it is).
  void store_polled(const golden::Recording& from, std::size_t frame, const std::string& stream,
                    const std::string& topic, std::uint32_t partition, std::size_t per_send) {
    const auto buffer = golden::buffer_of(from.frames.at(frame).bytes);
    const std::size_t header = dialect() == Dialect::kLegacy ? iggy::legacy::kHeaderSize : vsr::kHeaderSize;
    base::Result<iggy::Reply> reply =
        dialect() == Dialect::kLegacy
            ? iggy::legacy::decode_reply(iggy::PollMessages{}, buffer->view().subspan(header), buffer)
            : vsr::decode_reply(iggy::PollMessages{},
                                std::get<vsr::ReplyHeader>(vsr::read_reply_header(buffer->view()).value()),
                                buffer->view().subspan(header), buffer, true);
    const auto& records = std::get<iggy::PolledMessages>(reply.value()).batch.records;
    for (std::size_t i = 0; i < records.size();) {
      std::size_t size = std::min(per_send, records.size() - i);
      if (!records[i].envelope.empty()) {
        size = 1;
        while (i + size < records.size() && records[i + size].envelope.data() == records[i].envelope.data()) ++size;
      }
      server_->set_wall_micros(records[i].timestamp);
      send(stream, topic, partition, std::span(records).subspan(i, size));
      i += size;
    }
    server_->set_wall_micros(0);
  }

  struct Rules {
    bool logged_in = true;                  // connections are, before their first recorded frame
    std::map<std::size_t, int> jumps = {};  // from this frame on, this connection
    std::size_t from = 0, to = ~std::size_t{0};
  };
  // Compares every reply of the recording. Frames of which only the beginning was kept are compared as far as they go.
  void run(const golden::Recording& recorded, const Rules& rules);
  void run(const golden::Recording& recorded) { run(recorded, Rules{}); }

  // Of token recordings: the token that was recorded, and ours.
  std::string recorded_token, our_token;

 private:
  RawConnection& connection(int key, const base::MessageId& client, bool log_in) {
    auto& slot = connections_[key];
    if (!slot) {
      slot = std::make_unique<RawConnection>(server_->port(), dialect());
      if (log_in) {
        slot->write(login_frame(dialect(), client));
        EXPECT_TRUE(slot->read_frame().has_value()) << "login of the setup";
      }
    }
    return *slot;
  }
  base::Bytes with_our_token(base::Bytes frame) const;

  std::string version_;
  std::filesystem::path data_;
  std::uint64_t segment_size_;
  std::unique_ptr<TestingServer> server_;
  std::map<int, std::unique_ptr<RawConnection>> connections_;
  int fresh_ = 1000;
};

base::Bytes Replay::with_our_token(base::Bytes frame) const {
  if (recorded_token.empty()) return frame;
  std::string text(base::as_text(frame));
  const std::size_t at = text.find(recorded_token);
  if (at == std::string::npos) return frame;
  text.replace(at, recorded_token.size(), our_token);
  const base::ByteView view = base::as_bytes(text);
  base::Bytes out(view.begin(), view.end());
  if (dialect() != Dialect::kLegacy) std::fill_n(out.begin() + 144, 16, std::byte{0});  // its checksum
  return out;
}

void Replay::run(const golden::Recording& recorded, const Rules& rules) {
  SCOPED_TRACE(recorded.file);
  connections_.clear();
  int current = 0;
  std::map<base::MessageId, int, decltype([](const base::MessageId& a, const base::MessageId& b) {
             return std::pair(a.high, a.low) < std::pair(b.high, b.low);
           })>
      by_client;
  std::optional<iggy::Request> request;
  bool skipping = false;  // the request could not be replayed: nor can its reply be compared
  for (std::size_t i = rules.from; i < std::min(rules.to, recorded.frames.size()); ++i) {
    const golden::RecordedFrame& frame = recorded.frames[i];
    SCOPED_TRACE("frame " + std::to_string(i) + ": " + frame.note);
    if (frame.kind == golden::RecordedFrame::Kind::kEvent) {
      if (frame.note.find("restart") != std::string::npos) restart();
      continue;
    }
    if (frame.kind == golden::RecordedFrame::Kind::kToServer) {
      skipping = frame.cut;
      if (skipping) continue;
      request = request_of(dialect(), frame.bytes);
      bool log_in = rules.logged_in;
      base::MessageId client{1, 0};
      const auto jump = rules.jumps.find(i);
      if (jump != rules.jumps.end()) current = jump->second;
      if (dialect() != Dialect::kLegacy && frame.bytes.size() >= vsr::kHeaderSize) {
        // Each connection had a client id of its own, unless the table says otherwise.
        client = client_of(frame.bytes);
        if (rules.jumps.empty()) {
          const auto known = by_client.find(client);
          current = known != by_client.end() ? known->second : (by_client[client] = fresh_++);
        }
        log_in = log_in && frame.bytes[176] != std::byte{1};  // its first frame is not a login
      }
      if (dialect() != Dialect::kLegacy && client.is_zero()) client = {7, 7};
      RawConnection& wire = connection(current, client, log_in);
      wire.write(with_our_token(frame.bytes));
      continue;
    }
    if (skipping) continue;
    const auto answer = connections_.at(current)->read_frame();
    ASSERT_TRUE(answer.has_value()) << "no answer";
    if (frame.cut) {
      // A poll whose messages are unknown: head, and the offset of the first message.
      const std::size_t head = dialect() == Dialect::kLegacy ? 8 : 256;
      const std::size_t first_offset = head + 16 + (dialect() == Dialect::kLegacy ? 24 : 8);
      const auto view = [&](const base::Bytes& bytes, std::size_t at, std::size_t size) {
        return golden::to_hex(base::ByteView(bytes).subspan(at, size));
      };
      EXPECT_EQ(view(*answer, head, 16), view(frame.bytes, head, 16));
      EXPECT_EQ(view(*answer, first_offset, 8), view(frame.bytes, first_offset, 8));
      continue;
    }
    EXPECT_EQ(describe(dialect(), request, *answer), describe(dialect(), request, frame.bytes));
    if (request && std::holds_alternative<iggy::CreateToken>(*request) && recorded_token.empty()) {
      const std::size_t at = dialect() == Dialect::kLegacy ? 8 : 256 + 4;
      recorded_token = base::as_text(base::ByteView(frame.bytes).subspan(at + 1));
      our_token = base::as_text(base::ByteView(*answer).subspan(at + 1));
    }
  }
}

// --- server 0.8.0

const golden::Recording& legacy(const std::string& number) { return recording(Dialect::kLegacy, number); }

TEST(ReplayLegacy, Logins) {
  for (const char* number : {"01", "02", "03", "04"}) Replay("0.8.0").run(legacy(number), {.logged_in = false});
  Replay("0.8.0").run(legacy("05"));
}

TEST(ReplayLegacy, StreamsTopicsAndSends) {
  Replay streams("0.8.0");
  streams.run(legacy("06"));
  Replay replay("0.8.0");
  replay.stream("s1");
  replay.run(legacy("07"));
  replay.run(legacy("08"));
  replay.run(legacy("09"));
  Replay::Rules each{.jumps = {}};
  int connection = 0;
  for (std::size_t i = 0; i < legacy("10").frames.size(); ++i)
    if (legacy("10").frames[i].note.starts_with("send:") || legacy("10").frames[i].note.starts_with("poll:"))
      each.jumps[i] = ++connection;
  replay.run(legacy("10"), each);
}

TEST(ReplayLegacy, PollsOffsetsGroupsAndPartitions) {
  Replay replay("0.8.0");
  replay.stream("sp");
  replay.topic("sp", "t", 3);
  replay.store_polled(legacy("11"), 15, "sp", "t", 0, 2);
  replay.store_polled(legacy("11"), 35, "sp", "t", 1, 1);
  for (const char* number : {"11", "12", "13"}) replay.run(legacy(number));
  replay.topic("sp", "many", 1);
  replay.run(legacy("14"));
  replay.topic("sp", "purge", 1);
  replay.topic("sp", "purge2", 1);
  replay.send_text("sp", "purge2", 0, 4, 2, 1);
  replay.run(legacy("16"));
  replay.topic("sp", "re", 2);
  replay.send_text("sp", "re", 0, 4, 2, 1);
  replay.run(legacy("17"));
  replay.run(legacy("18"));
  replay.run(legacy("19"));
  replay.run(legacy("20"), {.jumps = {{0, 0}, {4, 1}, {8, 2}}});
  replay.call(iggy::CreateUser{.name = "poor", .password = "poor", .permissions = {}, .options = {}});
  replay.run(legacy("24"), {.logged_in = false});
}

TEST(ReplayLegacy, Tokens) {
  Replay replay("0.8.0");
  replay.run(legacy("21"), {.jumps = {{0, 0}}, .to = 4});
  replay.run(legacy("21"), {.logged_in = false, .jumps = {{4, 1}, {8, 2}}, .from = 4, .to = 10});
  replay.run(legacy("21"), {.jumps = {{10, 3}}, .from = 10, .to = 14});
  replay.run(legacy("21"), {.logged_in = false, .jumps = {{14, 4}}, .from = 14});
}

TEST(ReplayLegacy, BadFramesAndForeignBytes) {
  Replay("0.8.0").run(legacy("22"));
  Replay("0.8.0").run(legacy("23"), {.logged_in = false, .jumps = {{0, 0}, {11, 1}}});
}

TEST(ReplayLegacy, PollBelowTheFloor) {
  Replay replay("0.8.0", {}, kMiB);
  replay.stream("s");
  replay.topic("s", "t", 1);
  replay.send_text("s", "t", 0, 60, 50'000, 1);
  replay.run(legacy("25"));
}

TEST(ReplayLegacy, KilledWithUnsavedMessages) {
  const TemporaryFolder folder;
  Replay replay("0.8.0", folder.path());
  replay.stream("s");
  replay.topic("s", "t", 1);
  replay.run(legacy("28"));
}

TEST(ReplayLegacy, OfficialClients) {
  Replay rust("0.8.0");
  Replay::Rules by_connection{.logged_in = false, .jumps = {}};
  for (std::size_t i = 0; i < legacy("30").frames.size(); ++i)
    if (legacy("30").frames[i].note.starts_with("connection "))
      by_connection.jumps[i] = legacy("30").frames[i].note[11] - '0';
  rust.run(legacy("30"), by_connection);
  Replay python("0.8.0");
  python.stream("other");
  python.run(legacy("31"), {.logged_in = false});
}

TEST(ReplayLegacy, GracefulStop) {
  Replay replay("0.8.0");
  const golden::Recording& recorded = legacy("26");
  RawConnection wire(replay.server().port(), Dialect::kLegacy);
  wire.write(recorded.frames[0].bytes);
  EXPECT_EQ(wire.read_frame(), recorded.frames[1].bytes);
  replay.server().stop();
  EXPECT_EQ(wire.read_frame(), recorded.frames[2].bytes) << "unsolicited status 8";
  EXPECT_TRUE(wire.at_end());
}

// --- server 0.9.0-edge.5

const golden::Recording& vsr_recording(const std::string& number) { return recording(Dialect::kVsr11, number); }
constexpr const char* kEdge = "0.9.0-edge.5";

TEST(ReplayVsr, Logins) {
  for (const char* number : {"01", "02", "03"}) Replay(kEdge).run(vsr_recording(number), {.logged_in = false});
  Replay(kEdge).run(vsr_recording("05"), {.jumps = {{0, 0}}});
}

TEST(ReplayVsr, StreamsTopicsAndSends) {
  Replay replay(kEdge);
  replay.stream("d");
  replay.topic("d", "t", 1);
  // 04, 0 and 4: the second connection; 2 and 6: the first one, logged in before with the same client id.
  {
    const auto& frames = vsr_recording("04").frames;
    RawConnection first(replay.server().port(), Dialect::kVsr11), second(replay.server().port(), Dialect::kVsr11);
    first.write(login_frame(Dialect::kVsr11, client_of(frames[0].bytes)));
    ASSERT_TRUE(first.read_frame().has_value());
    for (std::size_t i = 0; i + 1 < frames.size(); i += 2) {
      SCOPED_TRACE(i);
      RawConnection& wire = i == 2 || i == 6 ? first : second;
      wire.write(frames[i].bytes);
      const auto answer = wire.read_frame();
      ASSERT_TRUE(answer.has_value());
      const auto request = request_of(Dialect::kVsr11, frames[i].bytes);
      EXPECT_EQ(describe(Dialect::kVsr11, request, *answer), describe(Dialect::kVsr11, request, frames[i + 1].bytes));
    }
  }
  for (const char* number : {"06", "07", "08", "09", "10"}) replay.run(vsr_recording(number));
}

TEST(ReplayVsr, PollsOffsetsGroupsAndPartitions) {
  Replay replay(kEdge);
  replay.stream("sp");
  replay.topic("sp", "t", 3);
  replay.store_polled(vsr_recording("11"), 15, "sp", "t", 0, 2);
  replay.store_polled(vsr_recording("11"), 35, "sp", "t", 1, 1);
  for (const char* number : {"11", "12", "13"}) replay.run(vsr_recording(number));
  replay.topic("sp", "many", 1);
  replay.run(vsr_recording("14"));
  replay.topic("sp", "purge", 1);
  replay.send_text("sp", "purge", 0, 4, 2, 4);
  replay.run(vsr_recording("15"));
  replay.topic("sp", "re", 2);
  replay.send_text("sp", "re", 0, 4, 2, 4);
  replay.run(vsr_recording("17"));
  replay.run(vsr_recording("18"));
  replay.run(vsr_recording("19"));
  replay.run(vsr_recording("20"));
}

TEST(ReplayVsr, Tokens) { Replay(kEdge).run(vsr_recording("21")); }

TEST(ReplayVsr, BadFramesAndForeignBytes) {
  Replay replay(kEdge);
  replay.stream("sp");
  replay.topic("sp", "t", 3);
  replay.send_text("sp", "t", 2, 2, 2, 1);
  const auto& recorded = vsr_recording("22");
  // Each on its own connection: the frame under test, then a ping whose client is the one that had logged in.
  for (std::size_t i = 0; i < recorded.frames.size(); ++i) {
    const auto& frame = recorded.frames[i];
    if (frame.kind != golden::RecordedFrame::Kind::kToServer || frame.note.starts_with("ping after")) continue;
    SCOPED_TRACE(frame.note);
    if (frame.bytes.size() < vsr::kHeaderSize) continue;  // a torn header: nothing comes, ever
    RawConnection wire(replay.server().port(), Dialect::kVsr11);
    const auto& ping = recorded.frames[i + 2];
    wire.write(login_frame(Dialect::kVsr11, client_of(ping.bytes)));
    ASSERT_TRUE(wire.read_frame().has_value());
    wire.write(frame.bytes);
    if (recorded.frames[i + 1].kind == golden::RecordedFrame::Kind::kToClient) {
      const auto answer = wire.read_frame();
      ASSERT_TRUE(answer.has_value());
      const auto request = request_of(Dialect::kVsr11, frame.bytes);
      EXPECT_EQ(describe(Dialect::kVsr11, request, *answer),
                describe(Dialect::kVsr11, request, recorded.frames[i + 1].bytes));
    }
    if (recorded.frames[i + 3].kind == golden::RecordedFrame::Kind::kEvent) {
      EXPECT_TRUE(wire.at_end()) << "the server closes";
      continue;
    }
    wire.write(ping.bytes);
    const auto pong = wire.read_frame();
    ASSERT_TRUE(pong.has_value());
    EXPECT_EQ(describe(Dialect::kVsr11, iggy::Ping{}, *pong),
              describe(Dialect::kVsr11, iggy::Ping{}, recorded.frames[i + 3].bytes));
  }
  Replay(kEdge).run(vsr_recording("23"), {.logged_in = false});
}

TEST(ReplayVsr, UserWithoutPermission) {
  Replay replay(kEdge);
  replay.call(iggy::CreateUser{.name = "poor", .password = "poor", .permissions = {}, .options = {}});
  replay.stream("sp");
  replay.topic("sp", "t", 1);
  replay.run(vsr_recording("24"), {.logged_in = false});
}

TEST(ReplayVsr, PollBelowTheFloor) {
  Replay replay(kEdge);
  replay.stream("seg");
  base::Bytes one_mib(8);
  base::store(one_mib.data(), std::uint64_t{kMiB});
  replay.topic("seg", "t", 1, {{"segment_size", 12, one_mib}});
  replay.send_text("seg", "t", 0, 60, 50'000, 1);
  replay.run(vsr_recording("25"));
}

TEST(ReplayVsr, KilledWithUnsavedMessages) {
  const TemporaryFolder folder;
  Replay replay(kEdge, folder.path());
  replay.stream("s");
  replay.topic("s", "t", 1);
  replay.run(vsr_recording("28"));
}

TEST(ReplayVsr, OfficialClients) {
  Replay(kEdge).run(vsr_recording("30"), {.logged_in = false});
  Replay python(kEdge);
  python.stream("other");
  python.run(vsr_recording("31"), {.logged_in = false});
  python.topic("py", "t", 1);
  python.run(vsr_recording("32"), {.logged_in = false});
}

TEST(ReplayVsr, MergedBatch) {
  Replay replay(kEdge);
  replay.stream("s");
  replay.topic("s", "src", 1);
  replay.topic("s", "dst", 1);
  replay.store_polled(vsr_recording("37"), 1, "s", "src", 0, 1);
  replay.run(vsr_recording("37"));
}

TEST(ReplayVsr, GracefulStopSaysNothing) {
  Replay replay(kEdge);
  const golden::Recording& recorded = vsr_recording("26");
  RawConnection wire(replay.server().port(), Dialect::kVsr11);
  wire.write(recorded.frames[0].bytes);
  ASSERT_TRUE(wire.read_frame().has_value());
  replay.server().stop();
  EXPECT_TRUE(wire.at_end());
}

// --- both

class ClientList : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Replay, ClientList, testing::Values("0.8.0", kEdge));

// Recording 38: a connection that wrote a send and closed leaves the list only after the send was executed.
TEST_P(ClientList, LosesADeadConnectionAfterItsSend) {
  Replay replay(GetParam());
  const golden::Recording& recorded = recording(replay.dialect(), "38");
  const auto& frames = recorded.frames;
  replay.stream("s");
  replay.topic("s", "t", 1);
  replay.call(iggy::CreateUser{.name = "poor", .password = "poor", .permissions = {}, .options = {}});
  const auto ask = [&](RawConnection& wire, std::size_t i) {
    wire.write(frames[i].bytes);
    return describe(replay.dialect(), request_of(replay.dialect(), frames[i].bytes), wire.read_frame().value());
  };
  const auto recorded_answer = [&](std::size_t i) {
    return describe(replay.dialect(), request_of(replay.dialect(), frames[i].bytes), frames[i + 1].bytes);
  };
  const auto client = [&](std::size_t i) {
    return replay.dialect() == Dialect::kLegacy ? base::MessageId{1, 0} : client_of(frames[i].bytes);
  };
  const auto logged_in = [&](std::size_t i, const std::string& user) {
    auto wire = std::make_unique<RawConnection>(replay.server().port(), replay.dialect());
    wire->write(login_frame(replay.dialect(), client(i), user, user));
    EXPECT_TRUE(wire->read_frame().has_value());
    return wire;
  };
  const auto watcher = logged_in(0, "iggy");
  auto other = logged_in(2, "iggy");
  EXPECT_EQ(ask(*watcher, 0), recorded_answer(0));
  other->write(frames[2].bytes);
  other.reset();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::string list;
  do list = ask(*watcher, 5);
  while (list != recorded_answer(5) && std::chrono::steady_clock::now() < deadline);
  EXPECT_EQ(list, recorded_answer(5));
  EXPECT_EQ(ask(*watcher, 7), recorded_answer(7)) << "once unlisted, the send is there";
  EXPECT_EQ(ask(*logged_in(9, "poor"), 9), recorded_answer(9));
}

TEST(ReplayCoverage, EveryRecordingIsReplayedOrLeftOutForAReason) {
  const std::set<std::string> legacy_done = {"01", "02", "03", "04", "05", "06", "07", "08", "09", "10",
                                             "11", "12", "13", "14", "16", "17", "18", "19", "20", "21",
                                             "22", "23", "24", "25", "26", "28", "30", "31", "38"};
  const std::set<std::string> vsr_done = {"01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11",
                                          "12", "13", "14", "15", "17", "18", "19", "20", "21", "22", "23",
                                          "24", "25", "26", "28", "30", "31", "32", "37", "38"};
  const auto check = [](Dialect dialect, std::set<std::string> done, const std::vector<Left>& left) {
    for (const Left& one : left) done.insert(one.file.substr(0, 2));
    std::set<std::string> all;
    for (const golden::Recording& found : golden::load_recordings(folder(dialect))) all.insert(found.file.substr(0, 2));
    EXPECT_EQ(all, done);
  };
  check(Dialect::kLegacy, legacy_done, kLegacyLeftOut);
  check(Dialect::kVsr11, vsr_done, kVsrLeftOut);
}

}  // namespace
}  // namespace sandbox
