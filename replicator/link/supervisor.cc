#include "replicator/link/supervisor.h"

#include <algorithm>
#include <utility>

#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "replicator/failover/end_link.h"
#include "replicator/marker/process.h"
#include "replicator/topics/durability.h"
#include "replicator/topics/upstream_topics.h"

namespace replicator {

namespace {

constexpr base::Duration kLookAtStateFileEvery = std::chrono::seconds(1);
// An end of the link gives what is in flight so long as it is, and so long with the upstream closed: mostly it is a
// poll of a dead one that is waited for, and then only sends are left.
constexpr base::Duration kEndingDrain = std::chrono::milliseconds(100);
constexpr base::Duration kEndingSends = std::chrono::milliseconds(500);
// A downstream that stands still for a moment while the link ends: without it the end can't be recorded there.
constexpr base::Duration kEndingStall = std::chrono::seconds(5);
constexpr base::Duration kPingInterval = std::chrono::seconds(1);

CommitterOptions committer_options(const Config& config) {
  CommitterOptions options;
  options.interval = config.commit_interval;
  options.max_messages = config.commit_max_messages;
  return options;
}

// A start that no waiting can mend.
bool is_final(const base::Error& error) {
  switch (error.code()) {
    case base::ErrorCode::kCredentials:
    case base::ErrorCode::kNotIggy:
    case base::ErrorCode::kUnsupported:
    case base::ErrorCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

}  // namespace

iggy::ClientOptions client_options(const Config& config) {
  iggy::ClientOptions options;
  options.connect_timeout = config.connect_timeout;
  options.read_timeout = config.read_timeout;
  options.send_timeout = config.read_timeout;
  options.reconnect = {config.retry_initial_backoff, config.retry_max_backoff};
  return options;
}

Supervisor::Supervisor(asio::io_context& io, base::Clock& clock, Config config, std::vector<Setting> settings,
                       state::AsyncStore& store, StatusBoard& board, std::string version, Surroundings surroundings)
    : io_(io),
      clock_(clock),
      config_(std::move(config)),
      settings_(std::move(settings)),
      configured_(settings_),
      store_(store),
      board_(board),
      version_(std::move(version)),
      surroundings_(std::move(surroundings)),
      control_turn_(io),
      throttle_rules_(config_.throttle),
      link_throttle_(io, clock, config_.throttle.link, "link"),
      committer_(std::make_unique<Committer>(io, clock, store, committer_options(config_))),
      budget_(io, config_.budget_bytes),
      upstream_turn_(io),
      partition_ended_(io),
      verify_stop_(io),
      consumer_turn_(io),
      pipelines_(io),
      commands_(io),
      background_(io),
      stop_(io),
      reconcile_now_(io),
      publish_stop_(io),
      lease_stop_(io),
      lease_ended_(io),
      ending_begun_(io),
      started_at_(clock.wall_micros()) {
  upstream_.name = "upstream";
  downstream_.name = "downstream";
}

Supervisor::~Supervisor() = default;

void Supervisor::request_stop() {
  asio::post(io_, [this] {
    stop_.set();
    reconcile_now_.set();
  });
}

base::Task<base::Status> Supervisor::run() {
  background_.spawn(publish_loop());
  background_.spawn(committer_->run());
  background_.spawn(watch_state_file());
  background_.spawn(watch_ledger());
  using namespace asio::experimental::awaitable_operators;
  auto starting = start() || stop_.wait();  // a stop is heard at every wait of the start
  auto started = co_await std::move(starting);
  base::Status outcome = base::ok();
  if (auto* ended = std::get_if<base::Status>(&started)) outcome = std::move(*ended);
  if (outcome && !stop_.is_set()) {
    background_.spawn(consumer_loop());
    auto looping = reconcile_loop();
    outcome = co_await std::move(looping);
  }
  if (!outcome && outcome.error().is_cancelled()) outcome = base::ok();
  state_ = "draining";
  auto stopping = stop_in_order();
  co_await std::move(stopping);
  co_return outcome;
}

base::Task<base::Status> Supervisor::start() {
  // Known without asking any cluster: the upstream of a link that has ended may be gone.
  auto link_call = store_.link();
  auto stored = co_await std::move(link_call);
  CO_RETURN_IF_ERROR(stored);
  if (*stored && (*stored)->state == "promoted") {
    co_return base::Error(base::ErrorCode::kFenced, "start", "link " + (*stored)->id,
                          "the link was promoted: it never writes downstream again",
                          "`iggy-replicate failback` makes the state file of the link in the other direction; a new "
                          "link in this direction needs a new state file");
  }
  auto upstream = iggy::parse_connection_string(config_.upstream_url);
  CO_RETURN_IF_ERROR(upstream);
  auto downstream = iggy::parse_connection_string(config_.downstream_url);
  CO_RETURN_IF_ERROR(downstream);
  auto rules = Rules::compile(config_.topics, config_.exclude, config_.rename, config_.marker);
  CO_RETURN_IF_ERROR(rules);
  rules_ = std::move(*rules);
  auto storable = can_store_as(config_);
  CO_RETURN_IF_ERROR(storable);
  upstream_.status.url = upstream->redacted();
  downstream_.status.url = downstream->redacted();
  upstream_.client = surroundings_.connect(std::move(*upstream), client_options(config_));
  downstream_.client = surroundings_.connect(std::move(*downstream), client_options(config_));
  for (End* end : {&upstream_, &downstream_}) {
    auto connecting = connect(*end);
    auto connected = co_await std::move(connecting);
    CO_RETURN_IF_ERROR(connected);
    background_.spawn(watch_end(*end));
  }
  if (auto refused = refuse_external_groups(); !refused) co_return refused;
  auto loading = load_link();
  auto loaded = co_await std::move(loading);
  CO_RETURN_IF_ERROR(loaded);
  base::Backoff backoff({config_.retry_initial_backoff, config_.retry_max_backoff}, 4);
  while (true) {
    auto refusing = refuse_start();
    auto allowed = co_await std::move(refusing);
    if (allowed) break;
    if (allowed.error().retry() == base::Retry::kNeedsOperator || config_.until_caught_up) co_return allowed;
    spdlog::warn("{}", allowed.error().to_string());
    auto wait = clock_.sleep_for(backoff.next());
    co_await std::move(wait);
  }
  auto taking = take_lease();
  auto taken = co_await std::move(taking);
  if (taken && config_.upstream_commit == UpstreamCommit::kAfterAck) background_.spawn(store_upstream());
  co_return taken;
}

base::Task<base::Status> Supervisor::connect(End& end) {
  base::Backoff backoff({config_.retry_initial_backoff, config_.retry_max_backoff}, 1);
  while (true) {
    if (stop_.is_set())
      co_return base::Error(base::ErrorCode::kStopped, "connect", std::string(end.name), "asked to stop");
    auto connecting = end.client->connect();
    auto server = co_await std::move(connecting);
    if (server) {
      end.status.endpoint = server->endpoint.to_string();
      end.status.dialect = iggy::to_string(server->dialect);
      end.status.version = server->version;
      end.status.connected = true;
      end.status.last_error.clear();
      end.status.last_seen = clock_.wall_micros();
      spdlog::info("{} {}: server {} speaks {}", end.name, end.status.endpoint,
                   server->version.empty() ? "of unknown version" : server->version, end.status.dialect);
      co_return base::ok();
    }
    // A port that closes at once may be a server that is stopping: only the first answer of that kind ends the start.
    const bool again = server.error().code() == base::ErrorCode::kNotIggy && !end.status.last_error.empty();
    end.status.last_error = server.error().to_string();
    if ((is_final(server.error()) && !again) || config_.until_caught_up) co_return std::move(server).error();
    const base::Duration delay = backoff.next();
    spdlog::warn("{}: {}; again in {} s", end.name, end.status.last_error,
                 std::chrono::duration<double>(delay).count());
    auto wait = base::wait_until(clock_, stop_, clock_.now() + delay);
    co_await std::move(wait);
  }
}

// Connected = it answered lately. Asked by a ping of its own: what else is asked depends on what there is to do.
base::Task<void> Supervisor::watch_end(End& end) {
  end.answered_at = clock_.now();
  while (!publish_stop_.is_set()) {
    auto call = end.client->call(iggy::Ping{});
    auto answer = co_await std::move(call);
    if (!answer && answer.error().is_cancelled()) break;
    if (answer) end.answered_at = clock_.now();
    end.status.last_error = answer ? std::string() : answer.error().to_string();
    auto wait = base::wait_until(clock_, publish_stop_, clock_.now() + kPingInterval);
    co_await std::move(wait);
  }
}

base::Task<base::Status> Supervisor::load_link() {
  auto link_call = store_.link();
  auto stored = co_await std::move(link_call);
  CO_RETURN_IF_ERROR(stored);
  state::Transaction transaction;
  link_is_new_ = !stored->has_value();
  if (link_is_new_) {
    link_.id = surroundings_.random_hex();
    link_.created_at = clock_.wall_micros();
  } else {
    link_ = **stored;
    for (const auto& [name, before, now] : {std::tuple("upstream", link_.upstream, upstream_.status.url),
                                            std::tuple("downstream", link_.downstream, downstream_.status.url)}) {
      if (before == now) continue;
      state::EventRow event;
      event.at = clock_.wall_micros();
      event.kind = "url_changed";
      event.actor = "appliance";
      event.detail = fmt::format("{} was {}, is {}", name, before, now);
      spdlog::warn("{}: {}", event.kind, event.detail);
      transaction.events.push_back(std::move(event));
    }
  }
  link_.upstream = upstream_.status.url;
  link_.downstream = downstream_.status.url;
  transaction.link = link_;
  auto applying = store_.apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  auto rows_call = store_.partitions();
  auto rows = co_await std::move(rows_call);
  CO_RETURN_IF_ERROR(rows);
  for (state::PartitionRow& row : *rows) rows_.emplace(row.key, std::move(row));
  co_return base::ok();
}

// What the links topics of both clusters say before anything is written: the downstream of another link, or a link that
// would bring back what we copy.
base::Task<base::Status> Supervisor::refuse_loops() {
  if (!rules_->marker()) co_return base::ok();
  auto down_call = read_links(*downstream_.client, *rules_->marker());
  auto down = co_await std::move(down_call);
  // Without the right to look it is unknown; a failed look is no answer.
  const auto unknown = [](const base::Error& error) {
    return error.code() == base::ErrorCode::kPermission || error.code() == base::ErrorCode::kNotFound;
  };
  if (!down && !unknown(down.error())) co_return std::move(down).error();
  if (down && down->present && !link_.downstream_identity.empty() && !down->links.identity().empty() &&
      !down->links.names_identity(link_.downstream_identity)) {
    co_return base::Error(base::ErrorCode::kWrongLink, "start", config_.state_file,
                          fmt::format("the state file belongs to a link into cluster {}, and {} is cluster {}",
                                      link_.downstream_identity, downstream_.status.url, down->links.identity()),
                          "give the state file of this pair, or a new one");
  }
  auto up_call = read_links(*upstream_.client, *rules_->marker());
  auto up = co_await std::move(up_call);
  if (!up && !unknown(up.error())) co_return std::move(up).error();
  if (up && up->present) link_.upstream_identity = up->links.identity();
  view_.link_id = link_.id;
  view_.upstream = link_.upstream;
  view_.upstream_identity = link_.upstream_identity;
  view_.downstream = link_.downstream;
  view_.downstream_identity = down && down->present ? down->links.identity() : link_.downstream_identity;
  view_.rules = &*rules_;
  view_.sources.clear();
  auto listing = list_upstream_topics(*upstream_.client, *rules_);
  auto listed = co_await std::move(listing);
  if (listed) {
    for (const auto& [name, topic] : listed->wanted) view_.sources.push_back(name);
  }
  if (!up || !up->present) co_return base::ok();
  const std::vector<std::string> loops = reverse_links(up->links, view_, clock_.wall_micros());
  if (!loops.empty()) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "start", "link", fmt::format("{}", fmt::join(loops, "; ")),
                          "end the other link, or exclude those topics");
  }
  co_return base::ok();
}

// What must not begin: promises that an end can't keep, and loops.
base::Task<base::Status> Supervisor::refuse_start() {
  auto asking = can_keep(*downstream_.client, config_.ack);
  auto kept = co_await std::move(asking);
  CO_RETURN_IF_ERROR(kept);
  auto refusing = refuse_loops();
  co_return co_await std::move(refusing);
}

base::Task<base::Status> Supervisor::save_generation(std::uint64_t generation) {
  link_.generation = generation;
  state::Transaction transaction;
  transaction.link = link_;
  auto applying = store_.apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  co_return base::ok();
}

// The record of the link downstream: are we its only writer?
base::Task<base::Status> Supervisor::take_lease() {
  if (!rules_->marker()) {
    spdlog::warn("marker is off: nothing keeps a second process from writing into the same topics");
    co_return base::ok();
  }
  MarkerOptions options = marker_options(config_, *rules_, link_);
  if (link_is_new_) options.stored_generation = 0;
  options.process =
      fmt::format("{}@{}:{}", surroundings_.random_hex().substr(0, 16), surroundings_.host, surroundings_.pid);
  options.fresh_identity = surroundings_.random_hex();
  options.is_rival = [this](const MarkerRecord& other) { return is_rival(other, view_, clock_.wall_micros()); };
  options.still_runs = surroundings_.still_runs;
  marker_ = std::make_unique<Marker>(*downstream_.client, clock_, std::move(options));
  base::Backoff backoff({config_.retry_initial_backoff, config_.retry_max_backoff}, 3);
  while (true) {
    state_detail_ = "taking the link's record downstream";
    auto acquiring = marker_->acquire([this](std::uint64_t generation) { return save_generation(generation); });
    auto acquired = co_await std::move(acquiring);
    if (acquired) break;
    const base::ErrorCode code = acquired.error().code();
    if (stop_.is_set() || code == base::ErrorCode::kFenced || code == base::ErrorCode::kPermission ||
        config_.until_caught_up) {
      co_return std::move(acquired).error();
    }
    spdlog::warn("{}", acquired.error().to_string());
    auto wait = base::wait_until(clock_, stop_, clock_.now() + backoff.next());
    co_await std::move(wait);
  }
  link_.downstream_identity = marker_->identity();
  auto saving = save_generation(marker_->generation());
  auto saved = co_await std::move(saving);
  CO_RETURN_IF_ERROR(saved);
  auto looking = marker_->visible_through(*upstream_.client);
  auto same = co_await std::move(looking);
  same_cluster_ = same && *same;
  if (same_cluster_) spdlog::warn("both URLs are one cluster: only topics that are renamed can be copied");
  background_.spawn(hold_lease());
  co_return base::ok();
}

base::Task<void> Supervisor::hold_lease() {
  auto holding = marker_->run(lease_stop_);
  auto held = co_await std::move(holding);
  lease_ended_.set();
  if (held || held.error().is_cancelled()) co_return;
  state_ = "fenced";
  state_detail_ = held.error().to_string();
  spdlog::error("{}", state_detail_);
  ended_ = held.error();
}

// The state file may be removed or replaced under us. An empty transaction looks at it also when nothing is copied.
base::Task<void> Supervisor::watch_state_file() {
  while (!publish_stop_.is_set()) {
    auto looking = store_.apply({});
    auto looked = co_await std::move(looking);
    if (!looked && looked.error().code() == base::ErrorCode::kStateCorrupt) {
      ended_ = looked.error();
      state_detail_ = ended_->to_string();
      spdlog::error("{}", state_detail_);
      co_return;
    }
    auto wait = base::wait_until(clock_, publish_stop_, clock_.now() + kLookAtStateFileEvery);
    co_await std::move(wait);
  }
}

base::Task<base::Status> Supervisor::reconcile_loop() {
  base::Backoff backoff({config_.retry_initial_backoff, config_.retry_max_backoff}, 2);
  while (!stop_.is_set()) {
    take_new_rules();
    using namespace asio::experimental::awaitable_operators;
    auto once = reconcile_once() || ending_begun_.wait();  // an end of the link waits for no upstream
    auto first = co_await std::move(once);
    auto* const finished = std::get_if<base::Status>(&first);
    if (finished == nullptr) co_return base::ok();
    base::Status outcome = std::move(*finished);
    base::Duration wait_for = config_.reconcile_interval;
    if (!outcome) {
      if (outcome.error().code() == base::ErrorCode::kInvalidArgument ||
          outcome.error().code() == base::ErrorCode::kFenced)
        co_return outcome;
      wait_for = std::min<base::Duration>(backoff.next(), config_.reconcile_interval);
      if (state_detail_ != outcome.error().to_string()) spdlog::warn("{}", outcome.error().to_string());
      state_detail_ = outcome.error().to_string();
      if (!reconciled_ && config_.until_caught_up) co_return outcome;
    } else {
      backoff.reset();
      state_ = "running";
      state_detail_.clear();
    }
    const base::TimePoint next = clock_.now() + wait_for;
    while (!stop_.is_set() && !reconcile_now_.is_set() && clock_.now() < next) {
      if (ended_) co_return *ended_;
      if (config_.until_caught_up && reconciled_ && everything_caught_up()) {
        ended_by_itself_ = true;
        co_return base::ok();
      }
      auto wait =
          base::wait_until(clock_, reconcile_now_, std::min(next, clock_.now() + std::chrono::milliseconds(100)));
      co_await std::move(wait);
    }
    if (!stop_.is_set()) reconcile_now_.reset();
  }
  co_return base::ok();
}

base::Task<base::Status> Supervisor::reconcile_once() {
  ReconcileOptions options;
  options.link_is_new = link_is_new_ && !reconciled_;
  options.same_cluster = same_cluster_;
  for (const auto& [key, row] : rows_) options.known.insert(key);
  for (const auto& [key, slot] : slots_) options.known.insert(key);
  auto reconciling = reconcile(*upstream_.client, *downstream_.client, *rules_, config_, std::move(options));
  auto topology = co_await std::move(reconciling);
  CO_RETURN_IF_ERROR(topology);
  if (!reconciled_ && !topology->refusals.empty()) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "start", "topics",
                          fmt::format("{}", fmt::join(topology->refusals, "; ")));
  }
  for (const Action& action : topology->actions) spdlog::info("downstream: {}", action.text);
  for (const std::string& notice : topology->notices) {
    if (std::ranges::find(topology_.notices, notice) == topology_.notices.end()) spdlog::warn("{}", notice);
  }
  topology_ = std::move(*topology);
  for (const WantedPartition& wanted : topology_.partitions) {
    if (!slots_.contains(wanted.key)) start_partition(wanted);
  }
  if (!reconciled_) spdlog::info("link {}: {} partitions", link_.id, slots_.size());
  reconciled_ = true;
  co_return base::ok();
}

