// Goal: what people see fits 80 columns, says unknown for what is unknown, and teaches the next command.
// Method: golden texts of made-up answers.
#include "cli/views.h"

#include <sstream>

#include <gtest/gtest.h>

#include "cli/output.h"
#include "replicator/admin/to_proto.h"

namespace cli {
namespace {

using replicator::PartitionStatus;
using replicator::Phase;

constexpr std::uint64_t kSecond = 1'000'000;
constexpr std::uint64_t kNow = 1'769'860'800 * kSecond;  // 2026-01-31 12:00:00 UTC

PartitionStatus partition(const char* topic, std::uint32_t number, Phase phase, std::optional<std::uint64_t> left) {
  PartitionStatus status;
  status.key = {{"orders", topic}, number};
  status.phase = phase;
  status.lag.messages = left;
  if (left) status.lag = {left, *left == 0 ? 0 : 90 * kSecond, kNow - kSecond / 2, std::nullopt};
  status.counters.copied = 1'234'567;
  status.counters.copied_bytes = 3ULL << 30;
  return status;
}

replicator::LinkStatus sample() {
  replicator::LinkStatus link;
  link.link_id = "4f1c22ab90de";
  link.state = "running";
  link.generation = 3;
  link.version = "0.1.0";
  link.started_at = kNow - 7980 * kSecond;
  link.taken_at = kNow;
  link.state_file = "iggy-replicate.db";
  link.upstream = {"iggy://ann:***@a:8090", "10.0.0.1:8090", "", "legacy", "0.8.0", true, "", kNow};
  link.downstream = {"iggy://ann:***@b:8090", "", "", "vsr-0.11", "0.9.0", false, "connection refused",
                     kNow - 65 * kSecond};

  PartitionStatus copying = partition("events", 0, Phase::kCopying, 98'765);
  copying.messages_per_second = 12'345.6;
  copying.bytes_per_second = 14.2 * 1024 * 1024;
  copying.seconds_left = 8;
  PartitionStatus caught_up = partition("events", 1, Phase::kCaughtUp, 0);
  caught_up.caught_up_at = kNow - kSecond;
  PartitionStatus unknown = partition("events", 2, Phase::kRetrying, std::nullopt);
  unknown.waits_for = "poll orders/events/2: connection refused; trying again in 8 s";
  PartitionStatus fault = partition("events", 3, Phase::kFault, 500'000'000);
  fault.fault = {"retention", "upstream offsets [1200, 3400) expired", kNow - 180 * kSecond, 1200, 3400};
  link.partitions = {copying, caught_up, unknown, fault};
  return link;
}

pb::ListPartitionsResponse answer(const replicator::LinkStatus& link) {
  pb::ListPartitionsResponse response;
  *response.mutable_taken_at() = replicator::to_proto(link, false).taken_at();
  for (const auto& entry : link.partitions) *response.add_partitions() = replicator::to_proto(entry);
  return response;
}

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(width(line), kColumns) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(LinkView, SaysWhatIsWrongAndHowMuchIsLeft) {
  const std::string text = link_view(replicator::to_proto(sample(), false));
  EXPECT_EQ(text, R"(link        4f1c22ab90de running, generation 3, up 2h 13m, version 0.1.0
upstream    iggy://ann:***@a:8090, server 0.8.0 (legacy), connected
downstream  iggy://ann:***@b:8090, server 0.9.0 (vsr-0.11), NOT CONNECTED, last
            seen 1m 5s ago: connection refused
state file  iggy-replicate.db
partitions  4: 1 copying, 1 caught up, 1 retrying, 1 fault
done        4,938,268 messages, 12.0 GiB
left        unknown: the upstream end of 1 of 4 partitions is not known
)");
  expect_narrow(text);

  replicator::LinkStatus known = sample();
  known.partitions.resize(2);
  EXPECT_NE(link_view(replicator::to_proto(known, false))
                .find("left        98,765 messages, at 12,346 messages/s and 14.2 MiB/s, time left 8s\n"),
            std::string::npos);
}

TEST(StatusView, IsATableWithWhatWaitsBelow) {
  const auto link = sample();
  const std::string text = status_view(replicator::to_proto(link, false), answer(link).partitions());
  EXPECT_EQ(text, R"(
PARTITION        STATE           DONE     LEFT   MSG/S  TIME LEFT     ACK
orders/events/0  copying    1,234,567   98,765  12,346         8s  memory
orders/events/1  caught up  1,234,567        0       0          -  memory
orders/events/2  retrying   1,234,567  unknown       0    unknown  memory
orders/events/3  fault      1,234,567     500M       0    unknown  memory

orders/events/2: poll orders/events/2: connection refused; trying again in 8 s

orders/events/3: fault retention, 3m 0s ago
  Messages expired upstream before they were copied; they are lost to the
  downstream.
  Seen: upstream offsets [1200, 3400) expired
    iggy-replicate resolve orders/events/3 --as accept
      closes the ledger row of the missing range and goes on at the next
      readable upstream offset; what is missing stays missing
    iggy-replicate resolve orders/events/3 --as retry
      looks again and goes on if the cause is gone; changes nothing else

ack memory: acknowledged from the server's memory: a crash of the downstream may
  lose what it had not saved; such a lost tail is found and sent again
)");
  expect_narrow(text);
}

TEST(LagView, UnknownIsUnknownAlsoInTheTotal) {
  const auto link = sample();
  const std::string text = lag_view(answer(link).partitions(), answer(link).taken_at());
  EXPECT_EQ(text, R"(PARTITION        MESSAGES      AGE  UPSTREAM SEEN  CAUGHT UP
orders/events/0    98,765   1m 30s      500ms ago      never
orders/events/1         0       0s      500ms ago     1s ago
orders/events/2   unknown  unknown          never      never
orders/events/3      500M   1m 30s      500ms ago      never
total             unknown  unknown

1 of 4 partitions unknown; the others add up to 500M messages
)");
  expect_narrow(text);
}

TEST(Views, LongNamesFitToo) {
  auto link = sample();
  for (auto& entry : link.partitions) {
    entry.key.topic = {std::string(60, 's'), "tägliche-ereignisse-" + std::string(60, 't')};
    entry.counters.copied = ~0ULL;
    entry.messages_per_second = 1e12;
    entry.seconds_left = 1e9;
    if (entry.lag.messages) entry.lag.messages = ~0ULL;
    entry.waits_for = std::string(200, 'w') + " and some more words after that";
  }
  std::istringstream table(status_view(replicator::to_proto(link, false), answer(link).partitions()));
  std::string line;
  std::getline(table, line);
  for (int i = 0; i < 5; ++i) {
    std::getline(table, line);
    EXPECT_LE(width(line), kColumns) << line;
  }
  EXPECT_NE(line.find("…"), std::string::npos);
  EXPECT_NE(line.find("t/3 "), std::string::npos) << "the partition number is never cut";
}

TEST(Problems, AreWhatTheDocumentationSays) {
  auto link = sample();
  EXPECT_TRUE(has_problem(replicator::to_proto(link, false))) << "the downstream is not connected";
  link.downstream.connected = true;
  EXPECT_FALSE(has_problem(replicator::to_proto(link, false)));
  link.store_error = "disk full";
  EXPECT_TRUE(has_problem(replicator::to_proto(link, false)));

  const auto only = [](PartitionStatus status) {
    replicator::LinkStatus made;
    made.partitions = {std::move(status)};
    return answer(made);
  };
  EXPECT_FALSE(has_problem(only(partition("events", 0, Phase::kCopying, 1'000'000)).partitions()));
  EXPECT_TRUE(has_problem(only(partition("events", 0, Phase::kCopying, std::nullopt)).partitions()));
  EXPECT_TRUE(has_problem(only(partition("events", 0, Phase::kStuck, 5)).partitions()));
}

TEST(GapsView, SaysWhoResolvedIt) {
  google::protobuf::RepeatedPtrField<pb::Gap> gaps;
  EXPECT_EQ(gaps_view(gaps), "no gaps\n");
  state::GapRow open;
  open.id = 7;
  open.key = {{"orders", "events"}, 3};
  open.up_begin = 1200;
  open.up_end = 3400;
  open.cause = "retention";
  open.detail = "the topic expires messages after 1 h";
  open.found_at = kNow;
  state::GapRow closed = open;
  closed.id = 8;
  closed.detail.clear();
  closed.resolved_as = "accept";
  closed.resolved_by = "ann@host";
  closed.resolved_at = kNow + 60 * kSecond;
  *gaps.Add() = replicator::to_proto(open);
  *gaps.Add() = replicator::to_proto(closed);
  EXPECT_EQ(gaps_view(gaps), R"(7  orders/events/3  [1200, 3400)  retention, 2026-01-31 12:00:00
    the topic expires messages after 1 h
    open
8  orders/events/3  [1200, 3400)  retention, 2026-01-31 12:00:00
    resolved as accept by ann@host, 2026-01-31 12:01:00
)");
}

TEST(EventsView, SaysWhoDidWhat) {
  google::protobuf::RepeatedPtrField<pb::Event> events;
  *events.Add() = replicator::to_proto(state::EventRow{1, kNow, "pause", "orders/events/3", "ann@host", "by hand"});
  EXPECT_EQ(events_view(events), "2026-01-31 12:00:00  pause  orders/events/3  by ann@host\n    by hand\n");
}

TEST(SettingsView, ShowsWhatIsSetAndWhatIsUsed) {
  replicator::LinkStatus link;
  link.settings = {{"copy.batch_bytes", "1048576", "1MiB", "flag"}, {"link.exclude", "", "", "default"}};
  EXPECT_EQ(settings_view(replicator::to_proto(link, true)),
            "copy.batch_bytes = 1MiB   (flag) set as 1048576\nlink.exclude = -\n");
}

TEST(Format, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1'000), "1,000");
  EXPECT_EQ(format_count(9'999'999), "9,999,999");
  EXPECT_EQ(format_count(10'000'000), "10.0M");
  EXPECT_EQ(format_count(999'999'999), "1.00G");
  EXPECT_EQ(format_count(~0ULL), "18.4E");
  EXPECT_EQ(format_rate(0.25), "0.2");
  EXPECT_EQ(format_rate(12'345.6), "12,346");
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1.0 KiB");
  EXPECT_EQ(format_bytes(512.0 * 1024 * 1024), "512 MiB");
}

TEST(Format, Ages) {
  EXPECT_EQ(format_age(-5), "0s");
  EXPECT_EQ(format_age(0.0001), "1ms");
  EXPECT_EQ(format_age(0.85), "850ms");
  EXPECT_EQ(format_age(8.9), "8s");
  EXPECT_EQ(format_age(130), "2m 10s");
  EXPECT_EQ(format_age(3 * 3600 + 300), "3h 5m");
  EXPECT_EQ(format_age(12 * 86'400 + 4 * 3600), "12d 4h");
}

TEST(Json, UnknownIsAbsentAndZeroIsThere) {
  PartitionStatus status = partition("events", 0, Phase::kCaughtUp, std::nullopt);
  const std::string unknown = to_json(replicator::to_proto(status), false);
  EXPECT_EQ(unknown.find("\"messages\":"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("\"committed\":\"0\""), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("\"phase\":\"PHASE_CAUGHT_UP\""), std::string::npos);
  status.lag.messages = 0;
  EXPECT_NE(to_json(replicator::to_proto(status), false).find("\"messages\":\"0\""), std::string::npos);
}

}  // namespace
}  // namespace cli
