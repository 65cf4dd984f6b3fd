#include "replicator/admin/admin_service.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>

#include "replicator/model/fault.h"
#include "replicator/model/partition_glob.h"

namespace replicator {
namespace {

base::Error invalid(std::string operation, std::string object, std::string message, std::string hint = {}) {
  return {base::ErrorCode::kInvalidArgument, std::move(operation), std::move(object), std::move(message),
          std::move(hint)};
}

// An empty glob stands for everything: no filter.
base::Result<std::optional<PartitionGlob>> compile_filter(const std::string& glob) {
  if (glob.empty()) return std::optional<PartitionGlob>();
  auto filter = PartitionGlob::compile(glob);
  if (!filter) return std::move(filter).error();
  return std::optional(*std::move(filter));
}

base::Status check_command(const char* operation, const std::string& glob, const std::string& actor) {
  if (auto compiled = PartitionGlob::compile(glob); !compiled) return std::move(compiled).error();
  if (actor.empty()) return invalid(operation, glob, "the request does not say who asks", "set actor to user@host");
  return base::ok();
}

base::Status check_command(const char* operation, const pb::PartitionId& id, const std::string& actor) {
  const std::string name = from_proto(id).to_string();
  if (id.stream().empty() || id.topic().empty()) return invalid(operation, name, "the request names no partition");
  if (actor.empty()) return invalid(operation, name, "the request does not say who asks", "set actor to user@host");
  return base::ok();
}

grpc::Status answer(const base::Result<CommandOutcome>& outcome, pb::CommandResponse* response) {
  if (!outcome) return to_status(outcome.error());
  for (const std::string& partition : outcome->affected) response->add_affected(partition);
  response->set_what(outcome->what);
  return grpc::Status::OK;
}

grpc::Status answer(const base::Result<EndReport>& report, pb::EndReport* response) {
  if (!report) return to_status(report.error());
  *response = to_proto(*report);
  return grpc::Status::OK;
}

base::Error nobody_asks(const char* operation) {
  return invalid(operation, {}, "the request does not say who asks", "set actor to user@host");
}

template <class Response>
void add_partitions(const LinkStatus& status, const std::optional<PartitionGlob>& filter, Response* response) {
  for (const PartitionStatus& partition : status.partitions) {
    if (!filter || filter->matches(partition.key)) *response->add_partitions() = to_proto(partition);
  }
}

}  // namespace

AdminService::AdminService(StatusBoard& board, Commands& commands, std::string token)
    : board_(board), commands_(commands), token_(std::move(token)) {}

void AdminService::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  stopping_.notify_all();
}

grpc::Status AdminService::authorize(const grpc::ServerContext& context) const {
  if (token_.empty()) return grpc::Status::OK;
  const auto found = context.client_metadata().find("authorization");
  if (found != context.client_metadata().end()) {
    const std::string wanted = "Bearer " + token_;
    const grpc::string_ref given = found->second;
    // Takes as long for a wrong token as for a right one of the same length.
    if (given.size() == wanted.size() && CRYPTO_memcmp(given.data(), wanted.data(), wanted.size()) == 0) {
      return grpc::Status::OK;
    }
  }
  return to_status(grpc::StatusCode::UNAUTHENTICATED, pb::ERROR_REASON_UNAUTHENTICATED,
                   "the bearer token is missing or wrong",
                   "give --admin-token-file, or set IGGY_REPLICATE_ADMIN_TOKEN_FILE");
}

grpc::Status AdminService::GetLink(grpc::ServerContext* context, const pb::GetLinkRequest*,
                                   pb::GetLinkResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  *response->mutable_link() = to_proto(*board_.read(), true);
  return grpc::Status::OK;
}

