// A Store that fails its Nth call, once or from then on, before anything was changed. For Nth-failure loops: N = 1, 2,
// 3 … until the scenario passes untouched.
#pragma once

#include <cstdint>
#include <utility>

#include "state/store.h"

namespace state::testing {

enum class Failing { kOnce, kFromThenOn };

class FaultyStore final : public Store {
 public:
  // REQUIRES: `store` outlives it.
  explicit FaultyStore(Store& store) : store_(store) {}

  // Counts calls from here: the `nth` (from 1) fails with `error`. 0 = none.
  void fail(std::uint64_t nth, Failing failing,
            base::Error error = {base::ErrorCode::kStateUnavailable, "write", "state", "disk full (injected)"}) {
    calls_ = 0;
    nth_ = nth;
    failing_ = failing;
    error_ = std::move(error);
  }
  // Whether the Nth call came: false = the scenario passed untouched.
  bool has_failed() const { return nth_ != 0 && calls_ >= nth_; }
  std::uint64_t calls() const { return calls_; }

  base::Result<std::optional<LinkRow>> link() override {
    if (fails()) return error_;
    return store_.link();
  }
  base::Result<std::vector<PartitionRow>> partitions() override {
    if (fails()) return error_;
    return store_.partitions();
  }
  base::Result<std::optional<PartitionRow>> partition(const base::PartitionKey& key) override {
    if (fails()) return error_;
    return store_.partition(key);
  }
  base::Result<std::vector<RangeRow>> ranges(const base::PartitionKey& key, std::uint64_t incarnation) override {
    if (fails()) return error_;
    return store_.ranges(key, incarnation);
  }
  base::Result<std::vector<GapRow>> gaps() override {
    if (fails()) return error_;
    return store_.gaps();
  }
  base::Result<std::vector<EventRow>> events(std::size_t newest) override {
    if (fails()) return error_;
    return store_.events(newest);
  }
  base::Result<std::vector<VerifiedRow>> verified() override {
    if (fails()) return error_;
    return store_.verified();
  }
  base::Result<std::vector<ConsumerRow>> consumers() override {
    if (fails()) return error_;
    return store_.consumers();
  }
  base::Result<Applied> apply(const Transaction& transaction) override {
    if (fails()) return error_;
    return store_.apply(transaction);
  }

 private:
  bool fails() {
    ++calls_;
    return nth_ != 0 && (failing_ == Failing::kOnce ? calls_ == nth_ : calls_ >= nth_);
  }

  Store& store_;
  std::uint64_t calls_ = 0;
  std::uint64_t nth_ = 0;
  Failing failing_ = Failing::kOnce;
  base::Error error_{base::ErrorCode::kStateUnavailable, "write", "state", "injected"};
};

}  // namespace state::testing
