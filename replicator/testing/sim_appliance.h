// One process: committer, budget, and a pipeline per partition with its source and sink, over two clusters and a store.
// kill() is a process kill as the outside sees it: from this instant on nothing that it does reaches a server or the
// state file. (What was written to a server before is carried out there.)
#pragma once

#include <memory>
#include <vector>

#include "replicator/partition/partition_pipeline.h"
#include "replicator/testing/sim_cluster.h"
#include "replicator/testing/sim_link.h"

namespace replicator::testing {

// The state file as a process sees it: with the time that a disk takes, and dead when the process is.
class SimStore final : public state::AsyncStore {
 public:
  SimStore(state::Store& store, base::testing::SimClock& clock) : inline_(store), clock_(clock) {}
  bool dead = false;
  base::Duration latency = std::chrono::milliseconds(1);

  base::Task<base::Result<std::optional<state::LinkRow>>> link() override { return inline_.link(); }
  base::Task<base::Result<std::vector<state::PartitionRow>>> partitions() override { return inline_.partitions(); }
  base::Task<base::Result<std::optional<state::PartitionRow>>> partition(base::PartitionKey key) override {
    return inline_.partition(std::move(key));
  }
  base::Task<base::Result<std::vector<state::RangeRow>>> ranges(base::PartitionKey key,
                                                                std::uint64_t incarnation) override {
    return inline_.ranges(std::move(key), incarnation);
  }
  base::Task<base::Result<std::vector<state::GapRow>>> gaps() override { return inline_.gaps(); }
  base::Task<base::Result<std::vector<state::EventRow>>> events(std::size_t newest) override {
    return inline_.events(newest);
  }
  base::Task<base::Result<std::vector<state::VerifiedRow>>> verified() override { return inline_.verified(); }
  base::Task<base::Result<std::vector<state::ConsumerRow>>> consumers() override { return inline_.consumers(); }
  base::Task<base::Result<state::OffsetMap>> offset_map(base::PartitionKey key) override {
    return inline_.offset_map(std::move(key));
  }
  base::Task<base::Result<state::Applied>> apply(state::Transaction transaction) override {
    const auto killed = [] { return base::Error(base::ErrorCode::kStopped, "commit", "", "killed"); };
    auto before = clock_.sleep_for(latency);
    co_await std::move(before);
    if (dead) co_return killed();
    auto applying = inline_.apply(std::move(transaction));
    auto applied = co_await std::move(applying);
    auto after = clock_.sleep_for(latency);
    co_await std::move(after);
    if (dead) co_return killed();
    co_return applied;
  }

 private:
  state::InlineStore inline_;
  base::testing::SimClock& clock_;
};

class SimAppliance {
 public:
  struct Lane {
    Lane(SimCluster& up, SimCluster& down, std::uint32_t partition) : source(up, partition), sink(down, partition) {}
    SimSource source;
    SimSink sink;
    std::unique_ptr<PartitionPipeline> pipeline;
  };

  SimAppliance(asio::io_context& io, base::testing::SimClock& clock, SimCluster& up, SimCluster& down,
               state::Store& file, PipelineOptions options, std::size_t budget_bytes = 1 << 20)
      : clock_(clock),
        store(file, clock),
        committer(io, clock, store, {}),
        budget(io, budget_bytes),
        pipelines_(io),
        committing_(io) {
    for (std::uint32_t partition = 0; partition < up.size(); ++partition) {
      auto& lane = *lanes_.emplace_back(std::make_unique<Lane>(up, down, partition));
      auto row = file.partition(sim_key(partition));
      base::check(row.has_value(), "the row can be read");
      options.seed += partition;
      lane.pipeline = std::make_unique<PartitionPipeline>(io, clock, sim_key(partition), sim_downstream(), lane.source,
                                                          lane.sink, store, committer, budget, options, *row);
    }
  }
  ~SimAppliance() { base::check(!running_, "an appliance is stopped or killed before it is destroyed"); }

  void start() {
    running_ = true;
    committing_.spawn(committer.run());
    for (auto& lane : lanes_) pipelines_.spawn(lane->pipeline->run());
  }
  // In the order of the product: pipelines end, then the committer drains.
  base::Task<void> stop() {
    for (auto& lane : lanes_) lane->pipeline->stop();
    auto ending = pipelines_.close();
    co_await std::move(ending);
    committer.drain(clock_.now() + std::chrono::seconds(10));
    auto draining = committing_.close();
    co_await std::move(draining);
    running_ = false;
  }
  base::Task<void> kill() {
    store.dead = true;
    for (auto& lane : lanes_) lane->source.line.dead = lane->sink.line.dead = true;
    committer.drain(clock_.now());
    auto stopping = stop();
    co_await std::move(stopping);
  }

  Lane& lane(std::size_t partition = 0) { return *lanes_.at(partition); }
  PartitionPipeline& pipeline(std::size_t partition = 0) { return *lanes_.at(partition)->pipeline; }
  std::size_t size() const { return lanes_.size(); }

 private:
  base::testing::SimClock& clock_;

 public:
  SimStore store;
  Committer committer;
  MemoryBudget budget;

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
  base::TaskGroup pipelines_;
  base::TaskGroup committing_;
  bool running_ = false;
};

}  // namespace replicator::testing
