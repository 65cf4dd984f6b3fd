#include "state/store_thread.h"

#include <utility>

#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

namespace state {

StoreThread::StoreThread(std::unique_ptr<Store> store) : store_(std::move(store)), thread_([this] { run(); }) {}

StoreThread::~StoreThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StoreThread::enqueue(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void StoreThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job(*store_);
    job = nullptr;  // it holds a caller's executor: let go before waiting
    lock.lock();
  }
}

// No cancellation handler is installed, so a cancelled caller still waits for the end of the call.
template <class T>
base::Task<base::Result<T>> StoreThread::on_thread(std::function<base::Result<T>(Store&)> call) {
  auto executor = co_await asio::this_coro::executor;
  auto start = [this, executor, call = std::move(call)](auto handler) mutable {
    // The guard keeps the caller's io_context running; it goes back with the result and ends there.
    enqueue([handler = std::move(handler), guard = asio::make_work_guard(executor), executor,
             call = std::move(call)](Store& store) mutable {
      auto complete = [handler = std::move(handler), guard = std::move(guard), result = call(store)]() mutable {
        handler(std::move(result));
      };
      asio::post(executor, std::move(complete));
    });
  };
  auto waiting =
      asio::async_initiate<const asio::use_awaitable_t<>, void(base::Result<T>)>(std::move(start), asio::use_awaitable);
  auto result = co_await std::move(waiting);
  co_return result;
}

base::Task<base::Result<std::optional<LinkRow>>> StoreThread::link() {
  return on_thread<std::optional<LinkRow>>([](Store& store) { return store.link(); });
}

base::Task<base::Result<std::vector<PartitionRow>>> StoreThread::partitions() {
  return on_thread<std::vector<PartitionRow>>([](Store& store) { return store.partitions(); });
}

base::Task<base::Result<std::optional<PartitionRow>>> StoreThread::partition(base::PartitionKey key) {
  return on_thread<std::optional<PartitionRow>>([key = std::move(key)](Store& store) { return store.partition(key); });
}

base::Task<base::Result<std::vector<RangeRow>>> StoreThread::ranges(base::PartitionKey key, std::uint64_t incarnation) {
  return on_thread<std::vector<RangeRow>>(
      [key = std::move(key), incarnation](Store& store) { return store.ranges(key, incarnation); });
}

base::Task<base::Result<std::vector<GapRow>>> StoreThread::gaps() {
  return on_thread<std::vector<GapRow>>([](Store& store) { return store.gaps(); });
}

base::Task<base::Result<std::vector<EventRow>>> StoreThread::events(std::size_t newest) {
  return on_thread<std::vector<EventRow>>([newest](Store& store) { return store.events(newest); });
}

base::Task<base::Result<std::vector<VerifiedRow>>> StoreThread::verified() {
  return on_thread<std::vector<VerifiedRow>>([](Store& store) { return store.verified(); });
}

base::Task<base::Result<std::vector<ConsumerRow>>> StoreThread::consumers() {
  return on_thread<std::vector<ConsumerRow>>([](Store& store) { return store.consumers(); });
}

base::Task<base::Result<OffsetMap>> StoreThread::offset_map(base::PartitionKey key) {
  return on_thread<OffsetMap>([key = std::move(key)](Store& store) { return load_offset_map(store, key); });
}

base::Task<base::Result<Applied>> StoreThread::apply(Transaction transaction) {
  return on_thread<Applied>([transaction = std::move(transaction)](Store& store) { return store.apply(transaction); });
}

base::Task<base::Result<std::string>> StoreThread::save_record(std::string folder, base::PartitionKey key,
                                                               base::Record record) {
  return on_thread<std::string>([folder = std::move(folder), key = std::move(key), record](Store&) {
    return state::save_record(folder, key, record);
  });
}

base::Task<base::Result<base::RecordBatch>> StoreThread::load_record(std::string path) {
  return on_thread<base::RecordBatch>([path = std::move(path)](Store&) { return state::load_record(path); });
}

}  // namespace state
