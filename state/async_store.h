// The Store as pipelines see it: awaitable, so that nobody waits for a disk on an I/O thread.
// Two kinds: StoreThread (store_thread.h) for real, InlineStore (inline_store.h) for virtual time.
//
// A transaction that has begun is never cancelled: who awaits it gets its result.
// Errors: those of Store.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/task.h"
#include "state/offset_map.h"
#include "state/record_file.h"
#include "state/store.h"

namespace state {

class AsyncStore {
 public:
  virtual ~AsyncStore() = default;
  virtual base::Task<base::Result<std::optional<LinkRow>>> link() = 0;
  virtual base::Task<base::Result<std::vector<PartitionRow>>> partitions() = 0;
  virtual base::Task<base::Result<std::optional<PartitionRow>>> partition(base::PartitionKey key) = 0;
  virtual base::Task<base::Result<std::vector<RangeRow>>> ranges(base::PartitionKey key, std::uint64_t incarnation) = 0;
  virtual base::Task<base::Result<std::vector<GapRow>>> gaps() = 0;
  virtual base::Task<base::Result<std::vector<EventRow>>> events(std::size_t newest) = 0;
  virtual base::Task<base::Result<std::vector<VerifiedRow>>> verified() = 0;
  virtual base::Task<base::Result<std::vector<ConsumerRow>>> consumers() = 0;
  // Row, ranges and ledger as of one moment. kNotFound: no such partition.
  virtual base::Task<base::Result<OffsetMap>> offset_map(base::PartitionKey key) = 0;
  virtual base::Task<base::Result<Applied>> apply(Transaction transaction) = 0;
  // Messages in files beside the store (record_file.h). REQUIRES: what `record` views into stays until it returns.
  virtual base::Task<base::Result<std::string>> save_record(std::string folder, base::PartitionKey key,
                                                            base::Record record) {
    co_return state::save_record(folder, key, record);
  }
  virtual base::Task<base::Result<base::RecordBatch>> load_record(std::string path) {
    co_return state::load_record(path);
  }
};

}  // namespace state
