// Every entry of the vsr golden vectors: decoded, encoded again, and built from its inputs.
#include "iggy/codec/vsr.h"

#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "base/digest.h"
#include "iggy/codec/primitives.h"
#include "iggy/codec/vsr_golden.h"

namespace iggy::vsr {
namespace {

using golden::from_hex;
using golden::number;
using golden::to_hex;
using golden::Vector;
using golden::wide;
using Json = nlohmann::json;

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> all = golden::load_vectors("iggy/codec/golden/vsr/vectors.json");
  return all;
}

base::Bytes bytes_named(std::string_view name) {
  const auto at = std::ranges::find(vectors(), name, &Vector::name);
  if (at == vectors().end()) throw std::runtime_error("no vector " + std::string(name));
  return at->bytes.value();
}

// A header that a server would accept for the body of `vector`.
RequestHeader header_for(const Vector& vector) {
  const bool login = vector.operation == 1;
  return {.command = 5,
          .client = {1, 2},
          .request = login ? 0U : 1U,
          .operation = static_cast<std::uint8_t>(vector.operation),
          .session = login ? 0U : 1U,
          .code = vector.operation == 2 ? vector.code : 0};
}

Request request_for(std::uint32_t operation, std::uint32_t code) {
  return golden::request_with(static_cast<Operation>(operation), operation == 2 ? code : 0);
}

// Each cut of `whole` is refused, or is a complete shorter one: then it decodes to exactly itself.
void expect_every_cut(base::ByteView whole, const std::string& name,
                      const std::function<std::optional<base::Bytes>(base::ByteView)>& decode_and_encode) {
  const std::size_t step = whole.size() > 5000 ? 997 : 1;
  for (std::size_t size = 0; size < whole.size(); size += step) {
    const base::Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));  // its own block for ASan
    const auto again = decode_and_encode(cut);
    if (again) EXPECT_EQ(to_hex(*again), to_hex(cut)) << name << " cut at " << size;
  }
}

void check_request_body(const Vector& entry, base::ByteView body) {
  const std::string& name = entry.name;
  const RequestHeader header = header_for(entry);
  const auto request = decode_request(header, body);
  ASSERT_TRUE(request) << name << ": " << request.error().to_string();
  const auto again = encode_body(*request);
  ASSERT_TRUE(again) << name;
  EXPECT_TRUE(std::ranges::equal(*again, body)) << name << "\n" << to_hex(*again).substr(0, 2000);
  EXPECT_EQ(std::to_underlying(operation_of(*request)), header.operation) << name;

  golden::Built built = golden::request_of(entry);
  ASSERT_TRUE(built.request) << name << " cannot be built from its inputs";
  EXPECT_EQ(built.request->index(), request->index()) << name;
  const auto encoded = encode_body(*built.request);
  ASSERT_TRUE(encoded) << name << ": " << encoded.error().to_string();
  EXPECT_TRUE(std::ranges::equal(*encoded, body)) << name << "\n" << to_hex(*encoded).substr(0, 2000);

  expect_every_cut(body, name, [&](base::ByteView cut) -> std::optional<base::Bytes> {
    const auto shorter = decode_request(header, cut);
    if (!shorter) return std::nullopt;
    return encode_body(*shorter).value();
  });
}

void check_request_frame(const Vector& entry, const base::Bytes& frame) {
  const std::string& name = entry.name;
  const auto header = read_request_header(frame);
  ASSERT_TRUE(header) << name;
  ASSERT_EQ(header->size, frame.size()) << name;
  EXPECT_EQ(header->operation, entry.operation) << name;
  const auto request = decode_request(*header, base::ByteView(frame).subspan(kHeaderSize));
  ASSERT_TRUE(request) << name << ": " << request.error().to_string();
  const auto again = encode_request(*request, {header->client, header->session, header->request});
  ASSERT_TRUE(again) << name;
  if (name.ends_with("/frame_unstamped")) {
    EXPECT_TRUE(header->request_checksum.is_zero());
    EXPECT_EQ(*again, bytes_named("login/password/no_context/frame"));
    return;
  }
  EXPECT_EQ(to_hex(*again), to_hex(frame)) << name;
  const Json& inputs = entry.inputs.contains("header") ? entry.inputs["header"] : entry.inputs;
  EXPECT_EQ(header->client, wide(inputs["client"])) << name;
  EXPECT_EQ(header->session, number(inputs["session"])) << name;
  EXPECT_EQ(header->request, number(inputs["request"])) << name;
}

