// Goal: a send is what the official packages would have written, forwards stored bytes where it may, and is accepted by
// the rules of either server. Method: golden vectors; then random runs of records of every origin, read back by a
// decoder (legacy) or by the admission rules of the vsr server, written out again here.
#include "iggy/codec/send.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "base/digest.h"
#include "iggy/codec/golden.h"
#include "iggy/codec/legacy_message.h"
#include "iggy/codec/primitives.h"
#include "iggy/codec/vsr.h"

namespace iggy {
namespace {

using base::Bytes;
using base::ByteView;
using base::Record;

const base::TopicName kTopic{"orders", "events"};
constexpr std::uint64_t kOrigin = 1'700'000'000'000'000;

Bytes flatten(const OutgoingSend& send) {
  Bytes all;
  for (const ByteView piece : send.pieces) all.insert(all.end(), piece.begin(), piece.end());
  EXPECT_EQ(all.size(), send.bytes);
  return all;
}
Bytes encode(Dialect dialect, std::span<const Record> records, std::uint32_t partition = 0) {
  const auto send = encode_send(dialect, kTopic, partition, records);
  EXPECT_TRUE(send) << send.error().to_string();
  return send ? flatten(*send) : Bytes();
}
std::size_t header_size(Dialect dialect) {
  return dialect == Dialect::kLegacy ? legacy::kHeaderSize : vsr::kHeaderSize;
}
// What follows header and metadata.
ByteView messages_of(Dialect dialect, ByteView frame) {
  const std::size_t at = header_size(dialect);
  return frame.subspan(at + 4 + base::load<std::uint32_t>(frame.data() + at));
}

// The rules of admission of the vsr server (wire reference 5.4) and the delta rule; returns the records in the batch.
std::vector<Record> admit(ByteView batch, std::uint32_t count) {
  std::vector<Record> records;
  if (batch.size() < vsr::kBatchHeaderSize) {
    ADD_FAILURE() << "shorter than a batch header";
    return records;
  }
  const std::byte* head = batch.data();
  EXPECT_EQ(base::load<std::uint64_t>(head), 0U);
  EXPECT_EQ(base::load<std::uint64_t>(head + 8), 0U);
  EXPECT_EQ(base::load<std::uint64_t>(head + 16), 0U);
  EXPECT_EQ(base::load<std::uint64_t>(head + 32), batch.size());
  EXPECT_EQ(base::load<std::uint32_t>(head + 48), count);
  EXPECT_TRUE(std::ranges::all_of(batch.subspan(52, 204), [](std::byte byte) { return byte == std::byte{0}; }));
  const auto origin = base::load<std::uint64_t>(head + 24);
  Bytes hashed(head, head + 40);
  hashed.insert(hashed.end(), head + 48, head + 52);
  ByteView rest = batch.subspan(vsr::kBatchHeaderSize);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (rest.size() < vsr::kFrameHeaderSize) {
      ADD_FAILURE() << "frame " << i << " is cut";
      return records;
    }
    const std::size_t body =
        std::size_t{base::load<std::uint32_t>(rest.data() + 32)} + base::load<std::uint32_t>(rest.data() + 36);
    if (rest.size() < vsr::kFrameHeaderSize + body) {
      ADD_FAILURE() << "frame " << i << " is cut";
      return records;
    }
    const ByteView frame = rest.first(vsr::kFrameHeaderSize + body);
    EXPECT_EQ(base::load<std::uint64_t>(frame.data()), base::xxh3_64(frame.subspan(8))) << "frame " << i;
    EXPECT_EQ(base::load<std::uint32_t>(frame.data() + 24), i);
    EXPECT_EQ(base::load<std::uint64_t>(frame.data() + 40), 0U);
    hashed.insert(hashed.end(), frame.begin(), frame.begin() + 8);
    Record& record = records.emplace_back();
    record.id = {base::load<std::uint64_t>(frame.data() + 8), base::load<std::uint64_t>(frame.data() + 16)};
    record.origin_timestamp = origin + base::load<std::uint32_t>(frame.data() + 28);
    record.payload_length = base::load<std::uint32_t>(frame.data() + 36);
    record.body = frame.subspan(vsr::kFrameHeaderSize);
    rest = rest.subspan(frame.size());
  }
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(base::load<std::uint64_t>(head + 40), base::xxh3_64(hashed));
  return records;
}

// Reads a whole frame back as the server of that dialect would; the records view into `frame`.
std::vector<Record> admit_frame(Dialect dialect, ByteView frame, std::uint32_t count) {
  if (dialect == Dialect::kLegacy) {
    EXPECT_EQ(base::load<std::uint32_t>(frame.data()), frame.size() - 4);
    EXPECT_EQ(base::load<std::uint32_t>(frame.data() + 4), 101U);
    auto send = legacy::decode_send(frame.subspan(legacy::kHeaderSize));
    EXPECT_TRUE(send) << send.error().to_string();
    if (!send) return {};
    EXPECT_EQ(send->stream, Ident(kTopic.stream));
    EXPECT_EQ(send->topic, Ident(kTopic.topic));
    return std::move(send->records);
  }
  EXPECT_EQ(base::load<std::uint32_t>(frame.data() + 48), frame.size());
  return admit(messages_of(dialect, frame), count);
}

void expect_same(std::span<const Record> sent, std::span<const Record> arrived) {
  ASSERT_EQ(sent.size(), arrived.size());
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(base::digest_of(sent[i]), base::digest_of(arrived[i])) << i;
}

// Records in stored form, as a poll of that dialect would give them. `batches`: number of messages in each vsr batch.
struct Stored {
  std::vector<Bytes> bodies;
  std::vector<base::BufferPtr> frames;
  std::vector<Record> records;

