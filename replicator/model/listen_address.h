// "127.0.0.1:8095", "[::1]:8095", "localhost:8095": where a server of ours listens. Port 0 = any free one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace replicator {

struct ListenAddress {
  std::string host;  // IPv6 without brackets
  std::uint16_t port = 0;
  bool is_loopback = false;  // certainly; a name other than localhost is not
  std::string to_string() const;
};

// kInvalidArgument with the reason.
base::Result<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace replicator