void check_eviction(const Vector& entry, const base::Bytes& frame) {
  const std::string& name = entry.name;
  const auto header = read_reply_header(frame);
  ASSERT_TRUE(header) << name;
  const auto* eviction = std::get_if<Eviction>(&*header);
  ASSERT_NE(eviction, nullptr) << name;
  const Json& inputs = entry.inputs;
  EXPECT_EQ(eviction->reason, inputs["reason"]) << name;
  EXPECT_EQ(eviction->protocol_max, inputs.value("server_protocol_version", 0U)) << name;
  EXPECT_EQ(eviction->protocol_min, inputs.value("server_protocol_version_min", 0U)) << name;
  EXPECT_EQ(to_hex(encode_eviction(wide(inputs["client"]), *eviction)), to_hex(frame)) << name;
}

void check_refusal(const Vector& entry, const base::Bytes& frame) {
  const std::string& name = entry.name;
  const Json& inputs = entry.inputs;
  const auto read = read_reply_header(frame);
  ASSERT_TRUE(read) << name;
  const ReplyHeader& header = std::get<ReplyHeader>(*read);
  auto operation = inputs.value("operation", std::uint8_t{1});
  if (operation == 64) operation = 132;
  const auto result = inputs.value("result", 0U);
  const std::uint32_t status = result != 0 ? result : inputs["status"].get<std::uint32_t>();
  const auto reply =
      decode_reply(request_for(operation, 100), header, base::ByteView(frame).subspan(kHeaderSize), nullptr, true);
  ASSERT_FALSE(reply) << name;
  EXPECT_EQ(reply.error().wire_status(), status) << name;

  const RequestHeader request{.client = header.client, .request = header.request, .operation = operation};
  EXPECT_EQ(to_hex(result != 0 ? encode_result(request, result) : encode_status(request, status)), to_hex(frame))
      << name;
}

void check_reply_payload(const Vector& entry, const Request& request, base::ByteView payload) {
  const std::string& name = entry.name;
  const auto reply = decode_payload(request, payload, nullptr, true);
  ASSERT_TRUE(reply) << name << ": " << reply.error().to_string();
  EXPECT_EQ(to_hex(encode_payload(*reply)), to_hex(payload)) << name;
  if (const auto built = golden::reply_of(entry)) {
    EXPECT_EQ(built->index(), reply->index()) << name;
    EXPECT_EQ(to_hex(encode_payload(*built)), to_hex(payload)) << name;
  } else {
    EXPECT_TRUE(std::holds_alternative<PolledMessages>(*reply)) << name << " cannot be built from its inputs";
  }
  expect_every_cut(payload, name, [&](base::ByteView cut) -> std::optional<base::Bytes> {
    const auto shorter = decode_payload(request, cut, nullptr, true);
    if (!shorter) return std::nullopt;
    return encode_payload(*shorter);
  });
}

void check_reply_frame(const Vector& entry, const base::Bytes& frame) {
  const std::string& name = entry.name;
  const auto read = read_reply_header(frame);
  ASSERT_TRUE(read) << name;
  const ReplyHeader& header = std::get<ReplyHeader>(*read);
  const auto operation = entry.operation;
  const Request request = request_for(operation, entry.code);
  EXPECT_EQ(header.size, frame.size()) << name;
  const auto body = base::ByteView(frame).subspan(kHeaderSize);
  const auto reply = decode_reply(request, header, body, nullptr, true);
  if (name == "login/reply/empty_body") {
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code(), base::ErrorCode::kCredentials);
    return;
  }
  ASSERT_TRUE(reply) << name << ": " << reply.error().to_string();
  const RequestHeader echo{
      .client = header.client, .request = header.request, .operation = std::to_underlying(operation_of(request))};
  EXPECT_EQ(to_hex(encode_reply(request, echo, *reply, 0)), to_hex(frame)) << name;
  expect_every_cut(body, name, [&](base::ByteView cut) -> std::optional<base::Bytes> {
    const auto shorter = decode_reply(request, header, cut, nullptr, true);
    if (!shorter) return std::nullopt;
    const base::Bytes again = encode_reply(request, echo, *shorter, 0);
    return base::Bytes(again.begin() + kHeaderSize, again.end());
  });
}

