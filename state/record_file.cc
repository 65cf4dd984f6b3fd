#include "state/record_file.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"

namespace state {
namespace {

constexpr std::string_view kFirstLine = "iggy-replicate-record 1\n";
constexpr std::size_t kNameMax = 200;  // of 255 that file systems allow
constexpr std::size_t kFileMax = 256UL * 1024 * 1024;

base::Error failed(const std::string& path, std::string_view what) {
  return base::Error(base::ErrorCode::kStateUnavailable, "export", path,
                     std::string(what) + ": " + std::strerror(errno), "check the folder, its owner and its room");
}

std::string escape(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                       c == '-' || (c == '.' && !out.empty());
    if (plain) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return out;
}

std::string folder_name(std::string_view name) {
  std::string out = escape(name);
  if (out.size() <= kNameMax) return out;
  return out.substr(0, kNameMax - 33) + "~" + base::Digest{base::xxh3_64(base::as_bytes(name)), 0}.to_string();
}

base::Status sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed(path, "can't open");
  const bool done = ::fsync(fd) == 0;
  ::close(fd);
  return done ? base::ok() : base::Status(failed(path, "can't flush"));
}

base::Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    const std::string parent = std::filesystem::path(path).parent_path();
    return sync_folder(parent.empty() ? "." : parent);
  }
  return errno == EEXIST ? base::ok() : base::Status(failed(path, "can't make"));
}

base::Status write_all(int fd, const std::string& path, base::ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed(path, "can't write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0 ? base::ok() : base::Status(failed(path, "can't flush"));
}

}  // namespace

base::Result<std::string> save_record(const std::string& folder, const base::PartitionKey& key,
                                      const base::Record& record) {
  const std::string digest = base::digest_of(record).to_string();
  std::string path = folder;
  RETURN_IF_ERROR(make_folder(path));
  for (const std::string& part :
       {folder_name(key.topic.stream), folder_name(key.topic.topic), std::to_string(key.partition)}) {
    path += "/" + part;
    RETURN_IF_ERROR(make_folder(path));
  }
  std::ostringstream head;
  head << kFirstLine << "stream " << escape(key.topic.stream) << "\ntopic " << escape(key.topic.topic) << "\npartition "
       << key.partition << "\noffset " << record.offset << "\nid " << record.id.to_string() << "\ntimestamp "
       << record.timestamp << "\norigin_timestamp " << record.origin_timestamp << "\ndigest " << digest
       << "\npayload_bytes " << record.payload_length << "\nheader_bytes " << record.body.size() - record.payload_length
       << "\n\n";
  const std::string text = head.str();
  base::Bytes bytes(text.size() + record.body.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  if (!record.body.empty()) std::memcpy(bytes.data() + text.size(), record.body.data(), record.body.size());

  std::string target = path + "/" + std::to_string(record.offset) + "-" + digest.substr(0, 8) + ".record";
  const std::string temporary = target + ".new";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed(temporary, "can't make");
  const base::Status written = write_all(fd, temporary, bytes);
  ::close(fd);
  if (!written) {
    ::unlink(temporary.c_str());
    return written.error();
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0) return failed(target, "can't name");
  RETURN_IF_ERROR(sync_folder(path));
  return target;
}

base::Result<base::RecordBatch> load_record(const std::string& path) {
  const auto malformed = [&](std::string what) {
    return base::Error(base::ErrorCode::kMalformed, "read", path, "not an exported record: " + std::move(what));
  };
  std::error_code missing;
  const auto size = std::filesystem::file_size(path, missing);
  if (missing) return base::Error(base::ErrorCode::kNotFound, "read", path, missing.message());
  if (size > kFileMax) return malformed("too large");
  auto buffer = std::make_shared<base::Buffer>(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(buffer->data()), static_cast<std::streamsize>(size));
  if (!file) return failed(path, "can't read");
  std::string_view rest = base::as_text(buffer->view());
  if (!rest.starts_with(kFirstLine)) return malformed("its first line is another");
  rest.remove_prefix(kFirstLine.size());
  const auto value = [&rest](std::string_view name) -> std::optional<std::string_view> {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos || !rest.starts_with(name) || rest.size() <= name.size()) return std::nullopt;
    const std::string_view found = rest.substr(name.size(), end - name.size());
    rest.remove_prefix(end + 1);
    if (!found.starts_with(' ')) return std::nullopt;
    return found.substr(1);
  };
  const auto number = [&](std::string_view name, auto& out, int radix = 10) {
    const auto text = value(name);
    if (!text) return false;
    const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), out, radix);
    return failure == std::errc() && end == text->data() + text->size();
  };
  const auto pair = [&](std::string_view name, std::uint64_t& high, std::uint64_t& low) {
    const auto text = value(name);
    if (!text || text->size() != 32) return false;
    const auto half = [&](std::size_t at, std::uint64_t& out) {
      const char* const begin = text->data() + at;
      const auto [end, failure] = std::from_chars(begin, begin + 16, out, 16);
      return failure == std::errc() && end == begin + 16;
    };
    return half(0, high) && half(16, low);
  };
  base::Record record;
  base::Digest digest;
  std::uint32_t partition = 0;
  std::uint64_t header_bytes = 0;
  const bool read = value("stream") && value("topic") && number("partition", partition) &&
                    number("offset", record.offset) && pair("id", record.id.high, record.id.low) &&
                    number("timestamp", record.timestamp) && number("origin_timestamp", record.origin_timestamp) &&
                    pair("digest", digest.high, digest.low) && number("payload_bytes", record.payload_length) &&
                    number("header_bytes", header_bytes) && rest.starts_with('\n');
  if (!read) return malformed("a line is missing or wrong");
  rest.remove_prefix(1);
  if (rest.size() < record.payload_length || rest.size() - record.payload_length != header_bytes) {
    return malformed("its lengths are wrong");
  }
  record.body = base::as_bytes(rest);
  if (base::digest_of(record) != digest) return malformed("its bytes do not have its digest");
  base::RecordBatch batch;
  batch.frame = std::move(buffer);
  batch.records.push_back(record);
  return batch;
}

}  // namespace state
