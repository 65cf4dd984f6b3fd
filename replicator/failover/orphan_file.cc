#include "replicator/failover/orphan_file.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state/state_file.h"

namespace replicator {
namespace {

constexpr std::size_t kBuffer = 1024UL * 1024;

base::Error failed(const std::string& path, const char* what) {
  return {base::ErrorCode::kStateUnavailable, "export", path, fmt::format("{}: {}", what, std::strerror(errno))};
}

std::string base64(base::ByteView bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // and the terminator that EVP_EncodeBlock writes
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

std::string orphan_line(const base::PartitionKey& key, const base::Record& record) {
  return fmt::format(
      R"({{"stream":{},"topic":{},"partition":{},"offset":{},"id":"{}","timestamp":{},"origin_timestamp":{},"payload":"{}","headers":"{}"}})",
      quoted(key.topic.stream), quoted(key.topic.topic), key.partition, record.offset, record.id.to_string(),
      record.timestamp, record.origin_timestamp, base64(record.payload()), base64(record.headers()));
}

base::Result<OrphanFile> OrphanFile::create(const std::string& folder, std::uint64_t now) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failed(folder, "can't make the folder");
  const std::time_t seconds = static_cast<std::time_t>(now / 1'000'000);
  const std::string path =
      fmt::format("{}/orphans-{:%Y%m%dT%H%M%S}-{:06}.jsonl", folder, fmt::gmtime(seconds), now % 1'000'000);
  const int file = ::open((path + ".part").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return failed(path, "can't make the file");
  return OrphanFile(file, path);
}

OrphanFile::OrphanFile(OrphanFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)), buffer_(std::move(other.buffer_)) {}

OrphanFile::~OrphanFile() {
  if (file_ >= 0) ::close(file_);
}

base::Status OrphanFile::add(const base::PartitionKey& key, const base::Record& record) {
  buffer_ += orphan_line(key, record) + "\n";
  if (buffer_.size() < kBuffer) return base::ok();
  return flush();
}

base::Status OrphanFile::flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t written = ::write(file_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0) return failed(path_, "can't write");
    done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
  return base::ok();
}

base::Status OrphanFile::finish() {
  RETURN_IF_ERROR(flush());
  return state::publish_file(path_ + ".part", path_);
}

}  // namespace replicator
