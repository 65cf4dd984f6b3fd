// The status page: one snapshot as HTML that reads on a phone. No scripts, no forms, no links: nothing on it changes
// anything, and what others have named (topics, actors, messages of errors) is text, whatever it holds.
//
// Pure. Shows the kPageRowsMax partitions that need attention most, the newest of the ledger and of the events.
#pragma once

#include <string>
#include <string_view>

#include "replicator/model/status.h"

namespace replicator {

inline constexpr std::size_t kPageRowsMax = 200;

std::string status_page(const LinkStatus& status);

// Text inside an element or a quoted attribute: & < > " ' as entities, control bytes and what is no UTF-8 as \xNN.
std::string html_text(std::string_view text);

}  // namespace replicator
