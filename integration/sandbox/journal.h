// The metadata of a data folder: a map from key to bytes whose changes are appended to one file, so that a kill loses
// nothing that was acknowledged. Compacted when opened.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "integration/sandbox/record_file.h"

namespace sandbox {

class Journal {
 public:
  Journal() = default;  // in memory only
  // Throws std::system_error when the file can't be used.
  explicit Journal(const std::filesystem::path& path);

  void put(std::string key, base::Bytes value);
  void erase(std::string_view key);
  void erase_prefix(std::string_view prefix);
  const base::Bytes* find(std::string_view key) const;
  void for_each(std::string_view prefix,
                const std::function<void(std::string_view rest_of_key, base::ByteView value)>& each) const;

 private:
  void log(std::string_view key, const base::Bytes* value);
  RecordFile file_;
  std::map<std::string, base::Bytes, std::less<>> values_;
};

}  // namespace sandbox