TopicWatcher& Supervisor::watcher(End& end, const base::TopicName& topic) {
  auto& watcher = end.watchers[topic];
  if (!watcher) {
    watcher = std::make_unique<TopicWatcher>(io_, clock_, *end.client, topic);
    background_.spawn(watcher->run());
    // Downstream a lost tail is looked for, not a message.
    const base::Duration interval =
        &end == &upstream_ ? config_.poll_interval : std::max<base::Duration>(config_.poll_interval, kLookInterval);
    auto& stream = end.streams[topic.stream];
    if (!stream) {
      stream = std::make_unique<StreamWatcher>(io_, clock_, *end.client, topic.stream, interval);
      background_.spawn(stream->run());
    }
    stream->add(*watcher);
  }
  return *watcher;
}

base::Status Supervisor::may_send() const {
  if (ending_) return base::Error(base::ErrorCode::kNotAccepted, "send", "link", "the link ends for good");
  if (!marker_ || marker_->may_send()) return base::ok();
  std::string why = "the link's record downstream could not be confirmed lately: another process may write";
  if (marker_->last_error()) why += fmt::format(" ({})", marker_->last_error()->to_string());
  return base::Error(base::ErrorCode::kNotAccepted, "send", rules_->marker()->to_string(), std::move(why));
}

