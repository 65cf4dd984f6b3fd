#include "integration/sandbox/record_file.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY  // the size of the hash state
#include <xxhash.h>

#include "base/digest.h"

namespace sandbox {
namespace {

constexpr std::size_t kHeaderSize = 12;

bool read_exactly(int file, std::byte* at, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(file, at, size);
    if (got <= 0) {
      if (got < 0 && errno == EINTR) continue;
      return false;
    }
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int file, std::vector<iovec> parts) {
  std::size_t first = 0;
  while (first < parts.size()) {
    const int count = static_cast<int>(std::min<std::size_t>(parts.size() - first, 512));
    ssize_t done = ::writev(file, &parts[first], count);
    if (done < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    while (first < parts.size() && static_cast<std::size_t>(done) >= parts[first].iov_len) {
      done -= static_cast<ssize_t>(parts[first].iov_len);
      ++first;
    }
    if (first < parts.size()) {
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + done;
      parts[first].iov_len -= static_cast<std::size_t>(done);
    }
  }
  return true;
}

}  // namespace

RecordFile::RecordFile(RecordFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
RecordFile& RecordFile::operator=(RecordFile&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}
RecordFile::~RecordFile() {
  if (file_ >= 0) ::close(file_);
}

RecordFile RecordFile::open(const std::filesystem::path& path,
                            const std::function<void(base::BufferPtr, base::ByteView)>& each) {
  RecordFile out;
  out.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (out.file_ < 0) throw std::system_error(errno, std::generic_category(), path.string());
  struct stat info{};
  ::fstat(out.file_, &info);
  const auto size = static_cast<std::size_t>(info.st_size);
  std::size_t good = 0;
  std::array<std::byte, kHeaderSize> header{};
  while (good + kHeaderSize <= size && read_exactly(out.file_, header.data(), header.size())) {
    const auto length = base::load<std::uint32_t>(header.data());
    if (length > size - good - kHeaderSize) break;
    auto payload = std::make_shared<base::Buffer>(length);
    if (!read_exactly(out.file_, payload->data(), length)) break;
    if (base::xxh3_64(payload->view()) != base::load<std::uint64_t>(header.data() + 4)) break;
    each(payload, payload->view());
    good += kHeaderSize + length;
  }
  if (good != size && ::ftruncate(out.file_, static_cast<off_t>(good)) != 0)
    throw std::system_error(errno, std::generic_category(), path.string());
  ::lseek(out.file_, static_cast<off_t>(good), SEEK_SET);
  return out;
}

bool RecordFile::append(std::span<const base::ByteView> pieces) {
  if (file_ < 0) return false;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  std::size_t total = 0;
  std::vector<iovec> parts(1);
  for (base::ByteView piece : pieces) {
    if (piece.empty()) continue;
    XXH3_64bits_update(&state, piece.data(), piece.size());
    total += piece.size();
    parts.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  }
  std::array<std::byte, kHeaderSize> header{};
  base::store(header.data(), static_cast<std::uint32_t>(total));
  base::store(header.data() + 4, static_cast<std::uint64_t>(XXH3_64bits_digest(&state)));
  parts[0] = {header.data(), header.size()};
  return write_all(file_, std::move(parts));
}

void RecordFile::sync() {
  if (file_ >= 0) ::fdatasync(file_);
}

}  // namespace sandbox
