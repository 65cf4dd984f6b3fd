// Limits a wait. The task is cancelled when the deadline comes first: it must not own anything that a cut leaves
// half-done.
#pragma once

#include <utility>

#include <asio/experimental/awaitable_operators.hpp>

#include "base/clock.h"
#include "base/result.h"

namespace iggy {

// The task's result, or `late` at the deadline.
template <class T>
base::Task<base::Result<T>> with_deadline(base::Clock& clock, base::TimePoint deadline,
                                          base::Task<base::Result<T>> task, base::Error late) {
  using namespace asio::experimental::awaitable_operators;
  if (clock.now() >= deadline) co_return late;
  auto race = std::move(task) || clock.sleep_until(deadline);
  auto outcome = co_await std::move(race);
  if (outcome.index() == 1) co_return late;
  co_return std::get<0>(std::move(outcome));
}

}  // namespace iggy
