// Where messages and consumers are on both sides: translate, verify, consumers.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "replicator/link/iggy_verify.h"
#include "replicator/link/supervisor_ask.h"

namespace replicator {

namespace {

constexpr std::chrono::milliseconds kProgressEvery{500};

base::Error stopping() { return {base::ErrorCode::kStopped, "verify", "", "the link is stopping"}; }

}  // namespace

// One comparison, shared by the caller's thread, which waits, and the I/O thread, which compares.
struct Supervisor::VerifyRun {
  explicit VerifyRun(asio::io_context& io) : stop(io) {}
  // I/O thread.
  base::Event stop;
  Verifier* verifier = nullptr;
  // Protected by mutex.
  std::mutex mutex;
  std::condition_variable changed;
  VerifyProgress progress;
  std::optional<base::Result<VerifyReport>> result;

  void finish(base::Result<VerifyReport> with) {
    const std::lock_guard lock(mutex);
    result = std::move(with);
    changed.notify_all();
  }
};

base::Task<void> Supervisor::close_verify_clients() {
  for (auto* client : {&verify_up_, &verify_down_}) {
    if (!*client) continue;
    auto closing = (*client)->close();
    co_await std::move(closing);
  }
}

// On connections of its own: the copy's polls never wait behind a comparison's.
base::Task<base::Result<VerifyReport>> Supervisor::compare(VerifyRequest request, std::shared_ptr<VerifyRun> run) {
  auto upstream = iggy::parse_connection_string(config_.upstream_url);
  CO_RETURN_IF_ERROR(upstream);
  auto downstream = iggy::parse_connection_string(config_.downstream_url);
  CO_RETURN_IF_ERROR(downstream);
  iggy::ClientOptions client;
  client.connect_timeout = config_.connect_timeout;
  client.read_timeout = config_.read_timeout;
  client.reconnect = {config_.retry_initial_backoff, config_.retry_max_backoff};
  client.poll_connections = 1;
  verify_up_ = surroundings_.connect(std::move(*upstream), client);
  verify_down_ = surroundings_.connect(std::move(*downstream), client);
  const bool mints = downstream_.client->server().dialect == iggy::Dialect::kLegacy &&
                     upstream_.client->server().dialect != iggy::Dialect::kLegacy;
  VerifyOptions options;
  options.chunk_bytes = config_.batch_bytes;
  options.confirm_for = config_.confirm_for;
  options.retry = client.reconnect;
  options.busy = [this] {
    return std::ranges::any_of(slots_, [](const auto& slot) { return !slot.second.pipeline->caught_up(); });
  };
  Verifier verifier(clock_, run->stop, store_, std::move(options), [&](const state::PartitionRow& row) {
    VerifyPair pair;
    pair.upstream =
        std::make_unique<IggyVerifySide>(*verify_up_, row.key.topic, row.key, mints ? link_.id : std::string());
    pair.downstream = std::make_unique<IggyVerifySide>(*verify_down_, row.downstream, row.key, std::string());
    return pair;
  });
  run->verifier = &verifier;
  auto verifying = verifier.run(std::move(request));
  auto report = co_await std::move(verifying);
  run->verifier = nullptr;
  co_return report;
}

// Planned end: what was copied since the last clean comparison is what the upstream holds. A sentence, or the
// difference.
base::Task<base::Result<std::string>> Supervisor::equal_sides() {
  auto run = std::make_shared<VerifyRun>(io_);
  auto verifying = do_verify({}, run);
  co_await std::move(verifying);
  auto& report = *run->result;
  CO_RETURN_IF_ERROR(report);
  std::uint64_t messages = 0;
  for (const PartitionVerdict& verdict : report->partitions) {
    messages += verdict.messages;
    if (verdict.verdict == Verified::kEqual) continue;
    co_return base::Error(base::ErrorCode::kFenced, "promote", verdict.key.to_string(),
                          fmt::format("both sides are not equal: {}: {}", to_string(verdict.verdict), verdict.detail),
                          "iggy-replicate verify names the difference; --no-verify ends the link all the same");
  }
  co_return fmt::format("both sides are equal: {} messages compared since the last clean comparison", messages);
}

base::Task<void> Supervisor::do_verify(VerifyRequest request, std::shared_ptr<VerifyRun> run) {
  if (verifying_) {
    run->finish(base::Error(base::ErrorCode::kNotAccepted, "verify", "", "a comparison runs already", "wait for it"));
    co_return;
  }
  if (!reconciled_) {
    run->finish(base::Error(base::ErrorCode::kNotAccepted, "verify", "", "the link is still starting", "try again"));
    co_return;
  }
  verifying_ = true;
  auto comparing = compare(std::move(request), run);
  auto report = co_await std::move(comparing);
  if (!verify_stop_.is_set()) {  // else who stops closes them
    auto closing = close_verify_clients();
    co_await std::move(closing);
    verify_up_.reset();
    verify_down_.reset();
  }
  verifying_ = false;
  if (report) {
    spdlog::info("verify: {}, {} partitions", to_string(report->verdict), report->partitions.size());
    for (const PartitionVerdict& verdict : report->partitions) {
      if (verdict.verdict != Verified::kEqual) {
        spdlog::warn("[{}] verify: {}: {}", verdict.key.to_string(), to_string(verdict.verdict), verdict.detail);
      }
    }
  }
  run->finish(std::move(report));
}

base::Result<VerifyReport> Supervisor::verify(VerifyRequest request,
                                              std::function<bool(const VerifyProgress&)> on_progress) {
  if (stopped_) return stopping();
  auto run = std::make_shared<VerifyRun>(io_);
  asio::post(io_, [this, run, request] {
    if (verify_stop_.is_set() || !commands_.spawn(do_verify(request, run))) run->finish(stopping());
  });
  std::unique_lock lock(run->mutex);
  bool cancelled = false;
  while (!run->changed.wait_for(lock, kProgressEvery, [&] { return run->result.has_value(); })) {
    const VerifyProgress progress = run->progress;
    lock.unlock();
    cancelled = cancelled || !on_progress(progress);
    if (!stopped_) {
      asio::post(io_, [this, run, cancelled] {
        if (cancelled || verify_stop_.is_set()) run->stop.set();
        if (run->verifier == nullptr) return;
        const std::lock_guard guard(run->mutex);
        run->progress = run->verifier->progress();
      });
    }
    lock.lock();
  }
  return std::move(*run->result);
}

base::Task<base::Result<state::Translation>> Supervisor::do_translate(base::PartitionKey key, state::Side from,
                                                                      std::uint64_t offset) {
  auto map_call = store_.offset_map(std::move(key));
  auto map = co_await std::move(map_call);
  CO_RETURN_IF_ERROR(map);
  co_return map->translate(from, offset);
}

base::Result<state::Translation> Supervisor::translate(base::PartitionKey key, state::Side from, std::uint64_t offset) {
  return ask<state::Translation>([=, this] { return do_translate(key, from, offset); });
}

// Kind 3 came with server 0.10, whose dialect we do not speak.
base::Status Supervisor::refuse_external_groups() const {
  if (config_.external_groups.empty()) return base::ok();
  return base::Error(base::ErrorCode::kUnsupported, "start", "consumers.external_groups",
                     fmt::format("external groups exist from server 0.10 on; upstream speaks {}, downstream {}",
                                 upstream_.status.dialect, downstream_.status.dialect),
                     "leave the key out");
}

base::Task<base::Result<std::vector<state::ConsumerRow>>> Supervisor::do_sync_consumers(std::string actor,
                                                                                        bool dry_run) {
  if (!reconciled_) {
    co_return base::Error(base::ErrorCode::kNotAccepted, "consumers", "", "the link is still starting", "try again");
  }
  if (state_ == "fenced" || ending_) {
    co_return base::Error(base::ErrorCode::kFenced, "consumers", "", "the link may not write downstream");
  }
  if (marker_ && !marker_->may_send() && !dry_run) {
    co_return base::Error(base::ErrorCode::kNotAccepted, "consumers", "",
                          "the link's record downstream could not be confirmed lately: another process may write");
  }
  auto taking = consumer_turn_.take();
  const auto held = co_await std::move(taking);
  std::map<base::TopicName, SyncedTopic> topics;
  for (const WantedPartition& wanted : topology_.partitions) {
    SyncedTopic& topic = topics[wanted.key.topic];
    topic.upstream = wanted.key.topic;
    topic.downstream = wanted.downstream;
    topic.partitions.push_back(wanted.key.partition);
  }
  std::vector<SyncedTopic> list;
  for (auto& [name, topic] : topics) list.push_back(std::move(topic));
  ConsumerSync sync(upstream_.client.get(), *downstream_.client, store_, clock_,
                    {config_.consumers, config_.consumer_groups});
  auto passing = sync.pass(std::move(list), dry_run);
  auto rows = co_await std::move(passing);
  if (rows && !actor.empty() && !dry_run) {
    state::Transaction transaction;
    state::EventRow event;
    event.at = clock_.wall_micros();
    event.kind = "consumers_sync";
    event.actor = std::move(actor);
    event.detail = fmt::format("{} stored offsets looked at", rows->size());
    transaction.events.push_back(std::move(event));
    auto applying = store_.apply(std::move(transaction));
    auto applied = co_await std::move(applying);
    CO_RETURN_IF_ERROR(applied);
  }
  co_return rows;
}

base::Task<void> Supervisor::consumer_loop() {
  if (config_.consumer_interval == base::Duration::zero()) co_return;
  if (config_.consumers.empty() && !config_.consumer_groups) co_return;
  std::string said;
  while (!publish_stop_.is_set()) {  // a link also ends by itself
    auto wait = base::wait_until(clock_, publish_stop_, clock_.now() + config_.consumer_interval);
    co_await std::move(wait);
    if (publish_stop_.is_set() || verify_stop_.is_set() || stop_.is_set() || !reconciled_ || state_ == "fenced" ||
        ending_)
      continue;
    auto syncing = do_sync_consumers("", false);
    auto rows = co_await std::move(syncing);
    const std::string problem = rows ? std::string() : rows.error().to_string();
    if (!rows && !rows.error().is_cancelled() && problem != said) spdlog::warn("consumers: {}", problem);
    said = problem;
  }
}

base::Result<std::vector<state::ConsumerRow>> Supervisor::consumers() {
  return ask<std::vector<state::ConsumerRow>>([this] { return store_.consumers(); });
}

base::Result<std::vector<state::ConsumerRow>> Supervisor::sync_consumers(std::string actor, bool dry_run) {
  return ask<std::vector<state::ConsumerRow>>([=, this] { return do_sync_consumers(actor, dry_run); });
}

}  // namespace replicator
