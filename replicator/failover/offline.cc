#include "replicator/failover/offline.h"

#include <asio/co_spawn.hpp>

#include "replicator/consumers/consumer_sync.h"
#include "replicator/failover/end_link.h"
#include "state/inline_store.h"
#include "state/sqlite_store.h"

namespace replicator {
namespace {

constexpr base::Duration kPatience = std::chrono::seconds(10);

base::Task<EndReport> end_with(iggy::Client& client, base::Clock& clock, state::AsyncStore& store, state::LinkRow link,
                               const Config& config, const Rules& rules, EndLinkOptions options) {
  auto connecting = connect_for(client, clock, kPatience);
  auto connected = co_await std::move(connecting);
  ConsumerSync sync(nullptr, client, store, clock, {config.consumers, config.consumer_groups});
  if (connected) options.sync_consumers = [&sync] { return sync.pass_over_all(); };
  auto ending =
      end_link(store, link, connected ? &client : nullptr, connected ? std::string() : connected.error().to_string(),
               clock, config, rules, std::move(options));
  auto report = co_await std::move(ending);
  auto closing = client.close();
  co_await std::move(closing);
  co_return report;
}

}  // namespace

base::Result<EndReport> end_link_offline(const Config& config, const EndRequest& request) {
  if (request.ending == Ending::kPromote) {
    return base::Error(base::ErrorCode::kInvalidArgument, "promote", config.state_file,
                       "a planned end needs the running link, which knows what is left to copy",
                       "start `iggy-replicate run`, then promote; `failover` ends a link at once");
  }
  auto opened = state::SqliteStore::open(config.state_file,
                                         request.dry_run ? state::OpenMode::kReadOnly : state::OpenMode::kReadWrite);
  if (!opened) {
    base::Error error = std::move(opened).error();
    if (error.code() == base::ErrorCode::kStateLocked) {
      error.with_hint("a link runs on it: leave out --state and --config to ask that link, or stop it first");
    }
    return error;
  }
  state::SqliteStore& file = **opened;
  auto link = file.link();
  if (!link) return std::move(link).error();
  if (!*link) {
    return base::Error(base::ErrorCode::kInvalidArgument, "failover", config.state_file,
                       "no link has used this file yet: there is nothing to end");
  }
  auto rows = file.partitions();
  if (!rows) return std::move(rows).error();
  auto rules = Rules::compile(config.topics, config.exclude, config.rename, config.marker);
  if (!rules) return std::move(rules).error();
  const Loss loss = loss_of(*rows, base::system_wall_micros());
  if (request.dry_run) {
    EndReport report;
    report.dry_run = true;
    report.was_ended = (*link)->state == "promoted";
    report.link_id = (*link)->id;
    report.loss = loss;
    return report;
  }
  auto downstream = iggy::parse_connection_string(config.downstream_url);
  if (!downstream) return std::move(downstream).error();

  asio::io_context io(1);
  const auto clock = base::system_clock(io);
  iggy::ClientOptions client_options;
  client_options.connect_timeout = config.connect_timeout;
  client_options.read_timeout = std::min<base::Duration>(config.read_timeout, std::chrono::seconds(10));
  const auto client = iggy::make_client(io, *clock, std::move(*downstream), client_options);
  state::InlineStore store(file);
  EndLinkOptions options;
  options.ending = request.ending;
  options.actor = request.actor;
  options.loss = loss;
  options.patience = kPatience;
  EndReport report;
  asio::co_spawn(io, end_with(*client, *clock, store, **link, config, *rules, std::move(options)),
                 [&](std::exception_ptr escaped, EndReport ended) {
                   if (escaped) std::rethrow_exception(escaped);
                   report = std::move(ended);
                   io.stop();
                 });
  io.run();
  return report;
}

}  // namespace replicator
