#include "replicator/drill/ack_journal.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace replicator {

base::Result<AckJournal> AckJournal::create(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return base::Error(base::ErrorCode::kStateUnavailable, "create journal", path, std::strerror(errno));
  return AckJournal(file);
}

AckJournal::AckJournal(AckJournal&& other) noexcept
    : file_(std::exchange(other.file_, -1)), entries_(std::move(other.entries_)) {}

AckJournal::~AckJournal() {
  if (file_ >= 0) ::close(file_);
}

base::Status AckJournal::add(std::uint32_t partition, std::uint64_t first, const std::vector<base::Record>& records,
                             std::uint64_t at, bool certain) {
  std::string lines;
  for (std::size_t i = 0; i < records.size(); ++i) {
    JournalEntry& entry = entries_.emplace_back();
    entry = {partition, first + i, base::digest_of(records[i]), at, certain};
    lines += fmt::format("{}{} {} {} {} {}\n", certain ? "" : "? ", partition, entry.sequence,
                         records[i].id.to_string(), entry.digest.to_string(), at);
  }
  for (std::size_t done = 0; done < lines.size();) {
    const ssize_t written = ::write(file_, lines.data() + done, lines.size() - done);
    if (written < 0) return base::Error(base::ErrorCode::kStateUnavailable, "write journal", "", std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
  if (::fsync(file_) != 0) return base::Error(base::ErrorCode::kStateUnavailable, "write journal", "", "fsync fails");
  return base::ok();
}

}  // namespace replicator
