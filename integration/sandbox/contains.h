// std::ranges::contains for standard libraries that lack it.
#pragma once

#include <algorithm>
#include <functional>
#include <ranges>

namespace sandbox {

template <class Range, class Value, class Projection = std::identity>
bool contains(const Range& range, const Value& value, Projection projection = {}) {
  return std::ranges::find(range, value, projection) != std::ranges::end(range);
}

}  // namespace sandbox
