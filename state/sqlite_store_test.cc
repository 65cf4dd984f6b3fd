// Goal: what the store promises about rows, positions and files. Method: a real file in a fresh folder, closed and
// opened again after every scenario.
#include "state/sqlite_store.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state/migrations.h"
#include "state/testing/rows.h"
#include "state/testing/temp_folder.h"

namespace state {
namespace {

using base::ErrorCode;
using testing::advance;
using testing::create;
using testing::key;
using testing::new_row;
using testing::with;

std::unique_ptr<SqliteStore> open_or_die(const std::string& path, OpenMode mode = OpenMode::kCreate) {
  auto store = SqliteStore::open(path, mode);
  if (!store) throw std::runtime_error(store.error().to_string());
  return *std::move(store);
}

ErrorCode open_error(const std::string& path, OpenMode mode = OpenMode::kReadWrite) {
  auto store = SqliteStore::open(path, mode);
  if (store) throw std::runtime_error("opened: " + path);
  EXPECT_NE(store.error().to_string().find(path), std::string::npos) << store.error().to_string();
  return store.error().code();
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class SqliteStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { store_ = open_or_die(path_); }
  void TearDown() override {
    if (!store_) return;
    reopen();
    EXPECT_EQ(*store_->check(), std::vector<std::string>());
  }
  void reopen() {
    store_.reset();
    store_ = open_or_die(path_, OpenMode::kReadWrite);
  }
  // Applies, and expects it to succeed with nothing stale.
  void apply(const Transaction& transaction) {
    auto applied = store_->apply(transaction);
    ASSERT_TRUE(applied) << applied.error().to_string();
    EXPECT_TRUE(applied->stale.empty());
  }
  ErrorCode refused(const Transaction& transaction) {
    auto applied = store_->apply(transaction);
    EXPECT_FALSE(applied);
    return applied ? ErrorCode::kStopped : applied.error().code();
  }
  PartitionRow row(std::uint32_t partition = 0) { return store_->partition(key(partition))->value(); }
  std::vector<RangeRow> ranges(std::uint64_t incarnation = 1) { return *store_->ranges(key(), incarnation); }

  testing::TempFolder folder_;
  std::string path_ = folder_.file("state.db");
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(SqliteStoreTest, IsEmptyWhenNew) {
  EXPECT_EQ(*store_->link(), std::nullopt);
  EXPECT_TRUE(store_->partitions()->empty());
  EXPECT_EQ(*store_->partition(key()), std::nullopt);
  EXPECT_TRUE(ranges().empty());
  EXPECT_TRUE(store_->gaps()->empty());
  EXPECT_TRUE(store_->events(10)->empty());
}

TEST_F(SqliteStoreTest, KeepsEveryFieldAcrossAReopen) {
  PartitionRow full = new_row(3);
  full.generation = 4;
  full.incarnation = 2;
  full.down_created = {21, 22, 23};
  full.watermark = 100;
  full.down_end = 90;
  full.anchor = Anchor{99, 89, {~std::uint64_t{0}, 5}, {6, ~std::uint64_t{0}}};
  full.desired = Desired::kPaused;
  full.fault = {"retention", "offsets 100 to 110 are gone", 77, 100, 110};
  full.counters = {1, 2, 3, 4, 5, {}};
  full.caught_up_at = 123;
  full.durability = "flush";
  LinkRow link{"ab12", "iggy://a:8090", "iggy://b:8090", "ua", "", 3, "active", 55};
  Transaction transaction = create(full);
  transaction.replaces[0].ranges = {{0, 0, 50, true}, {60, 50, 40, false}};
  GapRow gap{0, key(3), 2, 50, 60, "hole", "never held a message", 66, "", "", 0};
  transaction.replaces[0].gaps = {gap};
  transaction.events = {{0, 1, "reset", "orders/events/3", "me@here", "to 100"}, {0, 2, "pause", "", "appliance", ""}};
  transaction.link = link;
  apply(transaction);
  reopen();
  gap.id = 1;
  EXPECT_EQ(store_->partitions()->at(0), full);
  EXPECT_EQ(*store_->link(), link);
  EXPECT_EQ(*store_->ranges(key(3), 2), (std::vector<RangeRow>{{0, 0, 50, true}, {60, 50, 40, false}}));
  EXPECT_EQ(*store_->gaps(), std::vector<GapRow>{gap});
  EXPECT_EQ(store_->events(1)->at(0), (EventRow{2, 2, "pause", "", "appliance", ""}));
  EXPECT_EQ(store_->events(SIZE_MAX)->at(0).id, 1);
}

TEST_F(SqliteStoreTest, ACommitMovesPositionsCountersRangesAndGapsTogether) {
  apply(create());
  apply(with(advance(0, 10)));
  PartitionCommit commit = advance(12, 3);
  commit.gaps = {{0, key(), 1, 10, 12, "retention", "", 9, "", "", 0}};
  commit.caught_up_at = 500;
  apply(with(commit));
  reopen();
  EXPECT_EQ(row().watermark, 15U);
  EXPECT_EQ(row().counters.copied, 13U);
  EXPECT_EQ(row().caught_up_at, 500U);
  EXPECT_EQ(row().anchor, commit.anchor);
  EXPECT_EQ(store_->gaps()->size(), 1U);
  PartitionCommit idle = advance(12, 3);  // nothing moves; what is not set keeps its value
  idle.ranges.clear();
  idle.anchor.reset();
  apply(with(idle));
  EXPECT_EQ(row().anchor, commit.anchor);
  EXPECT_EQ(row().caught_up_at, 500U);
}

TEST_F(SqliteStoreTest, ErrorsAreCountedByCauseAcrossCommitsNotesAndRestarts) {
  apply(create());
  apply(create(new_row(7)));
  PartitionCommit commit = advance(0, 10);
  commit.added.errors = 3;
  commit.added.errors_by_cause = {{"timeout", 2}, {"connection_lost", 1}};
  apply(with(commit));
  PartitionNote note;
  note.key = key();
  note.generation = 1;
  note.added.errors = 2;
  note.added.errors_by_cause = {{"timeout", 1}, {"retention", 1}};
  Transaction transaction;
  transaction.notes = {note};
  apply(transaction);
  reopen();
  const std::map<std::string, std::uint64_t> expected = {{"connection_lost", 1}, {"retention", 1}, {"timeout", 3}};
  EXPECT_EQ(row().counters.errors, 5U);
  EXPECT_EQ(row().counters.errors_by_cause, expected);
  EXPECT_EQ((*store_->partitions())[0].counters.errors_by_cause, expected);
  EXPECT_TRUE((*store_->partitions())[1].counters.errors_by_cause.empty());
}

TEST_F(SqliteStoreTest, RangesMergeOnlyWhenBothSidesContinueAndBothAreEquallySure) {
  apply(create());
  PartitionCommit commit = advance(0, 60);
  commit.ranges = {{0, 0, 10, true}, {10, 10, 10, true}};
  apply(with(commit));
  EXPECT_EQ(ranges(), (std::vector<RangeRow>{{0, 0, 20, true}}));
  commit.ranges = {{20, 20, 5, true}, {25, 26, 5, true}};  // a jump downstream
  apply(with(commit));
  commit.ranges = {{30, 31, 5, false}, {35, 36, 5, false}};  // less sure
  apply(with(commit));
  commit.ranges = {{41, 42, 19, false}};  // a hole upstream
  apply(with(commit));
  reopen();
  EXPECT_EQ(ranges(),
            (std::vector<RangeRow>{{0, 0, 25, true}, {25, 26, 5, true}, {30, 31, 10, false}, {41, 42, 19, false}}));
}

TEST_F(SqliteStoreTest, RefusesRangesThatOverlapOrLieBeyondTheWatermark) {
  apply(create());
  apply(with(advance(0, 10)));
  PartitionCommit commit = advance(10, 10);
  for (const RangeRow& bad : {RangeRow{9, 9, 5, true}, RangeRow{10, 10, 11, true}, RangeRow{10, 10, 0, true},
                              RangeRow{10, 10, ~0ULL, true}}) {
    commit.ranges = {bad};
    EXPECT_EQ(refused(with(commit)), ErrorCode::kInternal);
    EXPECT_EQ(row().watermark, 10U);
  }
}

TEST_F(SqliteStoreTest, TheSqlRefusesAWatermarkThatGoesBack) {
  apply(create());
  apply(with(advance(0, 10)));
  Transaction transaction = with(advance(0, 9));
  transaction.commits[0].ranges.clear();
  transaction.events = {{0, 1, "reset", "", "me", ""}};
  EXPECT_EQ(refused(transaction), ErrorCode::kInternal);
  EXPECT_TRUE(store_->events(9)->empty()) << "the whole transaction is rolled back";
  store_.reset();
  // Not our C++ but the file itself says no.
  auto raw = sqlite::Database::open(path_, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(raw);
  for (const char* sql : {"UPDATE partition SET watermark = 9", "UPDATE partition SET generation = 0",
                          "UPDATE partition SET incarnation = 2", "DELETE FROM partition"}) {
    EXPECT_FALSE(raw->execute(sql)) << sql;
  }
  reopen();
  EXPECT_EQ(row().watermark, 10U);
}

TEST_F(SqliteStoreTest, AStaleEntryChangesNothingAndTheRestCommits) {
  apply(create(new_row(0)));
  apply(create(new_row(1)));
  Transaction transaction;
  transaction.commits = {advance(0, 5, 2, 0), advance(0, 7, 1, 1), advance(0, 5, 1, 9)};  // wrong, right, unknown
  transaction.commits[0].gaps = {{0, key(0), 1, 0, 1, "hole", "", 1, "", "", 0}};
  transaction.notes = {testing::note(0)};
  transaction.notes[0].desired = Desired::kPaused;
  transaction.replaces = create(new_row(1)).replaces;  // generation 1 again
  transaction.events = {{0, 1, "reset", "", "me", ""}};
  auto applied = store_->apply(transaction);
  ASSERT_TRUE(applied) << applied.error().to_string();
  EXPECT_EQ(applied->stale, (std::vector<base::PartitionKey>{key(0), key(9), key(1), key(0)}));
  reopen();
  EXPECT_EQ(row(0), new_row(0));
  EXPECT_EQ(row(1).watermark, 7U);
  EXPECT_TRUE(store_->gaps()->empty());
  EXPECT_EQ(store_->events(9)->size(), 1U);
}

TEST_F(SqliteStoreTest, AReplaceCutsTheOffsetMapOfItsIncarnationAlone) {
  apply(create());
  PartitionCommit commit = advance(0, 60);
  commit.ranges = {{0, 0, 20, true}, {30, 20, 20, true}, {50, 45, 10, true}};
  apply(with(commit));
  PartitionRow back = row();
  back.generation = 2;
  back.watermark = 35;
  back.down_end = 25;
  back.anchor = Anchor{34, 24, {1, 1}, {2, 2}};
  apply(create(back));
  EXPECT_EQ(ranges(), (std::vector<RangeRow>{{0, 0, 20, true}, {30, 20, 5, true}}));
  PartitionRow again = back;  // a new history: the old map stays as it was
  again.generation = 3;
  again.incarnation = 2;
  again.watermark = 4;
  again.anchor.reset();
  Transaction transaction = create(again);
  transaction.replaces[0].ranges = {{2, 25, 2, false}};
  apply(transaction);
  reopen();
  EXPECT_EQ(row(), again);
  EXPECT_EQ(ranges(1), (std::vector<RangeRow>{{0, 0, 20, true}, {30, 20, 5, true}}));
  EXPECT_EQ(ranges(2), (std::vector<RangeRow>{{2, 25, 2, false}}));
}

TEST_F(SqliteStoreTest, ReplacingToTheWatermarkZeroEmptiesTheMap) {
  apply(create());
  apply(with(advance(0, 10)));
  PartitionRow zero = new_row();
  zero.generation = 2;
  apply(create(zero));
  EXPECT_TRUE(ranges().empty());
}

TEST_F(SqliteStoreTest, ClosesLedgerRowsOnceAndOnlyItsOwn) {
  Transaction transaction = create();
  transaction.replaces[0].gaps = {{0, key(), 1, 0, 5, "retention", "", 1, "", "", 0},
                                  {0, key(), 1, 5, 6, "hole", "", 1, "", "", 0}};
  apply(transaction);
  apply(create(new_row(1)));
  PartitionReplace accept;
  accept.row = row();
  accept.row.generation = 2;
  accept.close_gaps = {1};
  accept.resolved_as = "accept";
  accept.resolved_by = "me@here";
  Transaction close;
  close.replaces = {accept};
  EXPECT_EQ(refused(close), ErrorCode::kInternal) << "without a time";
  close.replaces[0].resolved_at = 42;
  apply(close);
  close.replaces[0].row.generation = 3;
  close.replaces[0].resolved_as = "other";  // already closed: stays as it was closed
  apply(close);
  close.replaces[0].row.key = key(1);
  EXPECT_EQ(refused(close), ErrorCode::kInternal) << "a row of another partition";
  reopen();
  const auto gaps = *store_->gaps();
  EXPECT_EQ(gaps.at(0).resolved_as, "accept");
  EXPECT_EQ(gaps.at(0).resolved_by, "me@here");
  EXPECT_EQ(gaps.at(0).resolved_at, 42U);
  EXPECT_EQ(gaps.at(1).resolved_as, "");
}

TEST_F(SqliteStoreTest, ALedgerRowOfASkippedMessageGoesOn) {
  Transaction transaction = create();
  GapRow gap{0, key(), 1, 5, 6, "invalid_record", "too large", 1, "skip", "policy", 2};
  gap.digest = base::Digest{3, 4};
  gap.file = "/somewhere/5.record";
  transaction.replaces[0].gaps = {gap};
  apply(transaction);
  Transaction change;
  change.notes = {testing::note()};
  change.notes[0].gap_changes = {{1, "replaying", "me@here", 7, 100}};
  apply(change);
  reopen();
  gap.id = 1;
  gap.resolved_as = "replaying";
  gap.resolved_by = "me@here";
  gap.resolved_at = 7;
  gap.down_offset = 100;
  EXPECT_EQ(store_->gaps()->at(0), gap);
  change.notes[0].gap_changes[0].id = 2;
  EXPECT_EQ(refused(change), ErrorCode::kInternal) << "no such row";
}

TEST_F(SqliteStoreTest, NotesChangeOnlyWhatTheySay) {
  apply(create());
  apply(with(advance(0, 10)));
  const PartitionRow before = row();
  PartitionNote note = testing::note();
  note.fault = FaultRow{"foreign_writer", "offset 10", 5, 10, 11};
  note.desired = Desired::kPaused;
  note.down_created = Incarnation{1, 2, 3};
  note.added.errors = 2;
  note.gaps = {{0, key(), 1, 10, 11, "foreign_writer", "", 5, "", "", 0}};
  Transaction transaction;
  transaction.notes = {note};
  apply(transaction);
  PartitionRow expected = before;
  expected.fault = *note.fault;
  expected.desired = Desired::kPaused;
  expected.down_created = {1, 2, 3};
  expected.counters.errors = 2;
  EXPECT_EQ(row(), expected);
  transaction.notes = {testing::note()};
  transaction.notes[0].fault = FaultRow{"", "left over", 5, 1, 2};
  apply(transaction);
  expected.fault = {};
  EXPECT_EQ(row(), expected);
  EXPECT_EQ(store_->gaps()->size(), 1U);
}

TEST_F(SqliteStoreTest, RefusesWhatContradictsItself) {
  apply(create());
  PartitionCommit commit = advance(0, 10);
  commit.anchor->up_offset = 10;  // at the watermark: that one is not copied yet
  EXPECT_EQ(refused(with(commit)), ErrorCode::kInternal);
  commit = advance(0, 10);
  commit.gaps = {{0, key(1), 1, 0, 1, "hole", "", 1, "", "", 0}};
  EXPECT_EQ(refused(with(commit)), ErrorCode::kInternal);
  commit.gaps = {{0, key(), 1, 0, 1, "", "", 1, "", "", 0}};
  EXPECT_EQ(refused(with(commit)), ErrorCode::kInternal) << "a gap without a cause";
  commit = advance(0, 10);
  commit.watermark = std::uint64_t{1} << 63;
  EXPECT_EQ(refused(with(commit)), ErrorCode::kInternal) << "offsets end at 2^63 - 1";
  EXPECT_EQ(row(), new_row());
}

TEST_F(SqliteStoreTest, TheLinkKeepsItsIdentityAndStaysPromoted) {
  LinkRow link{"ab12", "iggy://a", "iggy://b", "", "", 3, "active", 55};
  Transaction transaction;
  transaction.link = link;
  apply(transaction);
  transaction.link->id = "other";
  EXPECT_EQ(refused(transaction), ErrorCode::kWrongLink);
  transaction.link = link;
  transaction.link->generation = 2;
  EXPECT_EQ(refused(transaction), ErrorCode::kInternal);
  link.upstream = "iggy://c";  // the same link with another host
  link.state = "promoted";
  transaction.link = link;
  apply(transaction);
  transaction.link->state = "active";
  EXPECT_EQ(refused(transaction), ErrorCode::kInternal);
  reopen();
  EXPECT_EQ(*store_->link(), link);
}

TEST_F(SqliteStoreTest, AnEmptyTransactionTouchesNothing) {
  const std::string before = read_file(path_ + "-wal");
  apply({});
  EXPECT_EQ(read_file(path_ + "-wal"), before);
}

TEST_F(SqliteStoreTest, ABackupIsWholeWhileTheStoreIsInUse) {
  apply(create());
  apply(with(advance(0, 10)));
  const std::string target = folder_.file("copy.db");
  write_file(target, "replaced");
  ASSERT_TRUE(store_->backup(target));
  EXPECT_FALSE(std::filesystem::exists(target + ".new"));
  EXPECT_EQ(store_->backup(path_).error().code(), ErrorCode::kInvalidArgument);
  apply(with(advance(10, 10)));
  auto copy = open_or_die(target, OpenMode::kReadWrite);
  EXPECT_EQ((*copy->partition(key()))->watermark, 10U);
  EXPECT_EQ(*copy->check(), std::vector<std::string>());
  EXPECT_EQ(row().watermark, 20U);
  EXPECT_EQ(store_->backup(target).error().code(), ErrorCode::kInvalidArgument) << "the copy is in use";
}

TEST_F(SqliteStoreTest, OneProcessWritesAndReadersAreWelcome) {
  apply(create());
  for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kCreate}) {
    auto second = SqliteStore::open(path_, mode);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::kStateLocked);
    EXPECT_NE(second.error().message().find(std::to_string(::getpid())), std::string::npos);
    EXPECT_FALSE(second.error().hint().empty());
  }
  std::filesystem::create_symlink(path_, folder_.file("alias.db"));
  EXPECT_EQ(SqliteStore::open(folder_.file("alias.db"), OpenMode::kReadWrite).error().code(), ErrorCode::kStateLocked)
      << "two names of one file";
  auto reader = open_or_die(path_, OpenMode::kReadOnly);
  EXPECT_EQ(reader->partitions()->size(), 1U);
  EXPECT_EQ(reader->apply(with(advance(0, 5))).error().code(), ErrorCode::kStateUnavailable);
  apply(with(advance(0, 10)));
  EXPECT_EQ(reader->partitions()->at(0).watermark, 10U);
}

TEST_F(SqliteStoreTest, AFileThatIsRemovedOrReplacedWhileInUseIsNoticedAlsoWhenIdle) {
  for (const std::string suffix : {"", ".lock"}) {
    for (const bool replaced : {false, true}) {
      EXPECT_TRUE(store_->apply({}));
      std::filesystem::rename(path_ + suffix, folder_.file("aside"));
      if (replaced) std::ofstream(path_ + suffix) << "another";
      auto idle = store_->apply({});
      ASSERT_FALSE(idle) << suffix;
      EXPECT_EQ(idle.error().code(), ErrorCode::kStateCorrupt);
      EXPECT_NE(idle.error().to_string().find(path_ + suffix), std::string::npos) << idle.error().to_string();
      EXPECT_EQ(refused(create()), ErrorCode::kStateCorrupt);
      std::filesystem::rename(folder_.file("aside"), path_ + suffix);
      EXPECT_TRUE(store_->apply({}));
    }
  }
}

TEST_F(SqliteStoreTest, AForeignWriterIsAClearErrorAtOnceAndNothingIsLost) {
  apply(create());
  auto foreign = sqlite::Database::open(path_, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(foreign);
  ASSERT_TRUE(foreign->execute("BEGIN IMMEDIATE"));
  EXPECT_EQ(refused(with(advance(0, 10))), ErrorCode::kStateUnavailable);
  ASSERT_TRUE(foreign->execute("ROLLBACK"));
  apply(with(advance(0, 10)));
}

TEST_F(SqliteStoreTest, FilesArePrivate) {
  apply(create());
  const auto mode_of = [](const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<int>(status.st_mode & 0777) : -1;
  };
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) EXPECT_EQ(mode_of(path_ + suffix), 0600) << suffix;
  store_.reset();
  ::chmod(path_.c_str(), 0644);  // a restored copy
  store_ = open_or_die(path_);
  apply(with(advance(0, 1)));
  for (const char* suffix : {"", "-wal", "-shm"}) EXPECT_EQ(mode_of(path_ + suffix), 0600) << suffix;
}

TEST(SqliteStoreOpen, NeverTakesDamageForAFreshStart) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  EXPECT_EQ(open_error(path), ErrorCode::kNotFound);
  EXPECT_EQ(open_error(path, OpenMode::kReadOnly), ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path + ".lock")) << "a wrong name leaves nothing behind";
  EXPECT_EQ(open_error(folder.path().string(), OpenMode::kCreate), ErrorCode::kInvalidArgument);
  for (const std::string_view content : {"", "SQLite form", "hello, this is not a database at all"}) {
    write_file(path, content);
    for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kCreate, OpenMode::kReadOnly}) {
      auto store = SqliteStore::open(path, mode);
      ASSERT_FALSE(store);
      EXPECT_EQ(store.error().code(), ErrorCode::kStateCorrupt) << content;
      EXPECT_NE(store.error().hint().find("state check --state " + path), std::string::npos);
    }
    EXPECT_EQ(read_file(path), content) << "left as it was found";
  }
  std::filesystem::remove(path);
  write_file(path + "-wal", "the database was lost, its log was not");
  EXPECT_EQ(open_error(path, OpenMode::kCreate), ErrorCode::kStateCorrupt);
}

