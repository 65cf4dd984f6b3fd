// The three blocking entry points of the command line.
#include "replicator/run.h"

#include <csignal>
#include <cstdlib>

#include <asio/co_spawn.hpp>
#include <asio/signal_set.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "replicator/admin/admin_server.h"
#include "replicator/link/supervisor.h"
#include "replicator/monitor/http.h"
#include "state/sqlite_store.h"
#include "state/store_thread.h"

namespace replicator {

namespace {

constexpr std::string_view kVersion = IGGY_REPLICATE_VERSION;

// The first SIGINT or SIGTERM drains; a second one ends the process at once. Both leave a state that resumes without a
// duplicate.
void watch_signals(asio::signal_set& signals, Supervisor& supervisor, bool first) {
  signals.async_wait([&signals, &supervisor, first](std::error_code error, int signal) {
    if (error) return;
    if (!first) {
      spdlog::warn("signal {} again: stopping at once", signal);
      spdlog::shutdown();
      std::_Exit(128 + signal);
    }
    spdlog::info("signal {}: draining; once more stops at once", signal);
    supervisor.request_stop();
    watch_signals(signals, supervisor, false);
  });
}

void watch_hangups(asio::signal_set& hangups, Supervisor& supervisor) {
  hangups.async_wait([&hangups, &supervisor](std::error_code error, int) {
    if (error) return;
    spdlog::info("SIGHUP: reading the configuration again");
    supervisor.request_reload("SIGHUP");
    watch_hangups(hangups, supervisor);
  });
}

}  // namespace

base::Result<RunReport> run_link(const Config& config, const std::vector<Setting>& settings,
                                 std::function<ConfigReading()> read_again) {
  asio::io_context io(1);
  asio::signal_set hangups(io, SIGHUP);
  asio::signal_set signals(io, SIGINT, SIGTERM);  // from here on a signal waits for somebody who stops in order
  auto file = state::SqliteStore::open(config.state_file, state::OpenMode::kCreate);
  if (!file) return std::move(file).error();
  const std::unique_ptr<base::Clock> clock = base::system_clock(io);
  state::StoreThread store(std::move(*file));
  StatusBoard board;
  Surroundings surroundings = this_machine(io, *clock);
  surroundings.read_configuration = std::move(read_again);
  Supervisor supervisor(io, *clock, config, settings, store, board, std::string(kVersion), std::move(surroundings));

  auto admin = AdminServer::start(
      {config.admin_address, config.admin_tls_cert, config.admin_tls_key, config.admin_token_file}, board, supervisor);
  if (!admin) return std::move(admin).error();
  spdlog::info("admin API on {}", (*admin)->address());
  std::unique_ptr<HttpServer> http;
  if (config.metrics_address != "off") {
    auto started = HttpServer::start(config.metrics_address, operating_handler(board));
    if (!started) return std::move(started).error();
    http = std::move(*started);
    spdlog::info("metrics on http://{}/metrics", http->address());
  }

  watch_signals(signals, supervisor, true);
  watch_hangups(hangups, supervisor);
  base::Status outcome;
  asio::co_spawn(io, supervisor.run(), [&](std::exception_ptr escaped, base::Status status) {
    if (escaped) std::rethrow_exception(escaped);
    outcome = std::move(status);
    io.stop();
  });
  io.run();

  RunReport report;
  report.partitions = supervisor.receipts();
  if (!outcome) {
    if (outcome.error().code() != base::ErrorCode::kFenced) return std::move(outcome).error();
    report.outcome = "fenced";
    report.detail = outcome.error().to_string();
    return report;
  }
  report.outcome = "stopped";
  if (const auto& ended = supervisor.end_report()) {
    report.outcome = "ended";
    report.detail = fmt::format("link {} has ended: it never writes downstream again{}", ended->link_id,
                                ended->undone.empty() ? "" : "; NOT DONE: " + ended->undone.front());
    return report;
  }
  if (config.until_caught_up && supervisor.ended_by_itself()) {
    report.outcome = report.partitions.empty() ? "incomplete" : "caught_up";
    if (report.partitions.empty()) report.detail = "no partition matches the rules";
    for (const PartitionReceipt& receipt : report.partitions) {
      if (!receipt.complete) report.outcome = "incomplete";
    }
  }
  return report;
}

}  // namespace replicator
