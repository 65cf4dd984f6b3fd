#include "base/clock.h"

#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/use_awaitable.hpp>

namespace base {

namespace {

class SystemClock final : public Clock {
 public:
  explicit SystemClock(asio::io_context& io) : io_(io) {}

  TimePoint now() const override { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }
  std::uint64_t wall_micros() const override { return system_wall_micros(); }
  Task<void> sleep_until(TimePoint deadline) override {
    asio::steady_timer timer(io_, deadline);
    auto completion = timer.async_wait(asio::experimental::as_tuple(asio::use_awaitable));
    co_await std::move(completion);
  }

 private:
  asio::io_context& io_;
};

}  // namespace

Task<void> wait_until(Clock& clock, Event& event, TimePoint deadline) {
  using namespace asio::experimental::awaitable_operators;
  if (event.is_set() || clock.now() >= deadline) co_return;
  auto either = event.wait() || clock.sleep_until(deadline);
  co_await std::move(either);
}

std::unique_ptr<Clock> system_clock(asio::io_context& io) { return std::make_unique<SystemClock>(io); }

std::uint64_t system_wall_micros() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace base
