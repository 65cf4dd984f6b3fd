// Coroutines, and the three primitives that everything waits on: Event, TaskGroup, and a clock that can be virtual.
//
// House rule: name it, then await it (`auto r = co_await f(); if (!r) ...`), never a temporary inside a co_await
// expression. Affinity: everything here belongs to one io_context with one thread.
#pragma once

#include <functional>
#include <string>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/result.h"

namespace base {

template <class T>
using Task = asio::awaitable<T>;

// Manual-reset event. wait() returns at once when set. Any number of waiters; a waiter re-checks its own condition.
class Event {
 public:
  explicit Event(asio::io_context& io) : timer_(io, asio::steady_timer::time_point::max()) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void set();    // wakes all waiters; later wait() calls return at once until reset()
  void reset();  // later wait() calls wait
  void pulse();  // wakes those that wait now, and leaves it as it was
  bool is_set() const { return set_; }
  // Returns when set or pulsed, or early when the awaiting coroutine is cancelled (by `||`): look at your condition.
  Task<void> wait();

 private:
  asio::steady_timer timer_;  // never expires; cancel() is the wake-up
  bool set_ = false;
};

// Owns background coroutines: spawn() refuses after close() began, close() completes when the last one has ended.
// An exception that escapes a task is a bug of ours: the process says which and aborts.
class TaskGroup {
 public:
  explicit TaskGroup(asio::io_context& io) : io_(io), idle_(io) { idle_.set(); }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();  // REQUIRES: no task is running.

  // false when closed: `task` is not started.
  bool spawn(Task<void> task);
  Task<void> close();
  std::size_t running() const { return running_; }

 private:
  Task<void> run(Task<void> task);
  asio::io_context& io_;
  Event idle_;
  std::size_t running_ = 0;
  bool closed_ = false;
};

}  // namespace base
