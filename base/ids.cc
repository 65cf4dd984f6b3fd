#include "base/ids.h"

#include <fmt/format.h>

namespace base {

std::string MessageId::to_string() const { return fmt::format("{:016x}{:016x}", high, low); }

}  // namespace base
