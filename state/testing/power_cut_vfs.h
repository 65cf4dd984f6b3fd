// SQLite's default file layer on a machine that can lose its power: what was written and not synced is gone afterwards.
// Also the end of a process: from freeze() on, nothing that it still calls reaches a file.
//
//   vfs.freeze_after(5);          // the process dies inside its fifth write from here
//   ... is_frozen() -> end the process, close its databases ...
//   vfs.cut_power(keep);          // of the unsynced writes only the oldest `keep` reached the disk (0 = none)
//
// Syncs cost nothing. Registered as the default of the process while the object lives. REQUIRES: as FaultyVfs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace state::testing {

class PowerCutVfs {
 public:
  PowerCutVfs();
  PowerCutVfs(const PowerCutVfs&) = delete;
  PowerCutVfs& operator=(const PowerCutVfs&) = delete;
  ~PowerCutVfs();

  // Concerns the files below `folder` alone: one folder is one machine.
  void freeze(const std::string& folder);
  void freeze_after(const std::string& folder, std::uint64_t writes);  // the last of them is torn
  bool is_frozen(const std::string& folder) const;
  std::uint64_t unsynced(const std::string& folder) const;  // writes
  // Takes back what was not synced, but for the oldest `keep` writes. REQUIRES: frozen, databases closed.
  void cut_power(const std::string& folder, std::uint64_t keep);
  void thaw(const std::string& folder);  // the machine is on again
  void forget(const std::string& folder);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace state::testing
