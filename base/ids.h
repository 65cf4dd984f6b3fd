// Strong types for what is easily confused: offsets of the two sides, names, message ids.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace base {

// 128-bit message id as the wire carries it: low 64 bits first, little-endian. 0 means "please generate" to a 0.8
// server.
struct MessageId {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool is_zero() const { return low == 0 && high == 0; }
  // 32 hex digits, high half first.
  std::string to_string() const;
  friend bool operator==(const MessageId&, const MessageId&) = default;
};

// An offset inside one partition of one side. The sides are different types: they are never comparable.
template <class Side>
class Offset {
 public:
  constexpr Offset() = default;
  constexpr explicit Offset(std::uint64_t value) : value_(value) {}
  constexpr std::uint64_t value() const { return value_; }
  constexpr Offset operator+(std::uint64_t count) const { return Offset(value_ + count); }
  constexpr Offset operator-(std::uint64_t count) const { return Offset(value_ - count); }
  // REQUIRES: *this >= from.
  constexpr std::uint64_t distance_from(Offset from) const { return value_ - from.value_; }
  friend constexpr auto operator<=>(const Offset&, const Offset&) = default;

 private:
  std::uint64_t value_ = 0;
};
struct UpstreamSide;
struct DownstreamSide;
using UpstreamOffset = Offset<UpstreamSide>;
using DownstreamOffset = Offset<DownstreamSide>;

// A topic by name. Numeric ids are recycled by the servers and never stored.
struct TopicName {
  std::string stream;
  std::string topic;
  std::string to_string() const { return stream + "/" + topic; }
  friend auto operator<=>(const TopicName&, const TopicName&) = default;
  friend bool operator==(const TopicName&, const TopicName&) = default;
};

// A partition of the link, named by its upstream names; partition numbers are 0-based and equal on both sides.
struct PartitionKey {
  TopicName topic;
  std::uint32_t partition = 0;
  std::string to_string() const { return topic.to_string() + "/" + std::to_string(partition); }
  friend auto operator<=>(const PartitionKey&, const PartitionKey&) = default;
  friend bool operator==(const PartitionKey&, const PartitionKey&) = default;
};

}  // namespace base