TEST_F(SqliteStoreTest, KeepsWhatVerifyAndTheConsumersLeft) {
  ASSERT_TRUE(store_->apply(create()));
  VerifiedRow clean{key(), 1, 100, 90, 7};
  ConsumerRow consumer;
  consumer.key = key();
  consumer.name = "billing";
  consumer.up_offset = 12;
  consumer.seen_at = 5;
  consumer.state = "synced";
  ConsumerRow group = consumer;
  group.kind = "group";
  group.up_offset.reset();
  group.down_offset = 3;
  Transaction transaction;
  transaction.verified = {clean};
  transaction.consumers = {consumer, group};
  ASSERT_TRUE(store_->apply(transaction));
  clean.up_end = 200;
  consumer.down_offset = 11;
  transaction.verified = {clean};
  transaction.consumers = {consumer};
  ASSERT_TRUE(store_->apply(transaction));
  reopen();
  EXPECT_EQ(*store_->verified(), std::vector<VerifiedRow>{clean});
  EXPECT_EQ(*store_->consumers(), (std::vector<ConsumerRow>{consumer, group}));
}

TEST_F(SqliteStoreTest, AVerifiedPositionOfAnotherGenerationIsStale) {
  ASSERT_TRUE(store_->apply(create()));
  Transaction transaction;
  transaction.verified = {{key(), 2, 100, 90, 7}};
  auto applied = store_->apply(transaction);
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->stale, std::vector<base::PartitionKey>{key()});
  EXPECT_EQ(store_->verified()->size(), 0U);
}

