// Goal: a send is refused with the status that server 0.8.0 gives, in its order; a message survives being stored.
// Method: a valid body of two messages, broken in one place each time.
#include "iggy/codec/legacy_message.h"

#include <gtest/gtest.h>

#include "base/digest.h"
#include "iggy/codec/golden.h"
#include "iggy/codec/primitives.h"

namespace iggy::legacy {
namespace {

// Bodies of a send_messages to s1/t1, partition 0. Fields are set by the tests before build().
struct Body {
  struct Message {
    MessageHeader header;
    std::size_t actual = 0;  // body bytes that are really there
    std::uint32_t index_offset = 0;
    std::uint64_t index_timestamp = 0;
    std::optional<std::uint32_t> end;  // instead of the right one
  };
  std::vector<Message> messages;
  std::optional<std::uint32_t> count;
  std::size_t extra = 0;  // bytes after the last message
  base::Bytes metadata = golden::from_hex(
      "02027331020274310204"
      "00000000");

  Body() {
    add(3);
    add(5);
  }
  void add(std::uint32_t payload) {
    Message& message = messages.emplace_back();
    message.header.payload_length = payload;
    message.actual = payload;
  }
  base::Bytes build() const {
    base::Bytes out;
    base::ByteWriter writer(out);
    writer.u32(static_cast<std::uint32_t>(metadata.size() + 4));
    writer.bytes(metadata);
    writer.u32(count.value_or(static_cast<std::uint32_t>(messages.size())));
    std::uint32_t end = 0;
    for (const Message& message : messages) {
      end += static_cast<std::uint32_t>(kMessageHeaderSize + message.actual);
      writer.u32(message.index_offset);
      writer.u32(message.end.value_or(end));
      writer.u64(message.index_timestamp);
    }
    for (const Message& message : messages) {
      std::array<std::byte, kMessageHeaderSize> header;
      write_message_header(header.data(), message.header);
      writer.bytes(header);
      writer.zeros(message.actual);
    }
    writer.zeros(extra);
    return out;
  }
};

std::uint32_t status_of(const base::Bytes& body) {
  const auto send = decode_send(golden::buffer_of(body)->view());
  return send ? 0 : send.error().wire_status();
}
std::uint32_t status_of(const Body& body) { return status_of(body.build()); }

TEST(LegacySend, AcceptsAValidBody) {
  Body body;
  body.messages[0].header.offset = 7;
  body.messages[1].header.offset = 7;
  const base::BufferPtr bytes = golden::buffer_of(body.build());
  const auto send = decode_send(bytes->view());
  ASSERT_TRUE(send) << send.error().to_string();
  EXPECT_EQ(send->stream, Ident("s1"));
  EXPECT_EQ(send->topic, Ident("t1"));
  ASSERT_EQ(send->records.size(), 2U);
  EXPECT_EQ(send->records[1].body.size(), 5U);
  EXPECT_EQ(send->batch.size(), 64U + 3 + 64 + 5);
  EXPECT_EQ(send->records[1].raw.data(), send->batch.data() + 67);
}

TEST(LegacySend, RefusesMetadataThatDoesNotParse) {
  Body body;
  EXPECT_EQ(status_of(base::Bytes(3)), 3U);
  body.metadata = golden::from_hex(
      "09027331020274310204"
      "00000000");  // identifier kind 9
  EXPECT_EQ(status_of(body), 6U);
  body.metadata = golden::from_hex(
      "0103000000020274310204"
      "00000000");  // number of three bytes
  EXPECT_EQ(status_of(body), 6U);
  body.metadata = golden::from_hex(
      "02027331020274310904"
      "00000000");  // partitioning kind 9
  EXPECT_EQ(status_of(body), 3U);
  body.metadata = golden::from_hex(
      "02027331020274310203"
      "000000");  // partition of three bytes
  EXPECT_EQ(status_of(body), 3U);
  body.metadata = golden::from_hex("02027331");  // the count is taken for the topic
  EXPECT_EQ(status_of(body), 6U);
}

TEST(LegacySend, RefusesCountsThatDoNotFit) {
  Body body;
  body.count = 0;
  EXPECT_EQ(status_of(body), 4009U);
  body.count = 0xFFFFFFFFU;
  EXPECT_EQ(status_of(body), 3U);
  body.count = 3;  // the first message header is taken for an index entry
  EXPECT_NE(status_of(body), 0U);
}

TEST(LegacySend, RefusesIndexEntriesInTheServersOrder) {
  Body body;
  body.messages[1].index_timestamp = 1;
  EXPECT_EQ(status_of(body), 4032U);
  body.messages[1].index_offset = 1;
  EXPECT_EQ(status_of(body), 4031U);
  body.messages[0].header.payload_length = 4;  // of the message before: seen first
  EXPECT_EQ(status_of(body), 4033U);
}

TEST(LegacySend, RefusesPositionsThatSpanNoMessage) {
  Body beyond;
  beyond.messages[0].end = 1000;
  EXPECT_EQ(status_of(beyond), 4033U);
  Body small;
  small.messages[0].end = 63;
  EXPECT_EQ(status_of(small), 4033U);
  Body late;  // leaves less than a header to the second
  late.messages[0].end = 67 + 6;
  EXPECT_EQ(status_of(late), 4033U);
  Body last;  // the last one ends with the area, whatever its entry says
  last.messages[1].end = 67;
  EXPECT_EQ(status_of(last), 0U);
  last.messages[1].end = 66;
  EXPECT_EQ(status_of(last), 10011U);
}

TEST(LegacySend, RefusesWhatIsTooBig) {
  Body payload;
  payload.messages[1].header.payload_length = kMaxPayload + 1;
  payload.messages[1].actual = kMaxPayload + 1;
  EXPECT_EQ(status_of(payload), 4022U);
  payload.messages[1].header.payload_length = kMaxPayload;
  payload.messages[1].actual = kMaxPayload;
  EXPECT_EQ(status_of(payload), 0U);
  Body headers;
  headers.messages[1].header.headers_length = kMaxHeaders + 1;
  headers.messages[1].actual = 5 + kMaxHeaders + 1;
  EXPECT_EQ(status_of(headers), 4017U);
  headers.messages[1].header.headers_length = kMaxHeaders;
  headers.messages[1].actual = 5 + kMaxHeaders;
  EXPECT_EQ(status_of(headers), 0U);
}

TEST(LegacySend, RefusesOffsetsThatDecreaseAndAreasThatAreNotFull) {
  Body offsets;
  offsets.messages[0].header.offset = 5;
  offsets.messages[1].header.offset = 4;
  EXPECT_EQ(status_of(offsets), 4100U);
  Body extra;
  extra.extra = 1;
  EXPECT_EQ(status_of(extra), 4036U);
}

TEST(LegacyMessage, ChecksumCoversEverythingAfterItself) {
  const base::Bytes body = golden::from_hex("68656c6c6f02010000006b0b0400000007000000");
  base::Record record;
  record.id = {2, 0};
  record.offset = 1;
  record.timestamp = 1'700'000'000'000'000;
  record.origin_timestamp = 2000;
  record.payload_length = 5;
  record.body = body;
  base::Bytes out;
  append_stored_message(out, record);
  ASSERT_EQ(out.size(), 84U);
  EXPECT_EQ(base::load<std::uint64_t>(out.data()), 0x3fbc0544d018920dU);  // of the wire reference, section 11
  EXPECT_EQ(base::load<std::uint64_t>(out.data()), base::xxh3_64(base::ByteView(out).subspan(8)));
}

TEST(LegacyReply, PolledMessagesMustFillThePayloadInOrder) {
  PolledMessages polled;
  for (std::uint64_t offset : {4U, 5U}) {
    base::Record record;
    record.offset = offset;
    polled.batch.records.push_back(record);
  }
  const auto status_after = [&](auto change) {
    base::Bytes frame = encode_reply(polled);
    change(frame);
    const base::BufferPtr buffer = golden::buffer_of(frame);
    return decode_reply(PollMessages{}, buffer->view().subspan(kHeaderSize), buffer).has_value();
  };
  constexpr std::size_t kCount = kHeaderSize + 12;
  constexpr std::size_t kFirst = kHeaderSize + 16;
  EXPECT_TRUE(status_after([](base::Bytes&) {}));
  EXPECT_FALSE(status_after([](base::Bytes& frame) { base::store(frame.data() + kCount, std::uint32_t{1}); }));
  EXPECT_FALSE(status_after([](base::Bytes& frame) { base::store(frame.data() + kCount, std::uint32_t{3}); }));
  EXPECT_FALSE(status_after([](base::Bytes& frame) { base::store(frame.data() + kCount, ~std::uint32_t{0}); }));
  EXPECT_FALSE(status_after([](base::Bytes& frame) { frame.emplace_back(); }));
  EXPECT_FALSE(status_after([](base::Bytes& frame) { base::store(frame.data() + kFirst + 52, ~std::uint32_t{0}); }));
  EXPECT_FALSE(status_after([](base::Bytes& frame) { base::store(frame.data() + kFirst + 24, std::uint64_t{5}); }));
}

TEST(LegacyRequest, SaysWhatCannotBeSent) {
  using base::ErrorCode;
  const auto code_of = [](const Request& request) {
    const auto frame = encode_request(request);
    return frame ? std::optional<ErrorCode>() : frame.error().code();
  };
  EXPECT_EQ(code_of(CreateStream{"", {}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(CreateStream{std::string(256, 'n'), {}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(CreateStream{std::string(255, 'n'), {}}), std::nullopt);
  EXPECT_EQ(code_of(GetStream{std::string()}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(DescribeOptions{}), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(SyncGroup{std::string("s"), std::string("t"), std::string("g")}), ErrorCode::kUnsupported);
  PollMessages poll;
  poll.partition = kPartitionLimit - 1;
  EXPECT_EQ(code_of(poll), std::nullopt);
  poll.partition = kPartitionLimit;
  EXPECT_EQ(code_of(poll), ErrorCode::kInvalidArgument);
}

// The recorded server never created users with permissions, updated one, or listed them: ours must at least agree with
// ourselves.
TEST(LegacyReply, RecordsWithoutGoldenBytesSurviveARoundTrip) {
  Permissions permissions;
  permissions.read_servers = true;
  permissions.streams.resize(2);
  permissions.streams[0].id = 3;
  permissions.streams[0].topics.resize(2);
  permissions.streams[0].topics[1].send_messages = true;
  const UserDetails user{{7, 1, 2, "alice", {}}, permissions};
  const base::BufferPtr frame = golden::buffer_of(encode_reply(user));
  const auto reply = decode_reply(GetUser{}, frame->view().subspan(kHeaderSize), frame);
  ASSERT_TRUE(reply);
  EXPECT_EQ(std::get<UserDetails>(*reply), user);

  const UpdateUser update{std::string("alice"), "bob", std::uint8_t{2}, {}};
  const auto request = encode_request(update);
  ASSERT_TRUE(request);
  EXPECT_EQ(golden::to_hex(*request),
            "12000000"
            "23000000"
            "0205616c696365"
            "0103626f62"
            "0102");
  const auto decoded = decode_request(35, base::ByteView(*request).subspan(kHeaderSize));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(std::get<UpdateUser>(*decoded).name, "bob");
  EXPECT_EQ(std::get<UpdateUser>(*decoded).status, 2);
}

}  // namespace
}  // namespace iggy::legacy
