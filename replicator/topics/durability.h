// Whether the ends can keep what was asked for: the downstream its acknowledgment (`copy.ack`: the server, then each
// topic), the upstream our position (`copy.upstream_commit`).
// Affinity: the client's io_context. Lifetime: the client outlives the call.
#pragma once

#include "base/result.h"
#include "base/task.h"
#include "iggy/client.h"
#include "replicator/model/config.h"

namespace replicator {

inline constexpr std::string_view kDurability = "durability";  // topic option of 0.9.0 and later, fixed at creation

// kInvalidArgument: never, with what to ask for instead. Other errors: it can't be known now.
base::Task<base::Status> can_keep(iggy::Client& downstream, Ack ack);
// kUnsupported when the upstream has no such consumer kind.
base::Status can_store_as(const Config& config);

bool is_persisted(const iggy::Topic& topic);
// To create a topic with.
iggy::Option persisted();

}  // namespace replicator
