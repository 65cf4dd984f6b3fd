// The commands of the control port: one line in, one line out, `ok …` or `error …`. README.md documents each.
#pragma once

#include <functional>
#include <string>

#include "integration/sandbox/broker.h"
#include "integration/sandbox/cluster.h"
#include "integration/sandbox/faults.h"

namespace sandbox {

struct ControlTarget {
  Broker& broker;
  Faults& faults;
  Cluster& nodes;
  std::function<void()> resume;          // wakes paused connections
  std::function<std::size_t()> cut_all;  // number of connections that were cut
  std::function<void(std::size_t node, bool up)> set_up;
};

std::string run_control(const std::string& line, const ControlTarget& target);

}  // namespace sandbox
