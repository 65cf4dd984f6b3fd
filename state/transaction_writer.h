// Turns one Transaction into rows: checks generations, moves watermarks, keeps the offset map merged and the ledger.
// Does not begin or commit: SqliteStore::apply does.
// Affinity: that of its database.
#pragma once

#include <optional>
#include <vector>

#include "state/rows.h"
#include "state/sqlite.h"
#include "state/store.h"

namespace state {

class TransactionWriter {
 public:
  // REQUIRES: the database outlives it and does not move.
  static base::Result<TransactionWriter> prepare(sqlite::Database& database);

  // After an error the caller rolls back. Errors: SqliteStore::apply.
  base::Result<Applied> write(const Transaction& transaction);

  base::Result<std::optional<rows::Partition>> find(const base::PartitionKey& key);

 private:
  using Found = base::Result<std::optional<rows::Partition>>;

  explicit TransactionWriter(sqlite::Database& database) : database_(&database) {}
  // The row when it has this generation; else none, and `key` is added to `applied.stale`.
  Found find_current(const base::PartitionKey& key, std::uint64_t generation, Applied& applied);
  base::Status write_commit(const PartitionCommit& commit, Applied& applied);
  base::Status write_replace(const PartitionReplace& replace, Applied& applied);
  base::Status write_note(const PartitionNote& note, Applied& applied);
  base::Status count_errors(std::int64_t id, const Counters& added);
  base::Status write_link(const LinkRow& link);
  base::Status write_verified(const VerifiedRow& row, Applied& applied);
  base::Status write_consumer(const ConsumerRow& row);
  base::Status cut_ranges(std::int64_t id, const PartitionRow& row);
  base::Status append_ranges(std::int64_t id, const PartitionRow& row, const std::vector<RangeRow>& ranges);
  base::Status append_gaps(std::int64_t id, const PartitionRow& row, const std::vector<GapRow>& gaps);
  base::Status close_gaps(std::int64_t id, const PartitionReplace& replace);
  base::Status change_gaps(std::int64_t id, const PartitionRow& row, const std::vector<GapChange>& changes);
  base::Status expect_gap(std::int64_t gap, std::int64_t id, const PartitionRow& row);
  base::Result<std::optional<RangeRow>> last_range(std::int64_t id, std::uint64_t incarnation);
  base::Error broken(const PartitionRow& row, const std::string& what) const;

  sqlite::Database* database_;
  sqlite::Statement find_, put_;
  sqlite::Statement last_range_, put_range_, cut_ranges_;
  sqlite::Statement put_gap_, close_gap_, change_gap_, gap_is_there_;
  sqlite::Statement count_error_, put_event_;
  sqlite::Statement link_id_, put_link_;
  sqlite::Statement put_verified_, put_consumer_;
};

}  // namespace state