grpc::Status AdminService::ListPartitions(grpc::ServerContext* context, const pb::ListPartitionsRequest* request,
                                          pb::ListPartitionsResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  auto filter = compile_filter(request->glob());
  if (!filter) return to_status(filter.error());
  const auto snapshot = board_.read();
  if (snapshot->taken_at != 0) set_time(response->mutable_taken_at(), snapshot->taken_at);
  add_partitions(*snapshot, *filter, response);
  return grpc::Status::OK;
}

grpc::Status AdminService::WatchPartitions(grpc::ServerContext* context, const pb::WatchPartitionsRequest* request,
                                           grpc::ServerWriter<pb::WatchPartitionsResponse>* writer) {
  if (auto status = authorize(*context); !status.ok()) return status;
  auto filter = compile_filter(request->glob());
  if (!filter) return to_status(filter.error());
  const std::uint32_t interval_ms = request->interval_ms() == 0 ? 1000 : request->interval_ms();
  if (interval_ms < 100 || interval_ms > 60'000) {
    return to_status(
        invalid("watch", request->glob(), "interval_ms " + std::to_string(interval_ms) + " is not in 100 to 60000"));
  }
  std::unique_lock lock(mutex_);
  if (watches_ == kWatchesMax) {
    return to_status(grpc::StatusCode::RESOURCE_EXHAUSTED, pb::ERROR_REASON_TOO_MANY_WATCHES,
                     std::to_string(kWatchesMax) + " watches are open already", "end one of them");
  }
  ++watches_;
  auto next = std::chrono::steady_clock::now();
  while (!stopped_ && !context->IsCancelled()) {
    lock.unlock();
    const auto snapshot = board_.read();
    pb::WatchPartitionsResponse response;
    *response.mutable_link() = to_proto(*snapshot, false);
    add_partitions(*snapshot, *filter, &response);
    const bool written = writer->Write(response);
    next += std::chrono::milliseconds(interval_ms);
    lock.lock();
    if (!written) break;
    // A caller that hangs up frees its thread within a second, however long the interval.
    while (!stopped_ && !context->IsCancelled() && std::chrono::steady_clock::now() < next) {
      stopping_.wait_until(lock, std::min(next, std::chrono::steady_clock::now() + std::chrono::seconds(1)));
    }
  }
  --watches_;
  if (!stopped_) return grpc::Status::CANCELLED;
  return to_status(base::Error(base::ErrorCode::kStopped, "watch", request->glob(), "the link is stopping"));
}

grpc::Status AdminService::Pause(grpc::ServerContext* context, const pb::PauseRequest* request,
                                 pb::CommandResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (auto checked = check_command("pause", request->glob(), request->actor()); !checked) {
    return to_status(checked.error());
  }
  return answer(commands_.pause(request->glob(), request->actor(), request->dry_run()), response);
}

grpc::Status AdminService::Resume(grpc::ServerContext* context, const pb::ResumeRequest* request,
                                  pb::CommandResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (auto checked = check_command("resume", request->glob(), request->actor()); !checked) {
    return to_status(checked.error());
  }
  return answer(commands_.resume(request->glob(), request->actor(), request->dry_run()), response);
}

