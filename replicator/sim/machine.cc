#include "replicator/sim/machine.h"

#include <utility>

#include <asio/co_spawn.hpp>
#include <fmt/format.h>

#include "base/check.h"

namespace replicator::sim {

Machine::Machine(Outside& around, std::string host, std::uint64_t seed)
    : around_(around), host_(std::move(host)), dice_(seed) {}

Machine::~Machine() {
  if (process_) kill();
  around_.vfs.forget(folder_path_);
}

std::string Machine::start() {
  base::check(process_ == nullptr || process_->ended, "one process at a time");
  if (process_) bury();
  end_.reset();
  steps_left_.reset();
  auto process = std::make_unique<Process>(around_.agenda.clock().now());
  auto opened = state::SqliteStore::open(path(), state::OpenMode::kCreate);
  if (!opened) return opened.error().to_string();
  process->file = std::move(*opened);
  process->faulty = std::make_unique<state::testing::FaultyStore>(*process->file);
  process->store = std::make_unique<replicator::testing::SimStore>(*process->faulty, process->clock);
  process->store->latency = dice_.micros(50, 5000);
  process->clock.step_wall(wall_step_);

  Surroundings machine;
  machine.connect = [this, &process = *process, is_up = true](iggy::ConnectionString,
                                                              iggy::ClientOptions options) mutable {
    Cluster& cluster = is_up ? around_.up : around_.down;
    Weather& weather = is_up ? around_.up_weather : around_.down_weather;
    is_up = false;
    auto client = std::make_unique<Client>(process.io, process.clock, cluster, weather, options, dice_.next());
    process.clients.push_back(client.get());
    return client;
  };
  machine.random_hex = [this] { return fmt::format("{:016x}{:016x}", dice_.next(), dice_.next()); };
  machine.host = host_;
  machine.pid = std::to_string(1000 + ++processes_);
  machine.still_runs = [](std::string_view) { return false; };  // one process per machine
  process->supervisor =
      std::make_unique<Supervisor>(process->io, process->clock, around_.config, std::vector<Setting>{}, *process->store,
                                   process->board, "sim", std::move(machine));
  process_ = std::move(process);
  asio::co_spawn(process_->io, process_->supervisor->run(), [this](std::exception_ptr escaped, base::Status status) {
    if (escaped) std::rethrow_exception(escaped);
    process_->ended = true;
    if (!status) end_ = std::move(status).error();
  });
  return {};
}

void Machine::kill() {
  if (!process_) return;
  ++kills_;
  if (!process_->ended) {
    process_->store->dead = true;
    around_.vfs.freeze(folder_path_);
    for (Client* client : process_->clients) client->die();
    process_->supervisor->request_stop();
    run_alone_until([this] { return process_->ended; });
    end_.reset();
  }
  bury();
}

// On its own clock: no time passes for anybody else.
void Machine::run_alone_until(const std::function<bool()>& is_so) {
  while (!is_so()) {
    process_->io.restart();
    process_->io.poll();
    if (is_so()) return;
    base::check(process_->clock.advance(), "a process that ends waits for nothing");
  }
}

void Machine::bury() {
  run_alone_until([this] { return process_->commands == 0; });
  process_->supervisor.reset();
  process_->store.reset();
  process_->faulty.reset();
  process_->file.reset();
  process_.reset();
  if (kept_writes_) {
    around_.vfs.freeze(folder_path_);
    around_.vfs.cut_power(folder_path_, *kept_writes_);
    kept_writes_.reset();
  }
  around_.vfs.thaw(folder_path_);
  stopped_until_ = {};
}

bool Machine::is_stopped() const { return around_.agenda.clock().now() < stopped_until_; }

std::optional<base::TimePoint> Machine::next() const {
  if (!runs()) return std::nullopt;
  const auto due = process_->clock.next();
  if (is_stopped() && due) return std::max(*due, stopped_until_);
  return due;
}

void Machine::move_to(base::TimePoint now) {
  if (runs() && !is_stopped()) process_->clock.move_to(now);
}

void Machine::step_clock(base::Duration by) {
  wall_step_ += by;
  if (process_) process_->clock.step_wall(by);
}

void Machine::advance() {
  if (!runs() || is_stopped()) return;
  if (const auto due = process_->clock.next(); due && *due <= around_.agenda.clock().now()) process_->clock.advance();
  run_ready();
}

void Machine::run_ready() {
  while (runs() && !is_stopped()) {
    process_->io.restart();
    if (process_->io.poll_one() == 0) return;
    if (around_.vfs.is_frozen(folder_path_)) return cut_power(dice_.below(around_.vfs.unsynced(folder_path_) + 1));
    if (steps_left_ && (*steps_left_)-- == 0) return kill();
  }
}

}  // namespace replicator::sim