void Supervisor::start_partition(const WantedPartition& wanted) {
  const bool source_legacy = upstream_.client->server().dialect == iggy::Dialect::kLegacy;
  const bool sink_legacy = downstream_.client->server().dialect == iggy::Dialect::kLegacy;
  PipelineOptions options;
  options.batch_bytes = config_.batch_bytes;
  options.uncommitted_batches_max = config_.uncommitted_batches_max;
  options.stuck_after = config_.stuck_after;
  options.flush_interval = config_.commit_interval;
  options.resync.durability = to_string(config_.ack);
  options.retry = {config_.retry_initial_backoff, config_.retry_max_backoff};
  options.retry_max_attempts = config_.retry_max_attempts;
  options.tally_digest = config_.until_caught_up;
  options.seed = std::hash<std::string>{}(wanted.key.to_string());
  options.resync.confirm_for = config_.confirm_for;
  options.invalid_records = {config_.skip_invalid_records, config_.invalid_records_export};
  options.policies = config_.policies;
  options.throttles = {&throttle_of(wanted.key.topic), &link_throttle_};
  if (wanted.present_at_link_start) options.resync.start = config_.start;

  std::optional<state::PartitionRow> row;
  if (const auto known = rows_.find(wanted.key); known != rows_.end()) row = known->second;
  Slot& slot = slots_[wanted.key];
  slot.source =
      std::make_unique<IggySource>(*upstream_.client, watcher(upstream_, wanted.key.topic), wanted.key,
                                   config_.batch_bytes, sink_legacy && !source_legacy ? link_.id : std::string());
  slot.sink = std::make_unique<IggySink>(
      clock_, *downstream_.client, watcher(downstream_, wanted.downstream), wanted.downstream, wanted.key.partition,
      config_.batch_bytes, config_.fence_timeout, config_.ack, base::Provenance(config_.provenance, wanted.key),
      [this] { return may_send(); });
  slot.pipeline =
      std::make_unique<PartitionPipeline>(io_, clock_, wanted.key, wanted.downstream, *slot.source, *slot.sink, store_,
                                          *committer_, budget_, options, std::move(row));
  if (config_.upstream_commit == UpstreamCommit::kAfterAck) {
    slot.upstream_offset.emplace(clock_, *upstream_.client, wanted.key, config_.upstream_commit_consumer,
                                 config_.pin_alarm_after);
  }
  pipelines_.spawn(run_partition(slot));
}

