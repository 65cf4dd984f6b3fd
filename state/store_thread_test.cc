// Goal: calls hop to the store thread and back to the caller's own io_context, in order, and none is lost at the end.
// Method: real threads and a real file; run under ThreadSanitizer as well.
#include "state/store_thread.h"

#include <array>
#include <atomic>
#include <latch>
#include <thread>

#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "state/inline_store.h"
#include "state/sqlite_store.h"
#include "state/testing/faulty_store.h"
#include "state/testing/rows.h"
#include "state/testing/temp_folder.h"

namespace state {
namespace {

using base::Result;
using base::Task;
using testing::advance;
using testing::create;
using testing::key;
using testing::with;

std::unique_ptr<SqliteStore> open_or_die(const std::string& path) {
  auto store = SqliteStore::open(path, OpenMode::kCreate);
  if (!store) throw std::runtime_error(store.error().to_string());
  return *std::move(store);
}

Task<Result<std::uint64_t>> commit_in_steps(AsyncStore& store, std::uint32_t partition, std::uint64_t steps) {
  const std::thread::id home = std::this_thread::get_id();
  auto creating = store.apply(create(testing::new_row(partition)));
  auto created = co_await std::move(creating);
  CO_RETURN_IF_ERROR(created);
  for (std::uint64_t step = 0; step < steps; ++step) {
    auto applying = store.apply(with(advance(step, 1, 1, partition)));
    auto applied = co_await std::move(applying);
    CO_RETURN_IF_ERROR(applied);
    if (std::this_thread::get_id() != home) {
      co_return base::Error(base::ErrorCode::kInternal, "test", "", "resumed on another thread");
    }
  }
  auto reading = store.partition(key(partition));
  auto row = co_await std::move(reading);
  CO_RETURN_IF_ERROR(row);
  co_return (*row)->watermark;
}

TEST(StoreThread, ServesManyThreadsAndResumesEachOnItsOwn) {
  const testing::TempFolder folder;
  constexpr std::uint32_t kThreads = 4;
  std::array<asio::io_context, kThreads> contexts;  // outlive the store thread
  std::array<std::uint64_t, kThreads> watermarks{};
  {
    StoreThread store(open_or_die(folder.file("state.db")));
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (std::uint32_t partition = 0; partition < kThreads; ++partition) {
      threads.emplace_back([&, partition] {
        auto result = base::testing::run_until_done(contexts[partition], commit_in_steps(store, partition, 25));
        watermarks[partition] = result ? *result : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(watermarks, (std::array<std::uint64_t, kThreads>{25, 25, 25, 25}));
  EXPECT_EQ(open_or_die(folder.file("state.db"))->partitions()->size(), 4U);
}

Task<std::size_t> read_everything(AsyncStore& store) {
  auto linking = store.link();
  auto link = co_await std::move(linking);
  auto listing = store.partitions();
  auto partitions = co_await std::move(listing);
  auto mapping = store.ranges(key(), 1);
  auto ranges = co_await std::move(mapping);
  auto finding = store.gaps();
  auto gaps = co_await std::move(finding);
  auto telling = store.events(5);
  auto events = co_await std::move(telling);
  if (!link || !partitions || !ranges || !gaps || !events) co_return 0;
  co_return (link->has_value() ? 1U : 0U) + partitions->size() + ranges->size() + gaps->size() + events->size();
}

TEST(StoreThread, InlineAndThreadGiveTheSameAnswers) {
  const testing::TempFolder folder;
  auto file = open_or_die(folder.file("state.db"));
  Transaction transaction = create();
  transaction.replaces[0].gaps = {{0, key(), 1, 0, 1, "hole", "", 1, "", "", 0}};
  transaction.events = {{0, 1, "reset", "", "me", ""}};
  transaction.link.emplace().id = "ab12";
  ASSERT_TRUE(file->apply(transaction));
  ASSERT_TRUE(file->apply(with(advance(0, 5))));
  asio::io_context io;
  {
    InlineStore direct(*file);
    EXPECT_EQ(base::testing::run_until_done(io, read_everything(direct)), 5U);
  }
  StoreThread thread(std::move(file));
  EXPECT_EQ(base::testing::run_until_done(io, read_everything(thread)), 5U);
}

// Holds each apply() until it is let go.
class GatedStore final : public Store {
 public:
  GatedStore(std::latch& begun, std::latch& gate, std::atomic<int>& applied)
      : begun_(begun), gate_(gate), applied_(applied) {}
  Result<std::optional<LinkRow>> link() override { return std::optional<LinkRow>(); }
  Result<std::vector<PartitionRow>> partitions() override { return std::vector<PartitionRow>(); }
  Result<std::optional<PartitionRow>> partition(const base::PartitionKey&) override {
    return std::optional<PartitionRow>();
  }
  Result<std::vector<RangeRow>> ranges(const base::PartitionKey&, std::uint64_t) override {
    return std::vector<RangeRow>();
  }
  Result<std::vector<GapRow>> gaps() override { return std::vector<GapRow>(); }
  Result<std::vector<EventRow>> events(std::size_t) override { return std::vector<EventRow>(); }
  Result<std::vector<VerifiedRow>> verified() override { return std::vector<VerifiedRow>(); }
  Result<std::vector<ConsumerRow>> consumers() override { return std::vector<ConsumerRow>(); }
  Result<Applied> apply(const Transaction&) override {
    if (!begun_.try_wait()) begun_.count_down();
    gate_.wait();
    ++applied_;
    return Applied{};
  }

 private:
  std::latch& begun_;
  std::latch& gate_;
  std::atomic<int>& applied_;
};

Task<void> apply_once(AsyncStore& store) {
  auto applying = store.apply(create());
  auto applied = co_await std::move(applying);
  (void)applied;
}

TEST(StoreThread, TheDestructorFinishesWhatWasQueued) {
  std::latch begun(1), gate(1);
  std::atomic<int> applied = 0;
  asio::io_context io;
  {
    StoreThread store(std::make_unique<GatedStore>(begun, gate, applied));
    for (int i = 0; i < 3; ++i) asio::co_spawn(io, apply_once(store), [](std::exception_ptr) {});
    io.poll();  // all three are queued
    begun.wait();
    gate.count_down();
  }
  EXPECT_EQ(applied, 3);
  io.run();  // and their callers get their results
}

// Ends as soon as the transaction has begun, so that `||` cancels it; only then lets it go on.
Task<void> overtake(std::latch& begun, std::latch& gate) {
  begun.wait();
  gate.count_down();
  co_return;
}

Task<int> race(AsyncStore& store, std::latch& begun, std::latch& gate, std::atomic<int>& applied) {
  using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
  auto both = apply_once(store) || overtake(begun, gate);
  co_await std::move(both);
  co_return applied.load();
}

TEST(StoreThread, ATransactionThatHasBegunIsNotCancelled) {
  std::latch begun(1), gate(1);
  std::atomic<int> applied = 0;
  asio::io_context io;
  StoreThread store(std::make_unique<GatedStore>(begun, gate, applied));
  EXPECT_EQ(base::testing::run_until_done(io, race(store, begun, gate, applied)), 1);
}

TEST(FaultyStore, FailsTheNthCallOnceOrFromThenOn) {
  auto real = *SqliteStore::open_in_memory();
  testing::FaultyStore store(*real);
  store.fail(2, testing::Failing::kOnce);
  EXPECT_TRUE(store.apply(create()));
  EXPECT_FALSE(store.apply(with(advance(0, 1))));
  EXPECT_TRUE(store.apply(with(advance(0, 1))));
  store.fail(1, testing::Failing::kFromThenOn);
  EXPECT_FALSE(store.partitions());
  EXPECT_FALSE(store.link());
  EXPECT_TRUE(store.has_failed());
  store.fail(0, testing::Failing::kOnce);
  EXPECT_EQ(store.partitions()->at(0).watermark, 1U);
}

}  // namespace
}  // namespace state
