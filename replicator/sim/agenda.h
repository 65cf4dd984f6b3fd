// What happens outside of every process, by virtual time: requests that arrive, servers that come back, retention. One
// order for all of it: same seed, same order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/testing/sim_clock.h"

namespace replicator::sim {

class Agenda {
 public:
  explicit Agenda(base::testing::SimClock& clock) : clock_(clock) {}

  void at(base::TimePoint when, std::function<void()> what) {
    entries_.emplace(std::pair(std::max(when, clock_.now()), serial_++), std::move(what));
  }
  void in(base::Duration delay, std::function<void()> what) { at(clock_.now() + delay, std::move(what)); }
  std::optional<base::TimePoint> next() const {
    return entries_.empty() ? std::nullopt : std::optional(entries_.begin()->first.first);
  }
  // Does what is due, also what becomes due by it.
  void run_due() {
    while (!entries_.empty() && entries_.begin()->first.first <= clock_.now()) {
      auto entry = entries_.extract(entries_.begin());
      entry.mapped()();
    }
  }
  base::testing::SimClock& clock() { return clock_; }

 private:
  base::testing::SimClock& clock_;
  std::uint64_t serial_ = 0;
  std::map<std::pair<base::TimePoint, std::uint64_t>, std::function<void()>> entries_;
};

// splitmix64: the same numbers on every platform and library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  base::Duration micros(std::uint64_t low, std::uint64_t high) {
    return base::Duration(static_cast<std::int64_t>(between(low, high)));
  }
  template <class List>
  const auto& of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace replicator::sim