  void add_body(base::MessageId id, std::uint64_t origin, std::size_t payload, std::size_t headers, std::uint8_t fill) {
    Record record;
    record.offset = records.size();
    record.id = id;
    record.origin_timestamp = origin;
    record.payload_length = static_cast<std::uint32_t>(payload);
    record.body = bodies.emplace_back(payload + headers, static_cast<std::byte>(fill));
    records.push_back(record);
  }
  // Gives records [first, first + count) a stored form, all in one block of memory.
  void store_legacy(std::size_t first, std::size_t count, std::uint64_t offset) {
    Bytes area;
    for (std::size_t i = first; i < first + count; ++i) {
      records[i].offset = offset + i - first;
      records[i].timestamp = 77;
      legacy::append_stored_message(area, records[i]);
    }
    ByteView rest = frames.emplace_back(golden::buffer_of(area))->view();
    for (std::size_t i = first; i < first + count; ++i) {
      const legacy::MessageHeader header = legacy::read_message_header(rest.data());
      records[i] = legacy::record_of(header, rest.first(header.size()));
      rest = rest.subspan(header.size());
    }
  }
  void store_vsr(std::size_t first, std::size_t count, std::uint64_t offset) {
    const Bytes frame = encode(Dialect::kVsr11, std::span(records).subspan(first, count));
    const base::BufferPtr batch = frames.emplace_back(golden::buffer_of(messages_of(Dialect::kVsr11, frame)));
    ByteView rest = batch->view().subspan(vsr::kBatchHeaderSize);
    for (std::size_t i = first; i < first + count; ++i) {
      Record& record = records[i];
      record.raw = rest.first(vsr::kFrameHeaderSize + record.body.size());
      record.body = record.raw.subspan(vsr::kFrameHeaderSize);
      record.envelope = batch->view().first(vsr::kBatchHeaderSize);
      record.offset = offset + i - first;
      rest = rest.subspan(record.raw.size());
    }
  }
};

// --- golden ----------------------------------------------------------------------------------------------------------

// The vectors address topics by number mostly: our bytes with their metadata in front.
Bytes with_metadata_of(const golden::Vector& vector, Dialect dialect, ByteView frame, std::uint32_t count) {
  Bytes out;
  WireWriter writer(out);
  writer.send_metadata(golden::ident(vector.inputs.at("stream")), golden::ident(vector.inputs.at("topic")),
                       golden::partitioning(vector.inputs.at("partitioning")), count);
  writer.bytes(messages_of(dialect, frame));
  if (dialect != Dialect::kLegacy) return out;  // these vectors are bodies
  Bytes whole(frame.begin(), frame.begin() + legacy::kHeaderSize);
  base::store(whole.data(), static_cast<std::uint32_t>(out.size() + 4));
  whole.insert(whole.end(), out.begin(), out.end());
  return whole;
}

int check_golden_sends(Dialect dialect, const std::string& path, std::string_view layer) {
  int checked = 0;
  for (const golden::Vector& vector : golden::load_vectors(path)) {
    if (!vector.is("send_messages/") || vector.direction != "request" || vector.layer != layer ||
        !vector.inputs.contains("partitioning"))
      continue;
    SCOPED_TRACE(vector.name);
    const golden::Messages messages = golden::messages(vector.inputs);
    const auto count = static_cast<std::uint32_t>(messages.records.size());
    const Bytes frame = encode(dialect, messages.records);
    EXPECT_TRUE(vector.matches(with_metadata_of(vector, dialect, frame, count)));
    expect_same(messages.records, admit_frame(dialect, frame, count));
    ++checked;
  }
  return checked;
}

TEST(SendGolden, LegacyFramesAreReproduced) {
  EXPECT_EQ(check_golden_sends(Dialect::kLegacy, "iggy/codec/golden/legacy/vectors.json", "frame"), 18);
}
TEST(SendGolden, VsrBodiesAreReproduced) {
  EXPECT_EQ(check_golden_sends(Dialect::kVsr11, "iggy/codec/golden/vsr/vectors.json", "body"), 19);
}

TEST(SendGolden, WholeFramesByName) {
  for (const auto& [dialect, path] : {std::pair{Dialect::kLegacy, "iggy/codec/golden/legacy/vectors.json"},
                                      std::pair{Dialect::kVsr11, "iggy/codec/golden/vsr/vectors.json"}}) {
    const auto vectors = golden::load_vectors(path);
    const auto named =
        std::ranges::find_if(vectors, [](const auto& v) { return v.is("send_messages/string_identifiers"); });
    ASSERT_NE(named, vectors.end());
    const golden::Messages messages = golden::messages(named->inputs);
    const Bytes frame = encode(dialect, messages.records, 1);
    EXPECT_TRUE(
        named->matches(dialect == Dialect::kLegacy ? ByteView(frame) : ByteView(frame).subspan(vsr::kHeaderSize)));
  }
}

TEST(SendGolden, VsrHeaderLeavesOnlyTheIdentityToTheConnection) {
  const auto vectors = golden::load_vectors("iggy/codec/golden/vsr/vectors.json");
  const auto found =
      std::ranges::find_if(vectors, [](const auto& v) { return v.name == "send_messages/partition_id/frame"; });
  ASSERT_NE(found, vectors.end());
  Bytes expected(found->bytes->begin(), found->bytes->begin() + vsr::kHeaderSize);
  std::fill_n(expected.begin() + 128, 16, std::byte{0});  // client
  std::fill_n(expected.begin() + 168, 8, std::byte{0});   // request
  std::fill_n(expected.begin() + 184, 8, std::byte{0});   // session
  Stored stored;
  stored.add_body({1, 0}, kOrigin, 5, 0, 'x');
  Bytes frame = encode(Dialect::kVsr11, stored.records);
  base::store(expected.data() + 48, static_cast<std::uint32_t>(frame.size()));  // longer names
  frame.resize(vsr::kHeaderSize);
  EXPECT_EQ(golden::to_hex(frame), golden::to_hex(expected));
}

// batch/as_stored must come out as batch/as_sent: server fields back to 0, frames untouched.
TEST(SendGolden, AStoredVsrBatchGoesOutAsItWasSent) {
  std::map<std::string, Bytes> bytes;
  for (const auto& vector : golden::load_vectors("iggy/codec/golden/vsr/vectors.json"))
    if (vector.is("batch/")) bytes[vector.name] = vector.bytes.value_or(Bytes());
  const base::BufferPtr stored = golden::buffer_of(bytes.at("batch/as_stored"));
  const ByteView batch = stored->view();
  std::vector<Record> records;
  for (ByteView rest = batch.subspan(vsr::kBatchHeaderSize); !rest.empty();) {
    Record& record = records.emplace_back();
    const auto headers = base::load<std::uint32_t>(rest.data() + 32);
    record.payload_length = base::load<std::uint32_t>(rest.data() + 36);
    record.id = {base::load<std::uint64_t>(rest.data() + 8), base::load<std::uint64_t>(rest.data() + 16)};
    record.origin_timestamp = kOrigin + base::load<std::uint32_t>(rest.data() + 28);
    record.raw = rest.first(vsr::kFrameHeaderSize + headers + record.payload_length);
    record.body = record.raw.subspan(vsr::kFrameHeaderSize);
    record.envelope = batch.first(vsr::kBatchHeaderSize);
    rest = rest.subspan(record.raw.size());
  }
  ASSERT_EQ(records.size(), 2U);
  const Bytes whole = encode(Dialect::kVsr11, records);
  EXPECT_EQ(golden::to_hex(messages_of(Dialect::kVsr11, whole)), golden::to_hex(bytes.at("batch/as_sent")));
  // The second message alone is renumbered. It keeps its timestamp delta: the batch keeps its origin.
  const Bytes second = encode(Dialect::kVsr11, std::span(records).subspan(1));
  const ByteView renumbered = messages_of(Dialect::kVsr11, second);
  EXPECT_EQ(golden::to_hex(renumbered.subspan(256, 8)), "fc5c37596f3fde72");  // wire reference 5.7
  EXPECT_EQ(base::load<std::uint64_t>(renumbered.data() + 40), 0xc2f202a0ab4595f8U);
}

// --- forwarding ------------------------------------------------------------------------------------------------------

TEST(Send, StoredRunsAreOnePiece) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    Stored stored;
    for (std::uint8_t i = 0; i < 20; ++i) stored.add_body({i + 1U, 0}, kOrigin + i, 1000, 10, i);
    if (dialect == Dialect::kLegacy) stored.store_legacy(0, 20, 500);
    if (dialect == Dialect::kVsr11) stored.store_vsr(0, 20, 500);
    const auto send = encode_send(dialect, kTopic, 0, stored.records);
    ASSERT_TRUE(send);
    ASSERT_EQ(send->pieces.size(), 2U) << to_string(dialect);
    EXPECT_EQ(send->pieces[1].data(), stored.records[0].raw.data());
    EXPECT_EQ(send->pieces[0].data(), send->scratch.data());
    expect_same(stored.records, admit_frame(dialect, flatten(*send), 20));
  }
}