void check_block(const Vector& entry, const base::Bytes& block) {
  const std::string& name = entry.name;
  const Json& inputs = entry.inputs;
  WireReader reader(block);
  base::Bytes again;
  WireWriter writer(again);
  if (inputs.contains("identifier")) {
    const Ident ident = reader.ident();
    EXPECT_EQ(ident, golden::ident(inputs["identifier"])) << name;
    writer.ident(ident, "");
  } else if (inputs.contains("consumer")) {
    const Consumer consumer = reader.consumer();
    EXPECT_EQ(consumer, golden::consumer(inputs["consumer"])) << name;
    writer.consumer(consumer);
  } else if (inputs.contains("strategy")) {
    const PollStrategy strategy = reader.strategy();
    EXPECT_EQ(strategy, golden::strategy(inputs["strategy"])) << name;
    writer.strategy(strategy);
  } else if (inputs.contains("partitioning")) {
    const Partitioning partitioning = reader.partitioning();
    EXPECT_EQ(partitioning, golden::partitioning(inputs["partitioning"])) << name;
    writer.partitioning(partitioning);
  } else if (name.starts_with("permissions/")) {
    const Permissions permissions = reader.permissions();
    EXPECT_EQ(permissions, golden::permissions_of(inputs)) << name;
    writer.permissions(permissions);
  } else if (name.starts_with("user_headers/")) {
    EXPECT_TRUE(is_tlv_block(block)) << name;
    while (!reader.at_end()) {
      const TlvItem item = reader.tlv_item();
      writer.tlv_item(item.kind, item.data);
    }
  } else if (name.starts_with("version_word/")) {
    const std::uint32_t word = reader.u32();
    EXPECT_EQ(word, number(inputs["word"])) << name;
    writer.u32(word);
    const LoginToken login{"t", "c", "1", "", word};
    const auto body = encode_body(login);
    RequestHeader header{.command = 5, .client = {1, 0}, .operation = 1};
    const auto decoded = decode_request(header, *body);
    EXPECT_EQ(decoded.has_value(), inputs["accepted_by_this_generation"].get<bool>()) << name;
    if (!decoded) EXPECT_EQ(encode_refusal(header, decoded.error())[255], std::byte{14}) << name;
  } else if (name.starts_with("hash/xxh3_64/")) {
    const std::uint64_t hash = base::xxh3_64(from_hex(inputs["data_hex"].get<std::string>()));
    EXPECT_EQ(reader.u64(), hash) << name;
    writer.u64(hash);
  } else if (name.starts_with("hash/xxh32/")) {
    const std::uint32_t hash = base::xxh32(base::as_bytes(inputs["data"].get<std::string>()));
    EXPECT_EQ(reader.u32(), hash) << name;
    writer.u32(hash);
  } else {
    ADD_FAILURE() << name << " is not covered";
  }
  EXPECT_TRUE(reader.ok() && reader.at_end()) << name;
  EXPECT_EQ(to_hex(again), to_hex(block)) << name;
}

// A request body that is given by its head, tail, length and hash.
void check_large_body(const Vector& entry) {
  const std::string& name = entry.name;
  const golden::Built built = golden::request_of(entry);
  ASSERT_TRUE(built.request) << name;
  const auto body = encode_body(*built.request);
  ASSERT_TRUE(body) << name;
  EXPECT_TRUE(entry.matches(*body)) << name;
  check_request_body(entry, *body);
}

