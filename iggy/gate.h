// Lets a limited number of holders in, the others in the order in which they came.
// Affinity: one io_context, one thread. Must outlive its permits and its waiters.
#pragma once

#include <cstddef>
#include <list>
#include <utility>

#include "base/task.h"

namespace iggy {

class Gate {
 public:
  // A place inside, given back by the destructor. Empty after close().
  class Permit {
   public:
    Permit() = default;
    explicit Permit(Gate* gate) : gate_(gate) {}
    Permit(Permit&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Permit() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    Gate* gate_ = nullptr;
  };

  Gate(asio::io_context& io, std::size_t places) : io_(io), free_(places) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Waits for a place. A waiter that is cancelled passes its turn on.
  base::Task<Permit> enter();
  // Lets everybody through with an empty permit, now and later.
  void close();
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiter;
  void leave();
  asio::io_context& io_;
  std::size_t free_;
  std::list<Waiter*> waiting_;
  bool closed_ = false;
};

}  // namespace iggy
