// How fast may be read: bytes and messages per second, of the link and of topics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace replicator {

struct Rate {
  std::uint64_t bytes = 0;     // per second, 1 KiB … 1 TiB; 0 = no limit
  std::uint64_t messages = 0;  // per second, 1 … 1,000,000,000; 0 = no limit
  friend bool operator==(const Rate&, const Rate&) = default;
};

// "10MiB/s", "500msg/s", both with a space between, or "off". kInvalidArgument with the reason.
base::Result<Rate> parse_rate(std::string_view text);
// Reads back as the same.
std::string format_rate(const Rate& rate);

// Each topic that matches has this rate for itself.
struct TopicRate {
  std::string glob;  // over stream/topic
  Rate rate;
  friend bool operator==(const TopicRate&, const TopicRate&) = default;
};

// "orders/* 10MiB/s 500msg/s". kInvalidArgument with the reason.
base::Result<TopicRate> parse_topic_rate(std::string_view text);
std::string format_topic_rate(const TopicRate& rate);

struct ThrottleRules {
  Rate link;                      // all topics together
  std::vector<TopicRate> topics;  // the first that matches counts
  // REQUIRES: the globs compile (parse_topic_rate() saw to it).
  Rate of(const base::TopicName& topic) const;
  friend bool operator==(const ThrottleRules&, const ThrottleRules&) = default;
};

}  // namespace replicator
