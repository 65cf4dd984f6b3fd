#include "state/file_lock.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace state {

base::Result<FileLock> FileLock::take(const std::string& path) {
  const auto failed = [&path](const char* what) {
    return base::Error(base::ErrorCode::kStateUnavailable, "lock", path,
                       std::string(what) + ": " + std::strerror(errno),
                       "the folder of the state file must exist and be writable");
  };
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return failed("can't open the lock file");
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      auto error = failed("can't lock");
      ::close(descriptor);
      return error;
    }
    std::array<char, 32> text{};
    const ssize_t length = ::pread(descriptor, text.data(), text.size() - 1, 0);
    ::close(descriptor);
    std::string pid(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    while (!pid.empty() && pid.back() == '\n') pid.pop_back();
    return base::Error(base::ErrorCode::kStateLocked, "lock", path,
                       "another process works on this state file" + (pid.empty() ? "" : ": pid " + pid),
                       "one process per state file: stop the other one first, or give this link another --state");
  }
  FileLock lock(descriptor, path);
  const std::string pid = std::to_string(::getpid()) + "\n";
  // The text only informs; the lock holds without it (a full disk must not keep us from starting to say so).
  if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, pid.data(), pid.size(), 0) < 0) errno = 0;
  return lock;
}

bool FileLock::is_in_place() const {
  const auto present = FileIdentity::of(path_);
  return !present || present == identity_;
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  if (::ftruncate(descriptor_, 0) != 0) errno = 0;  // the pid would only mislead
  ::close(descriptor_);
}

}  // namespace state
