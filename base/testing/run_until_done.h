// Runs one coroutine to its end inside a plain TEST, on virtual or real time. Assertions belong outside the coroutine.
#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include "base/task.h"
#include "base/testing/sim_clock.h"

namespace base::testing {

// Virtual time: polls until idle, then advances the clock. Throws when the task can never end (nobody sleeps), or after
// `max_steps` advances.
template <class T>
T run_until_done(asio::io_context& io, SimClock& clock, Task<T> task, std::size_t max_steps = 10'000'000) {
  bool done = false;
  std::exception_ptr error;
  using Stored = std::conditional_t<std::is_void_v<T>, bool, T>;
  std::optional<Stored> value;
  if constexpr (std::is_void_v<T>) {
    asio::co_spawn(io, std::move(task), [&](std::exception_ptr e) {
      error = e;
      done = true;
    });
  } else {
    asio::co_spawn(io, std::move(task), [&](std::exception_ptr e, T result) {
      error = e;
      value.emplace(std::move(result));
      done = true;
    });
  }
  for (std::size_t step = 0; !done; ++step) {
    io.restart();
    io.poll();
    if (done) break;
    if (!clock.advance()) throw std::runtime_error("the task waits for something that nobody will do");
    if (step > max_steps) throw std::runtime_error("the task did not end in the steps allowed");
  }
  if (error) std::rethrow_exception(error);
  if constexpr (!std::is_void_v<T>) return std::move(*value);
}

// Real time, for tests of sockets.
template <class T>
T run_until_done(asio::io_context& io, Task<T> task) {
  bool done = false;
  std::exception_ptr error;
  using Stored = std::conditional_t<std::is_void_v<T>, bool, T>;
  std::optional<Stored> value;
  if constexpr (std::is_void_v<T>) {
    asio::co_spawn(io, std::move(task), [&](std::exception_ptr e) {
      error = e;
      done = true;
    });
  } else {
    asio::co_spawn(io, std::move(task), [&](std::exception_ptr e, T result) {
      error = e;
      value.emplace(std::move(result));
      done = true;
    });
  }
  io.restart();
  while (!done && io.run_one() > 0) {
  }
  if (error) std::rethrow_exception(error);
  if constexpr (!std::is_void_v<T>) return std::move(*value);
}

}  // namespace base::testing