TEST(VsrVectors, EveryEntry) {
  std::size_t covered = 0;
  for (const Vector& entry : vectors()) {
    const std::string& name = entry.name;
    SCOPED_TRACE(name);
    const std::string& direction = entry.direction;
    const std::string& layer = entry.layer;
    ++covered;
    if (!entry.bytes) {
      check_large_body(entry);
      continue;
    }
    const base::Bytes& bytes = *entry.bytes;
    EXPECT_EQ(bytes.size(), entry.length);
    if (layer == "block") {
      check_block(entry, bytes);
    } else if (layer == "batch") {
      std::vector<base::Record> records;  // in depth: vsr_batch_test
      EXPECT_TRUE(decode_batch(bytes, records, true));
    } else if (direction == "request" && layer == "body") {
      check_request_body(entry, bytes);
    } else if (direction == "request" && layer == "frame") {
      check_request_frame(entry, bytes);
    } else if (name.starts_with("eviction/")) {
      check_eviction(entry, bytes);
    } else if (name.starts_with("error_reply/") || name == "login/reply/transient_58") {
      check_refusal(entry, bytes);
    } else if (direction == "reply" && layer == "payload") {
      const bool routing = name == "poll_routing/reply/payload";
      const std::uint32_t operation = routing ? 2 : entry.operation;
      const std::uint32_t code = routing ? 103 : entry.code;
      check_reply_payload(entry, request_for(operation, code), bytes);
    } else if (direction == "reply" && layer == "frame") {
      check_reply_frame(entry, bytes);
    } else {
      --covered;
      ADD_FAILURE() << "not covered";
    }
  }
  EXPECT_EQ(covered, 338U);
}

TEST(VsrFrames, HeaderCutsAndSizes) {
  base::Bytes frame = bytes_named("ping/frame_after_login");
  const auto with_size = [&](std::uint32_t size) {
    base::store(frame.data() + 48, size);
    return read_request_header(frame).has_value();
  };
  EXPECT_FALSE(with_size(0));
  EXPECT_FALSE(with_size(255));
  EXPECT_TRUE(with_size(256));
  EXPECT_TRUE(with_size(kMaxFrame));
  EXPECT_FALSE(with_size(kMaxFrame + 1));
  base::store(frame.data() + 48, 256U);
  frame[60] = std::byte{30};
  EXPECT_FALSE(read_request_header(frame));
  EXPECT_FALSE(read_reply_header(frame));
  frame[60] = std::byte{13};
  EXPECT_TRUE(read_reply_header(frame));
  base::store(frame.data() + 48, 257U);
  EXPECT_FALSE(read_reply_header(frame)) << "an eviction has no body";
}

TEST(VsrFrames, EvictionsBecomeStatuses) {
  const std::map<std::uint8_t, std::uint32_t> expected = {{1, 40},  {2, 3},   {3, 3},   {4, 3},      {5, 3},
                                                          {6, 3},   {7, 40},  {8, 40},  {9, 42},     {10, 53},
                                                          {11, 40}, {12, 40}, {13, 30}, {14, 14003}, {15, 4}};
  for (const auto& [reason, status] : expected) EXPECT_EQ(status_of_eviction(reason), status) << int{reason};
}

TEST(VsrFrames, EvictionsBecomeErrors) {
  const auto error = [](std::uint8_t reason) { return error_of_eviction({0x3000, 0x3000, reason}, "login"); };
  for (const auto reason : std::initializer_list<std::uint8_t>{9, 10, 11})
    EXPECT_EQ(error(reason).code(), base::ErrorCode::kCredentials);
  for (const auto reason : std::initializer_list<std::uint8_t>{1, 7, 8, 12, 13})
    EXPECT_EQ(error(reason).code(), base::ErrorCode::kConnectionLost);
  for (const auto reason : std::initializer_list<std::uint8_t>{0, 2, 6, 15, 200})
    EXPECT_EQ(error(reason).code(), base::ErrorCode::kServerRefused);
  EXPECT_EQ(error(14).code(), base::ErrorCode::kUnsupported);
  EXPECT_EQ(error(14).message(), "the server takes protocol words 12288 to 12288, not 11264");
  EXPECT_EQ(error(9).wire_status(), 42U);
}

