// How fast a comparison may go: a rate, and half of the time left to copying while that has work.
// Affinity: one io_context.
#pragma once

#include <algorithm>
#include <functional>

#include "base/clock.h"

namespace replicator {

class Pace {
 public:
  // `bytes_per_second`: 0 = no limit. References outlive it.
  Pace(base::Clock& clock, base::Event& stop, std::uint64_t bytes_per_second, std::function<bool()> busy)
      : clock_(clock), stop_(stop), rate_(bytes_per_second), busy_(std::move(busy)), worked_since_(clock.now()) {}

  // After `bytes` were read and before the next are asked for.
  base::Task<void> spend(std::uint64_t bytes) {
    const base::TimePoint now = clock_.now();
    base::TimePoint until = now;
    if (rate_ != 0) {
      due_ = std::max(due_, worked_since_) + base::Duration(static_cast<std::int64_t>(bytes * 1'000'000 / rate_));
      until = due_;
    }
    if (busy_()) until = std::max(until, now + std::min<base::Duration>(now - worked_since_, std::chrono::seconds(1)));
    if (until > now) {
      auto wait = base::wait_until(clock_, stop_, until);
      co_await std::move(wait);
    }
    worked_since_ = clock_.now();
  }

 private:
  base::Clock& clock_;
  base::Event& stop_;
  const std::uint64_t rate_;
  const std::function<bool()> busy_;
  base::TimePoint worked_since_;
  base::TimePoint due_{};
};

}  // namespace replicator
