// What makes two messages equal across clusters: XXH3-128 over id, origin timestamp, both lengths and the XXH3-128 of
// payload ‖ headers. Offset, server timestamp and checksums differ by nature and are not part of it; nor is a block of
// headers that says where a message was first written (provenance.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/record.h"

namespace base {

struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::string to_string() const;  // 32 hex digits, high half first
  friend bool operator==(const Digest&, const Digest&) = default;
};

Digest digest_of(const Record& record);
// Digest of a sequence: what was before, then one more.
Digest chain(const Digest& before, const Digest& next);

// XXH3-64, seed 0, default secret: the checksum of both dialects.
std::uint64_t xxh3_64(ByteView bytes);
// XXH32, seed 0: numeric id of a named consumer and of a legacy client.
std::uint32_t xxh32(ByteView bytes);

// An id for a message that has none (id 0 on vsr) when the target would invent a random one: a function of link,
// partition and upstream offset alone, so that a re-read mints the same. Never 0.
MessageId mint_id(const std::string& link_id, const PartitionKey& key, std::uint64_t upstream_offset);

}  // namespace base
