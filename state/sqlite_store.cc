#include "state/sqlite_store.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include <sqlite3.h>

#include "state/migrations.h"
#include "state/state_file.h"
#include "state/store_check.h"

namespace state {

namespace {

std::optional<std::uint64_t> optional_offset(sqlite::Row& row) {
  if (!row.next_is_null()) return row.u64();
  row.skip();
  return std::nullopt;
}

}  // namespace

SqliteStore::~SqliteStore() {
  // When this fails, the next open checks the file: slower, not wrong.
  if (in_use_) (void)database_.execute("UPDATE file SET clean = 1");
}

base::Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& given_path, OpenMode mode) {
  // Two names of one file must meet the same lock.
  std::error_code unresolved;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(given_path, unresolved);
  const std::string path = unresolved ? given_path : resolved.string();

  const bool writable = mode != OpenMode::kReadOnly;
  std::optional<FileLock> lock;
  if (writable) {
    if (mode == OpenMode::kReadWrite) RETURN_IF_ERROR(inspect_state_file(path));  // no lock file beside nothing
    auto taken = FileLock::take(path + ".lock");
    if (!taken) return taken.error();
    lock.emplace(*std::move(taken));
  }
  std::error_code unseen;
  if (mode == OpenMode::kCreate && !std::filesystem::exists(path, unseen) && !unseen) {
    RETURN_IF_ERROR(create_state_file(path));
  }
  RETURN_IF_ERROR(inspect_state_file(path));
  if (writable) restrict_mode(path);

  auto database = sqlite::Database::open(path, writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
  if (!database) return database.error();
  if (writable && sqlite3_db_readonly(database->handle(), "main") != 0) {
    return base::Error(base::ErrorCode::kStateUnavailable, "open", path, "the file is read-only",
                       "check owner and mode of the file, and that it is mounted writable");
  }
  RETURN_IF_ERROR(database->execute("PRAGMA foreign_keys = ON"));
  if (writable) {
    // The journal is moved into the database every 256 pages (1 MiB): a small file system must hold both.
    RETURN_IF_ERROR(
        database->execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 256"));
    RETURN_IF_ERROR(migrate(*database));
  } else {
    RETURN_IF_ERROR(check_version(*database));
  }
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(lock), *std::move(database)));
  store->identity_ = FileIdentity::of(path);
  RETURN_IF_ERROR(store->prepare());
  if (writable) RETURN_IF_ERROR(store->begin_use());
  return store;
}

base::Result<std::unique_ptr<SqliteStore>> SqliteStore::open_in_memory() {
  auto database = sqlite::Database::open(":memory:", SQLITE_OPEN_READWRITE);
  if (!database) return database.error();
  RETURN_IF_ERROR(database->execute("PRAGMA foreign_keys = ON"));
  RETURN_IF_ERROR(create_schema(*database));
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::nullopt, *std::move(database)));
  RETURN_IF_ERROR(store->prepare());
  return store;
}

base::Status SqliteStore::prepare() {
  // Our own fixed statements fail only on a schema that is not ours.
  const auto explained = [this](const base::Error& error) {
    if (error.code() != base::ErrorCode::kInternal) return error;
    return database_.corrupt("open", "its schema is damaged: " + error.message());
  };
  const std::initializer_list<std::pair<sqlite::Statement*, std::string>> all = {
      {&link_,
       "SELECT id, upstream, downstream, upstream_identity, downstream_identity, generation, state, created_at "
       "FROM link"},
      {&partitions_, rows::select_partition_sql() + "ORDER BY up_stream, up_topic, partition"},
      {&error_counts_,
       "SELECT up_stream, up_topic, partition, cause, count FROM error_count JOIN partition ON id = partition_id"},
      {&ranges_, std::string("SELECT ") + rows::kRangeColumns +
                     " FROM range WHERE partition_id = ?1 AND incarnation = ?2 ORDER BY up_begin"},
      {&gaps_,
       "SELECT gap.id, up_stream, up_topic, partition, gap.incarnation, up_begin, up_end, cause, detail, found_at, "
       "resolved_as, resolved_by, resolved_at, digest, file, down_offset FROM gap JOIN partition ON partition.id = "
       "partition_id ORDER BY gap.id"},
      {&events_,
       "SELECT id, at, kind, object, actor, detail FROM (SELECT * FROM event ORDER BY id DESC LIMIT ?1) ORDER BY id"},
      {&verified_,
       "SELECT up_stream, up_topic, partition, verified.generation, up_end, verified.down_end, at FROM verified "
       "JOIN partition ON partition.id = partition_id ORDER BY up_stream, up_topic, partition"},
      {&consumers_,
       "SELECT up_stream, up_topic, partition, kind, name, up_offset, seen_at, down_offset, synced_at, state, detail "
       "FROM consumer_offset JOIN partition ON partition.id = partition_id "
       "ORDER BY up_stream, up_topic, partition, kind, name"},
  };
  for (const auto& [statement, sql] : all) {
    auto prepared = sqlite::Statement::prepare(database_, sql);
    if (!prepared) return explained(prepared.error());
    *statement = *std::move(prepared);
  }
  auto writer = TransactionWriter::prepare(database_);
  if (!writer) return explained(writer.error());
  writer_.emplace(*std::move(writer));
  return base::ok();
}

