// Goal: what people write is read, what is nonsense is refused, and what is printed reads back. Method: examples.
#include "replicator/model/units.h"

#include <gtest/gtest.h>

#include "replicator/model/listen_address.h"
#include "replicator/model/partition_glob.h"

namespace replicator {
namespace {

using std::chrono::milliseconds;

TEST(Units, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_duration("100ms"), milliseconds(100));
  EXPECT_EQ(parse_duration("2d"), std::chrono::hours(48));
  EXPECT_EQ(parse_duration("0"), milliseconds(0));
  EXPECT_EQ(parse_size("4MiB"), 4ULL << 20);
  EXPECT_EQ(parse_size("1000"), 1000U);
}

TEST(Units, RefusesWhatIsNotClear) {
  for (const char* text :
       {"", "100", "ms", "-1s", "1.5s", "1 s", "1S", "9999999999999999999s", "99999999999999999999"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
  for (const char* text : {"", "4MB", "4mib", "-1", "1.5GiB", "99999999999GiB"}) EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Units, PrintsTextThatReadsBack) {
  for (const std::int64_t micros : {0L, 1L, 999L, 1'000L, 1'500'000L, 60'000'000L, 86'400'000'000L, 86'400'000'001L}) {
    EXPECT_EQ(parse_duration(format_duration(base::Duration(micros))), base::Duration(micros)) << micros;
  }
  for (const std::uint64_t bytes : {0ULL, 1ULL, 1000ULL, 1024ULL, 4ULL << 20, 3ULL << 30, (1ULL << 30) + 1}) {
    EXPECT_EQ(parse_size(format_size(bytes)), bytes) << bytes;
  }
  EXPECT_EQ(format_duration(milliseconds(1500)), "1500ms");
  EXPECT_EQ(format_size(4ULL << 20), "4MiB");
}

TEST(PartitionGlob, AddressesTopicsAndPartitions) {
  const base::PartitionKey key{{"orders", "events"}, 12};
  for (const char* glob : {"orders/events", "*/*", "orders/events/12", "orders/*/1*", "*/*/1?"}) {
    ASSERT_TRUE(PartitionGlob::compile(glob)) << glob;
    EXPECT_TRUE(PartitionGlob::compile(glob)->matches(key)) << glob;
  }
  for (const char* glob : {"orders/events/1", "orders/other", "order/events", "*/*/2"}) {
    ASSERT_TRUE(PartitionGlob::compile(glob)) << glob;
    EXPECT_FALSE(PartitionGlob::compile(glob)->matches(key)) << glob;
  }
  for (const char* glob : {"", "orders", "/events", "orders/", "a//1", "a/b/", "a/b/c", "a/b/1/2"}) {
    EXPECT_FALSE(PartitionGlob::compile(glob)) << glob;
  }
}

TEST(PartitionGlob, OnePartitionReadsBack) {
  for (const base::PartitionKey& key : {base::PartitionKey{{"orders", "events"}, 3}, {{"a/b", "c*?\\"}, 0}}) {
    ASSERT_TRUE(parse_partition(to_pattern(key))) << to_pattern(key);
    EXPECT_EQ(parse_partition(to_pattern(key)), key);
  }
  for (const char* text : {"", "orders/events", "orders/events/", "orders/events/x", "orders/*/1", "a/b/-1"}) {
    EXPECT_FALSE(parse_partition(text)) << text;
  }
}

TEST(ListenAddress, KnowsWhatIsOpenToOthers) {
  for (const char* text : {"127.0.0.1:8095", "127.9.9.9:0", "[::1]:8095", "localhost:1"}) {
    ASSERT_TRUE(parse_listen_address(text)) << text;
    EXPECT_TRUE(parse_listen_address(text)->is_loopback) << text;
    EXPECT_EQ(parse_listen_address(text)->to_string(), text);
  }
  for (const char* text : {"0.0.0.0:8095", "[::]:8095", "10.0.0.1:1", "example.org:1", "localhost.example.org:1"}) {
    ASSERT_TRUE(parse_listen_address(text)) << text;
    EXPECT_FALSE(parse_listen_address(text)->is_loopback) << text;
  }
  for (const char* text :
       {"", "8095", ":8095", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1:80", "[localhost]:80"}) {
    EXPECT_FALSE(parse_listen_address(text)) << text;
  }
}

}  // namespace
}  // namespace replicator
