// The operator's commands: asked on gRPC threads, carried out on the I/O thread.
#include <algorithm>
#include <future>

#include <asio/co_spawn.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "replicator/link/supervisor_ask.h"
#include "replicator/model/partition_glob.h"

namespace replicator {

base::Task<base::Result<CommandOutcome>> Supervisor::set_desired(std::string glob, state::Desired desired,
                                                                 std::string actor, bool dry_run) {
  const bool pausing = desired == state::Desired::kPaused;
  auto pattern = PartitionGlob::compile(glob);
  CO_RETURN_IF_ERROR(pattern);
  CommandOutcome outcome;
  std::vector<PartitionPipeline*> matched;
  for (auto& [key, slot] : slots_) {
    if (pattern->matches(key)) matched.push_back(slot.pipeline.get());
  }
  if (matched.empty()) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, pausing ? "pause" : "resume", glob,
                          "matches no partition of this link", "iggy-replicate status lists them");
  }
  std::string failures;  // one that can't must not leave the others half done
  for (PartitionPipeline* pipeline : matched) {
    if (!dry_run) {
      auto setting = pipeline->set_desired(desired, actor);
      auto set = co_await std::move(setting);
      if (!set) {
        failures += (failures.empty() ? "" : "; ") + set.error().to_string();
        continue;
      }
    }
    outcome.affected.push_back(pipeline->key().to_string());
  }
  if (!failures.empty()) {
    publish();
    co_return base::Error(base::ErrorCode::kStateUnavailable, pausing ? "pause" : "resume", glob,
                          fmt::format("{} of {} partitions done ({}); not done: {}", outcome.affected.size(),
                                      matched.size(), fmt::join(outcome.affected, ", "), failures));
  }
  outcome.what = fmt::format("{}{} {} partitions; this survives a restart", dry_run ? "would " : "",
                             pausing ? "pause" : "resume", matched.size());
  publish();  // who asks next sees it
  co_return outcome;
}

base::Task<base::Result<CommandOutcome>> Supervisor::do_resolve(base::PartitionKey key, Exit exit, std::string actor,
                                                                bool dry_run) {
  const auto slot = slots_.find(key);
  if (slot == slots_.end()) {
    for (const MissingPartition& missing : topology_.missing) {
      if (missing.key != key) continue;
      auto retrying = retry_missing(missing, exit, std::move(actor), dry_run);
      co_return co_await std::move(retrying);
    }
    co_return base::Error(base::ErrorCode::kInvalidArgument, "resolve", key.to_string(),
                          "no such partition in this link", "iggy-replicate status lists them");
  }
  PartitionPipeline& pipeline = *slot->second.pipeline;
  const auto kind = fault_from_name(pipeline.status().fault.kind);
  CommandOutcome outcome;
  if (kind && std::ranges::find(info(*kind).exits, exit) == info(*kind).exits.end()) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "resolve", key.to_string(),
                          fmt::format("'{}' is no exit of {}", to_string(exit), info(*kind).name));
  }
  if (kind) {
    outcome.what = meaning(*kind, exit);
    const auto consequences = pipeline.status().consequences;
    const auto here = consequences.find(exit);
    if (here != consequences.end() && !here->second.empty()) outcome.what += ". Here: " + here->second;
  }
  if (!dry_run || !kind) {
    auto resolving = pipeline.resolve(exit, std::move(actor));
    auto resolved = co_await std::move(resolving);
    CO_RETURN_IF_ERROR(resolved);
  }
  outcome.affected.push_back(key.to_string());
  co_return outcome;
}

// A partition that has no place downstream has no row and no pipeline yet: both sides' topics are looked at at once.
base::Task<base::Result<CommandOutcome>> Supervisor::retry_missing(const MissingPartition& missing, Exit exit,
                                                                   std::string actor, bool dry_run) {
  const std::string name = missing.key.to_string();
  const FaultInfo& fault = info(missing.fault);
  if (exit != Exit::kRetry) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "resolve", name,
                          fmt::format("'{}' is no exit of {}", to_string(exit), fault.name));
  }
  CommandOutcome outcome;
  outcome.what = "looks at the topics of both sides again, now; changes nothing else";
  outcome.affected.push_back(name);
  if (dry_run) co_return outcome;
  state::Transaction transaction;
  state::EventRow& event = transaction.events.emplace_back();
  event.at = clock_.wall_micros();
  event.kind = "resolve";
  event.object = name;
  event.actor = std::move(actor);
  event.detail = fmt::format("{} as retry", fault.name);
  auto applying = store_.apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  reconcile_now_.set();
  co_return outcome;
}

