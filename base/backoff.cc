#include "base/backoff.h"

#include <algorithm>

namespace base {

Duration backoff_delay(const BackoffPolicy& policy, std::uint32_t attempt, std::uint64_t random) {
  if (attempt == 0) return std::min(policy.initial, policy.max);
  Duration step = policy.initial;
  for (std::uint32_t i = 0; i < attempt && step < policy.max; ++i) step *= 2;
  step = std::min(step, policy.max);
  const auto half = static_cast<std::uint64_t>(step.count()) / 2;
  return Duration(static_cast<Duration::rep>(half + (half == 0 ? 0 : random % (half + 1))));
}

}  // namespace base
