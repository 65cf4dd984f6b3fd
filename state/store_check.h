// What must hold in a sound state file, beyond what a single statement can see.
#pragma once

#include <string>
#include <vector>

#include "state/sqlite.h"

namespace state {

// One sentence per problem; empty = sound. An error only when the file can't be read at all.
base::Result<std::vector<std::string>> check_database(sqlite::Database& database);

}  // namespace state