base::Task<base::Result<CommandOutcome>> Supervisor::do_replay(std::vector<std::int64_t> ids, std::string actor,
                                                               bool dry_run) {
  const auto refused = [](const std::string& object, std::string why) {
    return base::Error(base::ErrorCode::kInvalidArgument, "replay", object, std::move(why),
                       "iggy-replicate gaps lists what was skipped");
  };
  auto gaps_call = store_.gaps();
  auto gaps = co_await std::move(gaps_call);
  CO_RETURN_IF_ERROR(gaps);
  std::map<base::PartitionKey, std::vector<state::GapRow>> wanted;
  std::size_t count = 0;
  const bool all = ids.empty();
  for (state::GapRow& gap : *gaps) {
    const bool named = std::erase(ids, gap.id) > 0;
    const bool skipped = gap.resolved_as == "skip" && gap.digest.has_value();
    if (named && !skipped) {
      co_return refused(std::to_string(gap.id),
                        fmt::format("that is {} of {}, resolved as '{}': only a message that was "
                                    "skipped is sent again",
                                    gap.cause, gap.key.to_string(), gap.resolved_as));
    }
    if (!skipped || (!all && !named)) continue;
    ++count;
    wanted[gap.key].push_back(std::move(gap));
  }
  if (!ids.empty()) co_return refused(std::to_string(ids.front()), "the ledger has no such row");
  if (count == 0) co_return refused("", "nothing was skipped that could be sent again");
  CommandOutcome outcome;
  outcome.what = fmt::format(
      "sends {} skipped messages again, each after what its partition holds downstream then: they stand later there "
      "than "
      "upstream, so the order changes",
      count);
  for (auto& [key, rows] : wanted) {
    const auto slot = slots_.find(key);
    if (slot == slots_.end()) co_return refused(key.to_string(), "no such partition in this link");
    if (!dry_run) {
      auto replaying = slot->second.pipeline->replay(std::move(rows), actor);
      auto replayed = co_await std::move(replaying);
      CO_RETURN_IF_ERROR(replayed);
    }
    outcome.affected.push_back(key.to_string());
  }
  co_return outcome;
}

base::Task<base::Result<CommandOutcome>> Supervisor::do_reset(base::PartitionKey key, std::uint64_t up_offset,
                                                              std::string actor, bool dry_run) {
  const auto slot = slots_.find(key);
  if (slot == slots_.end()) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reset", key.to_string(), "no such partition in this link",
                          "iggy-replicate status lists them");
  }
  const PartitionStatus status = slot->second.pipeline->status();
  CommandOutcome outcome;
  outcome.affected.push_back(key.to_string());
  // The same questions as the pipeline's, so that a dry run answers what the deed would.
  if (status.desired != state::Desired::kPaused) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reset", key.to_string(), "the partition is running",
                          "pause it first: iggy-replicate pause " + key.to_string());
  }
  if (up_offset == status.committed) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reset", key.to_string(),
                          fmt::format("the watermark is {} already", up_offset));
  }
  if (up_offset > std::max(status.upstream_end.value_or(0), status.committed)) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reset", key.to_string(),
                          status.upstream_end ? fmt::format("upstream ends at {}", *status.upstream_end)
                                              : "the upstream's end is not known",
                          "name an offset up to there");
  }
  outcome.what = up_offset < status.committed
                     ? fmt::format("copies upstream offsets {} to {} once more: they will be downstream twice",
                                   up_offset, status.committed)
                     : fmt::format("never copies upstream offsets {} to {}", status.committed, up_offset);
  if (!dry_run) {
    auto resetting = slot->second.pipeline->reset(up_offset, std::move(actor));
    auto done = co_await std::move(resetting);
    CO_RETURN_IF_ERROR(done);
    publish();
  }
  co_return outcome;
}

base::Result<CommandOutcome> Supervisor::pause(std::string glob, std::string actor, bool dry_run) {
  return ask<CommandOutcome>([=, this] { return set_desired(glob, state::Desired::kPaused, actor, dry_run); });
}
base::Result<CommandOutcome> Supervisor::resume(std::string glob, std::string actor, bool dry_run) {
  return ask<CommandOutcome>([=, this] { return set_desired(glob, state::Desired::kRunning, actor, dry_run); });
}
base::Result<CommandOutcome> Supervisor::resolve(base::PartitionKey key, Exit exit, std::string actor, bool dry_run) {
  return ask<CommandOutcome>([=, this] { return do_resolve(key, exit, actor, dry_run); });
}
base::Result<CommandOutcome> Supervisor::reset(base::PartitionKey key, std::uint64_t up_offset, std::string actor,
                                               bool dry_run) {
  return ask<CommandOutcome>([=, this] { return do_reset(key, up_offset, actor, dry_run); });
}
base::Result<CommandOutcome> Supervisor::replay(std::vector<std::int64_t> ids, std::string actor, bool dry_run) {
  return ask<CommandOutcome>([=, this] { return do_replay(ids, actor, dry_run); });
}
base::Result<CommandOutcome> Supervisor::set_throttle(std::string glob, Rate rate, std::string actor, bool dry_run) {
  return ask<CommandOutcome>([=, this] { return do_set_throttle(glob, rate, actor, dry_run); });
}
base::Result<CommandOutcome> Supervisor::reload(std::string actor, bool dry_run) {
  auto reading = read_again();
  if (!reading) return std::move(reading).error();
  return ask<CommandOutcome>([=, this] { return do_reload(*reading, actor, dry_run); });
}
base::Result<std::vector<state::GapRow>> Supervisor::gaps() {
  return ask<std::vector<state::GapRow>>([this] { return store_.gaps(); });
}
base::Result<std::vector<state::EventRow>> Supervisor::events(std::size_t newest) {
  return ask<std::vector<state::EventRow>>([this, newest] { return store_.events(newest); });
}

}  // namespace replicator
