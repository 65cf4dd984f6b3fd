// Our own invariants, always on. What a peer, a disk or a user can cause is a Result, never a check.
#pragma once

#include <source_location>

namespace base {

// Prints file, line and `what`, then aborts. Never returns.
[[noreturn]] void check_failed(const char* what, const std::source_location& where);

// REQUIRES: `condition` holds whatever any peer, disk or user does.
inline void check(bool condition, const char* what, std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    check_failed(what, where);
}

}  // namespace base
