// One record of the links topic: JSON text, one message per write. Written by marker.h, folded by links.h.
//
//   {"v":1,"cluster":"<hex>","link":"<hex>","generation":7,"process":"<hex>@host:pid","state":"active",
//    "written_at":<µs>,"upstream":"iggy://u:***@a:8090","upstream_identity":"<hex>","downstream":"iggy://…",
//    "topics":["orders/*"],"exclude":[],"rename":["orders/*","dr/*"]}
//
// Readers ignore keys that they don't know and accept a higher `v`: link, generation, process and state keep their
// meaning for ever. No secrets: URLs are redacted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "replicator/model/config.h"

namespace replicator {

enum class LinkState : std::uint8_t {
  kActive,
  kPromoted,  // the downstream is a primary now: this link never writes again
  kReleased,  // stopped in order: whoever comes next need not wait
};
std::string_view to_string(LinkState state);

struct MarkerRecord {
  std::string cluster;  // identity of the cluster that this topic is on
  std::string link;     // id of the link
  std::uint64_t generation = 0;
  std::string process;  // "<random hex>@host:pid"
  LinkState state = LinkState::kActive;
  std::uint64_t written_at = 0;  // µs, the writer's clock; rises with every write of one process
  std::string upstream, upstream_identity, downstream;
  std::vector<std::string> topics, exclude;  // the link's rules, as configured
  std::vector<RenameRule> rename;

  // Set by the reader, not in the text.
  std::uint64_t timestamp = 0;  // µs, the server's clock
};

std::string encode(const MarkerRecord& record);
// kMalformed: not such a JSON object, or link, generation, process or state is missing.
base::Result<MarkerRecord> decode_marker_record(std::string_view text);

// "host:pid" of "<hex>@host:pid" without the pid: two processes of one host never hold one state file at a time.
std::string_view host_of(std::string_view process);

}  // namespace replicator
