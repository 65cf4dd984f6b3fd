// Bytes polled and not yet acked, shared by all partitions of the process. A full budget means "do not poll".
//
// Fair: requests are served in the order they came, so a large one is not starved by small ones; live ones before those
// that catch up, which leave a quarter of the budget to them. A request above the whole budget is granted alone, when
// nothing else is out: one message may exceed it. Affinity: one io_context.
// Lifetime: outlives its permits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "base/task.h"
#include "replicator/partition/urgency.h"

namespace replicator {

class MemoryBudget;

// Returns its bytes when destroyed. Move-only.
class Permit {
 public:
  Permit() = default;
  Permit(MemoryBudget& budget, std::size_t bytes) : budget_(&budget), bytes_(bytes) {}
  Permit(Permit&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
  Permit& operator=(Permit&& other) noexcept;
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;
  ~Permit();
  // Sets what is really held, once it is known. May put the budget into debt: nothing is granted until it is paid back.
  void resize(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  MemoryBudget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

class MemoryBudget {
 public:
  MemoryBudget(asio::io_context& io, std::size_t bytes) : io_(io), total_(bytes) {}

  // Waits until `bytes` fit. Empty (0 bytes) when `stop` was set while waiting: look at it.
  base::Task<Permit> acquire(std::size_t bytes, base::Event& stop, Urgency urgency = Urgency::kLive);
  // Holds at once. What is out above it comes back first.
  void set_total(std::size_t bytes);
  std::size_t used() const { return used_; }
  std::size_t total() const { return total_; }

 private:
  friend class Permit;
  struct Waiter {
    explicit Waiter(asio::io_context& io) : turn(io) {}
    base::Event turn;
    std::size_t bytes = 0;
    Urgency urgency = Urgency::kLive;
  };
  bool fits(std::size_t bytes, Urgency urgency) const {
    const std::size_t share = urgency == Urgency::kLive ? total_ : total_ - total_ / 4;
    return used_ == 0 || used_ + bytes <= share;
  }
  void release(std::size_t bytes);
  void grant();

  asio::io_context& io_;
  std::size_t total_;
  std::size_t used_ = 0;
  std::deque<std::shared_ptr<Waiter>> waiters_;
};

}  // namespace replicator
