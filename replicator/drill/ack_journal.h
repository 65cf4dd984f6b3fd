// The drill's own truth: every message that a cluster acknowledged, on the disk before it counts. Kept outside the
// link, so that what the link says can be compared with it.
//
// A line per message: `partition sequence id digest acknowledged_at` (µs), with `? ` in front when nobody knows whether
// it was stored. Affinity: any one thread; blocks on the disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/record.h"
#include "base/result.h"

namespace replicator {

struct JournalEntry {
  std::uint32_t partition = 0;
  std::uint64_t sequence = 0;  // of its partition, from 0
  base::Digest digest;
  std::uint64_t at = 0;  // µs, our wall clock: when the acknowledgment was there
  bool certain = true;
};

class AckJournal {
 public:
  // kStateUnavailable: can't be made (a file of this name may not exist).
  static base::Result<AckJournal> create(const std::string& path);
  AckJournal(AckJournal&& other) noexcept;
  AckJournal(const AckJournal&) = delete;
  AckJournal& operator=(const AckJournal&) = delete;
  AckJournal& operator=(AckJournal&&) = delete;
  ~AckJournal();

  // Durable when it returns. `records` have the sequences first, first + 1, …
  base::Status add(std::uint32_t partition, std::uint64_t first, const std::vector<base::Record>& records,
                   std::uint64_t at, bool certain);
  const std::vector<JournalEntry>& entries() const { return entries_; }  // as they came

 private:
  explicit AckJournal(int file) : file_(file) {}
  int file_;
  std::vector<JournalEntry> entries_;
};

}  // namespace replicator
