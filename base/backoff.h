// Capped exponential backoff with jitter. Pure: attempt and random number in, delay out.
#pragma once

#include <cstdint>
#include <random>

#include "base/clock.h"

namespace base {

struct BackoffPolicy {
  Duration initial = std::chrono::seconds(1);  // the first delay is exactly this, without jitter
  Duration max = std::chrono::seconds(30);     // no delay is longer
};

// Delay before attempt number `attempt` (0 = first retry). Doubles each time up to `max`; from the second on, `random`
// picks from the upper half of the step, so that many partitions do not return at once.
Duration backoff_delay(const BackoffPolicy& policy, std::uint32_t attempt, std::uint64_t random);

// Counts attempts; seeded, so that a simulation replays.
class Backoff {
 public:
  Backoff(BackoffPolicy policy, std::uint64_t seed) : policy_(policy), random_(seed) {}
  Duration next() { return backoff_delay(policy_, attempt_++, random_()); }
  void reset() { attempt_ = 0; }
  std::uint32_t attempts() const { return attempt_; }

 private:
  BackoffPolicy policy_;
  std::mt19937_64 random_;
  std::uint32_t attempt_ = 0;
};

}  // namespace base
