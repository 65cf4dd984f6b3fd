// Rows of the tables to and from structs, with the checksums of the rows that decide positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "state/sqlite.h"
#include "state/store.h"

namespace state::rows {

struct Partition {
  std::int64_t id = 0;
  PartitionRow row;
};

// SELECT of all columns that read_partition expects; append a WHERE.
const std::string& select_partition_sql();
// INSERT, or UPDATE when the id exists, as write_partition binds it.
const std::string& upsert_partition_sql();

// kStateCorrupt when the row's checksum differs or a value can't be.
base::Result<Partition> read_partition(const sqlite::Database& database, sqlite::Row& row);
// `id`: none for a new row.
base::Status write_partition(sqlite::Statement& upsert, std::optional<std::int64_t> id, const PartitionRow& row);

// Columns that read_range expects.
inline constexpr const char* kRangeColumns = "up_begin, down_begin, length, confirmed, checksum";
inline constexpr const char* kUpsertRange =
    "INSERT INTO range (partition_id, incarnation, up_begin, down_begin, length, confirmed, checksum) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) "
    "ON CONFLICT (partition_id, incarnation, up_begin) DO UPDATE SET length = ?5, checksum = ?7";
base::Result<RangeRow> read_range(const sqlite::Database& database, sqlite::Row& row, std::int64_t partition_id,
                                  std::uint64_t incarnation);
base::Status write_range(sqlite::Statement& upsert, std::int64_t partition_id, std::uint64_t incarnation,
                         const RangeRow& range);

// A digest as a column of 16 bytes; none = NULL.
std::optional<base::Bytes> digest_blob(const std::optional<base::Digest>& digest);
std::optional<base::Digest> read_digest(sqlite::Row& row);

}  // namespace state::rows
