// One message in a file of its own: what was left out, kept for a person and for `gaps replay`.
//
//   DIR/<stream>/<topic>/<partition>/<offset>-<digest, first 8 digits>.record       folders 0700, file 0600
//
// Text lines "name value" in this order, each ended by a line feed, then an empty line, then the bytes:
//
//   iggy-replicate-record 1
//   stream, topic         names; a byte outside [A-Za-z0-9_.-] is written %XX (in the file's path too)
//   partition, offset     upstream
//   id                    32 hex digits, as `gaps` and logs show it
//   timestamp, origin_timestamp        µs since the epoch
//   digest                32 hex digits over id, origin timestamp, lengths, payload and headers
//   payload_bytes, header_bytes        lengths of what follows: the payload, then the user-header block as stored
//
// The name holds the digest, so another message that stood at the same offset (a recreated topic) keeps its own file.
#pragma once

#include <string>

#include "base/ids.h"
#include "base/record.h"
#include "base/result.h"

namespace state {

// Durable when it returns: written under a temporary name, fsynced, renamed, every new folder fsynced. Returns the
// path. Writing the same message again is no error. Errors: kStateUnavailable.
base::Result<std::string> save_record(const std::string& folder, const base::PartitionKey& key,
                                      const base::Record& record);

// Errors: kNotFound, kStateUnavailable, kMalformed (not such a file, or its bytes do not have its digest).
base::Result<base::RecordBatch> load_record(const std::string& path);

}  // namespace state