TEST(VsrRequests, HeaderRules) {
  const auto refusal = [](RequestHeader header, base::ByteView body = {}) -> int {
    const auto request = decode_request(header, body);
    return request ? -1 : static_cast<int>(request.error().wire_status());
  };
  const RequestHeader ping{.command = 5, .client = {1, 0}, .operation = 2, .code = 1};
  EXPECT_EQ(refusal(ping), -1);
  RequestHeader header = ping;
  header.client = {};
  EXPECT_EQ(refusal(header), 0);
  header = ping;
  header.command = 8;
  EXPECT_EQ(refusal(header), 0);
  header = ping;
  header.operation = 99;
  header.session = header.request = 1;
  EXPECT_EQ(refusal(header), 0) << "undefined operation";
  header.operation = 3;
  EXPECT_EQ(refusal(header), -1) << "logout";
  header.session = 0;
  EXPECT_EQ(refusal(header), 0);
  header.session = 1;
  header.request = 0;
  EXPECT_EQ(refusal(header), 0);
  header = ping;
  header.code = 9999;
  EXPECT_EQ(refusal(header), 3);
  header.code = 101;
  EXPECT_EQ(refusal(header), 5);
  header.code = 38;
  EXPECT_EQ(encode_refusal(header, decode_request(header, {}).error())[255], std::byte{15});
  header = ping;
  header.request_checksum = {1, 0};
  EXPECT_EQ(refusal(header), 4);
  header.request_checksum = {base::xxh3_64({}), 0};
  EXPECT_EQ(refusal(header), -1);
  EXPECT_EQ(refusal(ping, base::as_bytes("x")), 3) << "a body where none belongs";
}

TEST(VsrRequests, LoginGateComesBeforeCredentials) {
  const RequestHeader header{.command = 5, .client = {7, 0}, .operation = 1};
  const auto answer = [&](std::uint32_t word, bool prefix_only) {
    auto body = encode_body(LoginUser{"u", "p", "c", "1", "", word});
    if (prefix_only) body->resize(body->size() - 8);
    const auto request = decode_request(header, *body);
    const base::Bytes frame = request ? base::Bytes{} : encode_refusal(header, request.error());
    return frame.empty() ? Eviction{} : std::get<Eviction>(read_reply_header(frame).value());
  };
  EXPECT_EQ(answer(kProtocolWord, false).reason, 0);
  EXPECT_EQ(answer(0, true).reason, 14);
  EXPECT_EQ(answer(0, true).protocol_max, kProtocolWord);
  EXPECT_EQ(answer(0, true).protocol_min, kProtocolWord);
  EXPECT_EQ(answer(kProtocolWord, true).reason, 15);
  EXPECT_EQ(answer(kProtocolWord, true).protocol_max, 0U);
}

