#include "state/sqlite.h"

#include <limits>
#include <utility>

#include <sqlite3.h>

namespace state::sqlite {
namespace {

bool is_unavailable(int extended_code) {
  switch (extended_code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM:
      return true;
    default:
      return false;
  }
}

const char* hint_for(int extended_code) {
  switch (extended_code & 0xff) {
    case SQLITE_FULL:
      return "free space on its file system; nothing was changed, the commit is repeated";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return "check owner and mode of the file and of its folder, and that it is mounted writable";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program holds a lock on it: close it";
    default:
      return "check the disk; nothing was changed";
  }
}

}  // namespace

base::Error corrupt_file(std::string_view operation, const std::string& path, std::string found) {
  return {base::ErrorCode::kStateCorrupt, std::string(operation), path, std::move(found),
          "list the damage with `iggy-replicate state check --state " + path +
              "`, then restore a backup; with a new file every partition asks before it copies anything again"};
}

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

base::Result<Database> Database::open(const std::string& path, int flags) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(handle, path);
  if (handle == nullptr) {
    return base::Error(base::ErrorCode::kStateUnavailable, "open", path, "out of memory");
  }
  if (code != SQLITE_OK) return database.error("open");
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 0);
  return database;
}

base::Error Database::error(std::string_view operation) const {
  const int code = sqlite3_extended_errcode(handle());
  std::string message = std::string(sqlite3_errmsg(handle())) + " (SQLite " + std::to_string(code) + ")";
  const int primary = code & 0xff;
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || code == SQLITE_IOERR_CORRUPTFS) {
    return corrupt(operation, std::move(message));
  }
  if (is_unavailable(code)) {
    return {base::ErrorCode::kStateUnavailable, std::string(operation), path_, std::move(message), hint_for(code)};
  }
  return {base::ErrorCode::kInternal, std::string(operation), path_, std::move(message)};
}

base::Error Database::corrupt(std::string_view operation, std::string found) const {
  return corrupt_file(operation, path_, std::move(found));
}

base::Status Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error("write");
  return base::ok();
}

base::Result<std::int64_t> Database::query_integer(const std::string& sql) {
  auto statement = Statement::prepare(*this, sql);
  if (!statement) return statement.error();
  std::optional<std::int64_t> value;
  RETURN_IF_ERROR(statement->each([&](Row& row) {
    if (!value) value = row.i64();
    return base::ok();
  }));
  if (!value) return corrupt("read", "no row for: " + sql);
  return *value;
}

std::int64_t Row::i64() {
  if (sqlite3_column_type(statement_, column_) != SQLITE_INTEGER) failed_ = true;
  return sqlite3_column_int64(statement_, column_++);
}

std::uint64_t Row::u64() {
  const std::int64_t value = i64();
  if (value < 0) failed_ = true;
  return static_cast<std::uint64_t>(value);
}

std::uint32_t Row::u32() {
  const std::uint64_t value = u64();
  if (value > std::numeric_limits<std::uint32_t>::max()) failed_ = true;
  return static_cast<std::uint32_t>(value);
}

std::string Row::text() {
  const int column = column_++;
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) {
    failed_ = true;
    return {};
  }
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

base::ByteView Row::blob() {
  const int column = column_++;
  const void* bytes = sqlite3_column_blob(statement_, column);
  return {static_cast<const std::byte*>(bytes), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Row::next_is_null() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

base::Result<Statement> Statement::prepare(Database& database, const std::string& sql) {
  Statement statement;
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v3(database.handle(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr) !=
      SQLITE_OK) {
    return database.error("prepare");
  }
  statement.database_ = &database;
  statement.statement_.reset(handle);
  return statement;
}

void Statement::bind(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) bind_failed_ = true;
  bind(static_cast<std::int64_t>(value));
}
void Statement::bind(std::int64_t value) {
  if (sqlite3_bind_int64(statement_.get(), next_++, value) != SQLITE_OK) bind_failed_ = true;
}
// Bound values live as long as the call that binds them: no copy.
void Statement::bind(std::string_view value) {
  const char* text = value.data() == nullptr ? "" : value.data();
  if (sqlite3_bind_text64(statement_.get(), next_++, text, value.size(), SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK) {
    bind_failed_ = true;
  }
}
void Statement::bind(base::ByteView value) {
  if (sqlite3_bind_blob64(statement_.get(), next_++, value.data(), value.size(), SQLITE_STATIC) != SQLITE_OK) {
    bind_failed_ = true;
  }
}
void Statement::bind(Null) {
  if (sqlite3_bind_null(statement_.get(), next_++) != SQLITE_OK) bind_failed_ = true;
}

base::Status Statement::step_all(const std::function<base::Status(Row&)>& on_row) {
  // Reset on every way out: a statement that is left open would keep a read transaction open.
  struct Reset {
    sqlite3_stmt* statement;
    ~Reset() {
      sqlite3_reset(statement);
      sqlite3_clear_bindings(statement);
    }
  };
  const Reset reset{statement_.get()};
  if (bind_failed_) {
    return base::Error(base::ErrorCode::kInternal, "write", database_->path(),
                       std::string("a value does not fit (2^63 or more): ") + sqlite3_sql(statement_.get()));
  }
  while (true) {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_DONE) return base::ok();
    if (code != SQLITE_ROW) return database_->error(sqlite3_stmt_readonly(statement_.get()) != 0 ? "read" : "write");
    Row row(statement_.get());
    RETURN_IF_ERROR(on_row(row));
    if (!row.ok())
      return database_->corrupt("read", std::string("impossible value read by: ") + sqlite3_sql(statement_.get()));
  }
}

base::Result<Transaction> Transaction::begin(Database& database) {
  RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // Some failures have rolled back already; a ROLLBACK then would itself be an error.
  if (database_ != nullptr && sqlite3_get_autocommit(database_->handle()) == 0) {
    sqlite3_exec(database_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

base::Status Transaction::commit() {
  RETURN_IF_ERROR(database_->execute("COMMIT"));
  database_ = nullptr;
  return base::ok();
}

}  // namespace state::sqlite
