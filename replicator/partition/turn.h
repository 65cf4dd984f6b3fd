// One at a time, in order of asking as good as any: keeps the durable row and its copy in memory from being changed by
// two coroutines at once (an operator's command while a resync saves).
//
//   auto taking = turn.take();
//   const auto held = co_await std::move(taking);
//
// Affinity: one io_context. Lifetime: outlives what is held.
#pragma once

#include <utility>

#include "base/task.h"

namespace replicator {

class Turn {
 public:
  class [[nodiscard]] Held {
   public:
    explicit Held(Turn& turn) : turn_(&turn) {}
    Held(Held&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (turn_ != nullptr) turn_->free_.set();
    }

   private:
    Turn* turn_;
  };

  explicit Turn(asio::io_context& io) : free_(io) { free_.set(); }
  base::Task<Held> take() {
    while (!free_.is_set()) {
      auto waiting = free_.wait();
      co_await std::move(waiting);
    }
    free_.reset();
    co_return Held(*this);
  }

 private:
  base::Event free_;
};

}  // namespace replicator
