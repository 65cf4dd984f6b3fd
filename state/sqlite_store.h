// The Store on SQLite: WAL, synchronous=FULL, one transaction and one fsync per apply().
//
// Promises: after any crash the file holds every apply() that returned, each of them whole (at most one more, that was
// under way). A failed apply() changed nothing that this process can see. The SQL refuses a watermark that goes back
// within a generation (kInternal). A damaged file is an error (kStateCorrupt), never a fresh start; rows that decide
// positions carry a checksum, because SQLite's pages have none.
// Affinity: one thread at a time. One process writes (FileLock on `<path>.lock`); any number may read.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "state/file_lock.h"
#include "state/sqlite.h"
#include "state/store.h"
#include "state/transaction_writer.h"

namespace state {

enum class OpenMode {
  kReadWrite,  // the file must exist
  kCreate,     // made when it does not exist; an existing one is opened as with kReadWrite
  kReadOnly,   // takes no lock, changes nothing; welcome while another process writes
};

class SqliteStore final : public Store {
 public:
  // Errors: kNotFound (no file), kStateLocked (another process has it), kStateCorrupt, kStateUnavailable (can't be read
  // or written), kUnsupported (schema of a newer version), kInvalidArgument (not a file).
  // A file whose last close was not in order is checked first (check()), which takes time when it is large.
  static base::Result<std::unique_ptr<SqliteStore>> open(const std::string& path, OpenMode mode);
  // Ends with the object; for simulation. No file, no lock, no fsync.
  static base::Result<std::unique_ptr<SqliteStore>> open_in_memory();
  ~SqliteStore() override;  // marks the file as closed in order

  base::Result<std::optional<LinkRow>> link() override;
  base::Result<std::vector<PartitionRow>> partitions() override;  // ordered by key
  base::Result<std::optional<PartitionRow>> partition(const base::PartitionKey& key) override;
  base::Result<std::vector<RangeRow>> ranges(const base::PartitionKey& key, std::uint64_t incarnation) override;
  base::Result<std::vector<GapRow>> gaps() override;
  base::Result<std::vector<EventRow>> events(std::size_t newest) override;
  base::Result<std::vector<VerifiedRow>> verified() override;
  base::Result<std::vector<ConsumerRow>> consumers() override;
  // Further errors: kWrongLink (a link row with another id). kInternal also for entries that contradict themselves or
  // the file: a range beyond the watermark or into what is mapped, an anchor at or above the watermark, a gap of
  // another partition, a ledger row that is not there. An entry for a partition without a row is stale.
  // kStateCorrupt when the file or its lock was removed or replaced while in use: also for an empty transaction, which
  // is how an idle owner looks.
  base::Result<Applied> apply(const Transaction& transaction) override;

  // A consistent copy while this store is in use: written under a temporary name, fsynced, renamed to `target`.
  // An existing file of that name is replaced, unless it is this one or in use (kInvalidArgument).
  base::Status backup(const std::string& target);
  // Everything that is wrong with the file, one sentence each: SQLite's integrity check, then what our rows promise.
  // Empty = sound.
  base::Result<std::vector<std::string>> check();

 private:
  SqliteStore(std::optional<FileLock> lock, sqlite::Database database)
      : lock_(std::move(lock)), database_(std::move(database)) {}
  base::Status prepare();
  base::Status still_there() const;
  base::Result<Applied> apply_once(const Transaction& transaction);
  base::Status begin_use();
  base::Status add_error_counts(std::span<PartitionRow> to);

  std::optional<FileLock> lock_;  // released last
  std::optional<FileIdentity> identity_;
  sqlite::Database database_;
  bool in_use_ = false;  // begin_use() has cleared the clean marker
  std::optional<TransactionWriter> writer_;
  sqlite::Statement link_, partitions_, error_counts_, ranges_, gaps_, events_, verified_, consumers_;
};

}  // namespace state
