// The messages of one partition: chunks in the stored form of the dialect, one chunk per send, grouped in segments.
// Memory always holds all of them; a file, when there is one, holds what has been saved. Appended messages are acked
// from memory and saved once 1,024 messages or 1 MiB are waiting (settable), as the real servers do.
//
//   segments:  [ chunk chunk chunk | chunk chunk | chunk … ]        offsets ascend, holes are possible
//              floor ^                   saved ^     next offset ^
//
// Pure bookkeeping but for the file. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <vector>

#include "base/bytes.h"
#include "iggy/dialect.h"
#include "integration/sandbox/profile.h"
#include "integration/sandbox/record_file.h"

namespace sandbox {

// Consecutive offsets begin … begin + count - 1 as stored: legacy messages of 64-byte header and body back to back, or
// one vsr batch record (whole or sliced). `bytes` views into `buffer`.
struct Chunk {
  base::BufferPtr buffer;
  base::ByteView bytes;
  std::uint64_t begin = 0;
  std::uint32_t count = 0;
  std::uint64_t timestamp = 0;  // server time, µs since the epoch
  // vsr: the producer's offset deltas are not 0, 1, 2, …: message i is not at begin + i. Servers take it.
  bool odd_deltas = false;
  std::uint64_t end() const { return begin + count; }
};

// Part of `chunk`: messages [first, first + count). REQUIRES: first + count <= chunk.count.
Chunk cut(iggy::Dialect dialect, const Chunk& chunk, std::uint32_t first, std::uint32_t count);

struct LogSettings {
  std::uint64_t segment_size = kDefaultSegmentSize;
  std::uint32_t messages_to_save = kDefaultMessagesToSave;
  std::uint64_t bytes_to_save = kDefaultBytesToSave;
  bool fsync = false;
};

class PartitionLog {
 public:
  // `path` empty: in memory only. Else loads what was saved; throws std::system_error when the file can't be opened.
  PartitionLog(const Profile& profile, LogSettings settings, std::filesystem::path path);

  // Gives the next offsets to `chunk`, whose bytes carry them already, and saves when a threshold is passed. false when
  // the disk refused to save: the messages keep their offsets in memory. REQUIRES: chunk.begin == next_offset().
  bool append(Chunk chunk);
  bool save();
  // Every later save fails while `full`; what has not been saved by the first failed one becomes unreadable.
  void set_disk_full(bool full) { disk_full_ = full; }

  // Chunks from offset `from` on (or the first one kept), cut to at most `count` messages.
  std::vector<Chunk> read(std::uint64_t from, std::uint64_t count) const;
  // Offset of the first message with a server time of at least `timestamp`; next_offset() when there is none.
  std::uint64_t offset_at(std::uint64_t timestamp) const;

  std::uint64_t next_offset() const { return next_offset_; }
  std::uint64_t current_offset() const { return next_offset_ == 0 ? 0 : next_offset_ - 1; }
  std::uint64_t first_offset() const;  // of the first kept message; next_offset() when there is none
  bool ends_with_message() const {     // else a jump or a removal left nothing right below next_offset()
    return !segments_.back().chunks.empty() && segments_.back().chunks.back().end() == next_offset_;
  }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t size_bytes() const { return bytes_; }
  std::uint32_t segments() const { return static_cast<std::uint32_t>(segments_.size()); }
  std::uint64_t unsaved_messages() const { return unsaved_messages_; }
  std::uint64_t last_timestamp() const { return last_timestamp_; }

  // Removes the oldest sealed segments: at most `count`, none that ends above `barrier`.
  void delete_segments(std::uint32_t count, std::uint64_t barrier);
  // Retention: sealed segments whose newest message is older than `now - expiry`, then oldest first while the log is
  // larger than `max_bytes`. 0 switches either off.
  void clean(std::uint64_t now, std::uint64_t expiry, std::uint64_t max_bytes, std::uint64_t barrier);
  // Seals everything and removes it, as when all of it has expired.
  void expire_all();
  // Removes messages below `offset`, segments or not.
  void trim(std::uint64_t offset);
  // Removes the newest `count` messages; their offsets are given out again.
  void lose_tail(std::uint64_t count);
  // The next message gets `offset` or more.
  void continue_at(std::uint64_t offset);
  // Begins at 0 again. REQUIRES: messages() == 0.
  void rewind();
  // Rewrites the file to hold what memory holds. For trimmed and shortened logs.
  void rewrite_file();

 private:
  struct Segment {
    std::uint64_t start = 0;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t last_timestamp = 0;
    std::deque<Chunk> chunks;
    std::uint64_t end() const { return chunks.empty() ? start : chunks.back().end(); }
  };
  void add(Chunk chunk);
  void pop_segment();
  void rotate();
  void rotate_if_full(bool was_full);
  bool write(const Chunk& chunk);

  const Profile* profile_;
  LogSettings settings_;
  std::filesystem::path path_;
  RecordFile file_;
  std::deque<Segment> segments_;  // never empty; the last one is active
  std::deque<Chunk> unsaved_;
  std::uint64_t unsaved_messages_ = 0;
  std::uint64_t unsaved_bytes_ = 0;
  std::uint64_t next_offset_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t last_timestamp_ = 0;
  bool disk_full_ = false;
  std::uint64_t unreadable_from_ = ~0ULL;  // set by the first failed save, for good
};

}  // namespace sandbox