TEST(SqliteStoreOpen, SaysWhenTheFolderIsNotThere) {
  const testing::TempFolder folder;
  EXPECT_EQ(open_error(folder.file("no/state.db"), OpenMode::kCreate), ErrorCode::kStateUnavailable);
}

TEST(SqliteStoreOpen, RefusesNewerSchemasAndOtherPrograms) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  open_or_die(path).reset();
  auto raw = sqlite::Database::open(path, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(raw->execute("PRAGMA user_version = " + std::to_string(schema_version() + 1)));
  EXPECT_EQ(open_error(path), ErrorCode::kUnsupported);
  EXPECT_EQ(open_error(path, OpenMode::kReadOnly), ErrorCode::kUnsupported);
  ASSERT_TRUE(raw->execute("PRAGMA user_version = 1; PRAGMA application_id = 7"));
  EXPECT_EQ(open_error(path), ErrorCode::kStateCorrupt);
  const std::string other = folder.file("other.db");
  auto foreign = sqlite::Database::open(other, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  ASSERT_TRUE(foreign->execute("CREATE TABLE theirs (x)"));
  EXPECT_EQ(open_error(other), ErrorCode::kStateCorrupt) << "never migrated into";
}

TEST(SqliteStoreOpen, AFileOfTheFirstVersionIsMigratedWithItsLedger) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  {
    std::ifstream file("state/schema.sql");
    std::stringstream schema;
    schema << file.rdbuf();
    auto raw = sqlite::Database::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    ASSERT_TRUE(raw->execute(schema.str().c_str()));
    ASSERT_TRUE(raw->execute("PRAGMA user_version = 1; PRAGMA application_id = " + std::to_string(kApplicationId)));
  }
  EXPECT_EQ(open_error(path, OpenMode::kReadOnly), ErrorCode::kUnsupported) << "a reader changes nothing";
  auto store = open_or_die(path, OpenMode::kReadWrite);
  Transaction transaction;
  transaction.replaces.emplace_back().row = testing::new_row();
  transaction.replaces[0].gaps = {{0, testing::key(), 1, 0, 1, "invalid_record", "", 1, "skip", "me", 2}};
  transaction.replaces[0].gaps[0].digest = base::Digest{1, 2};
  ASSERT_TRUE(store->apply(transaction));
  EXPECT_EQ(store->gaps()->at(0).digest, (base::Digest{1, 2}));
  EXPECT_EQ(*store->check(), std::vector<std::string>());
}

