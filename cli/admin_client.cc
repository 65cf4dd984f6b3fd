#include "cli/admin_client.h"

#include <chrono>
#include <fstream>
#include <sstream>

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "replicator/admin/to_proto.h"

namespace cli {
namespace {

// A command may take the link 10 s.
constexpr std::chrono::seconds kDeadline(15);
constexpr int kReplyBytesMax = 256 * 1024 * 1024;

base::Error unreadable(const std::string& path) {
  return {base::ErrorCode::kInvalidArgument, "read", path, "can't be read, or is empty"};
}

}  // namespace

AdminClient::AdminClient(AdminTarget target, std::string token, std::shared_ptr<grpc::Channel> channel)
    : target_(std::move(target)), token_(std::move(token)), stub_(pb::Admin::NewStub(channel)) {}

base::Result<AdminClient> AdminClient::create(const AdminTarget& target) {
  std::string token;
  if (!target.token_file.empty()) {
    std::ifstream file(target.token_file);
    std::getline(file, token);
    while (token.ends_with('\r')) token.pop_back();
    if (token.empty()) return unreadable(target.token_file);
  }
  auto credentials = grpc::InsecureChannelCredentials();
  if (!target.ca_file.empty()) {
    std::ifstream file(target.ca_file, std::ios::binary);
    std::ostringstream pem;
    pem << file.rdbuf();
    if (!file || pem.str().empty()) return unreadable(target.ca_file);
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = pem.str();
    credentials = grpc::SslCredentials(tls);
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kReplyBytesMax);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return AdminClient(target, std::move(token), grpc::CreateCustomChannel(target.address, credentials, arguments));
}

base::Error AdminClient::error(const char* verb, const grpc::Status& status) const {
  pb::ErrorInfo info;
  if (!status.error_details().empty() && info.ParseFromString(status.error_details())) {
    if (info.reason() == pb::ERROR_REASON_UNAUTHENTICATED) {
      return {base::ErrorCode::kCredentials, verb, target_.address, info.message(), info.hint()};
    }
    return base::Error(replicator::to_code(info.reason()), info.operation().empty() ? verb : info.operation(),
                       info.object(), info.message(), info.hint())
        .with_status(info.wire_status());
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return {base::ErrorCode::kConnectFailed, verb, target_.address, "no link answers there",
            "is `iggy-replicate run` running? --admin or IGGY_REPLICATE_ADMIN names another address"};
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return {base::ErrorCode::kTimeout, verb, target_.address, "the link did not answer in time"};
  }
  return {base::ErrorCode::kInternal, verb, target_.address, status.error_message()};
}

template <class Method, class Request, class Response>
base::Result<Response> AdminClient::call(const char* verb, Method method, const Request& request, Response response,
                                         std::chrono::milliseconds more) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline + more);
  if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
  const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
  if (!status.ok()) return error(verb, status);
  return response;
}

base::Result<pb::Link> AdminClient::link() {
  auto response = call("status", &pb::Admin::Stub::GetLink, pb::GetLinkRequest(), pb::GetLinkResponse());
  if (!response) return std::move(response).error();
  return std::move(*response->mutable_link());
}

base::Result<pb::ListPartitionsResponse> AdminClient::partitions(const std::string& glob) {
  pb::ListPartitionsRequest request;
  request.set_glob(glob);
  return call("status", &pb::Admin::Stub::ListPartitions, request, pb::ListPartitionsResponse());
}

base::Result<pb::ListGapsResponse> AdminClient::gaps(const std::string& glob, bool open_only) {
  pb::ListGapsRequest request;
  request.set_glob(glob);
  request.set_open_only(open_only);
  return call("gaps", &pb::Admin::Stub::ListGaps, request, pb::ListGapsResponse());
}

base::Result<pb::ListEventsResponse> AdminClient::events(std::uint32_t newest) {
  pb::ListEventsRequest request;
  request.set_newest(newest);
  return call("events", &pb::Admin::Stub::ListEvents, request, pb::ListEventsResponse());
}