// Looks at the clean marker, checks the file when it is not set, and clears it.
base::Status SqliteStore::begin_use() {
  auto clean = database_.query_integer("SELECT clean FROM file WHERE id = 1");
  if (!clean) return clean.error();
  if (*clean == 0) {
    auto problems = check();
    if (!problems) return problems.error();
    if (!problems->empty()) {
      std::string found = "not closed in order, and damaged: " + problems->front();
      if (problems->size() > 1) found += " (and " + std::to_string(problems->size() - 1) + " more)";
      return database_.corrupt("open", std::move(found));
    }
  }
  RETURN_IF_ERROR(database_.execute("UPDATE file SET clean = 0"));
  in_use_ = true;
  return base::ok();
}

base::Result<std::optional<LinkRow>> SqliteStore::link() {
  std::optional<LinkRow> found;
  RETURN_IF_ERROR(link_.each([&](sqlite::Row& row) {
    LinkRow& link = found.emplace();
    link.id = row.text();
    link.upstream = row.text();
    link.downstream = row.text();
    link.upstream_identity = row.text();
    link.downstream_identity = row.text();
    link.generation = row.u64();
    link.state = row.text();
    link.created_at = row.u64();
    return base::ok();
  }));
  return found;
}

base::Result<std::vector<PartitionRow>> SqliteStore::partitions() {
  std::vector<PartitionRow> all;
  RETURN_IF_ERROR(partitions_.each([&](sqlite::Row& row) -> base::Status {
    auto partition = rows::read_partition(database_, row);
    if (!partition) return partition.error();
    all.push_back(std::move(partition->row));
    return base::ok();
  }));
  RETURN_IF_ERROR(add_error_counts(all));
  return all;
}

base::Status SqliteStore::add_error_counts(std::span<PartitionRow> to) {
  return error_counts_.each([&](sqlite::Row& row) -> base::Status {
    base::PartitionKey key;
    key.topic.stream = row.text();
    key.topic.topic = row.text();
    key.partition = row.u32();
    const auto found = std::ranges::lower_bound(to, key, {}, &PartitionRow::key);  // sorted as SQL has sorted them
    std::string cause = row.text();
    if (found != to.end() && found->key == key) found->counters.errors_by_cause[std::move(cause)] = row.u64();
    return base::ok();
  });
}

base::Result<std::optional<PartitionRow>> SqliteStore::partition(const base::PartitionKey& key) {
  auto found = writer_->find(key);
  if (!found) return found.error();
  if (!*found) return std::optional<PartitionRow>();
  PartitionRow& row = (*found)->row;
  RETURN_IF_ERROR(add_error_counts(std::span(&row, 1)));
  return std::optional<PartitionRow>(std::move(row));
}

base::Result<std::vector<RangeRow>> SqliteStore::ranges(const base::PartitionKey& key, std::uint64_t incarnation) {
  auto found = writer_->find(key);
  if (!found) return found.error();
  std::vector<RangeRow> all;
  if (!*found) return all;
  const std::int64_t id = (*found)->id;
  RETURN_IF_ERROR(ranges_.each(
      [&](sqlite::Row& row) -> base::Status {
        auto range = rows::read_range(database_, row, id, incarnation);
        if (!range) return range.error();
        all.push_back(*range);
        return base::ok();
      },
      id, incarnation));
  return all;
}

base::Result<std::vector<GapRow>> SqliteStore::gaps() {
  std::vector<GapRow> all;
  RETURN_IF_ERROR(gaps_.each([&](sqlite::Row& row) {
    GapRow& gap = all.emplace_back();
    gap.id = row.i64();
    gap.key.topic.stream = row.text();
    gap.key.topic.topic = row.text();
    gap.key.partition = row.u32();
    gap.incarnation = row.u64();
    gap.up_begin = row.u64();
    gap.up_end = row.u64();
    gap.cause = row.text();
    gap.detail = row.text();
    gap.found_at = row.u64();
    gap.resolved_as = row.text();
    gap.resolved_by = row.text();
    gap.resolved_at = row.u64();
    gap.digest = rows::read_digest(row);
    gap.file = row.text();
    if (row.next_is_null()) {
      row.skip();
    } else {
      gap.down_offset = row.u64();
    }
    return base::ok();
  }));
  return all;
}

