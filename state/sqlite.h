// RAII over the SQLite C interface: database, prepared statement, transaction. Knows nothing of our tables.
//
// Integers are stored as SQLite's int64: a value of 2^63 or more is refused (kInternal) before anything is written, and
// a negative one that is read back as unsigned is kStateCorrupt.
// Errors: see Database::error(). Affinity: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace state::sqlite {

class Database {
 public:
  // `flags`: SQLITE_OPEN_*. Waits for no lock: a busy file is kStateUnavailable at once.
  static base::Result<Database> open(const std::string& path, int flags);

  // Runs statements that return nothing of interest.
  base::Status execute(const std::string& sql);
  // First column of the first row.
  base::Result<std::int64_t> query_integer(const std::string& sql);

  // The last failure as an error. Full, read-only, busy, I/O: kStateUnavailable. Corrupt or not a database:
  // kStateCorrupt. Everything else (a constraint, a trigger, bad SQL) is kInternal.
  base::Error error(std::string_view operation) const;
  base::Error corrupt(std::string_view operation, std::string found) const;

  sqlite3* handle() const { return handle_.get(); }
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
};

// kStateCorrupt with the repair as its hint.
base::Error corrupt_file(std::string_view operation, const std::string& path, std::string found);

// The columns of one row, read from left to right. After a value that can't be, it is failed for good (as ByteReader).
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  std::int64_t i64();
  std::uint64_t u64();
  std::uint32_t u32();
  std::string text();
  base::ByteView blob();  // valid until the next step
  bool next_is_null() const;
  void skip(int columns = 1) { column_ += columns; }
  void fail() { failed_ = true; }
  bool ok() const { return !failed_; }

 private:
  sqlite3_stmt* statement_;
  int column_ = 0;
  bool failed_ = false;
};

struct Null {};

// A prepared statement. REQUIRES: the database outlives it and does not move.
class Statement {
 public:
  Statement() = default;
  static base::Result<Statement> prepare(Database& database, const std::string& sql);

  // Binds the values in order, runs to the end and ignores rows.
  template <class... Values>
  base::Status run(const Values&... values) {
    return each([](Row&) -> base::Status { return base::ok(); }, values...);
  }
  // The same, with `on_row` for each row; an error of `on_row` ends it, a failed row is kStateCorrupt.
  template <class... Values>
  base::Status each(const std::function<base::Status(Row&)>& on_row, const Values&... values) {
    next_ = 1;
    bind_failed_ = false;
    (bind(values), ...);
    return step_all(on_row);
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void bind(std::uint64_t value);
  void bind(std::int64_t value);
  void bind(std::uint32_t value) { bind(static_cast<std::uint64_t>(value)); }
  void bind(bool value) { bind(static_cast<std::uint64_t>(value ? 1 : 0)); }
  void bind(std::string_view value);
  void bind(base::ByteView value);
  void bind(Null);
  template <class T>
  void bind(const std::optional<T>& value) {
    if (value) {
      bind(*value);
    } else {
      bind(Null{});
    }
  }
  base::Status step_all(const std::function<base::Status(Row&)>& on_row);

  Database* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_ = 1;
  bool bind_failed_ = false;
};

// BEGIN IMMEDIATE … COMMIT. Rolls back unless commit() succeeded: after a failure nothing was changed.
class Transaction {
 public:
  static base::Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  base::Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace state::sqlite