TEST(SqliteStoreOpen, AFileOfTheSecondVersionIsMigratedAndKeepsItsRows) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  {
    auto store = open_or_die(path);
    ASSERT_TRUE(store->apply(create()));
    ASSERT_TRUE(store->apply(with(advance(0, 10))));
  }
  {
    auto raw = sqlite::Database::open(path, SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(raw->execute(
        "DROP TABLE error_count; DROP TABLE verified; DROP TABLE consumer_offset; PRAGMA user_version = 2"));
  }
  EXPECT_EQ(open_error(path, OpenMode::kReadOnly), ErrorCode::kUnsupported) << "a reader changes nothing";
  auto store = open_or_die(path, OpenMode::kReadWrite);
  EXPECT_EQ(*store->check(), std::vector<std::string>());
  EXPECT_EQ((*store->partition(key()))->watermark, 10U);
  EXPECT_EQ(store->verified()->size(), 0U);
}

// A file with rows, closed in order.
std::string sound_file(const std::string& path) {
  auto store = open_or_die(path);
  for (std::uint32_t partition = 0; partition < 20; ++partition) {
    EXPECT_TRUE(store->apply(create(new_row(partition))));
    EXPECT_TRUE(store->apply(with(advance(0, 1000, 1, partition))));
  }
  store.reset();
  return read_file(path);
}

