#include "base/task.h"

#include <exception>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>

#include "base/check.h"

namespace base {

void Event::set() {
  set_ = true;
  timer_.cancel();
}

void Event::reset() { set_ = false; }

void Event::pulse() { timer_.cancel(); }

Task<void> Event::wait() {
  if (set_) co_return;
  auto completion = timer_.async_wait(asio::experimental::as_tuple(asio::use_awaitable));
  co_await std::move(completion);
}

TaskGroup::~TaskGroup() { check(running_ == 0, "a task group is destroyed after close()"); }

bool TaskGroup::spawn(Task<void> task) {
  if (closed_) return false;
  ++running_;
  idle_.reset();
  asio::co_spawn(io_, run(std::move(task)), asio::detached);
  return true;
}

Task<void> TaskGroup::run(Task<void> task) {
  try {
    auto running = std::move(task);
    co_await std::move(running);
  } catch (const std::exception& escaped) {
    check_failed(escaped.what(), std::source_location::current());
  }
  if (--running_ == 0) idle_.set();
}

Task<void> TaskGroup::close() {
  closed_ = true;
  auto idle = idle_.wait();
  co_await std::move(idle);
}

}  // namespace base
