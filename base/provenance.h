// Where a message was first written, as five user headers behind its own ones, so that a consumer can drop what it has
// seen, whichever cluster it reads:
//
//   iggy-replicate.cluster    string   the name given to the cluster (1 to 255 bytes)
//   iggy-replicate.stream     string
//   iggy-replicate.topic      string
//   iggy-replicate.partition  uint32
//   iggy-replicate.offset     uint64
//
// The block is no part of what makes two messages equal (digest.h). A message that has one keeps it: after several
// links it still names the first cluster. Layout of user headers: the same in both dialects, source: protocol of
// servers 0.8 and 0.9, "User headers".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/record.h"

namespace base {

// Bytes of the block at the end of `headers`; 0 = there is none.
std::size_t provenance_size(ByteView headers);

class Provenance {
 public:
  // `cluster` empty: stamps nothing.
  Provenance(const std::string& cluster, const PartitionKey& origin);

  bool is_on() const { return !prefix_.empty(); }
  // The records with the block appended. Valid until the next call, and as long as the frames of `records`.
  std::span<const Record> stamp(std::span<const Record> records);

 private:
  Bytes prefix_;  // the block, up to the value of its last header
  std::vector<Record> stamped_;
  Bytes bodies_;
};

}  // namespace base