TEST(SqliteStoreOpen, EveryFlippedBitIsDetectedOrHarmless) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  const std::string sound = sound_file(path);
  const auto rows = *open_or_die(path, OpenMode::kReadOnly)->partitions();
  std::size_t detected = 0;
  for (std::size_t at = 0; at < sound.size(); at += 23) {
    std::string flipped = sound;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    write_file(path, flipped);
    auto store = SqliteStore::open(path, OpenMode::kReadOnly);
    if (!store) {
      ++detected;
      continue;
    }
    auto found = (*store)->partitions();
    if (!found) {
      EXPECT_EQ(found.error().code(), ErrorCode::kStateCorrupt) << at;
      ++detected;
      continue;
    }
    for (const PartitionRow& row : *found) {
      EXPECT_NE(std::find(rows.begin(), rows.end(), row), rows.end()) << "byte " << at << ": " << row.key.to_string();
      auto ranges = (*store)->ranges(row.key, 1);
      if (ranges && !ranges->empty()) EXPECT_EQ(*ranges, (std::vector<RangeRow>{{0, 0, 1000, true}})) << at;
    }
    // A row that can't be found any more is damage that only the whole check sees.
    if (found->size() != rows.size()) EXPECT_FALSE((*store)->check()->empty()) << at;
  }
  EXPECT_GT(detected, 50U);
}

