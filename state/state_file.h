// The state file as a file: created complete or not at all, recognised before SQLite sees it, replaced atomically.
#pragma once

#include <string>

#include "base/result.h"

namespace state {

// Makes a new file with the present schema: built under a temporary name, fsynced, then renamed, so a crash never
// leaves a half-made one. kStateCorrupt when a write-ahead log without its database lies there (the file itself was
// lost). REQUIRES: the lock is held and `path` does not exist.
base::Status create_state_file(const std::string& path);

// kNotFound, kInvalidArgument (not a file), kStateCorrupt (empty, cut short, not a database).
base::Status inspect_state_file(const std::string& path);

// Mode 0600 on the file and what SQLite keeps beside it. What can't be changed stays as it is.
void restrict_mode(const std::string& path);

// Flushes `from` to the disk, gives it the name `to`, flushes the folder.
base::Status publish_file(const std::string& from, const std::string& to);

// Makes an empty file with mode 0600 in place of whatever is there.
base::Status make_private_file(const std::string& path);

}  // namespace state
