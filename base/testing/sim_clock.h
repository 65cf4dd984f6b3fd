// Virtual time: sleepers wait in a queue ordered by (deadline, serial), and advance() wakes the earliest. Same calls,
// same order. Affinity: one io_context, one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>

#include "base/clock.h"

namespace base::testing {

class SimClock final : public Clock {
 public:
  explicit SimClock(asio::io_context& io) : io_(io), now_(std::chrono::hours(1)) {}

  TimePoint now() const override { return now_; }
  // Starts at 2026-01-01 so that a wall time is never mistaken for a small number.
  std::uint64_t wall_micros() const override {
    return 1'767'225'600'000'000ULL + static_cast<std::uint64_t>((now_.time_since_epoch() + wall_step_).count());
  }
  Task<void> sleep_until(TimePoint deadline) override {
    if (deadline <= now_) deadline = now_;
    const auto key = std::make_pair(deadline, serial_++);
    auto timer = std::make_shared<asio::steady_timer>(io_, asio::steady_timer::time_point::max());
    sleepers_.emplace(key, timer);
    const Forget forget{this, key};
    auto completion = timer->async_wait(asio::experimental::as_tuple(asio::use_awaitable));
    co_await std::move(completion);
  }

  // Moves time to the earliest sleeper and wakes it. false when nobody sleeps.
  bool advance() {
    if (sleepers_.empty()) return false;
    const auto earliest = sleepers_.begin();
    if (earliest->first.first > now_) now_ = earliest->first.first;
    earliest->second->cancel();
    sleepers_.erase(earliest);
    return true;
  }
  // For several clocks that go together: the earliest deadline, and a move that wakes nobody.
  std::optional<TimePoint> next() const {
    return sleepers_.empty() ? std::nullopt : std::optional(sleepers_.begin()->first.first);
  }
  void move_to(TimePoint now) { now_ = std::max(now_, now); }
  void step_wall(Duration by) { wall_step_ += by; }
  std::size_t sleepers() const { return sleepers_.size(); }

 private:
  using Key = std::pair<TimePoint, std::uint64_t>;
  // A cancelled sleeper leaves the queue at once: time must not wait for it.
  struct Forget {
    SimClock* clock;
    Key key;
    ~Forget() { clock->sleepers_.erase(key); }
  };
  asio::io_context& io_;
  TimePoint now_;
  Duration wall_step_{};
  std::uint64_t serial_ = 0;
  std::map<Key, std::shared_ptr<asio::steady_timer>> sleepers_;
};

}  // namespace base::testing
