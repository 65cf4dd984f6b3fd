// A host with a disk, and the appliance that runs on it: the real Supervisor over the real SQLite store, on a clock of
// its own. The process can be killed between any two steps of its coroutines, stopped for a while, or lose its power.
//
// A killed process: from that instant on nothing it does reaches a cluster or the disk. Its coroutines are then run to
// their end on its own clock, alone, so that every object is destroyed in order; no time passes for anybody else.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/co_spawn.hpp>

#include "base/testing/sim_clock.h"
#include "replicator/link/supervisor.h"
#include "replicator/sim/client.h"
#include "replicator/testing/sim_appliance.h"
#include "state/sqlite_store.h"
#include "state/testing/faulty_store.h"
#include "state/testing/power_cut_vfs.h"
#include "state/testing/temp_folder.h"

namespace replicator::sim {

// What a machine is connected to.
struct Outside {
  Agenda& agenda;
  Cluster& up;
  Cluster& down;
  Weather& up_weather;
  Weather& down_weather;
  state::testing::PowerCutVfs& vfs;
  Config config;
};

class Machine {
 public:
  Machine(Outside& around, std::string host, std::uint64_t seed);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Opens the state file and starts the process. The sentence of what hindered it; empty = it runs.
  std::string start();
  void kill();
  void cut_power(std::uint64_t kept_writes) { kept_writes_ = kept_writes, kill(); }
  void stop_for(base::Duration how_long) { stopped_until_ = around_.agenda.clock().now() + how_long; }
  void step_clock(base::Duration by);
  void spare() { steps_left_.reset(), around_.vfs.thaw(folder_path_); }  // nothing planned happens any more
  void kill_after(std::uint64_t steps) { steps_left_ = steps; }
  void lose_power_after(std::uint64_t writes) { around_.vfs.freeze_after(folder_path_, writes); }

  bool runs() const { return process_ != nullptr && !process_->ended; }
  // Why the last process ended by itself; none while it runs or when it was killed.
  const std::optional<base::Error>& end() const { return end_; }
  Supervisor& supervisor() { return *process_->supervisor; }
  state::SqliteStore& file() { return *process_->file; }
  state::testing::FaultyStore& faulty() { return *process_->faulty; }
  std::shared_ptr<const LinkStatus> status() const { return process_->board.read(); }
  // An operator's command. The process does not end before it has.
  template <class T>
  void spawn(base::Task<T> task, std::function<void(T)> done) {
    ++process_->commands;
    asio::co_spawn(process_->io, std::move(task), [this, done = std::move(done)](std::exception_ptr escaped, T value) {
      if (escaped) std::rethrow_exception(escaped);
      --process_->commands;
      done(std::move(value));
    });
  }
  std::string path() const { return folder_.file("state.db"); }
  const std::string& folder() const { return folder_path_; }
  const std::string& host() const { return host_; }
  std::uint64_t kills() const { return kills_; }

  // --- time: called by the world
  std::optional<base::TimePoint> next() const;
  void move_to(base::TimePoint now);
  // Wakes one sleeper that is due, and runs what can run. Ends the process when it was killed meanwhile.
  void advance();
  void run_ready();

 private:
  struct Process {
    explicit Process(base::TimePoint now) : clock(io) { clock.move_to(now); }
    asio::io_context io{1};
    base::testing::SimClock clock;
    std::unique_ptr<state::SqliteStore> file;
    std::unique_ptr<state::testing::FaultyStore> faulty;
    std::unique_ptr<replicator::testing::SimStore> store;
    StatusBoard board;
    std::vector<Client*> clients;
    std::unique_ptr<Supervisor> supervisor;
    std::uint64_t commands = 0;
    bool ended = false;
  };
  bool is_stopped() const;
  void run_alone_until(const std::function<bool()>& is_so);
  void bury();

  Outside& around_;
  const std::string host_;
  Dice dice_;
  state::testing::TempFolder folder_;
  const std::string folder_path_ = folder_.path().string();
  std::unique_ptr<Process> process_;
  std::optional<base::Error> end_;
  base::TimePoint stopped_until_{};
  base::Duration wall_step_{};
  std::optional<std::uint64_t> steps_left_;
  std::optional<std::uint64_t> kept_writes_;  // the machine loses its power: of the unsynced writes that many stay
  std::uint64_t kills_ = 0;
  std::uint64_t processes_ = 0;
};

}  // namespace replicator::sim
