// What kind of difference the first one is: from what both sides hold from there on. Pure.
#pragma once

#include <deque>
#include <vector>

#include "base/record.h"
#include "replicator/model/verify_report.h"

namespace replicator {

// A message of a window: what is left of it once its frame is gone.
struct Seen {
  std::uint64_t offset = 0;
  base::MessageId id;
  std::uint64_t origin_timestamp = 0;
  std::uint32_t payload_length = 0;
  std::size_t body_size = 0;
  base::Digest digest;
};
Seen seen(const base::Record& record);

// The digests compared last, newest at the back: a message that stands among them once more is a duplicate.
using Recent = std::deque<base::Digest>;

// `up`: upstream from `up_offset` on; `down`: downstream from `down_offset` on, where up_offset's copy should be.
// REQUIRES: `up` begins at up_offset, and `down` does not begin with its copy at down_offset.
Difference first_difference(std::uint64_t up_offset, std::uint64_t down_offset, const std::vector<Seen>& up,
                            const std::vector<Seen>& down, const Recent& recent);

// A message downstream at a place where nothing of ours stands.
Difference unexpected(std::uint64_t up_offset, const Seen& message, const Recent& recent);

}  // namespace replicator
