#include "replicator/failover/end_link.h"

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "replicator/consumers/consumer_sync.h"
#include "replicator/marker/process.h"

namespace replicator {
namespace {

std::string_view name_of(Ending ending) { return ending == Ending::kPromote ? "promote" : "failover"; }

bool may_pass(const base::Error& error) {
  return error.retry() == base::Retry::kSameCall || error.retry() == base::Retry::kFromWatermark;
}

base::Task<base::Status> record_in_state(state::AsyncStore& store, state::LinkRow& link, base::Clock& clock,
                                         const EndLinkOptions& options, const Loss& loss, bool was_ended) {
  state::LinkRow next = link;
  next.state = "promoted";
  state::EventRow event;
  event.at = clock.wall_micros();
  event.kind = name_of(options.ending);
  event.actor = options.actor;
  event.detail = was_ended ? "repeated: the link had ended before"
                           : fmt::format("the link ends for good; the downstream lacks {}", in_words(loss));
  state::Transaction transaction;
  transaction.link = next;
  transaction.events.push_back(std::move(event));
  auto applying = store.apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  link = std::move(next);
  co_return base::ok();
}

base::Task<base::Status> record_downstream(iggy::Client& downstream, base::Clock& clock, MarkerOptions marker_options,
                                           base::Duration patience) {
  Marker marker(downstream, clock, std::move(marker_options));
  const base::TimePoint give_up = clock.now() + patience;
  for (;;) {
    auto promoting = marker.promote();
    auto promoted = co_await std::move(promoting);
    if (promoted || !may_pass(promoted.error()) || clock.now() >= give_up) co_return promoted;
    spdlog::warn("{}; trying again", promoted.error().to_string());
    auto sleeping = clock.sleep_for(std::chrono::milliseconds(250));
    co_await std::move(sleeping);
  }
}

}  // namespace

MarkerOptions marker_options(const Config& config, const Rules& rules, const state::LinkRow& link) {
  MarkerOptions options;
  options.topic = *rules.marker();
  options.link_id = link.id;
  options.stored_generation = link.generation;
  options.process = new_process_name();
  options.stored_identity = link.downstream_identity;
  options.fresh_identity = random_hex();
  options.upstream = link.upstream;
  options.downstream = link.downstream;
  options.upstream_identity = link.upstream_identity;
  options.topics = config.topics;
  options.exclude = config.exclude;
  options.rename = config.rename;
  return options;
}

base::Task<EndReport> end_link(state::AsyncStore& store, state::LinkRow& link, iggy::Client* downstream,
                               std::string unreachable, base::Clock& clock, const Config& config, const Rules& rules,
                               EndLinkOptions options) {
  const base::TimePoint begin = clock.now();
  EndReport report;
  report.ending = options.ending;
  report.was_ended = link.state == "promoted";
  report.link_id = link.id;
  report.loss = options.loss;
  auto recording = record_in_state(store, link, clock, options, report.loss, report.was_ended);
  auto in_state = co_await std::move(recording);
  report.recorded_in_state = in_state.has_value();
  if (!in_state) report.undone.push_back("the state file does not say so: " + in_state.error().to_string());

  if (!rules.marker()) {
    report.next_steps.push_back(
        "marker = \"off\": no record downstream keeps a copy of the state file from being run; destroy such copies");
  } else if (downstream == nullptr) {
    report.undone.push_back("the link's record downstream does not say so: " + unreachable);
  } else {
    auto writing = record_downstream(*downstream, clock, marker_options(config, rules, link), options.patience);
    auto written = co_await std::move(writing);
    report.recorded_downstream = written.has_value();
    if (!written)
      report.undone.push_back("the link's record downstream does not say so: " + written.error().to_string());
  }
  report.recorded_micros = static_cast<std::uint64_t>((clock.now() - begin).count());

  if (!options.sync_consumers) {
    report.consumers = "consumer offsets were not moved";
  } else {
    auto syncing = options.sync_consumers();
    auto synced = co_await std::move(syncing);
    if (synced) {
      SyncSummary summary = summary_of(*synced, clock.wall_micros());
      report.consumers = std::move(summary.text);
      if (summary.undone) report.undone.push_back(*std::move(summary.undone));
      report.consumer_rows = std::move(*synced);
    } else {
      report.consumers = "consumer offsets were not moved: " + synced.error().to_string();
      report.undone.push_back(report.consumers);
    }
  }
  if (!report.undone.empty()) {
    report.next_steps.push_back(fmt::format(
        "repeat this verb until nothing is undone: iggy-replicate failover --state {} --downstream {} --yes",
        config.state_file, link.downstream));
  }
  report.next_steps.push_back("point producers and consumers at the downstream: it is the primary now");
  report.next_steps.push_back(
      fmt::format("when the old primary is back: iggy-replicate failback --state {} --upstream {} --downstream {}",
                  config.state_file, link.upstream, link.downstream));
  co_return report;
}

base::Task<base::Status> connect_for(iggy::Client& client, base::Clock& clock, base::Duration patience) {
  const base::TimePoint give_up = clock.now() + patience;
  for (;;) {
    auto connecting = client.connect();
    auto connected = co_await std::move(connecting);
    if (connected) co_return base::ok();
    if (!may_pass(connected.error()) || clock.now() >= give_up) co_return std::move(connected).error();
    auto sleeping = clock.sleep_for(std::chrono::milliseconds(250));
    co_await std::move(sleeping);
  }
}

}  // namespace replicator
