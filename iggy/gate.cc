#include "iggy/gate.h"

namespace iggy {

struct Gate::Waiter {
  explicit Waiter(Gate& g) : gate(g), turn(g.io_) { gate.waiting_.push_back(this); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    if (granted) {
      gate.leave();
    } else {
      gate.waiting_.remove(this);
    }
  }
  Permit take() {
    granted = false;
    return Permit(&gate);
  }
  Gate& gate;
  base::Event turn;
  bool granted = false;  // has a place, and is no longer in the queue
};

base::Task<Gate::Permit> Gate::enter() {
  if (closed_) co_return Permit();
  if (free_ > 0 && waiting_.empty()) {
    --free_;
    co_return Permit(this);
  }
  Waiter waiter(*this);
  while (!waiter.granted && !closed_) {
    auto waiting = waiter.turn.wait();
    co_await std::move(waiting);
  }
  if (!waiter.granted) co_return Permit();
  Permit permit = waiter.take();
  co_return permit;
}

void Gate::leave() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  Waiter* next = waiting_.front();
  waiting_.pop_front();
  next->granted = true;
  next->turn.set();
}

void Gate::close() {
  closed_ = true;
  for (Waiter* waiter : waiting_) waiter->turn.set();
}

}  // namespace iggy
