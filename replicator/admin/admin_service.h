// The gRPC service iggy.replicate.admin.v1.Admin: reads come from the status board, commands go to Commands.
// The API is described in proto/iggy/replicate/admin/v1/admin.proto.
//
// Affinity: methods run on gRPC's threads; stop() from any thread. Lifetime: board and commands must outlive the
// server.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "iggy/replicate/admin/v1/admin.grpc.pb.h"
#include "replicator/admin/to_proto.h"
#include "replicator/model/commands.h"
#include "replicator/model/status.h"

namespace replicator {

class AdminService final : public pb::Admin::Service {
 public:
  static constexpr int kWatchesMax = 8;

  // `token`: what callers must present; empty = none asked for.
  AdminService(StatusBoard& board, Commands& commands, std::string token);

  // Ends every watch with UNAVAILABLE. Idempotent.
  void stop();

  grpc::Status GetLink(grpc::ServerContext* context, const pb::GetLinkRequest* request,
                       pb::GetLinkResponse* response) override;
  grpc::Status ListPartitions(grpc::ServerContext* context, const pb::ListPartitionsRequest* request,
                              pb::ListPartitionsResponse* response) override;
  grpc::Status WatchPartitions(grpc::ServerContext* context, const pb::WatchPartitionsRequest* request,
                               grpc::ServerWriter<pb::WatchPartitionsResponse>* writer) override;
  grpc::Status Pause(grpc::ServerContext* context, const pb::PauseRequest* request,
                     pb::CommandResponse* response) override;
  grpc::Status Resume(grpc::ServerContext* context, const pb::ResumeRequest* request,
                      pb::CommandResponse* response) override;
  grpc::Status ListGaps(grpc::ServerContext* context, const pb::ListGapsRequest* request,
                        pb::ListGapsResponse* response) override;
  grpc::Status ListEvents(grpc::ServerContext* context, const pb::ListEventsRequest* request,
                          pb::ListEventsResponse* response) override;
  grpc::Status Resolve(grpc::ServerContext* context, const pb::ResolveRequest* request,
                       pb::CommandResponse* response) override;
  grpc::Status Reset(grpc::ServerContext* context, const pb::ResetRequest* request,
                     pb::CommandResponse* response) override;
  grpc::Status ReplayGaps(grpc::ServerContext* context, const pb::ReplayGapsRequest* request,
                          pb::CommandResponse* response) override;
  grpc::Status SetThrottle(grpc::ServerContext* context, const pb::SetThrottleRequest* request,
                           pb::CommandResponse* response) override;
  grpc::Status Reload(grpc::ServerContext* context, const pb::ReloadRequest* request,
                      pb::CommandResponse* response) override;
  grpc::Status Failover(grpc::ServerContext* context, const pb::FailoverRequest* request,
                        pb::EndReport* response) override;
  grpc::Status Promote(grpc::ServerContext* context, const pb::PromoteRequest* request,
                       pb::EndReport* response) override;
  // admin_service_compare.cc
  grpc::Status Translate(grpc::ServerContext* context, const pb::TranslateRequest* request,
                         pb::TranslateResponse* response) override;
  grpc::Status Verify(grpc::ServerContext* context, const pb::VerifyRequest* request,
                      grpc::ServerWriter<pb::VerifyResponse>* writer) override;
  grpc::Status ListConsumers(grpc::ServerContext* context, const pb::ListConsumersRequest* request,
                             pb::ListConsumersResponse* response) override;
  grpc::Status SyncConsumers(grpc::ServerContext* context, const pb::SyncConsumersRequest* request,
                             pb::ListConsumersResponse* response) override;

 private:
  // OK, or UNAUTHENTICATED.
  grpc::Status authorize(const grpc::ServerContext& context) const;

  // Set in the constructor, then const.
  StatusBoard& board_;
  Commands& commands_;
  const std::string token_;

  // Protected by mutex_.
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stopped_ = false;
  int watches_ = 0;
};

}  // namespace replicator
