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
  if (kind) outcome.what = meaning(*kind, exit);
  if (!dry_run || !kind) {
    auto resolving = pipeline.resolve(exit, std::move(actor));
    auto resolved = co_await std::move(resolving);
    CO_RETURN_IF_ERROR(resolved);
  }
  outcome.affected.push_back(key.to_string());
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
base::Result<std::vector<state::GapRow>> Supervisor::gaps() {
  return ask<std::vector<state::GapRow>>([this] { return store_.gaps(); });
}
base::Result<std::vector<state::EventRow>> Supervisor::events(std::size_t newest) {
  return ask<std::vector<state::EventRow>>([this, newest] { return store_.events(newest); });
}

}  // namespace replicator
