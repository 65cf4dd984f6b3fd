#include "state/state_file.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state/migrations.h"
#include "state/sqlite.h"

namespace state {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr std::size_t kHeaderSize = 100;

base::Error system_error(const char* operation, const std::string& path, const char* what) {
  return {base::ErrorCode::kStateUnavailable, operation, path, std::string(what) + ": " + std::strerror(errno)};
}

struct Descriptor {
  explicit Descriptor(int number) : value(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  int value;
};

base::Status sync_path(const std::string& path, int flags) {
  const Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.value < 0) return system_error("write", path, "can't open");
  if (::fsync(file.value) != 0) return system_error("write", path, "can't flush");
  return base::ok();
}

// What was written after the last checkpoint lies in the log: then the file itself may still be short.
bool has_log(const std::string& path) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(path + "-wal", absent);
  return !absent && size > 0;
}

// Page size (bytes 16 and 17, 1 = 65,536) times pages (28 to 31), both big-endian.
// Source: sqlite.org/fileformat2.html, "The Database Header".
std::uint64_t size_in_header(std::string_view header) {
  const auto at = [header](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(header[i])}; };
  const std::uint64_t page = at(16) << 8 | at(17);
  const std::uint64_t pages = at(28) << 24 | at(29) << 16 | at(30) << 8 | at(31);
  return (page == 1 ? 65'536 : page) * pages;
}

}  // namespace

base::Status make_private_file(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((path + suffix).c_str());
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.value < 0) return system_error("create", path, "can't create");
  return base::ok();
}

base::Status publish_file(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(sync_path(from, O_RDONLY));
  if (::rename(from.c_str(), to.c_str()) != 0) return system_error("write", to, "can't rename into place");
  const std::filesystem::path folder = std::filesystem::absolute(to).parent_path();
  return sync_path(folder.string(), O_RDONLY | O_DIRECTORY);
}

base::Status create_state_file(const std::string& path) {
  if (has_log(path)) {
    // SQLite would play this log into the new file.
    return sqlite::corrupt_file("create", path, "the file is gone, but its write-ahead log " + path + "-wal is there");
  }
  const std::string temporary = path + ".new";
  RETURN_IF_ERROR(make_private_file(temporary));
  {
    auto database = sqlite::Database::open(temporary, SQLITE_OPEN_READWRITE);
    if (!database) return database.error();
    RETURN_IF_ERROR(database->execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
    RETURN_IF_ERROR(create_schema(*database));
    // Nothing may stay behind in the log: it would not be renamed with the file.
    RETURN_IF_ERROR(database->execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  return publish_file(temporary, path);
}

base::Status inspect_state_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.value < 0) {
    if (errno == ENOENT) {
      return base::Error(base::ErrorCode::kNotFound, "open", path, "no such file",
                         "`iggy-replicate run` makes it; check --state");
    }
    return system_error("open", path, "can't open");
  }
  struct stat status{};
  if (::fstat(file.value, &status) != 0) return system_error("open", path, "can't look at it");
  if (!S_ISREG(status.st_mode)) {
    return base::Error(base::ErrorCode::kInvalidArgument, "open", path, "not a regular file", "check --state");
  }
  if (status.st_size == 0) return sqlite::corrupt_file("open", path, "the file is empty (0 bytes)");
  std::array<char, kHeaderSize> start{};
  const ssize_t length = ::pread(file.value, start.data(), start.size(), 0);
  if (length < 0) return system_error("open", path, "can't read");
  const std::string_view header(start.data(), static_cast<std::size_t>(length));
  if (!header.starts_with(kMagic)) {
    return sqlite::corrupt_file("open", path, "not a SQLite database: it does not begin with its signature");
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t wanted = header.size() < kHeaderSize ? kHeaderSize : size_in_header(header);
  if (size < wanted && !has_log(path)) {
    return sqlite::corrupt_file("open", path,
                                "cut short: " + std::to_string(size) + " bytes of " + std::to_string(wanted));
  }
  return base::ok();
}

void restrict_mode(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const std::string name = path + suffix;
    struct stat status{};
    if (::stat(name.c_str(), &status) != 0 || (status.st_mode & 077) == 0) continue;
    if (::chmod(name.c_str(), status.st_mode & 0700) != 0) errno = 0;
  }
}

}  // namespace state