grpc::Status AdminService::ListGaps(grpc::ServerContext* context, const pb::ListGapsRequest* request,
                                    pb::ListGapsResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  auto filter = compile_filter(request->glob());
  if (!filter) return to_status(filter.error());
  auto rows = commands_.gaps();
  if (!rows) return to_status(rows.error());
  for (const state::GapRow& row : *rows) {
    if (request->open_only() && !row.resolved_as.empty()) continue;
    if (*filter && !(*filter)->matches(row.key)) continue;
    *response->add_gaps() = to_proto(row);
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::ListEvents(grpc::ServerContext* context, const pb::ListEventsRequest* request,
                                      pb::ListEventsResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  const std::uint32_t newest = request->newest() == 0 ? 100 : request->newest();
  if (newest > 10'000) {
    return to_status(invalid("events", {}, "newest " + std::to_string(newest) + " is above 10000"));
  }
  auto rows = commands_.events(newest);
  if (!rows) return to_status(rows.error());
  for (const state::EventRow& row : *rows) *response->add_events() = to_proto(row);
  return grpc::Status::OK;
}

grpc::Status AdminService::Resolve(grpc::ServerContext* context, const pb::ResolveRequest* request,
                                   pb::CommandResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (auto checked = check_command("resolve", request->id(), request->actor()); !checked) {
    return to_status(checked.error());
  }
  const base::PartitionKey key = from_proto(request->id());
  const std::optional<Exit> exit = exit_from_name(request->exit());
  if (!exit) {
    return to_status(invalid("resolve", key.to_string(), "\"" + request->exit() + "\" is no exit of any fault",
                             "`status` lists the exits of this one"));
  }
  return answer(commands_.resolve(key, *exit, request->actor(), request->dry_run()), response);
}

grpc::Status AdminService::Reset(grpc::ServerContext* context, const pb::ResetRequest* request,
                                 pb::CommandResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (auto checked = check_command("reset", request->id(), request->actor()); !checked) {
    return to_status(checked.error());
  }
  return answer(
      commands_.reset(from_proto(request->id()), request->upstream_offset(), request->actor(), request->dry_run()),
      response);
}

grpc::Status AdminService::ReplayGaps(grpc::ServerContext* context, const pb::ReplayGapsRequest* request,
                                      pb::CommandResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (request->actor().empty()) {
    return to_status(invalid("replay", {}, "the request does not say who asks", "set actor to user@host"));
  }
  const std::vector<std::int64_t> ids(request->gap_ids().begin(), request->gap_ids().end());
  return answer(commands_.replay(ids, request->actor(), request->dry_run()), response);
}

grpc::Status AdminService::SetThrottle(grpc::ServerContext* context, const pb::SetThrottleRequest* request,
                                       pb::CommandResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (request->actor().empty()) {
    return to_status(
        invalid("throttle", request->glob(), "the request does not say who asks", "set actor to user@host"));
  }
  const Rate rate{request->bytes_per_second(), request->messages_per_second()};
  if (auto checked = parse_rate(format_rate(rate)); !checked) {
    return to_status(invalid("throttle", request->glob(), checked.error().message()));
  }
  return answer(commands_.set_throttle(request->glob(), rate, request->actor(), request->dry_run()), response);
}

grpc::Status AdminService::Reload(grpc::ServerContext* context, const pb::ReloadRequest* request,
                                  pb::CommandResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (request->actor().empty()) {
    return to_status(invalid("reload", {}, "the request does not say who asks", "set actor to user@host"));
  }
  return answer(commands_.reload(request->actor(), request->dry_run()), response);
}

grpc::Status AdminService::Failover(grpc::ServerContext* context, const pb::FailoverRequest* request,
                                    pb::EndReport* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (request->actor().empty()) return to_status(nobody_asks("failover"));
  EndRequest end;
  end.actor = request->actor();
  end.dry_run = request->dry_run();
  return answer(commands_.end_link(std::move(end)), response);
}

grpc::Status AdminService::Promote(grpc::ServerContext* context, const pb::PromoteRequest* request,
                                   pb::EndReport* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (request->actor().empty()) return to_status(nobody_asks("promote"));
  constexpr std::uint32_t kStillMax = 600'000;
  if (request->still_for_ms() > kStillMax) {
    return to_status(
        invalid("promote", {}, fmt::format("still_for_ms {} is above {}", request->still_for_ms(), kStillMax)));
  }
  EndRequest end;
  end.ending = Ending::kPromote;
  end.actor = request->actor();
  end.dry_run = request->dry_run();
  end.fence_user = request->fence_user();
  end.verify = !request->no_verify();
  if (request->still_for_ms() != 0) end.still_for = std::chrono::milliseconds(request->still_for_ms());
  return answer(commands_.end_link(std::move(end)), response);
}

}  // namespace replicator
