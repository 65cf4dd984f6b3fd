#include "base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "base/provenance.h"

namespace base {

std::string Digest::to_string() const { return fmt::format("{:016x}{:016x}", high, low); }

Digest digest_of(const Record& record) {
  const std::size_t size = record.body.size() - provenance_size(record.headers());
  const XXH128_hash_t body = XXH3_128bits(record.body.data(), size);
  struct {
    std::uint64_t id_low, id_high, origin, lengths, body_low, body_high;
  } const key{record.id.low,
              record.id.high,
              record.origin_timestamp,
              (static_cast<std::uint64_t>(record.payload_length) << 32U) | (size - record.payload_length),
              body.low64,
              body.high64};
  const XXH128_hash_t hash = XXH3_128bits(&key, sizeof(key));
  return {hash.low64, hash.high64};
}

Digest chain(const Digest& before, const Digest& next) {
  const std::uint64_t both[] = {before.low, before.high, next.low, next.high};
  const XXH128_hash_t hash = XXH3_128bits(both, sizeof(both));
  return {hash.low64, hash.high64};
}

std::uint64_t xxh3_64(ByteView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint32_t xxh32(ByteView bytes) { return XXH32(bytes.data(), bytes.size(), 0); }

MessageId mint_id(const std::string& link_id, const PartitionKey& key, std::uint64_t upstream_offset) {
  const std::string text = fmt::format("{}\n{}\n{}", link_id, key.to_string(), upstream_offset);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64 | 1U, hash.high64};
}

}  // namespace base
