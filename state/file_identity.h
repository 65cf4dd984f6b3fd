// Which file a name stands for: tells that a file in use was removed or replaced. An inode is not given out again while
// a descriptor holds it.
#pragma once

#include <cerrno>
#include <optional>
#include <string>

#include <sys/stat.h>

namespace state {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;  // 0 = there is no such file
  bool operator==(const FileIdentity&) const = default;

  // Nothing when it can't be known now.
  static std::optional<FileIdentity> of(const std::string& path) {
    struct stat found{};
    if (::stat(path.c_str(), &found) == 0) return FileIdentity{found.st_dev, found.st_ino};
    if (errno == ENOENT) return FileIdentity{};
    return std::nullopt;
  }
};

}  // namespace state
