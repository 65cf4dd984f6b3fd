// The export of a failback: every orphan with its bytes, so that a person can decide what to do with it.
//
// One file `orphans-<UTC time>.jsonl` (mode 0600) in a folder (0700), one JSON object per line, in order of partition
// and offset:
//   {"stream":"orders","topic":"events","partition":0,"offset":1200,"id":"<32 hex digits>","timestamp":<µs>,
//    "origin_timestamp":<µs>,"payload":"<base64>","headers":"<base64>"}
// Offset and timestamp are those of the old primary; headers are the raw block of user headers.
//
// The file has its name only when it is whole and on the disk: a crash leaves `….part`, which nobody reads. An existing
// file is never written to. Affinity: any one thread; blocks on the disk.
#pragma once

#include <cstdint>
#include <string>

#include "base/record.h"
#include "base/result.h"

namespace replicator {

class OrphanFile {
 public:
  // kStateUnavailable: folder or file can't be made. `now`: µs, names the file.
  static base::Result<OrphanFile> create(const std::string& folder, std::uint64_t now);
  OrphanFile(OrphanFile&& other) noexcept;
  OrphanFile(const OrphanFile&) = delete;
  OrphanFile& operator=(const OrphanFile&) = delete;
  OrphanFile& operator=(OrphanFile&&) = delete;
  ~OrphanFile();

  base::Status add(const base::PartitionKey& key, const base::Record& record);
  // Durable under its name when it returns.
  base::Status finish();
  const std::string& path() const { return path_; }

 private:
  OrphanFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  base::Status flush();

  int file_;
  std::string path_;
  std::string buffer_;
};

// One line of the file, without its line break. Pure.
std::string orphan_line(const base::PartitionKey& key, const base::Record& record);

}  // namespace replicator
