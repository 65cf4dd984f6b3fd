#include <gtest/gtest.h>

#include "base/digest.h"
#include "iggy/codec/send.h"
#include "iggy/codec/vsr_golden.h"

namespace iggy::vsr {
namespace {

using golden::build_batch;
using golden::from_hex;
using golden::Message;
using golden::to_hex;

base::Bytes vector_named(std::string_view name) {
  static const auto all = golden::load_vectors("iggy/codec/golden/vsr/vectors.json");
  const auto at = std::ranges::find(all, name, &golden::Vector::name);
  if (at == all.end()) throw std::runtime_error("no vector " + std::string(name));
  return at->bytes.value();
}

base::Bytes text(std::string_view value) {
  const base::ByteView view = base::as_bytes(value);
  return {view.begin(), view.end()};
}

constexpr std::uint64_t kOrigin = 1'700'000'000'000'000;

// The two messages of the wire reference: "hello", and "world!" with one header.
std::vector<Message> hello_world() {
  return {{{1, 0}, kOrigin, text("hello"), {}},
          {{2, 0}, kOrigin + 1000, text("world!"), from_hex("02010000006b020100000076")}};
}

// A partition of 5 messages, stored at 100.
base::Bytes five() {
  std::vector<Message> messages;
  for (std::uint64_t i = 0; i < 5; ++i) messages.push_back({{i, 7}, kOrigin + i, base::Bytes(i * 3), base::Bytes(i)});
  return build_batch(messages, 2, 100, kOrigin + 50);
}

std::vector<base::Record> decode(base::ByteView batch) {
  std::vector<base::Record> records;
  const base::Status status = decode_batch(batch, records, true);
  EXPECT_TRUE(status) << status.error().to_string();
  return records;
}

void expect_refused(const base::Bytes& batch, std::string_view why, bool verify = true) {
  std::vector<base::Record> records;
  const base::Status status = decode_batch(batch, records, verify);
  ASSERT_FALSE(status) << why;
  EXPECT_EQ(status.error().code(), base::ErrorCode::kMalformed);
  EXPECT_NE(status.error().message().find(why), std::string::npos) << status.error().message();
}

TEST(VsrBatch, GoldenBatchesAreWhatTheRulesSay) {
  EXPECT_EQ(to_hex(build_batch(hello_world())), to_hex(vector_named("batch/as_sent")));
  EXPECT_EQ(to_hex(build_batch(hello_world(), 0, 100, kOrigin + 500'000)), to_hex(vector_named("batch/as_stored")));
  EXPECT_EQ(to_hex(build_batch(hello_world(), 3, 5000, kOrigin + 500'000)),
            to_hex(vector_named("batch/as_stored_partition_3")));
  EXPECT_EQ(read_batch_header(vector_named("batch/as_sent"))->batch_checksum, 0xe1bb58def2c2038dULL);
  EXPECT_EQ(read_batch_header(vector_named("batch/as_stored"))->batch_checksum, 0x05636233688d51eaULL);
}

TEST(VsrBatch, RecordsViewIntoTheBatch) {
  const base::Bytes batch = vector_named("batch/as_stored");
  const std::vector<base::Record> records = decode(batch);
  ASSERT_EQ(records.size(), 2U);
  const base::Record& second = records[1];
  EXPECT_EQ(second.offset, 101U);
  EXPECT_EQ(second.id, (base::MessageId{2, 0}));
  EXPECT_EQ(second.timestamp, kOrigin + 500'000);
  EXPECT_EQ(second.origin_timestamp, kOrigin + 1000);
  EXPECT_EQ(base::as_text(second.payload()), "world!");
  EXPECT_EQ(to_hex(second.headers()), "02010000006b020100000076");
  EXPECT_EQ(second.raw.data(), batch.data() + 256 + 53);
  EXPECT_EQ(second.raw.size(), 66U);
  EXPECT_EQ(second.envelope.data(), batch.data());
  EXPECT_EQ(second.envelope.size(), kBatchHeaderSize);
}

TEST(VsrBatch, HeaderRoundTrip) {
  const base::Bytes batch = vector_named("batch/as_stored_partition_3");
  const auto header = read_batch_header(batch);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->partition_id, 3U);
  EXPECT_EQ(header->base_offset, 5000U);
  EXPECT_EQ(header->batch_length, batch.size());
  EXPECT_EQ(header->message_count, 2U);
  base::Bytes again(kBatchHeaderSize, std::byte{0xFF});
  write_batch_header(again.data(), *header);
  EXPECT_EQ(to_hex(again), to_hex(base::ByteView(batch).first(kBatchHeaderSize)));
  EXPECT_EQ(batch_checksum(*header, base::ByteView(batch).subspan(kBatchHeaderSize)).value(), header->batch_checksum);
  EXPECT_FALSE(batch_checksum(*header, base::ByteView(batch).subspan(kBatchHeaderSize + 1)));
}

TEST(VsrBatch, EveryCutIsRefused) {
  const base::Bytes whole = vector_named("batch/as_stored");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    for (const bool verify : {false, true}) {
      const base::Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      std::vector<base::Record> records;
      EXPECT_FALSE(decode_batch(cut, records, verify)) << size;
    }
  }
}

TEST(VsrBatch, EveryFlippedBitIsNoticed) {
  base::Bytes batch = vector_named("batch/as_stored");
  for (std::size_t i = 0; i < batch.size() * 8; ++i) {
    const std::byte mask{static_cast<unsigned char>(1U << (i % 8))};
    batch[i / 8] ^= mask;
    std::vector<base::Record> records;
    EXPECT_FALSE(decode_batch(batch, records, true)) << "bit " << i;
    batch[i / 8] ^= mask;
  }
}

TEST(VsrBatch, RefusalsNameTheReason) {
  const base::Bytes good = vector_named("batch/as_stored");
  const auto with = [&good]<class T>(std::size_t at, T value) {
    base::Bytes batch = good;
    base::store(batch.data() + at, value);
    return batch;
  };
  const std::size_t second = 256 + 53;
  expect_refused(with(32, std::uint64_t{255}), "says a length of 255");
  expect_refused(with(32, std::uint64_t{374}), "says 374 bytes, has 375");
  expect_refused(with(32, ~std::uint64_t{0}), "says 18446744073709551615 bytes");
  expect_refused(with(48, std::uint32_t{0}), "has no messages");
  expect_refused(with(48, std::uint32_t{1}), "behind its last message", false);
  expect_refused(with(48, std::uint32_t{3}), "cannot fit");
  expect_refused(with(48, ~std::uint32_t{0}), "cannot fit");
  expect_refused(with(255, std::uint8_t{1}), "reserved bytes");
  expect_refused(with(second + 47, std::uint8_t{1}), "offset 101 uses reserved bytes", false);
  expect_refused(with(second + 36, ~std::uint32_t{0}), "message 1 runs over its end", false);
  expect_refused(with(second + 50, std::uint8_t{0}), "offset 101 has a wrong checksum");
  expect_refused(with(8, std::uint64_t{99}), "wrong batch checksum");
  expect_refused(with(8, ~std::uint64_t{0}), "overflows", false);
}

TEST(VsrBatch, ChecksumsAreOnlyVerifiedWhenAsked) {
  base::Bytes batch = vector_named("batch/as_stored");
  batch.back() ^= std::byte{1};
  batch[40] ^= std::byte{1};
  std::vector<base::Record> records;
  EXPECT_TRUE(decode_batch(batch, records, false));
}

TEST(VsrBatch, SliceIsWhatAPollReturns) {
  const base::Bytes stored = vector_named("batch/as_stored");
  EXPECT_EQ(to_hex(slice_batch(stored, 1, 1)), to_hex(vector_named("batch/sliced_second_message")));
  EXPECT_EQ(read_batch_header(slice_batch(stored, 1, 1))->batch_checksum, 0xf8af4b05ee813c88ULL);
  EXPECT_EQ(to_hex(slice_batch(stored, 0, 2)), to_hex(stored));
}

TEST(VsrBatch, EverySliceIsAValidBatch) {
  const base::Bytes stored = five();
  const std::vector<base::Record> all = decode(stored);
  for (std::uint32_t first = 0; first < 5; ++first) {
    for (std::uint32_t count = 1; first + count <= 5; ++count) {
      const base::Bytes slice = slice_batch(stored, first, count);
      const std::vector<base::Record> records = decode(slice);
      ASSERT_EQ(records.size(), count);
      for (std::uint32_t i = 0; i < count; ++i) {
        EXPECT_EQ(records[i].offset, 100 + first + i);
        EXPECT_EQ(to_hex(records[i].raw), to_hex(all[first + i].raw));
        EXPECT_EQ(records[i].origin_timestamp, all[first + i].origin_timestamp);
      }
    }
  }
}

base::Bytes poll_of(std::uint32_t partition, std::uint32_t count, const std::vector<base::Bytes>& batches) {
  base::Bytes payload;
  base::ByteWriter out(payload);
  out.u32(partition);
  out.u64(1000);
  out.u32(count);
  for (const base::Bytes& batch : batches) out.bytes(batch);
  return payload;
}

base::Result<Reply> poll(base::ByteView payload) {
  PollMessages request;
  request.partition = 2;
  return decode_payload(request, payload, nullptr, true);
}

TEST(VsrPoll, SlicesAndGapsAreOrdinary) {
  const base::Bytes later = build_batch(hello_world(), 2, 70'000, kOrigin);
  const base::Bytes payload = poll_of(2, 4, {slice_batch(five(), 3, 2), later});
  const auto reply = poll(payload);
  ASSERT_TRUE(reply) << reply.error().to_string();
  const PolledMessages& polled = std::get<PolledMessages>(*reply);
  EXPECT_EQ(polled.current_offset, 1000U);
  std::vector<std::uint64_t> offsets;
  for (const base::Record& record : polled.batch.records) offsets.push_back(record.offset);
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{103, 104, 70'000, 70'001}));
  EXPECT_EQ(polled.batch.records.capacity(), 4U) << "one allocation, from the announced count";
  EXPECT_EQ(to_hex(encode_payload(*reply)), to_hex(payload));
}

TEST(VsrPoll, WhatDoesNotAddUpIsRefused) {
  const auto refused = [](const base::Bytes& payload, std::string_view why) {
    const auto reply = poll(payload);
    ASSERT_FALSE(reply) << why;
    EXPECT_EQ(reply.error().code(), base::ErrorCode::kMalformed);
    EXPECT_NE(reply.error().message().find(why), std::string::npos) << reply.error().to_string();
  };
  const base::Bytes stored = five();
  const base::Bytes later = build_batch(hello_world(), 2, 105, kOrigin);
  EXPECT_TRUE(poll(poll_of(2, 7, {stored, later})));
  refused(poll_of(2, 7, {later, stored}), "offset 100 follows 106");
  refused(poll_of(2, 10, {stored, stored}), "offset 100 follows 104");
  refused(poll_of(2, 6, {stored}), "announced 6 messages, has 5");
  refused(poll_of(2, 6, {stored, later}), "more than the 6 messages");
  refused(poll_of(2, 0, {stored}), "more than the 0 messages");
  refused(poll_of(2, 4'000'000'000U, {stored}), "cannot fit");
  refused(poll_of(3, 5, {stored}), "messages of partition 3");
  refused(poll_of(2, 1, {base::Bytes(100)}), "where a batch should begin");
  base::Bytes cut = poll_of(2, 5, {stored});
  cut.pop_back();
  refused(cut, "runs over the reply's end");
  base::Bytes damaged = poll_of(2, 5, {stored});
  damaged.back() ^= std::byte{1};
  refused(damaged, "offset 104 has a wrong checksum");
}

TEST(VsrPoll, ABrokerWritesRecordsOfItsOwnAsValidBatches) {
  const base::Bytes body = text("payloadheaders");
  PolledMessages polled{.partition = 2, .current_offset = 8, .batch = {}};
  for (const std::uint64_t offset : {7U, 8U})
    polled.batch.records.push_back({.offset = offset,
                                    .id = {offset, 1},
                                    .timestamp = kOrigin + 9,
                                    .origin_timestamp = kOrigin,
                                    .payload_length = 7,
                                    .body = body,
                                    .raw = {},
                                    .envelope = {}});
  const base::Bytes payload = encode_payload(polled);
  const auto reply = poll(payload);
  ASSERT_TRUE(reply) << reply.error().to_string();
  const auto& records = std::get<PolledMessages>(*reply).batch.records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].offset, 8U);
  EXPECT_EQ(records[1].id, (base::MessageId{8, 1}));
  EXPECT_EQ(records[1].timestamp, kOrigin + 9);
  EXPECT_EQ(base::as_text(records[1].payload()), "payload");
  EXPECT_EQ(base::as_text(records[1].headers()), "headers");
}

// What a server does with a send whose body is not right: 20 for the address, silence for the batch.
TEST(VsrSend, Admission) {
  const base::Bytes batch = vector_named("batch/as_sent");
  const auto answer = [](const base::Bytes& body) -> int {
    const auto request =
        decode_request({.command = 5, .client = {1, 0}, .request = 1, .operation = 160, .session = 1, .code = 0}, body);
    if (request) return static_cast<int>(std::get<SendMessages>(*request).records.size()) + 1000;
    return static_cast<int>(request.error().wire_status());
  };
  const auto body_of = [&batch](std::uint32_t count) {
    base::Bytes body = from_hex(
        "16000000"
        "010401000000"
        "010400000000"
        "020400000000");
    base::ByteWriter(body).u32(count);
    base::ByteWriter(body).bytes(batch);
    return body;
  };
  const base::Bytes good = body_of(2);
  EXPECT_EQ(good.size(), 401U);
  EXPECT_EQ(answer(good), 1002);
  EXPECT_EQ(answer(body_of(1)), 0);
  EXPECT_EQ(answer(body_of(3)), 0);
  EXPECT_EQ(answer(body_of(~0U)), 0);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(answer(base::Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))), size < 26 ? 20 : 0);
  base::Bytes long_body = good;
  long_body.push_back(std::byte{0});
  EXPECT_EQ(answer(long_body), 0);
  base::Bytes long_metadata = good;
  long_metadata[0] = std::byte{23};
  EXPECT_EQ(answer(long_metadata), 20);
  base::Bytes bad_kind = good;
  bad_kind[4] = std::byte{9};
  EXPECT_EQ(answer(bad_kind), 20);
  base::Bytes bad_checksum = good;
  bad_checksum.back() ^= std::byte{1};
  EXPECT_EQ(answer(bad_checksum), 0);
}

// What our own sends are made of passes the same admission, also when it was cut from the middle of a stored batch.
TEST(VsrSend, OurSendsAreAdmitted) {
  const base::Bytes slice = slice_batch(five(), 2, 3);
  const base::Bytes whole = vector_named("batch/as_stored");
  std::vector<base::Record> records = decode(slice);
  for (const base::Record& record : decode(whole)) records.push_back(record);
  for (std::size_t count = 1; count <= records.size(); ++count) {
    const auto send = encode_send(Dialect::kVsr11, {"orders", "events"}, 4, std::span(records).first(count));
    ASSERT_TRUE(send) << send.error().to_string();
    base::Bytes frame;
    for (const base::ByteView piece : send->pieces) frame.insert(frame.end(), piece.begin(), piece.end());
    auto header = read_request_header(frame);
    ASSERT_TRUE(header);
    header->client = {1, 0};
    header->session = header->request = 1;
    const auto request = decode_request(*header, base::ByteView(frame).subspan(kHeaderSize));
    ASSERT_TRUE(request) << request.error().to_string();
    const SendMessages& sent = std::get<SendMessages>(*request);
    EXPECT_EQ(sent.topic, Ident("events"));
    EXPECT_EQ(sent.partitioning.partition, 4U);
    ASSERT_EQ(sent.records.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(base::load<std::uint32_t>(sent.records[i].raw.data() + 24), i) << "deltas count from 0";
      EXPECT_EQ(base::digest_of(sent.records[i]), base::digest_of(records[i]));
    }
  }
}

}  // namespace
}  // namespace iggy::vsr
