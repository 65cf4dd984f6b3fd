// One process per state file: flock on a file of its own beside it, so that readers of the database are not locked out.
// The lock ends with the process, however it ends. The file stays; it holds the pid as text while the lock is held.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace state {

class FileLock {
 public:
  // kStateLocked when another process (or another lock of this one) has it, with its pid; kStateUnavailable when the
  // file can't be made.
  static base::Result<FileLock> take(const std::string& path);
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace state
