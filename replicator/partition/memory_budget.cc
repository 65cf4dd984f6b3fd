#include "replicator/partition/memory_budget.h"

#include <algorithm>

#include <asio/experimental/awaitable_operators.hpp>

namespace replicator {

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this != &other) {
    if (budget_ != nullptr) budget_->release(bytes_);
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = other.bytes_;
  }
  return *this;
}

Permit::~Permit() {
  if (budget_ != nullptr) budget_->release(bytes_);
}

void Permit::resize(std::size_t bytes) {
  if (budget_ == nullptr) return;
  if (bytes < bytes_) {
    budget_->release(bytes_ - bytes);
  } else {
    budget_->used_ += bytes - bytes_;
  }
  bytes_ = bytes;
}

base::Task<Permit> MemoryBudget::acquire(std::size_t bytes, base::Event& stop, Urgency urgency) {
  const auto catches_up = [](const auto& each) { return each->urgency == Urgency::kCatchUp; };
  // Behind those that are as urgent.
  const auto place = urgency == Urgency::kLive ? std::ranges::find_if(waiters_, catches_up) : waiters_.end();
  if (place == waiters_.begin() && fits(bytes, urgency)) {
    used_ += bytes;
    co_return Permit(*this, bytes);
  }
  using namespace asio::experimental::awaitable_operators;
  auto waiter = std::make_shared<Waiter>(io_);
  waiter->bytes = bytes;
  waiter->urgency = urgency;
  waiters_.insert(place, waiter);
  auto turn_or_stop = waiter->turn.wait() || stop.wait();
  co_await std::move(turn_or_stop);
  if (waiter->turn.is_set()) co_return Permit(*this, bytes);  // granted: the bytes are ours already
  std::erase(waiters_, waiter);
  grant();
  co_return Permit();
}

void MemoryBudget::set_total(std::size_t bytes) {
  total_ = bytes;
  grant();
}

void MemoryBudget::release(std::size_t bytes) {
  used_ -= bytes;
  grant();
}

void MemoryBudget::grant() {
  while (!waiters_.empty() && fits(waiters_.front()->bytes, waiters_.front()->urgency)) {
    used_ += waiters_.front()->bytes;
    waiters_.front()->turn.set();
    waiters_.pop_front();
  }
}

}  // namespace replicator
