// Result<T>: a value or an Error. Must be looked at.
#pragma once

#include <expected>
#include <utility>

#include "base/error.h"

namespace base {

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  // So that `return Error(...)` works.
  Result(Error error)
      : std::expected<T, Error>(std::unexpected(std::move(error))) {}  // NOLINT(google-explicit-constructor)
};

// What a function returns that only succeeds or fails: `return base::ok();`
using Status = Result<void>;
inline Status ok() { return {}; }

}  // namespace base

// Returns the error from the enclosing function, or goes on. REQUIRES: the function returns a Result.
#define RETURN_IF_ERROR(expression)                                               \
  do {                                                                            \
    if (auto status_ = (expression); !status_) return std::move(status_).error(); \
  } while (false)
// The same inside a coroutine. `result` must be a named variable: name it, then await it.
#define CO_RETURN_IF_ERROR(result)                      \
  do {                                                  \
    if (!(result)) co_return std::move(result).error(); \
  } while (false)
