// The store for coroutines: calls hop to the store thread and come back to the caller's io_context. Real: store_thread.h. On virtual
// time: inline_store.h calls the store in place.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/task.h"
#include "state/store.h"

namespace state {

// Errors as Store. A transaction that has begun is never cancelled. Affinity: one io_context.
class AsyncStore {
 public:
  virtual ~AsyncStore() = default;
  virtual base::Task<base::Result<std::optional<LinkRow>>> link() = 0;
  virtual base::Task<base::Result<std::vector<PartitionRow>>> partitions() = 0;
  virtual base::Task<base::Result<std::vector<RangeRow>>> ranges(base::PartitionKey key, std::uint64_t incarnation) = 0;
  virtual base::Task<base::Result<std::vector<GapRow>>> gaps() = 0;
  virtual base::Task<base::Result<std::vector<EventRow>>> events(std::size_t newest) = 0;
  virtual base::Task<base::Result<Applied>> apply(Transaction transaction) = 0;
};

}  // namespace state
