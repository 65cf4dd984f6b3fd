// The result of a call that goes on in the background. The task shares it, so a test may end before its calls do.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/task.h"

namespace iggy::testing {

template <class T>
class Late {
 public:
  bool has_value() const { return value_->has_value(); }
  explicit operator bool() const { return has_value(); }
  T& operator*() const { return **value_; }
  T* operator->() const { return &**value_; }

  // Runs `task` and keeps its result here.
  base::Task<void> keep(base::Task<T> task) const { return run(std::move(task), value_); }

 private:
  static base::Task<void> run(base::Task<T> task, std::shared_ptr<std::optional<T>> into) {
    auto running = std::move(task);
    into->emplace(co_await std::move(running));
  }
  std::shared_ptr<std::optional<T>> value_ = std::make_shared<std::optional<T>>();
};

}  // namespace iggy::testing
