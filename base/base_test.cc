#include <set>

#include <gtest/gtest.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/provenance.h"
#include "base/testing/run_until_done.h"
#include "base/testing/sim_clock.h"

namespace base {
namespace {

TEST(Error, EveryCodeHasATextAndARetryClass) {
  std::set<std::string_view> texts;
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_NE(to_string(code), "unknown");
    EXPECT_TRUE(texts.insert(to_string(code)).second) << to_string(code);
    EXPECT_EQ(Error(code, "op", "object", "message").retry(), default_retry(code));
  }
}

TEST(Error, SaysWhatWhereAndWhatToDo) {
  const Error error(ErrorCode::kPermission, "send", "orders/events/3", "not allowed", "grant send_messages");
  EXPECT_EQ(error.to_string(), "send orders/events/3: not allowed; grant send_messages");
}

TEST(ByteReader, FailsForGoodPastTheEnd) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.u16(7);
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u32(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u16(), 0U);
  EXPECT_TRUE(reader.rest().empty());
}

TEST(Backoff, FirstDelayIsTheBaseAndNoneExceedsTheCap) {
  const BackoffPolicy policy;
  EXPECT_EQ(backoff_delay(policy, 0, 12345), policy.initial);
  for (std::uint32_t attempt = 1; attempt < 70; ++attempt) {
    for (const std::uint64_t random : {0ULL, 77ULL, ~0ULL}) {
      EXPECT_LE(backoff_delay(policy, attempt, random), policy.max);
      EXPECT_GE(backoff_delay(policy, attempt, random), policy.initial);
    }
  }
}

TEST(Digest, DependsOnContentAndOriginNotOnPlace) {
  const Bytes body = {std::byte{1}, std::byte{2}, std::byte{3}};
  Record a;
  a.id = {1, 0};
  a.body = body;
  a.payload_length = 2;
  Record b = a;
  b.offset = 99;
  b.timestamp = 5;
  EXPECT_EQ(digest_of(a), digest_of(b));
  b.payload_length = 3;  // the same bytes, split elsewhere
  EXPECT_NE(digest_of(a), digest_of(b));
  b = a;
  b.origin_timestamp = 1;
  EXPECT_NE(digest_of(a), digest_of(b));
}

Record record_of(const Bytes& body, std::uint32_t payload_length, std::uint64_t offset) {
  Record record;
  record.offset = offset;
  record.payload_length = payload_length;
  record.body = record.raw = record.envelope = body;
  return record;
}

TEST(Provenance, IsAppendedOnceAndLeavesTheDigest) {
  const PartitionKey origin{{"orders", "events"}, 3};
  Provenance provenance("east", origin);
  Bytes body(20, std::byte{7});  // 5 bytes payload, headers that do not parse
  const std::vector<Record> before = {record_of(body, 5, 41), record_of(body, 20, 42)};
  const auto stamped = provenance.stamp(before);
  ASSERT_EQ(stamped.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Record& record = stamped[i];
    EXPECT_EQ(digest_of(record), digest_of(before[i]));
    EXPECT_EQ(record.body.size(), body.size() + provenance_size(record.headers()));
    EXPECT_EQ(load<std::uint64_t>(record.body.data() + record.body.size() - 8), 41 + i);
    EXPECT_TRUE(record.raw.empty() && record.envelope.empty()) << "the stored form would be sent instead";
  }
  const auto text = std::string(as_text(stamped[0].body));
  for (const char* part : {"iggy-replicate.cluster", "east", "orders", "events", "iggy-replicate.partition"})
    EXPECT_NE(text.find(part), std::string::npos) << part;

  // A second link keeps where it was first written.
  const Bytes once(stamped[0].body.begin(), stamped[0].body.end());
  const std::vector<Record> copied = {record_of(once, 5, 7)};
  Provenance second("west", origin);
  EXPECT_EQ(second.stamp(copied).front().body.size(), once.size());
}

TEST(Provenance, OnlyAWholeBlockAtTheEndIsOne) {
  Provenance provenance("east", {{"s", "t"}, 0});
  const Bytes body(1, std::byte{1});
  const std::vector<Record> before = {record_of(body, 1, 0)};
  const ByteView headers = provenance.stamp(before).front().headers();
  const Bytes block(headers.begin(), headers.end());
  EXPECT_EQ(provenance_size(block), block.size());
  for (std::size_t cut = 1; cut <= block.size(); ++cut) {
    EXPECT_EQ(provenance_size(ByteView(block).subspan(cut)), 0U) << cut;
    EXPECT_EQ(provenance_size(ByteView(block).first(block.size() - cut)), 0U) << cut;
  }
  Bytes twice = block;
  twice.insert(twice.end(), block.begin(), block.end());
  EXPECT_EQ(provenance_size(twice), block.size());
  EXPECT_FALSE(Provenance("", {{"s", "t"}, 0}).is_on());
}

TEST(Digest, ChecksumsMatchTheReferenceValues) {
  EXPECT_EQ(xxh3_64({}), 0x2d06800538d394c2ULL);
  EXPECT_EQ(xxh3_64(as_bytes("hello")), 0x9555e8555c62dcfdULL);
  EXPECT_EQ(xxh32(as_bytes("replicator")), 0x13ed5b3dU);
}

TEST(Digest, MintedIdsRepeatAndDiffer) {
  const PartitionKey key{{"s", "t"}, 0};
  EXPECT_EQ(mint_id("link", key, 7), mint_id("link", key, 7));
  EXPECT_FALSE(mint_id("link", key, 7) == mint_id("link", key, 8));
  EXPECT_FALSE(mint_id("link", key, 0).is_zero());
}

Task<void> sleeper(Clock& clock, Duration duration, int* done) {
  auto sleep = clock.sleep_for(duration);
  co_await std::move(sleep);
  ++*done;
}

TEST(SimClock, SleepsInVirtualTimeAndWaitUntilLeavesNoSleeperBehind) {
  asio::io_context io;
  testing::SimClock clock(io);
  Event event(io);
  int done = 0;
  TaskGroup group(io);
  group.spawn(sleeper(clock, std::chrono::seconds(100), &done));
  const TimePoint start = clock.now();
  testing::run_until_done(io, clock, wait_until(clock, event, clock.now() + std::chrono::seconds(5)));
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(5));
  event.set();
  testing::run_until_done(io, clock, wait_until(clock, event, clock.now() + std::chrono::hours(5)));
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(5));
  testing::run_until_done(io, clock, group.close());
  EXPECT_EQ(done, 1);
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(100));
}

Task<void> set_later(Clock& clock, Event& event) {
  auto sleep = clock.sleep_for(std::chrono::milliseconds(1));
  co_await std::move(sleep);
  event.set();
}

TEST(SimClock, AnEventEndsTheWaitAtOnce) {
  asio::io_context io;
  testing::SimClock clock(io);
  Event event(io);
  TaskGroup group(io);
  group.spawn(set_later(clock, event));
  const TimePoint start = clock.now();
  testing::run_until_done(io, clock, wait_until(clock, event, start + std::chrono::seconds(30)));
  EXPECT_EQ(clock.now() - start, std::chrono::milliseconds(1));
  testing::run_until_done(io, clock, group.close());
}

}  // namespace
}  // namespace base
