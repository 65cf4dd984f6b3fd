// A fresh folder that is removed with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace state::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "iggy-replicate-XXXXXX").string();
    base::check(::mkdtemp(name.data()) != nullptr, "a temporary folder can be made");
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace state::testing
