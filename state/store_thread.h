// Owns the Store and the one thread that touches it. Each call hops to that thread, waits its turn, and comes back to
// the caller's own executor.
//
// Bound: a caller waits for its result, so there are never more queued calls than coroutines that await one.
// Affinity: calls from any thread that runs an io_context; constructor and destructor from one.
// Lifetime: the destructor finishes what was queued, then ends the thread and closes the store. The io_contexts of
// callers must outlive it; nobody may call once it has begun.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "state/async_store.h"

namespace state {

class StoreThread final : public AsyncStore {
 public:
  explicit StoreThread(std::unique_ptr<Store> store);
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;
  ~StoreThread() override;

  base::Task<base::Result<std::optional<LinkRow>>> link() override;
  base::Task<base::Result<std::vector<PartitionRow>>> partitions() override;
  base::Task<base::Result<std::optional<PartitionRow>>> partition(base::PartitionKey key) override;
  base::Task<base::Result<std::vector<RangeRow>>> ranges(base::PartitionKey key, std::uint64_t incarnation) override;
  base::Task<base::Result<std::vector<GapRow>>> gaps() override;
  base::Task<base::Result<std::vector<EventRow>>> events(std::size_t newest) override;
  base::Task<base::Result<std::vector<VerifiedRow>>> verified() override;
  base::Task<base::Result<std::vector<ConsumerRow>>> consumers() override;
  base::Task<base::Result<OffsetMap>> offset_map(base::PartitionKey key) override;
  base::Task<base::Result<Applied>> apply(Transaction transaction) override;
  base::Task<base::Result<std::string>> save_record(std::string folder, base::PartitionKey key,
                                                    base::Record record) override;
  base::Task<base::Result<base::RecordBatch>> load_record(std::string path) override;

 private:
  using Job = std::move_only_function<void(Store&)>;

  // Runs `call` on the store thread.
  template <class T>
  base::Task<base::Result<T>> on_thread(std::function<base::Result<T>(Store&)> call);
  void enqueue(Job job);
  void run();

  std::unique_ptr<Store> store_;  // touched only on thread_, until it has ended
  std::mutex mutex_;              // protects the three below
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace state