TEST(Send, LargeBodiesOfTheOtherDialectAreNotCopied) {
  Stored stored;
  stored.add_body({1, 0}, kOrigin, kCopyBelow, 0, 'a');
  stored.add_body({2, 0}, kOrigin, kCopyBelow - 1, 0, 'b');
  stored.store_legacy(0, 2, 9);
  const auto send = encode_send(Dialect::kVsr11, kTopic, 0, stored.records);
  ASSERT_TRUE(send);
  ASSERT_EQ(send->pieces.size(), 3U);  // up to the first frame header, the large body, the rest
  EXPECT_EQ(send->pieces[1].data(), stored.records[0].body.data());
  expect_same(stored.records, admit_frame(Dialect::kVsr11, flatten(*send), 2));
}

// Bug shape: a forwarded message carries the offset of its source, the rebuilt one behind it 0: the server says 4100.
TEST(Send, LegacyOffsetsNeverDecrease) {
  Stored stored;
  for (std::uint8_t i = 0; i < 6; ++i) stored.add_body({i + 1U, 0}, kOrigin, 10, 0, i);
  stored.store_legacy(0, 2, 1000);
  stored.store_legacy(4, 2, 5);  // from elsewhere: lower offsets
  expect_same(stored.records, admit_frame(Dialect::kLegacy, encode(Dialect::kLegacy, stored.records), 6));
}

