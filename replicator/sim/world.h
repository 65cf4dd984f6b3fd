// One run: two clusters, a load, one or two appliances, faults, an operator, all drawn from one 64-bit seed.
//
//   draw ─▶ [ time passes · load · a fault · the operator resolves · checkers look ] × steps ─▶ faults end ─▶ lag 0?
//        ─▶ checkers
//
// What is checked stands in checkers.h, what can happen in faults.h.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/run_until_done.h"
#include "replicator/sim/machine.h"

namespace replicator::sim {

// What was done to one partition so far, as far as it can be the cause of something.
struct Happened {
  bool up_lost = false, up_purged = false, up_recreated = false, up_expired = false, up_unreadable = false;
  bool down_lost = false, down_recreated = false, down_expired = false, foreign = false;
  bool late = false;           // an abandoned send may have landed after the look
  bool down_expires = false;   // its copy has an expiry: an empty one may have expired
  bool silence = false;        // a send was not answered in time
  bool refused = false;        // with a status that an operator must see
  bool too_large = false;      // it holds a message that the target can never take
  bool old_ends = false;       // a follower answered
  bool restarted = false;      // an operator began anew: old copies stay
  bool unverified = false;     // an operator took a tail as it was
  bool new_file = false;       // the state file was lost, or another one was taken
  bool grown = false;          // it appeared after the link was made: copied from its first message
  bool dropped = false;        // its topic was deleted upstream
  std::uint64_t optional = 0;  // messages produced before the start policy was fixed
  bool fixed = false;
  std::uint64_t duplicates_elsewhere = 0;  // counted in a state file that is no longer used
};

// Faults by name, over all runs of this process.
using Tally = std::map<std::string, std::uint64_t>;

class World {
 public:
  World(std::uint64_t seed, bool verbose);
  ~World();

  // Empty, or the checker that was violated and how: "silent loss: orders/events/0 …".
  std::string run();
  std::uint64_t trace() const { return up.trace() * 31 + down.trace(); }
  base::Duration time() const { return clock_.now() - began_; }
  const Tally& tally() const { return tally_; }

 private:
  asio::io_context io_{1};
  base::testing::SimClock clock_{io_};
  Agenda agenda_{clock_};
  const base::TimePoint began_ = clock_.now();
  Dice apart_;  // for what was added later: what a seed meant before stays the same
  state::testing::PowerCutVfs vfs_;
  std::optional<Rules> rules_;
  std::unique_ptr<Outside> outside_;  // of the machines

 public:
  // --- for faults and checkers
  Dice dice;
  Cluster up, down;
  Weather up_weather, down_weather;
  Config config;
  std::map<base::PartitionKey, Happened> happened;
  std::array<std::unique_ptr<Machine>, 2> machines;
  std::size_t active = 0;  // the machine whose state file is the link's
  bool quiet = false;      // nothing was done to this world
  bool is_over = false;    // faults have ended
  std::uint64_t largest_message = 0;

  base::TimePoint now() const { return clock_.now(); }
  Machine& machine() { return *machines[active]; }
  base::TopicName target(const base::TopicName& topic) const { return *rules_->target(topic); }
  Log* copy_of(const base::PartitionKey& key) { return down.find(target(key.topic), key.partition); }
  base::PartitionKey any_partition();
  void produce(const base::PartitionKey& key, std::uint64_t count, std::uint64_t bytes_max);
  void touch_all(const std::function<void(Happened&, const base::PartitionKey&)>& what);
  // Also partitions that appear later.
  void touch_everybody(const std::function<void(Happened&)>& what);
  void appear(const base::PartitionKey& key);
  // Time passes for everybody.
  void pass(base::Duration duration);
  // ... until it is so, or for `at_most`: false.
  bool pass_until(base::Duration at_most, const std::function<bool()>& is_so);
  // Carries out an operator's command; none when the process died of something meanwhile.
  template <class T>
  std::optional<T> call(Machine& on, base::Task<T> task);
  void fail(std::string checker, std::string what);
  void say(std::string what);  // into the trace
  void count(const std::string& fault) { ++tally_[fault]; }
  void set_optional_marks();
  std::string problem;

 private:
  void draw();
  void restart_what_ended();
  void resolve_faults();
  void note_policies();
  void note_exit(const base::PartitionKey& key, FaultKind kind, Exit exit);
  void end_faults();
  void take_one_machine();
  void print_state_file();
  void converge();
  bool has_caught_up(const PartitionStatus& status);

  const bool verbose_;
  Happened everybody_;
  std::uint64_t produced_ = 0;
  std::uint64_t resolved_ = 0;
  std::uint32_t zero_ids_ = 0;  // percent
  std::uint32_t too_large_ = 0;
  Tally tally_;
};

template <class T>
std::optional<T> World::call(Machine& on, base::Task<T> task) {
  auto result = std::make_shared<std::optional<T>>();
  on.spawn(std::move(task), std::function<void(T)>([result](T value) { result->emplace(std::move(value)); }));
  const std::uint64_t kills = on.kills();
  for (int i = 0; i < 600 && !*result && on.kills() == kills && on.runs(); ++i) pass(std::chrono::milliseconds(50));
  return std::move(*result);
}

}  // namespace replicator::sim
