#include "state/migrations.h"

#include <array>
#include <string>

#include "state/schema_sql.h"  // made from schema.sql by CMake

namespace state {
namespace {

// Element n brings version n to version n + 1. Never edit one that was released: append.
constexpr const char* kReplay = R"(
-- Of one message that was left out: what `gaps replay` needs.
ALTER TABLE gap ADD COLUMN digest      BLOB CHECK (length(digest) = 16);         -- of what would have been sent
ALTER TABLE gap ADD COLUMN file        TEXT NOT NULL DEFAULT '';                 -- exported bytes, '' = none
ALTER TABLE gap ADD COLUMN down_offset INTEGER CHECK (down_offset >= 0);         -- where the replay stands
)";
constexpr const char* kErrorCauses = R"(
-- Failed attempts of a partition, by cause. They decide nothing, so they carry no checksum.
CREATE TABLE error_count (
  partition_id INTEGER NOT NULL REFERENCES partition (id),
  cause        TEXT    NOT NULL CHECK (cause != ''),
  count        INTEGER NOT NULL CHECK (count > 0),
  PRIMARY KEY (partition_id, cause)
) STRICT, WITHOUT ROWID;
)";
constexpr std::array kMigrations = {kSchemaSql, kReplay, kErrorCauses, kSchemaCompareSql};

base::Result<std::int64_t> version_of(sqlite::Database& database) {
  auto version = database.query_integer("PRAGMA user_version");
  if (!version) return version.error();
  auto application = database.query_integer("PRAGMA application_id");
  if (!application) return application.error();
  if (*version < 1 || *application != kApplicationId) {
    return database.corrupt("open", "a SQLite database, but not a state file: application id " +
                                        std::to_string(*application) + ", schema version " + std::to_string(*version));
  }
  if (*version > schema_version()) {
    return base::Error(base::ErrorCode::kUnsupported, "open", database.path(),
                       "the file has schema version " + std::to_string(*version) + ", this program knows up to " +
                           std::to_string(schema_version()),
                       "use the newer iggy-replicate that wrote it; schemas never go back");
  }
  return *version;
}

base::Status run_steps(sqlite::Database& database, std::size_t from) {
  for (std::size_t step = from; step < kMigrations.size(); ++step) {
    auto transaction = sqlite::Transaction::begin(database);
    if (!transaction) return transaction.error();
    RETURN_IF_ERROR(database.execute(kMigrations[step]));
    const std::string stamp = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                              "; PRAGMA user_version = " + std::to_string(step + 1);
    RETURN_IF_ERROR(database.execute(stamp));
    RETURN_IF_ERROR(transaction->commit());
  }
  return base::ok();
}

}  // namespace

std::int64_t schema_version() { return static_cast<std::int64_t>(kMigrations.size()); }

base::Status create_schema(sqlite::Database& database) { return run_steps(database, 0); }

base::Status migrate(sqlite::Database& database) {
  auto version = version_of(database);
  if (!version) return version.error();
  return run_steps(database, static_cast<std::size_t>(*version));
}

base::Status check_version(sqlite::Database& database) {
  auto version = version_of(database);
  if (!version) return version.error();
  if (*version < schema_version()) {
    return base::Error(base::ErrorCode::kUnsupported, "open", database.path(),
                       "the file has schema version " + std::to_string(*version) + ", this program reads " +
                           std::to_string(schema_version()),
                       "start `iggy-replicate run` on it once: it migrates the file");
  }
  return base::ok();
}

}  // namespace state