// Bug shape: an id minted on the way was lost, because the stored bytes still had the old one.
TEST(Send, AChangedRecordIsRebuiltNotForwarded) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    Stored stored;
    for (std::uint8_t i = 0; i < 3; ++i) stored.add_body({0, 0}, kOrigin + i, 9000, 4, i);
    if (dialect == Dialect::kLegacy) stored.store_legacy(0, 3, 0);
    if (dialect == Dialect::kVsr11) stored.store_vsr(0, 3, 0);
    stored.records[1].id = {42, 43};
    stored.records[2].origin_timestamp += 1;
    expect_same(stored.records, admit_frame(dialect, encode(dialect, stored.records), 3));
  }
}

TEST(Send, VsrOriginIsTheSmallestAndTheSpanMayBeTheLargest) {
  Stored stored;
  stored.add_body({1, 0}, kOrigin + 0xFFFFFFFFU, 1, 0, 1);
  stored.add_body({2, 0}, kOrigin, 1, 0, 2);
  stored.add_body({3, 0}, kOrigin + 5, 1, 0, 3);
  const Bytes frame = encode(Dialect::kVsr11, stored.records);
  EXPECT_EQ(base::load<std::uint64_t>(messages_of(Dialect::kVsr11, frame).data() + 24), kOrigin);
  expect_same(stored.records, admit_frame(Dialect::kVsr11, frame, 3));
}

