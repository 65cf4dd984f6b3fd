// An AsyncStore that calls the Store at once, on the caller's thread: for simulation on virtual time, where a second
// thread would make runs differ.
#pragma once

#include "state/async_store.h"

namespace state {

class InlineStore final : public AsyncStore {
 public:
  // REQUIRES: `store` outlives it.
  explicit InlineStore(Store& store) : store_(store) {}

  base::Task<base::Result<std::optional<LinkRow>>> link() override { co_return store_.link(); }
  base::Task<base::Result<std::vector<PartitionRow>>> partitions() override { co_return store_.partitions(); }
  base::Task<base::Result<std::optional<PartitionRow>>> partition(base::PartitionKey key) override {
    co_return store_.partition(key);
  }
  base::Task<base::Result<std::vector<RangeRow>>> ranges(base::PartitionKey key, std::uint64_t incarnation) override {
    co_return store_.ranges(key, incarnation);
  }
  base::Task<base::Result<std::vector<GapRow>>> gaps() override { co_return store_.gaps(); }
  base::Task<base::Result<std::vector<EventRow>>> events(std::size_t newest) override {
    co_return store_.events(newest);
  }
  base::Task<base::Result<std::vector<VerifiedRow>>> verified() override { co_return store_.verified(); }
  base::Task<base::Result<std::vector<ConsumerRow>>> consumers() override { co_return store_.consumers(); }
  base::Task<base::Result<OffsetMap>> offset_map(base::PartitionKey key) override {
    co_return load_offset_map(store_, key);
  }
  base::Task<base::Result<Applied>> apply(Transaction transaction) override { co_return store_.apply(transaction); }

 private:
  Store& store_;
};

}  // namespace state
