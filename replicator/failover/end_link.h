// The end of a link: the same steps for `failover` and `promote`, for a running link and for a state file alone.
//
//   1 stopped      nothing is written downstream any more      by the caller, before end_link()
//   2 recorded     state file: link.state = promoted + event   one transaction, whatever the number of topics
//   3 recorded     link's record downstream: promoted          marker.h: a record that stays, then the newest one
//   4 consumers    stored offsets downstream                   never back; a row for each in the state file
//
// A crash (or a failure) at each step, and what the same verb does when it is repeated:
//   before 1   nothing happened.
//   in 1       nothing is recorded: `run` would go on copying; the verb begins anew.
//   after 2    `run` on this file refuses at once, without asking any cluster. A copy of the file made before still
//   finds
//              nothing downstream: the repeated verb writes it. Step 2 does nothing the second time.
//   after 3    no process of the link ever writes again, with whatever file. Steps 2 and 3 do nothing the second time.
//   after 4    the same; consumers are synced once more, which never moves one back.
// A step that fails stops no later one: a full disk does not keep the record downstream from being written, and a dead
// downstream does not keep the state file from saying so. What is missing is in EndReport::undone.
//
// The upstream is not asked: it may be dead, half-dead or come back at any moment.
// Affinity: the client's io_context. Lifetime: store, client and clock outlive the call.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "iggy/client.h"
#include "replicator/marker/marker.h"
#include "replicator/model/commands.h"
#include "replicator/model/config.h"
#include "replicator/model/rules.h"
#include "state/async_store.h"

namespace replicator {

// What a marker of this link is told: everything but the two questions that need a running link (is_rival, still_runs).
// REQUIRES: rules.marker().
MarkerOptions marker_options(const Config& config, const Rules& rules, const state::LinkRow& link);

struct EndLinkOptions {
  Ending ending = Ending::kFailover;
  std::string actor;
  Loss loss;
  base::Duration patience = std::chrono::seconds(10);  // how long step 3 is tried again
  // Step 4: moves consumer offsets to the downstream. Empty = the step is left out.
  std::function<base::Task<base::Result<std::vector<state::ConsumerRow>>>()> sync_consumers;
};

// `link`: in, as loaded; out, as it stands now. `downstream`: connected once, or null when it can't be reached (then
// `unreachable` says why). `config` and `rules` are those of the link. Never fails as a whole.
base::Task<EndReport> end_link(state::AsyncStore& store, state::LinkRow& link, iggy::Client* downstream,
                               std::string unreachable, base::Clock& clock, const Config& config, const Rules& rules,
                               EndLinkOptions options);

// Connects; what may pass (refused, silent) is tried again until `patience` is over.
base::Task<base::Status> connect_for(iggy::Client& client, base::Clock& clock, base::Duration patience);

}  // namespace replicator
