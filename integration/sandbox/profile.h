// What differs between the servers that the sandbox imitates. Facts from recordings of 0.8.0 and 0.9.0-edge.5; rows
// marked (unverified) come from documents about 0.9.0 alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "iggy/dialect.h"

namespace sandbox {

struct Profile {
  std::string_view server;  // "0.8.0", as --server and the version replies have it
  iggy::Dialect dialect = iggy::Dialect::kLegacy;

  // Identity of logs.
  bool created_at_shifts = false;          // at the first restart after creation
  bool lowest_id_first = false;            // freed ids; else the last freed one
  bool restart_rewinds_empty_log = false;  // all segments expired, then restart: offsets begin at 0 again

  // Messages.
  std::uint64_t offset_reservation = 0;      // offsets reserved ahead; after a crash the log goes on above (unverified)
  bool rotate_after_full = false;            // the append after the one that filled a segment still belongs to it
  std::chrono::seconds saver_interval{0};    // unsaved messages are saved that often; 0 = never by time
  std::chrono::seconds cleaner_interval{0};  // 0 = retention is off
  std::uint64_t size_cap_slack = 0;          // bytes per partition above one segment that a size limit always leaves

  // Requests.
  std::uint32_t dedup_window = 0;  // request numbers remembered per (client, user) and partition (unverified)
  bool answers_bad_batch = true;   // else a malformed batch gets no answer at all
  bool durability_keys = false;    // `durability`, `consumer_offset_durability` instead of `enforce_fsync` (unverified)
  bool disk_full_kills_writer = false;  // a failed write ends all sends and logins in silence until the restart
};

inline constexpr std::uint64_t kMiB = 1024 * 1024;
inline constexpr std::uint64_t kDefaultSegmentSize = 1024 * kMiB;
inline constexpr std::uint32_t kDefaultMessagesToSave = 1024;
inline constexpr std::uint64_t kDefaultBytesToSave = kMiB;

// nullopt when `server` is none of ours.
inline std::optional<Profile> profile_for(std::string_view server) {
  using std::chrono::seconds;
  if (server == "0.8.0")
    return Profile{.server = "0.8.0",
                   .dialect = iggy::Dialect::kLegacy,
                   .created_at_shifts = true,
                   .restart_rewinds_empty_log = true,
                   .rotate_after_full = true,
                   .saver_interval = seconds(30)};
  const Profile edge{.server = "0.9.0-edge.5",
                     .dialect = iggy::Dialect::kVsr11,
                     .lowest_id_first = true,
                     .cleaner_interval = seconds(60),
                     .size_cap_slack = 64 * kMiB,
                     .answers_bad_batch = false,
                     .disk_full_kills_writer = true};
  if (server == "0.9.0-edge.5") return edge;
  if (server == "0.9.0") {
    Profile release = edge;
    release.server = "0.9.0";
    release.offset_reservation = 65'536;
    release.dedup_window = 128;
    release.answers_bad_batch = true;
    release.durability_keys = true;
    return release;
  }
  return std::nullopt;
}

}  // namespace sandbox