base::Result<std::vector<EventRow>> SqliteStore::events(std::size_t newest) {
  std::vector<EventRow> all;
  const auto limit = std::min<std::uint64_t>(newest, std::numeric_limits<std::int64_t>::max());
  RETURN_IF_ERROR(events_.each(
      [&](sqlite::Row& row) {
        EventRow& event = all.emplace_back();
        event.id = row.i64();
        event.at = row.u64();
        event.kind = row.text();
        event.object = row.text();
        event.actor = row.text();
        event.detail = row.text();
        return base::ok();
      },
      limit));
  return all;
}

base::Result<std::vector<VerifiedRow>> SqliteStore::verified() {
  std::vector<VerifiedRow> all;
  RETURN_IF_ERROR(verified_.each([&](sqlite::Row& row) {
    VerifiedRow& verified = all.emplace_back();
    verified.key.topic.stream = row.text();
    verified.key.topic.topic = row.text();
    verified.key.partition = row.u32();
    verified.generation = row.u64();
    verified.up_end = row.u64();
    verified.down_end = row.u64();
    verified.at = row.u64();
    return base::ok();
  }));
  return all;
}

base::Result<std::vector<ConsumerRow>> SqliteStore::consumers() {
  std::vector<ConsumerRow> all;
  RETURN_IF_ERROR(consumers_.each([&](sqlite::Row& row) {
    ConsumerRow& consumer = all.emplace_back();
    consumer.key.topic.stream = row.text();
    consumer.key.topic.topic = row.text();
    consumer.key.partition = row.u32();
    consumer.kind = row.text();
    consumer.name = row.text();
    consumer.up_offset = optional_offset(row);
    consumer.seen_at = row.u64();
    consumer.down_offset = optional_offset(row);
    consumer.synced_at = row.u64();
    consumer.state = row.text();
    consumer.detail = row.text();
    return base::ok();
  }));
  return all;
}

base::Result<Applied> SqliteStore::apply(const Transaction& transaction) {
  RETURN_IF_ERROR(still_there());
  if (transaction.empty()) return Applied{};
  auto applied = apply_once(transaction);
  // A full disk may be the journal's own growth: what is moved into the database leaves room for the same call again.
  if (!applied && applied.error().code() == base::ErrorCode::kStateUnavailable) {
    sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  }
  return applied;
}

// What is written into a file without a name is gone with the process.
base::Status SqliteStore::still_there() const {
  if (!lock_) return base::ok();
  const auto present = FileIdentity::of(database_.path());
  if (present && present != identity_) {
    return database_.corrupt("commit", present->inode == 0 ? "the state file was removed while it was in use"
                                                           : "the state file was replaced while it was in use");
  }
  if (!lock_->is_in_place()) {
    return base::Error(base::ErrorCode::kStateCorrupt, "commit", database_.path() + ".lock",
                       "the lock file was removed while it was in use: it would not keep a second process out",
                       "start again; the state file itself is as it was");
  }
  return base::ok();
}

base::Result<Applied> SqliteStore::apply_once(const Transaction& transaction) {
  auto scope = sqlite::Transaction::begin(database_);
  if (!scope) return scope.error();
  auto applied = writer_->write(transaction);
  if (!applied) return applied;
  RETURN_IF_ERROR(scope->commit());
  return applied;
}

base::Result<std::vector<std::string>> SqliteStore::check() { return check_database(database_); }

base::Status SqliteStore::backup(const std::string& target) {
  std::error_code error;
  const bool same = std::filesystem::equivalent(target, database_.path(), error) && !error;
  if (same || std::filesystem::exists(target + "-wal", error)) {
    return base::Error(base::ErrorCode::kInvalidArgument, "backup", target,
                       same ? "this is the state file itself" : "a database in use has this name",
                       "name a file that does not exist");
  }
  const std::string temporary = target + ".new";
  RETURN_IF_ERROR(make_private_file(temporary));
  {
    auto copy = sqlite::Database::open(temporary, SQLITE_OPEN_READWRITE);
    if (!copy) return copy.error();
    sqlite3_backup* backup = sqlite3_backup_init(copy->handle(), "main", database_.handle(), "main");
    if (backup == nullptr) return copy->error("backup");
    sqlite3_backup_step(backup, -1);
    if (sqlite3_backup_finish(backup) != SQLITE_OK) return copy->error("backup");
  }
  return publish_file(temporary, target);
}

}  // namespace state
