// The calls that say where messages and consumers are on both sides.
#include "replicator/admin/admin_service.h"
#include "replicator/model/partition_glob.h"

namespace replicator {

grpc::Status AdminService::Translate(grpc::ServerContext* context, const pb::TranslateRequest* request,
                                     pb::TranslateResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  const base::PartitionKey key = from_proto(request->id());
  const state::Side side = request->from() == pb::SIDE_DOWNSTREAM ? state::Side::kDownstream : state::Side::kUpstream;
  auto translation = commands_.translate(key, side, request->offset());
  if (!translation) return to_status(translation.error());
  *response = to_proto(key, *translation);
  return grpc::Status::OK;
}

grpc::Status AdminService::Verify(grpc::ServerContext* context, const pb::VerifyRequest* request,
                                  grpc::ServerWriter<pb::VerifyResponse>* writer) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (!request->glob().empty()) {
    if (auto glob = PartitionGlob::compile(request->glob()); !glob) return to_status(glob.error());
  }
  auto report = commands_.verify({request->glob(), request->full(), request->bytes_per_second()},
                                 [&](const VerifyProgress& progress) {
                                   pb::VerifyResponse response;
                                   *response.mutable_progress() = to_proto(progress);
                                   return !context->IsCancelled() && writer->Write(response);
                                 });
  if (!report) return to_status(report.error());
  pb::VerifyResponse response;
  *response.mutable_report() = to_proto(*report);
  writer->Write(response);
  return grpc::Status::OK;
}

grpc::Status AdminService::ListConsumers(grpc::ServerContext* context, const pb::ListConsumersRequest* request,
                                         pb::ListConsumersResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  std::optional<PartitionGlob> filter;
  if (!request->glob().empty()) {
    auto glob = PartitionGlob::compile(request->glob());
    if (!glob) return to_status(glob.error());
    filter = *std::move(glob);
  }
  auto rows = commands_.consumers();
  if (!rows) return to_status(rows.error());
  for (const state::ConsumerRow& row : *rows) {
    if (!filter || filter->matches(row.key)) *response->add_consumers() = to_proto(row);
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::SyncConsumers(grpc::ServerContext* context, const pb::SyncConsumersRequest* request,
                                         pb::ListConsumersResponse* response) {
  if (auto status = authorize(*context); !status.ok()) return status;
  if (request->actor().empty()) {
    return to_status(base::Error(base::ErrorCode::kInvalidArgument, "consumers", {},
                                 "the request does not say who asks", "set actor to user@host"));
  }
  auto rows = commands_.sync_consumers(request->actor(), request->dry_run());
  if (!rows) return to_status(rows.error());
  for (const state::ConsumerRow& row : *rows) *response->add_consumers() = to_proto(row);
  return grpc::Status::OK;
}

}  // namespace replicator
