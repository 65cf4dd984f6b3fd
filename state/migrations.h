// The schema, as numbered steps. Forwards only, each step in a transaction of its own together with its number
// (PRAGMA user_version), so a crash leaves a complete older version.
#pragma once

#include <cstdint>

#include "state/sqlite.h"

namespace state {

// PRAGMA application_id of our files: "IgRp".
inline constexpr std::int64_t kApplicationId = 0x49675270;

// The version that this program reads and writes.
std::int64_t schema_version();

// Makes the present schema. REQUIRES: an empty database.
base::Status create_schema(sqlite::Database& database);

// Brings the file from its version up to ours. A newer version is refused (kUnsupported), as is a file that holds no
// schema or another program's (kStateCorrupt). REQUIRES: opened for writing.
base::Status migrate(sqlite::Database& database);

// The same refusals without a change, for readers; an older version is refused too.
base::Status check_version(sqlite::Database& database);

}  // namespace state
