// One process per state file: flock on a file of its own beside it, so that readers of the database are not locked out.
// The lock ends with the process, however it ends. The file stays; it holds the pid as text while the lock is held.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "state/file_identity.h"

namespace state {

class FileLock {
 public:
  // kStateLocked when another process (or another lock of this one) has it, with its pid; kStateUnavailable when the
  // file can't be made.
  static base::Result<FileLock> take(const std::string& path);
  FileLock(FileLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), identity_(other.identity_) {}
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  // False when the file was removed or replaced: then it keeps nobody out any more.
  bool is_in_place() const;

 private:
  FileLock(int descriptor, std::string path)
      : descriptor_(descriptor), path_(std::move(path)), identity_(FileIdentity::of(path_)) {}
  int descriptor_;
  std::string path_;
  std::optional<FileIdentity> identity_;
};

}  // namespace state
