// The nodes of a sandbox cluster: one broker holds the messages, and the nodes differ in what they take and how much of
// it they show. As observed on three nodes of 0.9.0-edge.5: a node that does not lead refuses writes with 58 at once,
// answers reads with status 0, and may show an old end for as long as it likes; get_cluster_metadata names one leader
// of the metadata, and says nothing of who takes a partition's sends. What is left out: elections. A person moves the
// leader.
//
// Affinity: one thread. Lifetime: the broker outlives it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "integration/sandbox/broker.h"

namespace sandbox {

class Cluster {
 public:
  Cluster(Broker& broker, std::size_t nodes) : broker_(broker), old_ends_(nodes) {}

  std::size_t size() const { return old_ends_.size(); }
  std::size_t leader() const { return leader_; }
  bool takes_metadata(std::size_t node) const { return node == leader_; }
  bool takes_sends(std::size_t node) const { return node == taker_.value_or(leader_); }

  // No connection ends. What a node does not show is not there when it leads: the newest messages are lost then.
  void lead(std::size_t node);
  // All partitions' sends are taken by this node, whoever leads; nothing: by the leader.
  void take_sends(std::optional<std::size_t> node) { taker_ = node; }
  // From now on the node shows the logs as they are now; or all of them again.
  void lag(std::size_t node, bool on);

  // What a node shows of a partition: offsets below this.
  std::uint64_t end_at(std::size_t node, const PartitionState& partition) const;
  // A poll, and what a topic's metadata says, as that node answers.
  Outcome<PollResult> poll(std::size_t node, Caller& caller, iggy::PollMessages request) const;
  void shorten(std::size_t node, const iggy::GetTopic& request, iggy::TopicDetails& details) const;

 private:
  Broker& broker_;
  std::size_t leader_ = 0;
  std::optional<std::size_t> taker_;
  std::vector<std::optional<std::map<std::uint64_t, std::uint64_t>>> old_ends_;  // per node that lags: by partition uid
};

}  // namespace sandbox
