// Two clusters, a real state file in a fresh folder, and what one appliance holds over them, on virtual time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/testing/run_until_done.h"
#include "replicator/partition/partition_pipeline.h"
#include "replicator/testing/sim_cluster.h"
#include "state/inline_store.h"
#include "state/sqlite_store.h"
#include "state/testing/faulty_store.h"
#include "state/testing/temp_folder.h"

namespace replicator::testing {

inline base::PartitionKey sim_key(std::uint32_t partition = 0) { return {{"orders", "events"}, partition}; }
inline base::TopicName sim_downstream() { return {"dr", "events"}; }

class SimLink {
 public:
  SimLink(Flavour up_flavour, Flavour down_flavour, std::size_t partitions = 1)
      : up(clock, up_flavour, "up", partitions), down(clock, down_flavour, "down", partitions) {
    reopen();
  }

  // Closes the state file and opens it again: what is read now was durable.
  void reopen() {
    inline_store.reset();
    faulty.reset();
    file.reset();
    auto opened = state::SqliteStore::open(folder.file("state.db"), state::OpenMode::kCreate);
    base::check(opened.has_value(), "the state file opens");
    file = std::move(*opened);
    faulty = std::make_unique<state::testing::FaultyStore>(*file);
    inline_store = std::make_unique<state::InlineStore>(*faulty);
  }
  std::optional<state::PartitionRow> row(std::uint32_t partition = 0) {
    auto found = file->partition(sim_key(partition));
    base::check(found.has_value(), "the row can be read");
    return *found;
  }
  std::vector<state::GapRow> gaps() { return *file->gaps(); }
  std::vector<state::RangeRow> ranges(std::uint32_t partition = 0) {
    return *file->ranges(sim_key(partition), row(partition)->incarnation);
  }
  std::size_t count_events(const std::string& kind) {
    std::size_t count = 0;
    for (const state::EventRow& event : *file->events(10'000)) count += event.kind == kind ? 1 : 0;
    return count;
  }
  std::vector<std::string> bodies(const SimCluster& cluster, std::size_t partition = 0) {
    std::vector<std::string> all;
    for (const SimMessage& message : const_cast<SimCluster&>(cluster).at(partition).log) all.push_back(message.body);
    return all;
  }

  template <class T>
  T run(base::Task<T> task) {
    return base::testing::run_until_done(io, clock, std::move(task));
  }
  void pass(base::Duration duration) { run(clock.sleep_for(duration)); }

  asio::io_context io;
  base::testing::SimClock clock{io};
  SimCluster up, down;
  state::testing::TempFolder folder;
  std::unique_ptr<state::SqliteStore> file;
  std::unique_ptr<state::testing::FaultyStore> faulty;
  std::unique_ptr<state::InlineStore> inline_store;
};

}  // namespace replicator::testing
