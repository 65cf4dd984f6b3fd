// An append-only file of checksummed records: | length u32 | XXH3-64 u64 | payload |. A torn or damaged tail, as a kill
// in the middle of a write leaves it, is cut off when the file is read.
#pragma once

#include <filesystem>
#include <functional>
#include <span>

#include "base/bytes.h"

namespace sandbox {

class RecordFile {
 public:
  RecordFile() = default;  // nothing open: append() fails
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&& other) noexcept;
  ~RecordFile();

  // Opens or creates `path`, calls `each` for every whole record in order and cuts off the rest. Throws
  // std::system_error when the file can't be opened. The buffer given to `each` may be kept.
  static RecordFile open(const std::filesystem::path& path,
                         const std::function<void(base::BufferPtr buffer, base::ByteView payload)>& each);

  // One record from several pieces; in the page cache when it returns, so that it survives our death but not the
  // machine's. false when the disk refused it: the file may then end in a torn record.
  bool append(std::span<const base::ByteView> pieces);
  void sync();
  bool is_open() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

}  // namespace sandbox
