// Names of this process, as link records carry them.
#pragma once

#include <string>

namespace replicator {

std::string random_hex();  // 32 digits
// "<random hex>@host:pid", new at every call.
std::string new_process_name();

}  // namespace replicator
