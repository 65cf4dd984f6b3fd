#include "iggy/roster.h"

#include <algorithm>

namespace iggy {
namespace {

constexpr int kRefusalsMax = 2;  // one may be a node that has just come to lead, or whose queue is full

void add(std::vector<HostPort>& hosts, const HostPort& host) {
  if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
}

}  // namespace

void Roster::learn(const ClusterMetadata& metadata) {
  constexpr std::uint8_t kLeads = 0, kHealthy = 0;
  nodes_.clear();
  for (const ClusterNode& node : metadata.nodes) {
    if (node.tcp == 0 || node.ip.empty()) continue;  // does not speak TCP
    nodes_.push_back({node.name, {node.ip, node.tcp}, node.role == kLeads && node.status == kHealthy});
  }
}

std::optional<HostPort> Roster::leader() const {
  if (!is_cluster() || std::ranges::count(nodes_, true, &Node::leads) != 1) return std::nullopt;
  return std::ranges::find(nodes_, true, &Node::leads)->address;
}

std::string Roster::name_of(const HostPort& address) const {
  const auto found = std::ranges::find(nodes_, address, &Node::address);
  return found == nodes_.end() ? std::string() : found->name;
}

std::vector<HostPort> Roster::candidates(const std::optional<HostPort>& in_use) const {
  std::vector<HostPort> all;
  if (const auto leads = leader()) all.push_back(*leads);
  std::vector<HostPort> hosts = hosts_;
  if (in_use) {
    add(all, *in_use);
    const auto at = std::ranges::find(hosts, *in_use);
    if (at != hosts.end()) std::rotate(hosts.begin(), at, hosts.end());
  }
  for (const HostPort& host : hosts) add(all, host);
  if (is_cluster()) {
    for (const Node& node : nodes_) add(all, node.address);
  }
  return all;
}

HostPort Roster::route(const base::TopicName& topic, std::uint32_t partition, const HostPort& home) const {
  const auto found = routes_.find({topic, partition});
  return found == routes_.end() ? home : found->second.node.value_or(home);
}

void Roster::accepted(const base::TopicName& topic, std::uint32_t partition) {
  const auto found = routes_.find({topic, partition});
  if (found == routes_.end()) return;
  found->second.refusals = 0;
  if (!found->second.node) routes_.erase(found);
}

void Roster::refused(const base::TopicName& topic, std::uint32_t partition, const HostPort& by, const HostPort& home) {
  if (!is_cluster() || by != this->route(topic, partition, home)) return;
  Route& route = routes_[{topic, partition}];
  if (++route.refusals < kRefusalsMax) return;
  const auto at = std::ranges::find(nodes_, by, &Node::address);
  const auto next = at == nodes_.end() || std::next(at) == nodes_.end() ? nodes_.begin() : std::next(at);
  route = {next->address == home ? std::nullopt : std::optional(next->address), 0};
}

void Roster::forget_routes_to(const HostPort& node) {
  std::erase_if(routes_, [&node](const auto& entry) { return entry.second.node == node; });
}

}  // namespace iggy
