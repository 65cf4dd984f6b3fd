// The three positions of a partition and their only legal moves: committed <= acked <= polled, each the next upstream
// offset.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace replicator {

class Positions {
 public:
  // Everything below `watermark` is done and durable; nothing is in flight.
  void restart(std::uint64_t watermark) { committed_ = acked_ = polled_ = watermark; }

  void polled(std::uint64_t end) {
    base::check(end >= polled_, "polled never goes back");
    polled_ = end;
  }
  void acked(std::uint64_t end) {
    base::check(end >= acked_ && end <= polled_, "acked moves forward, up to polled");
    acked_ = end;
  }
  void committed(std::uint64_t end) {
    base::check(end >= committed_ && end <= acked_, "committed moves forward, up to acked");
    committed_ = end;
  }
  // What was polled and not acked is dropped; it will be polled again.
  void forget_unacked() { polled_ = acked_; }

  std::uint64_t polled() const { return polled_; }
  std::uint64_t acked() const { return acked_; }
  std::uint64_t committed() const { return committed_; }

 private:
  std::uint64_t committed_ = 0;
  std::uint64_t acked_ = 0;
  std::uint64_t polled_ = 0;
};

}  // namespace replicator
