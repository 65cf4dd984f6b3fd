// What `verify` is asked and what it answers: a receipt that names everything it compared, and everything that it left
// out with the reason. Values only; the comparison is in replicator/verify/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "state/offset_map.h"

namespace replicator {

struct VerifyRequest {
  std::string glob;                    // empty = all partitions
  bool full = false;                   // from the beginning, not from where the last clean run ended
  std::uint64_t bytes_per_second = 0;  // of both sides together; 0 = as fast as it goes
};

enum class DifferenceKind : std::uint8_t {
  kMissing,    // a copied message is not downstream
  kExtra,      // a message downstream that is no copy, and not in the ledger
  kDifferent,  // another message, or other content, where the copy should be
  kOrder,      // both sides hold the messages, in another order
  kDuplicate,  // a message once more than upstream, and not in the ledger
};
std::string_view to_string(DifferenceKind kind);  // snake_case

// The first one of a partition. Offsets of both sides: where the message stands, or where it should.
struct Difference {
  DifferenceKind kind = DifferenceKind::kDifferent;
  std::uint64_t up_offset = 0, down_offset = 0;
  std::string text;  // one sentence, with ids
};

// Offsets that one side no longer holds (retention): said, and no difference.
struct Removed {
  state::Side side = state::Side::kUpstream;
  std::uint64_t begin = 0, end = 0;  // half-open, offsets of that side
  friend bool operator==(const Removed&, const Removed&) = default;
};

enum class Verified : std::uint8_t {
  kEqual,
  kDifferent,
  kUnreachable,  // a side could not be read
  kIncomplete,   // the partition was rewound while it was compared, or has no position yet
};
std::string_view to_string(Verified verdict);  // snake_case

struct PartitionVerdict {
  base::PartitionKey key;
  base::TopicName downstream;
  Verified verdict = Verified::kEqual;
  std::string detail;                          // why not equal; one sentence
  std::uint64_t incarnation = 0;               // of the offset map; earlier ones are not compared
  std::uint64_t up_begin = 0, up_end = 0;      // compared, half-open; pinned to what was committed at the start
  std::uint64_t down_begin = 0, down_end = 0;  // of the same
  std::uint64_t messages = 0, bytes = 0;       // compared: messages of one side, payload and headers of one side
  base::Digest up_digest, down_digest;         // chained over the compared messages in order; zero = none
  std::vector<state::RangeRow> ranges;         // of the map, in the compared part
  std::vector<state::GapRow> gaps;             // ledger rows in the compared part: not copied, or not ours
  std::uint64_t strangers = 0;                 // messages downstream that those rows explain
  std::vector<Removed> removed;
  std::optional<Difference> difference;
};

struct VerifyReport {
  std::string link_id;
  std::uint64_t started_at = 0, ended_at = 0;  // µs since the epoch
  bool full = false;
  Verified verdict = Verified::kEqual;       // kDifferent before kUnreachable before kIncomplete
  std::vector<PartitionVerdict> partitions;  // sorted by key
};

struct VerifyProgress {
  std::uint32_t partitions = 0, done = 0, different = 0;
  std::string partition;  // under way
  std::uint64_t messages = 0, messages_total = 0;
  std::uint64_t bytes = 0;
  std::optional<double> seconds_left;  // absent until a rate is known
};

}  // namespace replicator
