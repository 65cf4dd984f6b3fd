// How a running link ends for good: the gate closes first, then the link stops in order, and both records are written
// while the downstream can still be reached. The steps and what a crash in each means: replicator/failover/end_link.h.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "replicator/consumers/consumer_sync.h"
#include "replicator/failover/end_link.h"
#include "replicator/failover/fence.h"
#include "replicator/link/supervisor.h"

namespace replicator {

namespace {
constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::seconds kComparison{600};  // of what came since `verify`
constexpr base::Duration kCommitPatience = std::chrono::seconds(2);

base::Error not_ready(std::string message, std::string hint = {}) {
  return {base::ErrorCode::kFenced, "promote", "link", std::move(message), std::move(hint)};
}
}  // namespace

base::Result<EndReport> Supervisor::end_link(EndRequest request) {
  const base::Error ended(base::ErrorCode::kStopped, "failover", "", "the link has stopped",
                          "give --state and --downstream to end it by its state file");
  if (stopped_) return ended;
  auto promise = std::make_shared<EndPromise>();
  auto answer = promise->get_future();
  const auto comparison = request.ending == Ending::kPromote && request.verify ? kComparison : std::chrono::seconds(0);
  const auto patience = kPatience + comparison + std::chrono::duration_cast<std::chrono::seconds>(request.still_for);
  asio::post(io_, [this, promise, request = std::move(request), ended] {
    if (ending_ && !end_report_) {
      end_waiters_.push_back(promise);  // asked twice at once: one answer for both
    } else if (!commands_.spawn(begin_ending(request, promise))) {
      promise->set_value(end_report_ ? base::Result<EndReport>(*end_report_) : base::Result<EndReport>(ended));
    }
  });
  if (answer.wait_for(patience) != std::future_status::ready) {
    return base::Error(base::ErrorCode::kTimeout, "failover", "",
                       "no answer yet; writing has stopped, the records may still be written: ask again");
  }
  return answer.get();
}

base::Task<void> Supervisor::begin_ending(EndRequest request, std::shared_ptr<EndPromise> promise) {
  auto preparing = prepare_ending(request);
  auto prepared = co_await std::move(preparing);
  if (!prepared || request.dry_run) {
    promise->set_value(std::move(prepared));
    co_return;
  }
  spdlog::warn("{} by {}: this link ends for good", request.ending == Ending::kPromote ? "promote" : "failover",
               request.actor);
  // From here on nothing is sent: the gate is asked before every send.
  ending_ = std::move(request);
  ending_verified_ = prepared->verified;
  ending_since_ = clock_.now();
  end_waiters_.push_back(std::move(promise));
  ending_begun_.set();
  stop_.set();
  reconcile_now_.set();
}

// What a dry run says, or why the link can't end like this. Changes nothing, but for the fence that was asked for.
base::Task<base::Result<EndReport>> Supervisor::prepare_ending(const EndRequest& request) {
  auto link_call = store_.link();
  auto link = co_await std::move(link_call);
  CO_RETURN_IF_ERROR(link);
  if (!*link) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "failover", config_.state_file,
                          "this link has never copied anything: there is nothing to end");
  }
  EndReport report;
  report.ending = request.ending;
  report.dry_run = request.dry_run;
  report.link_id = (*link)->id;
  if (request.ending == Ending::kPromote) {
    auto checking = ready_to_promote(request, report);
    auto ready = co_await std::move(checking);
    CO_RETURN_IF_ERROR(ready);
    if (request.verify && !request.dry_run) {
      auto comparing = equal_sides();
      auto equal = co_await std::move(comparing);
      CO_RETURN_IF_ERROR(equal);
      report.verified = std::move(*equal);
    }
  }
  auto looking = present_loss(request.ending);
  auto loss = co_await std::move(looking);
  CO_RETURN_IF_ERROR(loss);
  report.loss = std::move(*loss);
  co_return report;
}

base::Task<base::Result<Loss>> Supervisor::present_loss(Ending ending) {
  publish();
  const auto status = board_.read();
  // The upstream took messages until its connection broke; a silent one may take them still; a fenced one takes none.
  std::uint64_t until = ending == Ending::kPromote ? 0 : status->taken_at;
  if (const auto lost_at = upstream_.client ? upstream_.client->lost_at() : std::nullopt; lost_at) {
    until -= std::min(until, static_cast<std::uint64_t>((clock_.now() - *lost_at).count()));
  }
  if (!status->partitions.empty()) co_return loss_of(status->partitions, status->taken_at, until);
  auto rows_call = store_.partitions();  // not started yet: an end is missing
  auto rows = co_await std::move(rows_call);
  CO_RETURN_IF_ERROR(rows);
  co_return loss_of(*rows, clock_.wall_micros());
}