TEST(SqliteStoreOpen, ATruncatedFileIsCorrupt) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  const std::string sound = sound_file(path);
  for (std::size_t size = 100; size < sound.size(); size += 1500) {
    write_file(path, std::string_view(sound).substr(0, size));
    EXPECT_EQ(open_error(path), ErrorCode::kStateCorrupt) << size;
  }
}

TEST(SqliteStoreOpen, AFileThatWasNotClosedInOrderIsCheckedFirst) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  sound_file(path);
  auto raw = sqlite::Database::open(path, SQLITE_OPEN_READWRITE);
  // Sound pages, but the map reaches above the watermark: only our own rules see it.
  ASSERT_TRUE(raw->execute("UPDATE range SET length = length + 1 WHERE partition_id = 1"));
  open_or_die(path, OpenMode::kReadWrite).reset();
  EXPECT_FALSE(open_or_die(path, OpenMode::kReadOnly)->check()->empty());
  ASSERT_TRUE(raw->execute("UPDATE file SET clean = 0"));
  EXPECT_EQ(open_error(path), ErrorCode::kStateCorrupt);
  ASSERT_TRUE(raw->execute("UPDATE range SET length = length - 1 WHERE partition_id = 1"));
  open_or_die(path, OpenMode::kReadWrite).reset();
  EXPECT_EQ(*raw->query_integer("SELECT clean FROM file"), 1);
}

