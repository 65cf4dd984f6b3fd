// How a command comes from a gRPC thread to the I/O thread, and its answer back.
#pragma once

#include <future>

#include <asio/post.hpp>

#include "replicator/link/supervisor.h"

namespace replicator {

template <class T>
base::Task<void> Supervisor::carry_out(std::function<base::Task<base::Result<T>>()> question,
                                       std::shared_ptr<std::promise<base::Result<T>>> promise) {
  auto asking = question();
  auto result = co_await std::move(asking);
  promise->set_value(std::move(result));
}

template <class T>
base::Result<T> Supervisor::ask(std::function<base::Task<base::Result<T>>()> question) {
  if (stopped_) return base::Error(base::ErrorCode::kStopped, "command", "", "the link has stopped");
  auto promise = std::make_shared<std::promise<base::Result<T>>>();
  auto answer = promise->get_future();
  asio::post(io_, [this, promise, question] {
    // Stopping waits for what was begun and refuses what was not.
    if (!commands_.spawn(carry_out<T>(question, promise))) {
      promise->set_value(base::Error(base::ErrorCode::kStopped, "command", "", "the link is stopping"));
    }
  });
  if (answer.wait_for(std::chrono::seconds(10)) != std::future_status::ready) {
    return base::Error(base::ErrorCode::kTimeout, "command", "",
                       "no answer within 10 s; it may still be carried out: look at status");
  }
  return answer.get();
}

}  // namespace replicator
