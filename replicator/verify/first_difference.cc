#include "replicator/verify/first_difference.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace replicator {
namespace {

std::optional<std::size_t> find(const std::vector<Seen>& in, const base::Digest& digest) {
  const auto found = std::ranges::find(in, digest, &Seen::digest);
  if (found == in.end()) return std::nullopt;
  return static_cast<std::size_t>(found - in.begin());
}

bool contains(const Recent& recent, const base::Digest& digest) {
  return std::ranges::find(recent, digest) != recent.end();
}

// What two messages in the same place do not share.
std::string what_differs(const Seen& up, const Seen& down) {
  if (up.id != down.id) return fmt::format("upstream it is message {}", up.id.to_string());
  if (up.origin_timestamp != down.origin_timestamp) {
    return fmt::format("it has the same id, and origin time {} upstream, {} here", up.origin_timestamp,
                       down.origin_timestamp);
  }
  if (up.payload_length != down.payload_length) {
    return fmt::format("it has the same id, and {} payload bytes upstream, {} here", up.payload_length,
                       down.payload_length);
  }
  if (up.body_size != down.body_size) {
    return fmt::format("it has the same id, and {} header bytes upstream, {} here", up.body_size - up.payload_length,
                       down.body_size - down.payload_length);
  }
  return fmt::format("it has the same id and lengths, and other bytes than upstream ({} payload, {} headers)",
                     up.payload_length, up.body_size - up.payload_length);
}

}  // namespace

Seen seen(const base::Record& record) {
  return {record.offset,         record.id,          record.origin_timestamp,
          record.payload_length, record.body.size(), base::digest_of(record)};
}

Difference unexpected(std::uint64_t up_offset, const Seen& message, const Recent& recent) {
  const bool again = contains(recent, message.digest);
  return {again ? DifferenceKind::kDuplicate : DifferenceKind::kExtra, up_offset, message.offset,
          fmt::format("downstream offset {} holds message {}, {}", message.offset, message.id.to_string(),
                      again ? "which stands shortly before as well, and upstream only once"
                            : "which is no copy, and which the ledger does not name")};
}

Difference first_difference(std::uint64_t up_offset, std::uint64_t down_offset, const std::vector<Seen>& up,
                            const std::vector<Seen>& down, const Recent& recent) {
  const Seen& wanted = up.front();
  const auto difference = [&](DifferenceKind kind, std::string text) {
    return Difference{kind, up_offset, down_offset, std::move(text)};
  };
  const std::optional<std::size_t> later = find(down, wanted.digest);
  if (down.empty() || down.front().offset != down_offset) {
    if (later) {
      return difference(DifferenceKind::kOrder,
                        fmt::format("message {} (upstream offset {}) should be at downstream offset {}, and is at {}",
                                    wanted.id.to_string(), up_offset, down_offset, down[*later].offset));
    }
    return difference(DifferenceKind::kMissing,
                      fmt::format("message {} (upstream offset {}) should be at downstream offset {}; nothing is there",
                                  wanted.id.to_string(), up_offset, down_offset));
  }
  const Seen& found = down.front();
  const std::optional<std::size_t> ahead = find(up, found.digest);  // never 0
  const auto equal_at = [&](std::size_t d, std::size_t u) {
    return d < down.size() && u < up.size() && down[d].digest == up[u].digest;
  };
  // One message more, and then everything as it should be.
  const bool inserted = later == 1U && (up.size() < 2 || equal_at(2, 1));
  if (contains(recent, found.digest) || (ahead && inserted)) {
    return difference(DifferenceKind::kDuplicate,
                      fmt::format("downstream offset {} holds message {} once more than upstream, where message {} "
                                  "(upstream offset {}) should be",
                                  down_offset, found.id.to_string(), wanted.id.to_string(), up_offset));
  }
  if (ahead && later) {
    return difference(
        DifferenceKind::kOrder,
        fmt::format("downstream offset {} holds message {} of upstream offset {}; message {} of upstream offset {} "
                    "comes at {} only",
                    down_offset, found.id.to_string(), up[*ahead].offset, wanted.id.to_string(), up_offset,
                    down[*later].offset));
  }
  if (ahead) {
    return difference(
        DifferenceKind::kMissing,
        fmt::format("message {} (upstream offset {}) should be at downstream offset {}, where the copy of upstream "
                    "offset {} stands: {} missing",
                    wanted.id.to_string(), up_offset, down_offset, up[*ahead].offset, *ahead));
  }
  if (later) {
    return difference(DifferenceKind::kExtra,
                      fmt::format("downstream offset {} holds message {}, which is no copy; message {} (upstream "
                                  "offset {}) comes {} later",
                                  down_offset, found.id.to_string(), wanted.id.to_string(), up_offset, *later));
  }
  return difference(DifferenceKind::kDifferent,
                    fmt::format("downstream offset {} holds message {}; {} (upstream offset {})", down_offset,
                                found.id.to_string(), what_differs(wanted, found), up_offset));
}

}  // namespace replicator
