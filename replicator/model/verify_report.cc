#include "replicator/model/verify_report.h"

#include <array>

namespace replicator {

std::string_view to_string(DifferenceKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"missing", "extra", "different", "order", "duplicate"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(Verified verdict) {
  constexpr std::array<std::string_view, 4> kNames = {"equal", "different", "unreachable", "incomplete"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

}  // namespace replicator