base::Task<void> Supervisor::stop_in_order() {
  // Without the state file nothing can be committed: there is nothing to wait for.
  const bool can_commit = !ended_ || ended_->code() != base::ErrorCode::kStateCorrupt;
  const base::Duration patience = ending_ ? kEndingDrain : config_.drain_timeout;
  const base::TimePoint deadline = clock_.now() + (can_commit ? patience : base::Duration(0));
  for (auto& [key, slot] : slots_) slot.pipeline->stop();
  verify_stop_.set();
  auto closing_verify = close_verify_clients();
  co_await std::move(closing_verify);
  if (ending_ && ending_->ending == Ending::kFailover && upstream_.client) {
    // Nothing is asked of an upstream that may be dead: whoever waits for it, lets go.
    for (auto& [stream, watcher] : upstream_.streams) watcher->stop();
    for (auto& [topic, watcher] : upstream_.watchers) watcher->stop();
    auto closing = upstream_.client->close();
    co_await std::move(closing);
  }
  // Sends in flight get until the deadline; then their connections are closed and they end unresolved, for the next
  // start to resolve.
  base::Event drained(io_);
  base::TaskGroup waiting(io_);
  const auto wait_for_pipelines = [](base::TaskGroup& pipelines, base::Event& done) -> base::Task<void> {
    auto closing = pipelines.close();
    co_await std::move(closing);
    done.set();
  };
  waiting.spawn(wait_for_pipelines(pipelines_, drained));
  auto in_time = base::wait_until(clock_, drained, deadline);
  co_await std::move(in_time);
  if (ending_ && !drained.is_set() && upstream_.client) {  // a poll that nobody answers
    for (auto& [stream, watcher] : upstream_.streams) watcher->stop();
    for (auto& [topic, watcher] : upstream_.watchers) watcher->stop();
    auto closing = upstream_.client->close();
    co_await std::move(closing);
    auto once_more = base::wait_until(clock_, drained, clock_.now() + kEndingStall);
    co_await std::move(once_more);
  }
  if (!ending_ && drained.is_set() && config_.upstream_commit == UpstreamCommit::kAfterAck) {
    auto storing = store_upstream_once();  // what the last commits have moved
    co_await std::move(storing);
  }
  if (!drained.is_set()) spdlog::warn("drain_timeout is over: sends in flight are left unresolved");
  for (End* end : {&upstream_, &downstream_}) {
    for (auto& [stream, watcher] : end->streams) watcher->stop();
    for (auto& [topic, watcher] : end->watchers) watcher->stop();
  }
  if (!drained.is_set()) {
    for (End* end : {&upstream_, &downstream_}) {
      if (!end->client) continue;
      auto closing = end->client->close();
      co_await std::move(closing);
    }
  }
  const bool in_order = drained.is_set();
  auto all = waiting.close();
  co_await std::move(all);
  auto asked = commands_.close();
  co_await std::move(asked);
  lease_stop_.set();
  if (in_order && marker_ && marker_->generation() != 0) {
    const base::Duration grace = ending_ ? kEndingSends : std::chrono::seconds(2);
    auto ending = base::wait_until(clock_, lease_ended_, clock_.now() + grace);
    co_await std::move(ending);
  }
  if (ending_) {
    auto finishing = finish_ending(in_order);
    co_await std::move(finishing);
  } else if (in_order && lease_ended_.is_set()) {
    auto releasing = marker_->release();
    auto released = co_await std::move(releasing);
    if (!released) spdlog::warn("{}", released.error().to_string());
  }
  committer_->drain(clock_.now() + std::chrono::seconds(can_commit ? 5 : 0));
  state_ = "stopped";
  publish();
  publish_stop_.set();
  for (End* end : {&upstream_, &downstream_}) {
    if (!end->client) continue;
    auto closing = end->client->close();
    co_await std::move(closing);
    end->status.connected = false;
  }
  auto background = background_.close();
  co_await std::move(background);
  publish();
  stopped_ = true;
}

}  // namespace replicator
