// What `failover`, `promote` and `drill --predict` print: what would be lost, and how a link ended. Pure.
#pragma once

#include <string>

#include "iggy/replicate/admin/v1/admin.pb.h"

namespace cli {

namespace pb = iggy::replicate::admin::v1;

// The sentence first, then the topics that lack something or of which too little is known (at most 20 of them).
std::string loss_view(const pb::Loss& loss);
// What was done, what was not, and what comes next.
std::string end_view(const pb::EndReport& report);

}  // namespace cli
