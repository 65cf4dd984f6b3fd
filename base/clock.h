// Time as an interface, so that everything above runs on virtual time in tests. No other file asks the system for time,
// sleeps or draws random numbers, except the transport in iggy/ and the store thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/task.h"

namespace base {

using Duration = std::chrono::microseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic. Never goes back.
  virtual TimePoint now() const = 0;
  // Wall clock, µs since the Unix epoch. May step in both directions: for display and comparison with servers only.
  virtual std::uint64_t wall_micros() const = 0;
  // Returns at `deadline`, or early when the awaiting coroutine is cancelled (by `||`).
  virtual Task<void> sleep_until(TimePoint deadline) = 0;

  Task<void> sleep_for(Duration duration) { return sleep_until(now() + duration); }
};

// Waits for the event or the deadline, whichever is first. The caller looks at its own condition afterwards.
Task<void> wait_until(Clock& clock, Event& event, TimePoint deadline);

// The real one. `io` must outlive it.
std::unique_ptr<Clock> system_clock(asio::io_context& io);

// Wall clock for threads without a Clock (store thread, command line).
std::uint64_t system_wall_micros();

}  // namespace base
