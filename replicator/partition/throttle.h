// A token bucket: limits what is read, in bytes and messages per second, and lets partitions that are near their end go
// before those that catch up.
//
//   reader ──take(estimate)──▶ [live waiters] [catch-up waiters] ──bucket above zero──▶ poll ──correct(what came)
//
// A poll's size is known after it: an estimate is taken before, what was really read is corrected after, and a debt is
// paid before the next one goes. So the average holds, and no burst is longer than kBurst plus one poll. After
// kLiveInARow grants to live ones a waiting catch-up one gets its turn: it is slow, not starved. set() holds at once,
// also for those that wait. Affinity: one io_context. Lifetime: outlives those that wait.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/clock.h"
#include "replicator/model/rate.h"
#include "replicator/partition/urgency.h"

namespace replicator {

class Throttle {
 public:
  static constexpr base::Duration kBurst = std::chrono::milliseconds(250);
  static constexpr int kLiveInARow = 8;

  // `name`: "link", "topic orders/events"; said of those that wait.
  Throttle(asio::io_context& io, base::Clock& clock, Rate rate = {}, std::string name = {});

  void set(Rate rate);
  const Rate& rate() const { return rate_; }
  const std::string& name() const { return name_; }
  bool limits() const { return rate_ != Rate{}; }
  // What one poll should at most ask for, so that the flow is even: kBurst of the rate, at least 1; no limit: the
  // largest number.
  std::uint64_t bytes_at_once() const;
  std::uint64_t messages_at_once() const;
  // Waits for its turn and takes so much. false when `stop` was set meanwhile: nothing was taken.
  base::Task<bool> take(std::uint64_t bytes, std::uint64_t messages, Urgency urgency, base::Event& stop);
  // What was really read, less what was taken for it; may be negative.
  void correct(std::int64_t bytes, std::int64_t messages);
  std::size_t waiting() const { return live_.size() + catch_up_.size(); }

 private:
  struct Waiter {
    explicit Waiter(asio::io_context& io) : turn(io) {}
    base::Event turn;  // it may be the first now, or the rate was changed
  };
  void refill();
  bool is_open() const;
  base::TimePoint opens_at() const;
  Waiter* first() const;
  void wake_first();

  asio::io_context& io_;
  base::Clock& clock_;
  Rate rate_;
  const std::string name_;
  double bytes_ = 0, messages_ = 0;  // tokens; negative = debt
  base::TimePoint refilled_at_;
  std::deque<Waiter*> live_, catch_up_;  // each lives in its coroutine
  int live_in_a_row_ = 0;
};

}  // namespace replicator