TEST(VsrRequests, NamesThatHaveNoEncodingAreRefused) {
  EXPECT_EQ(encode_body(CreateStream{"", {}}).error().code(), base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(encode_body(CreateStream{std::string(256, 'x'), {}}).error().code(), base::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(encode_body(CreateStream{std::string(255, 'x'), {}}));
  EXPECT_EQ(encode_body(SendMessages{}).error().code(), base::ErrorCode::kInvalidArgument);
}

TEST(VsrReplies, ResultSectionAndStatusAreBothLookedAt) {
  const auto decode = [](const Request& request, std::uint32_t status, const std::string& body) {
    const ReplyHeader header{.operation = std::to_underlying(operation_of(request)), .status = status};
    return decode_reply(request, header, from_hex(body), nullptr, true);
  };
  EXPECT_EQ(decode(DeleteStream{}, 57, "").error().code(), base::ErrorCode::kUncertain);
  EXPECT_EQ(decode(DeleteStream{}, 0,
                   "0100000000000000"
                   "39000000")
                .error()
                .code(),
            base::ErrorCode::kUncertain);
  EXPECT_EQ(decode(DeleteStream{}, 0,
                   "0100000000000000"
                   "3a000000")
                .error()
                .code(),
            base::ErrorCode::kNotAccepted);
  EXPECT_TRUE(decode(DeleteStream{}, 0, "00000000"));
  EXPECT_EQ(decode(DeleteStream{}, 0, "").error().code(), base::ErrorCode::kMalformed);
  EXPECT_EQ(decode(DeleteStream{}, 0, "000000").error().code(), base::ErrorCode::kMalformed);
  EXPECT_EQ(decode(DeleteStream{}, 0,
                   "01000000"
                   "00000000")
                .error()
                .code(),
            base::ErrorCode::kMalformed);
  EXPECT_EQ(decode(DeleteStream{}, 0,
                   "ffffffff"
                   "00000000"
                   "3a000000")
                .error()
                .code(),
            base::ErrorCode::kMalformed);
  EXPECT_EQ(decode(DeleteStream{}, 0, "0000000000").error().code(), base::ErrorCode::kMalformed);
  EXPECT_EQ(decode(StoreConsumerOffset{}, 0, "").error().code(), base::ErrorCode::kNotFound);
  const ReplyHeader other{.operation = 160};
  EXPECT_EQ(decode_reply(Ping{}, other, {}, nullptr, true).error().code(), base::ErrorCode::kMalformed);
}

TEST(VsrReplies, EmptyBodyOfASendIsADuplicate) {
  const auto decode = [](const std::string& body) {
    return decode_payload(SendMessages{}, from_hex(body), nullptr, true);
  };
  EXPECT_TRUE(std::get<SendConfirmed>(decode("").value()).duplicate);
  const SendConfirmed unknown = std::get<SendConfirmed>(decode("00000000").value());
  EXPECT_FALSE(unknown.duplicate);
  EXPECT_FALSE(unknown.base_offset);
  EXPECT_FALSE(decode("02000000" + std::string(80, '0'))) << "a send goes to one partition";
  EXPECT_FALSE(decode("0000000000"));
}

TEST(VsrSettings, FieldsWinOverTheList) {
  const auto send_and_decode = [](const TopicSettings& settings) {
    const auto body = encode_body(CreateTopic{.stream = 1U, .name = "t", .settings = settings});
    const auto request =
        decode_request({.command = 5, .client = {1, 0}, .request = 1, .operation = 132, .session = 1}, *body);
    return std::get<CreateTopic>(request.value()).settings;
  };
  const auto keys = [](const TopicSettings& settings) {
    std::vector<std::string> names;
    for (const Option& option : settings.options) names.push_back(option.key);
    return names;
  };
  const TopicSettings unset{.message_expiry = 0, .max_topic_size = 0};
  EXPECT_TRUE(send_and_decode(unset).options.empty()) << "unset keys are not sent";

  TopicSettings mixed{.compression = Compression::kGzip, .message_expiry = 5, .max_topic_size = kUnlimitedSize};
  mixed.options = {{"durability", 2, from_hex("706572736973746564")},
                   {"segment_size", 12, from_hex("0000100000000000")}};
  const TopicSettings sent = send_and_decode(mixed);
  EXPECT_EQ(keys(sent), (std::vector<std::string>{"compression_algorithm", "durability", "max_topic_size",
                                                  "message_expiry", "segment_size"}));
  EXPECT_EQ(sent.compression, Compression::kGzip);
  EXPECT_EQ(sent.message_expiry, 5U);
  EXPECT_EQ(sent.max_topic_size, kUnlimitedSize);
  EXPECT_EQ(send_and_decode(sent), sent);

  TopicSettings changed = sent;
  changed.message_expiry = 9;
  EXPECT_EQ(send_and_decode(changed).message_expiry, 9U);
  EXPECT_EQ(send_and_decode(changed).options.size(), 5U);

  TopicSettings text{.message_expiry = kNeverExpire, .max_topic_size = 0};
  text.options = {{"message_expiry", 2, from_hex("6e6f6e65")}};  // "none"
  EXPECT_EQ(send_and_decode(text), text) << "other spellings of the same value are kept";
}

}  // namespace
}  // namespace iggy::vsr