TEST(Send, AnyMixtureArrivesWhole) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
    Stored stored;
    const std::size_t count = 1 + below(30);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t payload = below(3) == 0 ? kCopyBelow - 50 + below(100) : below(300);
      stored.add_body({random(), below(2) == 0 ? 0 : random()}, kOrigin + below(1'000'000), payload, below(60),
                      static_cast<std::uint8_t>(i));
    }
    for (std::size_t i = 0; i < count;) {
      const std::size_t run = std::min(count - i, 1 + below(6));
      if (const std::size_t kind = below(3); kind == 1) {
        stored.store_legacy(i, run, below(1000));
      } else if (kind == 2) {
        stored.store_vsr(i, run, below(1000));
      }
      i += run;
    }
    // Any part of them, so that batches are cut at either end.
    const std::size_t first = below(count);
    const auto part = std::span(stored.records).subspan(first, 1 + below(count - first));
    for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
      const auto fits = fit(dialect, part, 1U << 20U);
      ASSERT_TRUE(fits);
      EXPECT_EQ(*fits, part.size());
      const Bytes frame = encode(dialect, part, 3);
      expect_same(part, admit_frame(dialect, frame, static_cast<std::uint32_t>(part.size())));
    }
  }
}

// --- limits ----------------------------------------------------------------------------------------------------------

Record of_size(std::size_t payload, std::size_t headers, std::uint64_t origin = kOrigin) {
  static const Bytes block(70'000'000);
  Record record;
  record.offset = 12;
  record.id = {7, 0};
  record.origin_timestamp = origin;
  record.payload_length = static_cast<std::uint32_t>(payload);
  record.body = ByteView(block).first(payload + headers);
  return record;
}

TEST(SendFit, CutsAtTheTargetButNeverBelowOne) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    const std::vector<Record> records(10, of_size(1000, 0));
    EXPECT_EQ(fit(dialect, records, 1).value(), 1U);
    EXPECT_EQ(fit(dialect, records, 1U << 20U).value(), 10U);
    for (std::size_t target = 0; target < 14'000; target += 100) {
      const std::size_t count = fit(dialect, records, target).value();
      const auto send = encode_send(dialect, kTopic, 0, std::span(records).first(count));
      ASSERT_TRUE(send);
      EXPECT_TRUE(count == 1 || send->bytes <= target);
    }
  }
}

