// The fence of a planned move: the writers' user loses the right to send upstream. Everything that implies sending goes
// with it (manage rights do); reading stays.
//
// Affinity: the client's io_context.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "iggy/client.h"

namespace replicator {

// `taken`: the rights that were there, in words: "send_messages", "stream 3: manage_topics", "stream 3 topic 1: …".
struct Fence {
  iggy::Permissions permissions;  // what is left
  std::vector<std::string> taken;
};
// Pure.
Fence without_sending(iggy::Permissions permissions);

// Looks (dry run) or does it; gives back which rights were taken, so that they can be given again. None when there was
// nothing to take (fenced before). Errors: kNotFound (no such user), kPermission (ours may not manage users), those of
// the connection: asked again, it does what is left to do.
base::Task<base::Result<std::vector<std::string>>> fence_user(iggy::Client& upstream, std::string user, bool dry_run);

}  // namespace replicator
