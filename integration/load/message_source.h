// Makes messages that can be recognised: a function of seed, partition and sequence number alone.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/record.h"
#include "base/result.h"

namespace load {

struct MessageOptions {
  // Payload bytes. `mixed`: 90 % up to 2 KB, 9.9 % up to 64 KB, 0.1 % of 0.9 to 1 MB; else uniform in [min, max].
  bool mixed = false;
  std::uint32_t min_size = 100, max_size = 100;
  enum class Ids : std::uint8_t { kSequence, kRandom, kZero } ids = Ids::kRandom;
  std::uint32_t zero_percent = 0;  // kZero: that many have id 0, the rest random ones
  enum class Headers : std::uint8_t { kNone, kKinds, kGarbage } headers = Headers::kNone;
  std::uint32_t garbage_percent = 0;  // kGarbage: that many have header bytes that do not parse
  // Producer's clock: `origin_start` + n · `origin_step` µs for message n of a partition; 0 = now.
  std::uint64_t origin_start = 0, origin_step = 0;
  std::uint64_t seed = 1;
};

// Parse the forms of the command line: "100-2000", "profile:mixed"; "seq", "random", "zero:10"; "none", "kinds",
// "garbage:5"; "now", "1700000000000000+1000". kInvalidArgument names the flag.
base::Status parse_size(const std::string& text, MessageOptions& options);
base::Status parse_ids(const std::string& text, MessageOptions& options);
base::Status parse_headers(const std::string& text, MessageOptions& options);
base::Status parse_origin(const std::string& text, MessageOptions& options);

// Owns what its records view into.
class MessageBatch {
 public:
  void add(const MessageOptions& options, std::uint32_t partition, std::uint64_t sequence, std::uint64_t now);
  const std::vector<base::Record>& records() const { return records_; }
  const std::vector<std::uint64_t>& sequences() const { return sequences_; }

 private:
  std::deque<base::Bytes> bodies_;
  std::vector<base::Record> records_;
  std::vector<std::uint64_t> sequences_;
};

}  // namespace load