TEST(SqliteStoreCheck, MissesNoTrigger) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  sound_file(path);
  auto raw = sqlite::Database::open(path, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(raw->execute("DROP TRIGGER partition_goes_forwards_only"));
  EXPECT_EQ(*open_or_die(path, OpenMode::kReadOnly)->check(),
            std::vector<std::string>{"missing from the schema: trigger partition_goes_forwards_only"});
}

// Runs `body` in a child without root's rights; its exit code.
int as_nobody(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(99);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SqliteStoreOpen, AReadOnlyFileSaysSo) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state.db");
  sound_file(path);
  ::chmod(folder.path().c_str(), 0777);
  ::chmod(path.c_str(), 0444);
  ::chmod((path + ".lock").c_str(), 0666);
  EXPECT_EQ(as_nobody([&] {
              auto store = SqliteStore::open(path, OpenMode::kReadWrite);
              if (store) return 1;
              if (store.error().code() != ErrorCode::kStateUnavailable) return 2;
              auto reader = SqliteStore::open(path, OpenMode::kReadOnly);
              return reader && (*reader)->partitions()->size() == 20 ? 0 : 3;
            }),
            0);
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(open_or_die(path, OpenMode::kReadWrite)->partitions()->size(), 20U);
}

TEST(SqliteStoreInMemory, IsTheSameStoreWithoutAFile) {
  auto store = *SqliteStore::open_in_memory();
  ASSERT_TRUE(store->apply(create()));
  ASSERT_TRUE(store->apply(with(advance(0, 10))));
  EXPECT_EQ((*store->partition(key()))->watermark, 10U);
  EXPECT_EQ(*store->check(), std::vector<std::string>());
}

}  // namespace
}  // namespace state
