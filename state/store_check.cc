#include "state/store_check.h"

#include <map>
#include <utility>

#include <sqlite3.h>

#include "state/migrations.h"
#include "state/rows.h"

namespace state {
namespace {

using Problems = std::vector<std::string>;

// Damage that stops one look is itself a finding; anything else (busy, I/O) is an error.
base::Status note_damage(base::Status status, Problems& problems) {
  if (status || status.error().code() == base::ErrorCode::kStateUnavailable) return status;
  problems.push_back(status.error().message());
  return base::ok();
}

base::Status each_row(sqlite::Database& database, const std::string& sql,
                      const std::function<base::Status(sqlite::Row&)>& on_row) {
  auto statement = sqlite::Statement::prepare(database, sql);
  if (!statement) return statement.error();
  return statement->each(on_row);
}

base::Status check_pages(sqlite::Database& database, Problems& problems) {
  return each_row(database, "PRAGMA integrity_check", [&](sqlite::Row& row) {
    if (std::string text = row.text(); text != "ok") problems.push_back(std::move(text));
    return base::ok();
  });
}

base::Status check_references(sqlite::Database& database, Problems& problems) {
  return each_row(database, "PRAGMA foreign_key_check", [&](sqlite::Row& row) {
    problems.push_back("a row of table " + row.text() + " belongs to no partition");
    return base::ok();
  });
}

base::Result<std::map<std::string, std::string>> schema_of(sqlite::Database& database) {
  std::map<std::string, std::string> schema;
  RETURN_IF_ERROR(
      each_row(database, "SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema", [&](sqlite::Row& row) {
        std::string name = row.text();
        schema[std::move(name)] = row.text();
        return base::ok();
      }));
  return schema;
}

// The triggers and constraints are what refuses a step back: a file without them is not sound.
base::Status check_schema(sqlite::Database& database, Problems& problems) {
  auto fresh = sqlite::Database::open(":memory:", SQLITE_OPEN_READWRITE);
  if (!fresh) return fresh.error();
  RETURN_IF_ERROR(create_schema(*fresh));
  auto wanted = schema_of(*fresh);
  if (!wanted) return wanted.error();
  auto found = schema_of(database);
  if (!found) return found.error();
  for (const auto& [name, sql] : *wanted) {
    const auto at = found->find(name);
    if (at == found->end()) {
      problems.push_back("missing from the schema: " + name);
    } else if (at->second != sql) {
      problems.push_back("changed in the schema: " + name);
    }
  }
  return base::ok();
}

base::Status check_ranges(sqlite::Database& database, const rows::Partition& partition, Problems& problems) {
  const std::string name = partition.row.key.to_string();
  const std::string sql = std::string("SELECT incarnation, ") + rows::kRangeColumns +
                          " FROM range WHERE partition_id = ?1 ORDER BY incarnation, up_begin";
  auto statement = sqlite::Statement::prepare(database, sql);
  if (!statement) return statement.error();
  std::uint64_t incarnation = 0;
  std::uint64_t end = 0;
  return statement->each(
      [&](sqlite::Row& row) -> base::Status {
        const std::uint64_t of = row.u64();
        auto range = rows::read_range(database, row, partition.id, of);
        if (!range) return range.error();
        if (of != incarnation) end = 0;
        if (range->up_begin < end) {
          problems.push_back(name + ": the offset map overlaps at upstream offset " + std::to_string(range->up_begin));
        }
        incarnation = of;
        end = range->up_begin + range->length;
        if (of > partition.row.incarnation) {
          problems.push_back(name + ": the offset map has incarnation " + std::to_string(of) + ", the partition only " +
                             std::to_string(partition.row.incarnation));
        }
        if (of == partition.row.incarnation && end > partition.row.watermark) {
          problems.push_back(name + ": the offset map ends at " + std::to_string(end) + ", above the watermark " +
                             std::to_string(partition.row.watermark));
        }
        return base::ok();
      },
      partition.id);
}

base::Status check_partitions(sqlite::Database& database, Problems& problems) {
  std::vector<rows::Partition> partitions;
  RETURN_IF_ERROR(each_row(database, rows::select_partition_sql(), [&](sqlite::Row& row) {
    auto partition = rows::read_partition(database, row);
    if (!partition) return note_damage(partition.error(), problems);
    partitions.push_back(*std::move(partition));
    return base::ok();
  }));
  for (const rows::Partition& partition : partitions) {
    RETURN_IF_ERROR(note_damage(check_ranges(database, partition, problems), problems));
  }
  return base::ok();
}

base::Status check_gaps(sqlite::Database& database, Problems& problems) {
  return each_row(database,
                  "SELECT id FROM gap WHERE (resolved_as = '') != (resolved_at = 0) "
                  "OR (resolved_as = '' AND resolved_by != '')",
                  [&](sqlite::Row& row) {
                    problems.push_back("ledger row " + std::to_string(row.i64()) + " is half closed");
                    return base::ok();
                  });
}

}  // namespace

base::Result<std::vector<std::string>> check_database(sqlite::Database& database) {
  Problems problems;
  for (const auto look : {check_pages, check_references, check_schema, check_partitions, check_gaps}) {
    RETURN_IF_ERROR(note_damage(look(database, problems), problems));
  }
  return problems;
}

}  // namespace state
