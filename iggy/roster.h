// Which nodes a cluster has, which one leads it, and which one takes a partition's sends. Bookkeeping alone: no
// sockets, no time.
//
// Nodes come from the connection string and from get_cluster_metadata (protocol 0.11), whose leader is that of the
// metadata. A partition's sends may be taken by another node; nothing says which, so it is found by sending: a node
// that answers "not here" (58) twice in a row is left for the next one. A server that names only itself is no roster:
// the address that it advertises may be one that we can't reach. Affinity: its client's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "iggy/connection_string.h"
#include "iggy/model.h"

namespace iggy {

class Roster {
 public:
  // `hosts`: of the connection string, at least one.
  explicit Roster(std::vector<HostPort> hosts) : hosts_(std::move(hosts)) {}

  void learn(const ClusterMetadata& metadata);
  bool is_cluster() const { return nodes_.size() > 1; }
  // 1 when there is no cluster.
  std::size_t size() const { return is_cluster() ? nodes_.size() : 1; }
  // Absent unless exactly one healthy node says that it leads.
  std::optional<HostPort> leader() const;
  // "node-2"; empty when the roster does not have it.
  std::string name_of(const HostPort& address) const;

  // Where to try a login, most promising first: the leader, the node in use, the string's hosts behind it, all others.
  std::vector<HostPort> candidates(const std::optional<HostPort>& in_use) const;

  // The node that takes sends to this partition, as far as known; `home` unless that one refused them.
  HostPort route(const base::TopicName& topic, std::uint32_t partition, const HostPort& home) const;
  void accepted(const base::TopicName& topic, std::uint32_t partition);
  // `by` answered 58.
  void refused(const base::TopicName& topic, std::uint32_t partition, const HostPort& by, const HostPort& home);
  // That node can't be reached: its partitions are looked for at home again.
  void forget_routes_to(const HostPort& node);
  // Another node leads: so are all.
  void forget_routes() { routes_.clear(); }

 private:
  struct Node {
    std::string name;
    HostPort address;
    bool leads = false;
  };
  struct Route {
    std::optional<HostPort> node;  // absent: home
    int refusals = 0;              // in a row, there
  };
  std::vector<HostPort> hosts_;
  std::vector<Node> nodes_;
  std::map<std::pair<base::TopicName, std::uint32_t>, Route> routes_;  // only where home is not, or may not be, right
};

}  // namespace iggy
