// Rates as people write them: what is read is what is meant, and all else is refused with a sentence.
#include "replicator/model/rate.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

TEST(RateTest, ReadsWhatItWrites) {
  for (const std::string text : {"off", "10MiB/s", "500msg/s", "10MiB/s 500msg/s", "1KiB/s", "1025B/s"}) {
    const auto rate = parse_rate(text);
    ASSERT_TRUE(rate) << text;
    EXPECT_EQ(format_rate(*rate), text);
  }
  EXPECT_EQ(*parse_rate("500msg/s 10MiB/s"), (Rate{10ULL << 20, 500}));
}

TEST(RateTest, RefusesWhatIsNoRate) {
  for (const std::string text : {"", " ", "10", "10MiB", "fast", "0msg/s", "1B/s", "2000GiB/s", "1e3msg/s", "-1msg/s",
                                 "msg/s", "10MiB/s 20MiB/s", "10MiB/s 10MiB/s", "off 1msg/s", "1msg/s off"}) {
    EXPECT_FALSE(parse_rate(text)) << text;
  }
}

TEST(RateTest, ATopicsGlobMayHoldSpaces) {
  const auto rate = parse_topic_rate("my orders/e v* 10MiB/s 5msg/s");
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->glob, "my orders/e v*");
  EXPECT_EQ(rate->rate, (Rate{10ULL << 20, 5}));
  EXPECT_EQ(parse_topic_rate("orders/* off")->rate, Rate{});
  for (const std::string text : {"", "orders/*", "10MiB/s", "orders 10MiB/s", "orders/* 10MiB", " 10MiB/s 1msg/s"}) {
    EXPECT_FALSE(parse_topic_rate(text)) << text;
  }
}

TEST(RateTest, TheFirstMatchCounts) {
  const ThrottleRules rules{{}, {*parse_topic_rate("orders/big 1MiB/s"), *parse_topic_rate("orders/* 2MiB/s")}};
  EXPECT_EQ(rules.of({"orders", "big"}).bytes, 1U << 20);
  EXPECT_EQ(rules.of({"orders", "small"}).bytes, 2U << 20);
  EXPECT_EQ(rules.of({"other", "small"}), Rate{});
}

}  // namespace
}  // namespace replicator