TEST(SendFit, LongNamesStayWithinTheTarget) {
  const std::vector<Record> records(100, of_size(900, 0));
  const base::TopicName names{std::string(255, 's'), std::string(255, 't')};
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    const std::size_t count = fit(dialect, records, 50'000).value();
    EXPECT_LE(encode_send(dialect, names, 0, std::span(records).first(count)).value().bytes, 50'000U);
  }
}

TEST(SendFit, NeverExceedsTheFrameLimit) {
  const std::vector<Record> records(3, of_size(33'000'000, 0));
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    EXPECT_EQ(fit(dialect, records, ~std::size_t{0}).value(), 2U);
    EXPECT_LE(encode_send(dialect, kTopic, 0, std::span(records).first(2)).value().bytes, 64U * 1024 * 1024);
  }
}

TEST(SendFit, CutsWhereTheOriginTimestampsSpanTooMuch) {
  const std::vector<Record> records = {of_size(1, 0, kOrigin), of_size(1, 0, kOrigin + 0xFFFFFFFFU),
                                       of_size(1, 0, kOrigin - 1)};
  EXPECT_EQ(fit(Dialect::kVsr11, records, 1U << 20U).value(), 2U);
  EXPECT_EQ(fit(Dialect::kLegacy, records, 1U << 20U).value(), 3U);
}

TEST(SendFit, StopsBeforeARecordThatCannotBeSentAndNamesItAtTheFront) {
  const std::vector<Record> records = {of_size(1, 0), of_size(64'000'001, 0)};
  EXPECT_EQ(fit(Dialect::kLegacy, records, 1U << 20U).value(), 1U);
  const auto refused = fit(Dialect::kLegacy, std::span(records).subspan(1), 1U << 20U);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), base::ErrorCode::kInvalidRecord);
  EXPECT_NE(refused.error().to_string().find("offset 12"), std::string::npos) << refused.error().to_string();
  EXPECT_NE(refused.error().to_string().find(base::MessageId{7, 0}.to_string()), std::string::npos);
  EXPECT_NE(refused.error().to_string().find("64000001"), std::string::npos);
}

TEST(SendFit, LimitsOfOneMessage) {
  const auto sendable = [](Dialect dialect, const Record& record) {
    return fit(dialect, std::span(&record, 1), 1).has_value();
  };
  EXPECT_TRUE(sendable(Dialect::kLegacy, of_size(64'000'000, 100'000)));
  EXPECT_FALSE(sendable(Dialect::kLegacy, of_size(64'000'001, 0)));
  EXPECT_FALSE(sendable(Dialect::kLegacy, of_size(1, 100'001)));
  EXPECT_TRUE(sendable(Dialect::kVsr11, of_size(1, 100'001)));
  EXPECT_TRUE(sendable(Dialect::kVsr11, of_size(64'000'001, 0)));
  // The frame is what counts: header, metadata of the shortest names, batch header, frame header.
  constexpr std::size_t kMost = 64UL * 1024 * 1024 - 256 - 20 - 256 - 48;
  EXPECT_TRUE(sendable(Dialect::kVsr11, of_size(kMost, 0)));
  EXPECT_FALSE(sendable(Dialect::kVsr11, of_size(kMost + 1, 0)));
  const Record most = of_size(kMost, 0);
  EXPECT_EQ(encode_send(Dialect::kVsr11, {"s", "t"}, 0, std::span(&most, 1)).value().bytes, 64U * 1024 * 1024);
  const auto long_names = encode_send(Dialect::kVsr11, kTopic, 0, std::span(&most, 1));
  ASSERT_FALSE(long_names);
  EXPECT_EQ(long_names.error().code(), base::ErrorCode::kInvalidRecord);
}

TEST(Send, RefusesNamesAndPartitionsWithoutAnEncoding) {
  const Record record = of_size(1, 0);
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    const auto nameless = encode_send(dialect, {"", "t"}, 0, std::span(&record, 1));
    ASSERT_FALSE(nameless);
    EXPECT_EQ(nameless.error().code(), base::ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(encode_send(Dialect::kLegacy, kTopic, legacy::kPartitionLimit, std::span(&record, 1)));
}

}  // namespace
}  // namespace iggy
