// Goal: what is left after a crash, a full disk and I/O errors at every step. Method: real processes that are killed, a
// real size limit, and SQLite's file layer failing its Nth call; then the file is opened again and checked whole.
#include <csignal>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state/sqlite_store.h"
#include "state/testing/faulty_vfs.h"
#include "state/testing/rows.h"
#include "state/testing/temp_folder.h"

namespace state {
namespace {

using base::ErrorCode;
using testing::advance;
using testing::create;
using testing::Failing;
using testing::key;
using testing::with;

std::unique_ptr<SqliteStore> open_or_die(const std::string& path) {
  auto store = SqliteStore::open(path, OpenMode::kCreate);
  if (!store) throw std::runtime_error(store.error().to_string());
  return *std::move(store);
}

std::uint64_t watermark_of(Store& store) {
  auto row = store.partition(key());
  if (!row) throw std::runtime_error(row.error().to_string());
  return (*row)->watermark;
}

// The file is sound, and its map and counters tell the same story as its watermark.
void expect_consistent(SqliteStore& store) {
  EXPECT_EQ(*store.check(), std::vector<std::string>());
  const std::uint64_t watermark = watermark_of(store);
  EXPECT_EQ((*store.partition(key()))->counters.copied, watermark);
  if (watermark > 0) EXPECT_EQ(*store.ranges(key(), 1), (std::vector<RangeRow>{{0, 0, watermark, true}}));
}

// Commits one message after the other and reports each watermark once apply() has returned. Ends only by a signal.
[[noreturn]] void commit_for_ever(const std::string& path, int report) {
  auto store = SqliteStore::open(path, OpenMode::kReadWrite);
  if (!store) ::_exit(1);
  for (std::uint64_t watermark = watermark_of(**store);; ++watermark) {
    if (!(*store)->apply(with(advance(watermark, 1)))) ::_exit(2);
    const std::uint64_t reported = watermark + 1;
    if (::write(report, &reported, sizeof(reported)) != sizeof(reported)) ::_exit(3);
  }
}

TEST(StoreCrash, KeepsEveryReportedCommitAfterKill) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  ASSERT_TRUE(open_or_die(path)->apply(create()));
  std::mt19937 random(20);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the moment is random anyway
  std::uint64_t before = 0;
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      commit_for_ever(path, ends[1]);
    }
    ::close(ends[1]);
    // Killed some instructions after a report: anywhere inside the next commits.
    std::uint64_t last = 0;
    for (std::uint32_t reports = 1 + random() % 40; reports > 0; --reports) {
      ASSERT_EQ(::read(ends[0], &last, sizeof(last)), static_cast<ssize_t>(sizeof(last)));
    }
    for (std::uint32_t spin = random() % 2'000'000; spin > 0; --spin) __asm__ volatile("");
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    for (std::uint64_t more = 0; ::read(ends[0], &more, sizeof(more)) == static_cast<ssize_t>(sizeof(more));)
      last = more;
    ::close(ends[0]);
    auto store = open_or_die(path);  // the lock of the dead process is gone
    EXPECT_GE(watermark_of(*store), last);
    EXPECT_LE(watermark_of(*store), last + 1) << "at most the one that was under way";
    EXPECT_GT(last, before);
    before = last;
    expect_consistent(*store);
  }
}

