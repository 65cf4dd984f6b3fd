// `failover` without a running link: on its state file, which must not be in use. Blocking; one thread.
#pragma once

#include "replicator/model/commands.h"
#include "replicator/model/config.h"

namespace replicator {

// Needs config.state_file, downstream_url, marker; the upstream is not asked. What the downstream lacks is unknown: a
// state file holds what was copied, not what there was. Errors: those of opening the file (kStateLocked: a link runs on
// it, ask that one), kInvalidArgument (no link has used the file; kPromote needs a running link).
base::Result<EndReport> end_link_offline(const Config& config, const EndRequest& request);

}  // namespace replicator
