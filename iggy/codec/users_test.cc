// Goal: user administration reads and writes what no golden vector holds: replies with users, a legacy update_user and
// get_user. Method: bytes by hand from the layout tables of both wire references, decoded, and encoded again.
#include <gtest/gtest.h>

#include "iggy/codec/golden.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/primitives.h"
#include "iggy/codec/vsr.h"

namespace iggy {
namespace {

using golden::from_hex;
using golden::to_hex;

// name "ann" 616e6e, id 7, created_at 16, active
constexpr std::string_view kAnn =
    "07000000"
    "1000000000000000"
    "01"
    "03616e6e";
// Polling everywhere; stream 2: read; its topic 5: send. The marks after each stream and topic say that no more
// follows.
constexpr std::string_view kPermissions =
    "00000000000000000100"
    "01"
    "02000000"
    "000100000000"
    "01"
    "05000000"
    "00000001"
    "00"
    "00";

Permissions permissions() {
  Permissions value;
  value.poll_messages = true;
  Permissions::OfStream& stream = value.streams.emplace_back();
  stream.id = 2;
  stream.read_stream = true;
  Permissions::OfTopic& topic = stream.topics.emplace_back();
  topic.id = 5;
  topic.send_messages = true;
  return value;
}
User ann() {
  User user;
  user.id = 7;
  user.created_at = 16;
  user.name = "ann";
  return user;
}
std::string hex(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

// The payload of a reply in one dialect.
class Dialects {
 public:
  explicit Dialects(bool legacy) : legacy_(legacy) {}
  // An options block of vsr, empty; legacy has none.
  std::string_view no_options() const { return legacy_ ? "" : "00000000"; }
  base::Result<Reply> decode(const Request& request, const std::string& payload) const {
    const base::BufferPtr buffer = golden::buffer_of(from_hex(payload));
    return legacy_ ? legacy::decode_reply(request, buffer->view(), buffer)
                   : vsr::decode_payload(request, buffer->view(), buffer, true);
  }
  std::string encode(const Reply& reply) const {
    if (!legacy_) return to_hex(vsr::encode_payload(reply));
    return to_hex(base::ByteView(legacy::encode_reply(reply)).subspan(legacy::kHeaderSize));
  }
  // A request as it travels, without what is before its body, and what a server makes of it.
  std::string body(const Request& request) const {
    if (!legacy_) return to_hex(vsr::encode_body(request).value());
    return to_hex(base::ByteView(legacy::encode_request(request).value()).subspan(legacy::kHeaderSize));
  }

 private:
  bool legacy_;
};

class UserCodec : public testing::TestWithParam<bool> {
 protected:
  Dialects wire{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Dialects, UserCodec, testing::Bool(),
                         [](const auto& each) { return each.param ? "legacy" : "vsr"; });

TEST_P(UserCodec, AUserWithPermissions) {
  const std::string payload = hex({kAnn, wire.no_options(), "01", "20000000", kPermissions});
  for (const Request& request : {Request(GetUser{std::string("ann")}), Request(CreateUser{})}) {
    const auto reply = wire.decode(request, payload);
    ASSERT_TRUE(reply) << reply.error().to_string();
    EXPECT_EQ(std::get<UserDetails>(*reply), (UserDetails{ann(), permissions()}));
    EXPECT_EQ(wire.encode(*reply), payload);
  }
}

TEST_P(UserCodec, AUserWithoutPermissions) {
  const std::string payload = hex({kAnn, wire.no_options(), "00000000"});
  const auto reply = wire.decode(GetUser{7U}, payload);
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_EQ(std::get<UserDetails>(*reply), (UserDetails{ann(), std::nullopt}));
  EXPECT_EQ(wire.encode(*reply), payload);
}

TEST_P(UserCodec, AMissingUserIsAnEmptyAnswer) {
  const auto reply = wire.decode(GetUser{7U}, "");
  ASSERT_TRUE(reply);
  EXPECT_TRUE(std::holds_alternative<NotThere>(*reply));
}

TEST_P(UserCodec, AllUsers) {
  const std::string payload = hex({kAnn, wire.no_options(), kAnn, wire.no_options()});
  const auto reply = wire.decode(GetUsers{}, payload);
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_EQ(std::get<Users>(*reply).users, (std::vector<User>{ann(), ann()}));
  EXPECT_EQ(wire.encode(*reply), payload);
}

TEST_P(UserCodec, RequestsThatNameAUser) {
  EXPECT_EQ(wire.body(GetUser{7U}), "010407000000");
  EXPECT_EQ(wire.body(GetUser{std::string("ann")}), "0203616e6e");
  EXPECT_EQ(wire.body(UpdateUser{7U, std::string("bob"), std::uint8_t{2}, {}}),
            "010407000000"
            "0103626f62"
            "0102");
  EXPECT_EQ(wire.body(UpdateUser{7U, std::nullopt, std::nullopt, {}}),
            "010407000000"
            "00"
            "00");
  EXPECT_EQ(wire.body(UpdatePermissions{7U, permissions()}), hex({"010407000000", "01", "20000000", kPermissions}));
  EXPECT_EQ(wire.body(UpdatePermissions{7U, std::nullopt}),
            "010407000000"
            "00");
}

TEST(ExternalGroups, AreWrittenAsTheVectorsHaveThem) {
  std::size_t seen = 0;
  for (const golden::Vector& vector : golden::load_vectors("iggy/codec/golden/vsr-0.12/vectors.json")) {
    SCOPED_TRACE(vector.name);
    const auto& in = vector.inputs;
    ++seen;
    if (vector.layer == "block") {
      base::Bytes out;
      WireWriter(out).consumer(golden::consumer(in.at("consumer")));
      EXPECT_TRUE(vector.matches(out));
      continue;
    }
    const auto body = vsr::encode_body(StoreConsumerOffset{
        golden::consumer(in.at("consumer")), golden::ident(in.at("stream")), golden::ident(in.at("topic")),
        golden::optional_partition(in.at("partition_id")), golden::number(in.at("offset")), in.at("ack")});
    ASSERT_TRUE(body);
    EXPECT_TRUE(vector.matches(*body)) << to_hex(*body);
  }
  EXPECT_EQ(seen, 2U);
}

TEST(ExternalGroups, AreRefusedWithASentenceWhereNoServerHasThem) {
  const Consumer group{ConsumerKind::kExternalGroup, std::string("kafka.cg.g1")};
  for (const Request& request :
       {Request(StoreConsumerOffset{group, 1U, 0U, 2U, 123, 1}), Request(GetConsumerOffset{group, 1U, 0U, 2U}),
        Request(DeleteConsumerOffset{group, 1U, 0U, 2U, 1})}) {
    for (const auto& refused : {legacy::encode_request(request), vsr::encode_request(request, {{1, 2}, 1, 1})}) {
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code(), base::ErrorCode::kUnsupported);
      EXPECT_NE(refused.error().message().find("from server 0.10 on"), std::string::npos);
    }
  }
  // As a server of these dialects reads it: no such kind.
  EXPECT_FALSE(
      legacy::decode_request(121, from_hex("03020b6b61666b612e63672e6731010401000000010400000000010200000000")));
}

}  // namespace
}  // namespace iggy
