#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace base {

void check_failed(const char* what, const std::source_location& where) {
  std::fprintf(stderr, "%s:%u: broken invariant: %s\n", where.file_name(), static_cast<unsigned>(where.line()), what);
  std::abort();
}

}  // namespace base