base::Result<pb::CommandResponse> AdminClient::pause(const pb::PauseRequest& request) {
  return call("pause", &pb::Admin::Stub::Pause, request, pb::CommandResponse());
}

base::Result<pb::CommandResponse> AdminClient::resume(const pb::ResumeRequest& request) {
  return call("resume", &pb::Admin::Stub::Resume, request, pb::CommandResponse());
}

base::Result<pb::CommandResponse> AdminClient::replay(const pb::ReplayGapsRequest& request) {
  return call("replay", &pb::Admin::Stub::ReplayGaps, request, pb::CommandResponse());
}

base::Result<pb::CommandResponse> AdminClient::set_throttle(const pb::SetThrottleRequest& request) {
  return call("throttle", &pb::Admin::Stub::SetThrottle, request, pb::CommandResponse());
}

base::Result<pb::CommandResponse> AdminClient::reload(const pb::ReloadRequest& request) {
  return call("reload", &pb::Admin::Stub::Reload, request, pb::CommandResponse());
}

base::Result<pb::CommandResponse> AdminClient::resolve(const pb::ResolveRequest& request) {
  return call("resolve", &pb::Admin::Stub::Resolve, request, pb::CommandResponse());
}

base::Result<pb::CommandResponse> AdminClient::reset(const pb::ResetRequest& request) {
  return call("reset", &pb::Admin::Stub::Reset, request, pb::CommandResponse());
}

base::Result<pb::TranslateResponse> AdminClient::translate(const pb::TranslateRequest& request) {
  return call("translate", &pb::Admin::Stub::Translate, request, pb::TranslateResponse());
}

base::Result<pb::ListConsumersResponse> AdminClient::consumers(const std::string& glob) {
  pb::ListConsumersRequest request;
  request.set_glob(glob);
  return call("consumers", &pb::Admin::Stub::ListConsumers, request, pb::ListConsumersResponse());
}

base::Result<pb::ListConsumersResponse> AdminClient::sync_consumers(const pb::SyncConsumersRequest& request) {
  return call("consumers sync", &pb::Admin::Stub::SyncConsumers, request, pb::ListConsumersResponse());
}

base::Result<pb::VerifyReport> AdminClient::verify(const pb::VerifyRequest& request,
                                                   const std::function<void(const pb::VerifyProgress&)>& show) {
  grpc::ClientContext context;
  if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
  auto reader = stub_->Verify(&context, request);
  pb::VerifyResponse response;
  pb::VerifyReport report;
  while (reader->Read(&response)) {
    if (response.has_progress()) show(response.progress());
    if (response.has_report()) report = std::move(*response.mutable_report());
  }
  if (const grpc::Status status = reader->Finish(); !status.ok()) return error("verify", status);
  return report;
}

// The end of a link may take a minute: a downstream that does not answer is asked again.
base::Result<pb::EndReport> AdminClient::failover(const pb::FailoverRequest& request) {
  return call("failover", &pb::Admin::Stub::Failover, request, pb::EndReport(), std::chrono::minutes(1));
}

base::Result<pb::EndReport> AdminClient::promote(const pb::PromoteRequest& request) {
  return call("promote", &pb::Admin::Stub::Promote, request, pb::EndReport(),
              std::chrono::minutes(request.no_verify() ? 1 : 11) + std::chrono::milliseconds(request.still_for_ms()));
}

base::Status AdminClient::watch(const std::string& glob, std::uint32_t interval_ms,
                                const std::function<bool(const pb::WatchPartitionsResponse&)>& show) {
  grpc::ClientContext context;
  if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
  pb::WatchPartitionsRequest request;
  request.set_glob(glob);
  request.set_interval_ms(interval_ms);
  auto reader = stub_->WatchPartitions(&context, request);
  pb::WatchPartitionsResponse response;
  while (reader->Read(&response)) {
    if (show(response)) continue;
    context.TryCancel();
    reader->Finish();
    return base::ok();
  }
  return error("watch", reader->Finish());
}

}  // namespace cli