// Planned: everything that the upstream holds is committed downstream, and the upstream stands still.
base::Task<base::Status> Supervisor::ready_to_promote(const EndRequest& request, EndReport& report) {
  if (state_ != "running") co_return not_ready("the link is " + state_ + ": " + state_detail_);
  if (!topology_.missing.empty()) {
    co_return not_ready(fmt::format("{} has no place downstream: {}", topology_.missing.front().key.to_string(),
                                    topology_.missing.front().reason));
  }
  if (!request.fence_user.empty()) {
    auto fencing = fence_user(*upstream_.client, request.fence_user, request.dry_run);
    auto taken = co_await std::move(fencing);
    CO_RETURN_IF_ERROR(taken);
    report.next_steps.push_back(
        taken->empty() ? fmt::format("user {} may not send upstream", request.fence_user)
                       : fmt::format("user {} {} upstream: {}; to go back, give them again", request.fence_user,
                                     request.dry_run ? "would lose" : "has lost", fmt::join(*taken, ", ")));
    if (!request.dry_run && !taken->empty()) {
      state::EventRow event;
      event.at = clock_.wall_micros();
      event.kind = "fence";
      event.actor = request.actor;
      event.detail = report.next_steps.back();
      state::Transaction transaction;
      transaction.events.push_back(std::move(event));
      auto noting = store_.apply(std::move(transaction));
      auto noted = co_await std::move(noting);
      CO_RETURN_IF_ERROR(noted);
    }
  }
  const std::uint64_t begin_wall = clock_.wall_micros();
  const base::TimePoint begin = clock_.now();
  std::map<base::PartitionKey, std::uint64_t> ends;
  for (;;) {
    const bool last = clock_.now() - begin >= request.still_for;
    std::string waits;  // one partition whose view is older than the fence
    for (const auto& [key, slot] : slots_) {
      const PartitionStatus status = slot.pipeline->status();
      if (status.fault.active()) co_return not_ready(key.to_string() + " has a fault: " + status.fault.kind);
      if (status.desired == state::Desired::kPaused) co_return not_ready(key.to_string() + " is paused");
      if (!status.upstream_end || !status.lag.messages) {
        co_return not_ready("the upstream was not seen lately: " + key.to_string(), "a dead upstream needs `failover`");
      }
      const auto [at, is_first] = ends.try_emplace(key, *status.upstream_end);
      if (at->second != *status.upstream_end) {
        co_return not_ready(fmt::format("the upstream is not fenced: {} grew from {} to {} meanwhile", key.to_string(),
                                        at->second, *status.upstream_end),
                            "stop its writers, or take their right to send with --fence user=NAME");
      }
      if (last && (*status.lag.messages > 0 || status.committed != status.acked)) {
        co_return not_ready(fmt::format("{} is not caught up: {} messages are left", key.to_string(),
                                        std::max<std::uint64_t>(*status.lag.messages, 1)),
                            "wait until `lag` says 0 and try again");
      }
      if (status.lag.observed_at < begin_wall) waits = key.to_string();
    }
    if (last && waits.empty()) co_return base::ok();
    if (clock_.now() - begin > request.still_for + std::chrono::seconds(10)) {
      co_return not_ready("the upstream was not seen since the fence: " + waits, "a dead upstream needs `failover`");
    }
    auto wait = base::wait_until(clock_, stop_, clock_.now() + std::chrono::milliseconds(100));
    co_await std::move(wait);
    if (stop_.is_set()) co_return base::Error(base::ErrorCode::kStopped, "promote", "", "the link is stopping");
  }
}

// Both records, after the last send and before the clients close. `drained`: no request was cut short, so that the
// downstream's client still works.
base::Task<void> Supervisor::finish_ending(bool drained) {
  const auto stopped = static_cast<std::uint64_t>((clock_.now() - ending_since_).count());
  const base::TimePoint give_up = clock_.now() + kCommitPatience;
  for (auto& [key, slot] : slots_) {
    auto flushing = committer_->flush(key, give_up);
    co_await std::move(flushing);
  }
  EndLinkOptions options;
  options.ending = ending_->ending;
  options.actor = ending_->actor;
  auto looking = present_loss(options.ending);
  auto loss = co_await std::move(looking);
  if (loss) options.loss = std::move(*loss);

  if (link_.id.empty()) {
    auto link_call = store_.link();
    auto link = co_await std::move(link_call);
    if (link && *link) link_ = **link;
  }
  const bool usable = drained && !downstream_.status.endpoint.empty();
  std::unique_ptr<iggy::Client> another;
  base::Status reachable = base::ok();
  if (!usable) {
    another = surroundings_.connect(*iggy::parse_connection_string(config_.downstream_url), client_options(config_));
    auto connecting = connect_for(*another, clock_, options.patience);
    reachable = co_await std::move(connecting);
  }
  iggy::Client* const downstream = usable ? downstream_.client.get() : another.get();
  // A planned end asks the upstream once more where its consumers stand; a disaster goes by what was seen last.
  iggy::Client* const upstream = drained && options.ending == Ending::kPromote ? upstream_.client.get() : nullptr;
  ConsumerSync sync(upstream, *downstream, store_, clock_, {config_.consumers, config_.consumer_groups});
  if (reachable) {
    options.sync_consumers = [&]() -> base::Task<base::Result<std::vector<state::ConsumerRow>>> {
      auto taking = consumer_turn_.take();  // a pass under way ends first
      const auto held = co_await std::move(taking);
      auto passing = sync.pass_over_all();
      co_return co_await std::move(passing);
    };
  }
  const auto before_records = static_cast<std::uint64_t>((clock_.now() - ending_since_).count());
  auto ending = replicator::end_link(store_, link_, reachable ? downstream : nullptr,
                                     reachable ? std::string() : reachable.error().to_string(), clock_, config_,
                                     *rules_, std::move(options));
  auto report = co_await std::move(ending);
  report.verified = ending_verified_;
  report.stopped_micros = stopped;
  report.recorded_micros += before_records;
  if (another) {
    auto closing = another->close();
    co_await std::move(closing);
  }
  state_detail_ = "ended by " + ending_->actor;
  for (const std::string& undone : report.undone) spdlog::error("{}", undone);
  spdlog::warn(
      "link {} has ended: nothing is written downstream since {:.0f} ms, recorded after {:.0f} ms; the "
      "downstream lacks {}",
      link_.id, static_cast<double>(stopped) / 1e3, static_cast<double>(report.recorded_micros) / 1e3,
      in_words(report.loss));
  end_report_ = std::move(report);
  for (const auto& promise : std::exchange(end_waiters_, {})) promise->set_value(*end_report_);
}

}  // namespace replicator
