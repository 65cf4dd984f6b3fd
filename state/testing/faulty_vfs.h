// SQLite's default file layer with a switch: the Nth call that changes a file (write, sync, truncate, delete, create)
// fails, once or from then on. Registered as the default of the process while the object lives.
// REQUIRES: databases opened during its life are closed before it ends; one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "state/testing/faulty_store.h"

namespace state::testing {

class FaultyVfs {
 public:
  FaultyVfs();
  FaultyVfs(const FaultyVfs&) = delete;
  FaultyVfs& operator=(const FaultyVfs&) = delete;
  ~FaultyVfs();

  // Counts calls from here: the `nth` (from 1) fails with `code` (SQLITE_FULL, SQLITE_IOERR_FSYNC …). 0 = none.
  void fail(std::uint64_t nth, Failing failing, int code);
  // The `nth` call ends the process with SIGKILL, a write when half of it is written.
  void kill_at(std::uint64_t nth);
  void heal() { fail(0, Failing::kOnce, 0); }
  // Whether the Nth call came.
  bool has_failed() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace state::testing
