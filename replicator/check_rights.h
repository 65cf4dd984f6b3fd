// The part of `check` that is about rights: what the link will do with both ends, and what their users may.
#pragma once

#include "iggy/client.h"
#include "replicator/run.h"
#include "replicator/topics/reconciler.h"

namespace replicator {

// Adds one item per missing right, with everything that it is missing on, or one that says that none is. `topology` is
// that of a dry run. REQUIRES: both clients connected once; all references outlive the call.
base::Task<void> check_rights(iggy::Client& upstream, iggy::Client& downstream, const Rules& rules,
                              const Topology& topology, CheckReport& report);

}  // namespace replicator
