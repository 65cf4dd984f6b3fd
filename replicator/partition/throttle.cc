#include "replicator/partition/throttle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <asio/experimental/awaitable_operators.hpp>

namespace replicator {
namespace {

double seconds(base::Duration duration) { return std::chrono::duration<double>(duration).count(); }

double capacity(std::uint64_t rate) { return std::max(static_cast<double>(rate) * seconds(Throttle::kBurst), 1.0); }

std::uint64_t at_once(std::uint64_t rate) {
  return rate == 0 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(capacity(rate));
}

}  // namespace

Throttle::Throttle(asio::io_context& io, base::Clock& clock, Rate rate, std::string name)
    : io_(io), clock_(clock), name_(std::move(name)), refilled_at_(clock.now()) {
  set(rate);
}

// A bucket that had no limit has neither savings nor debts.
void Throttle::set(Rate rate) {
  refill();
  if (rate_.bytes == 0 || rate.bytes == 0) bytes_ = capacity(rate.bytes);
  if (rate_.messages == 0 || rate.messages == 0) messages_ = capacity(rate.messages);
  rate_ = rate;
  bytes_ = std::min(bytes_, capacity(rate_.bytes));
  messages_ = std::min(messages_, capacity(rate_.messages));
  wake_first();
}

std::uint64_t Throttle::bytes_at_once() const { return at_once(rate_.bytes); }
std::uint64_t Throttle::messages_at_once() const { return at_once(rate_.messages); }

void Throttle::refill() {
  const double passed = seconds(clock_.now() - refilled_at_);
  refilled_at_ = clock_.now();
  bytes_ = std::min(bytes_ + passed * static_cast<double>(rate_.bytes), capacity(rate_.bytes));
  messages_ = std::min(messages_ + passed * static_cast<double>(rate_.messages), capacity(rate_.messages));
}

bool Throttle::is_open() const { return (rate_.bytes == 0 || bytes_ > 0) && (rate_.messages == 0 || messages_ > 0); }

// When both are above zero, as things are.
base::TimePoint Throttle::opens_at() const {
  double wait = 0;
  if (rate_.bytes != 0 && bytes_ <= 0) wait = std::max(wait, -bytes_ / static_cast<double>(rate_.bytes));
  if (rate_.messages != 0 && messages_ <= 0) wait = std::max(wait, -messages_ / static_cast<double>(rate_.messages));
  return refilled_at_ + base::Duration(static_cast<std::int64_t>(std::ceil(wait * 1e6)) + 1);
}

Throttle::Waiter* Throttle::first() const {
  if (!live_.empty() && (catch_up_.empty() || live_in_a_row_ < kLiveInARow)) return live_.front();
  return catch_up_.empty() ? nullptr : catch_up_.front();
}

void Throttle::wake_first() {
  if (Waiter* const next = first()) next->turn.set();
}

base::Task<bool> Throttle::take(std::uint64_t bytes, std::uint64_t messages, Urgency urgency, base::Event& stop) {
  using namespace asio::experimental::awaitable_operators;
  refill();
  bool granted = true;
  if (waiting() > 0 || !is_open()) {
    Waiter waiter(io_);
    auto& queue = urgency == Urgency::kLive ? live_ : catch_up_;
    queue.push_back(&waiter);
    wake_first();  // who was the first may be no longer
    while (!stop.is_set()) {
      refill();
      if (first() == &waiter && is_open()) break;
      waiter.turn.reset();
      const base::TimePoint until = first() == &waiter ? opens_at() : base::TimePoint::max();
      if (until == base::TimePoint::max()) {
        auto waiting_for_turn = waiter.turn.wait() || stop.wait();
        co_await std::move(waiting_for_turn);
      } else {
        auto waiting_for_tokens = base::wait_until(clock_, waiter.turn, until) || stop.wait();
        co_await std::move(waiting_for_tokens);
      }
    }
    granted = !stop.is_set();
    std::erase(queue, &waiter);
  }
  if (granted) {
    live_in_a_row_ = urgency == Urgency::kLive && !catch_up_.empty() ? live_in_a_row_ + 1 : 0;
    bytes_ -= static_cast<double>(bytes);
    messages_ -= static_cast<double>(messages);
  }
  wake_first();
  co_return granted;
}

void Throttle::correct(std::int64_t bytes, std::int64_t messages) {
  refill();
  bytes_ -= static_cast<double>(bytes);
  messages_ -= static_cast<double>(messages);
  wake_first();
}

}  // namespace replicator