// A file whose log holds `commits` commits that no checkpoint has moved yet, as a killed process leaves it.
void leave_with_log(const std::string& path, std::uint64_t commits) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = open_or_die(path);
    if (!store->apply(create())) ::_exit(1);
    for (std::uint64_t i = 0; i < commits; ++i) {
      Transaction transaction = with(advance(i, 1));
      EventRow& event = transaction.events.emplace_back();
      event.kind = "test";
      event.actor = "test";
      event.detail = std::string(3000, 'x');  // most of a page of its own
      if (!store->apply(transaction)) ::_exit(2);
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

// The last owner that closes the file moves the log into it, page after page and in place, as others do at 256 pages.
TEST(StoreCrash, KilledAtEachStepOfACheckpointTheFileHoldsWhatWasCommitted) {
  int kills = 0;
  for (const std::uint64_t commits : {25U, 30U, 32U, 34U, 36U, 38U, 40U}) {
    const testing::TempFolder folder;
    leave_with_log(folder.file("made.db"), commits);
    bool was_killed = true;
    for (std::uint64_t nth = 1; was_killed; ++nth) {
      const std::string path = folder.file("state.db");
      for (const char* suffix : {"", "-wal"}) {
        std::filesystem::copy_file(folder.file("made.db") + suffix, path + suffix,
                                   std::filesystem::copy_options::overwrite_existing);
      }
      std::filesystem::remove(path + "-shm");
      const pid_t child = ::fork();
      if (child == 0) {
        testing::FaultyVfs vfs;
        auto store = open_or_die(path);
        vfs.kill_at(nth);
        store.reset();
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      was_killed = WIFSIGNALED(status);
      ASSERT_TRUE(was_killed || WEXITSTATUS(status) == 0);
      kills += was_killed ? 1 : 0;
      auto store = open_or_die(path);
      EXPECT_EQ(watermark_of(*store), commits) << "killed at call " << nth;
      expect_consistent(*store);
    }
  }
  EXPECT_GE(kills, 200);
}

TEST(StoreCrash, ALimitOnTheFileIsNoLossAndEndsWithTheLimit) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  auto store = open_or_die(path);
  ASSERT_TRUE(store->apply(create()));
  struct Limit {
    rlimit old{};
    sighandler_t old_handler = std::signal(SIGXFSZ, SIG_IGN);
    explicit Limit(rlim_t bytes) {
      ::getrlimit(RLIMIT_FSIZE, &old);
      const rlimit tight{bytes, old.rlim_max};
      ::setrlimit(RLIMIT_FSIZE, &tight);
    }
    ~Limit() {
      ::setrlimit(RLIMIT_FSIZE, &old);
      std::signal(SIGXFSZ, old_handler);
    }
  };
  std::uint64_t watermark = 0;
  std::optional<base::Error> error;
  {
    const Limit limit(524'288);
    while (!error && watermark < 10'000) {
      auto applied = store->apply(with(advance(watermark, 1)));
      if (applied) {
        ++watermark;
      } else {
        error = applied.error();
      }
    }
    ASSERT_TRUE(error) << "the limit was never met";
    EXPECT_EQ(error->code(), ErrorCode::kStateUnavailable) << error->to_string();
    EXPECT_EQ(error->retry(), base::Retry::kSameCall);
    EXPECT_EQ(watermark_of(*store), watermark);
    // It was the journal that had grown: it was moved into the database, and the same call finds room.
    EXPECT_TRUE(store->apply(with(advance(watermark, 1)))) << "the same call, repeated";
    ++watermark;
  }
  ASSERT_TRUE(store->apply(with(advance(watermark, 1)))) << "without the limit";
  store.reset();
  store = open_or_die(path);
  EXPECT_EQ(watermark_of(*store), watermark + 1);
  expect_consistent(*store);
}

class StoreFaults : public ::testing::TestWithParam<std::tuple<Failing, int>> {};

TEST_P(StoreFaults, TheNthFailureOfACommitChangesNothingAndTheSameCallSucceedsLater) {
  const auto [failing, code] = GetParam();
  testing::FaultyVfs vfs;
  std::uint64_t nth = 1;
  for (;; ++nth) {
    const testing::TempFolder folder;
    const std::string path = folder.file("state.db");
    auto store = open_or_die(path);
    ASSERT_TRUE(store->apply(create()));
    ASSERT_TRUE(store->apply(with(advance(0, 10))));
    vfs.fail(nth, failing, code);
    auto applied = store->apply(with(advance(10, 5)));
    const bool untouched = !vfs.has_failed();
    const std::uint64_t expected = applied ? 15 : 10;
    if (!applied) {
      EXPECT_EQ(applied.error().code(), ErrorCode::kStateUnavailable) << applied.error().to_string();
    }
    EXPECT_EQ(watermark_of(*store), expected) << "failure " << nth;
    vfs.heal();
    if (!applied) ASSERT_TRUE(store->apply(with(advance(10, 5)))) << "failure " << nth;
    store.reset();
    store = open_or_die(path);
    EXPECT_EQ(watermark_of(*store), 15U);
    expect_consistent(*store);
    if (untouched) break;
  }
  EXPECT_GT(nth, 3U) << "a commit writes and syncs: there were calls to fail";
}

TEST_P(StoreFaults, TheNthFailureUntilTheProcessEndsLeavesOneOfTheTwoStates) {
  const auto [failing, code] = GetParam();
  testing::FaultyVfs vfs;
  for (std::uint64_t nth = 1;; ++nth) {
    const testing::TempFolder folder;
    const std::string path = folder.file("state.db");
    auto store = open_or_die(path);
    ASSERT_TRUE(store->apply(create()));
    ASSERT_TRUE(store->apply(with(advance(0, 10))));
    vfs.fail(nth, failing, code);
    const bool applied = store->apply(with(advance(10, 5))).has_value();
    store.reset();  // the close fails as well
    const bool untouched = !vfs.has_failed();
    vfs.heal();
    store = open_or_die(path);
    const std::uint64_t watermark = watermark_of(*store);
    // A commit whose fsync failed may be found in the log after all; one that was reported is always there.
    EXPECT_TRUE(watermark == 15 || (watermark == 10 && !applied)) << "failure " << nth << ": " << watermark;
    expect_consistent(*store);
    if (untouched) break;
  }
}

TEST_P(StoreFaults, TheNthFailureOfTheFirstOpenLeavesNoHalfMadeFile) {
  const auto [failing, code] = GetParam();
  testing::FaultyVfs vfs;
  for (std::uint64_t nth = 1;; ++nth) {
    const testing::TempFolder folder;
    const std::string path = folder.file("state.db");
    vfs.fail(nth, failing, code);
    const bool opened = SqliteStore::open(path, OpenMode::kCreate).has_value();
    const bool untouched = !vfs.has_failed();
    vfs.heal();
    if (!opened) {
      auto again = SqliteStore::open(path, OpenMode::kCreate);
      ASSERT_TRUE(again) << "failure " << nth << ": " << again.error().to_string();
      EXPECT_EQ(*(*again)->check(), std::vector<std::string>());
    }
    if (untouched) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, StoreFaults,
                         ::testing::Combine(::testing::Values(Failing::kOnce, Failing::kFromThenOn),
                                            ::testing::Values(SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC,
                                                              SQLITE_READONLY)));

}  // namespace
}  // namespace state
