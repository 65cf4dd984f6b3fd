// A running link, as the verbs see it: one method per call of the admin API, with a deadline and our own errors.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "iggy/replicate/admin/v1/admin.grpc.pb.h"

namespace cli {

namespace pb = iggy::replicate::admin::v1;

struct AdminTarget {
  std::string address = "127.0.0.1:8095";
  std::string token_file;  // first line = bearer token; empty = none
  std::string ca_file;     // PEM; not empty = TLS
};

// Errors: what the daemon said, with its reason; kConnectFailed when nobody answers there; kTimeout; kCredentials when
// the bearer token is missing or wrong.
class AdminClient {
 public:
  // kInvalidArgument: a file can't be read. Does not connect yet.
  static base::Result<AdminClient> create(const AdminTarget& target);

  base::Result<pb::Link> link();
  base::Result<pb::ListPartitionsResponse> partitions(const std::string& glob);
  base::Result<pb::ListGapsResponse> gaps(const std::string& glob, bool open_only);
  base::Result<pb::ListEventsResponse> events(std::uint32_t newest);
  base::Result<pb::CommandResponse> pause(const pb::PauseRequest& request);
  base::Result<pb::CommandResponse> resume(const pb::ResumeRequest& request);
  base::Result<pb::CommandResponse> resolve(const pb::ResolveRequest& request);
  base::Result<pb::CommandResponse> reset(const pb::ResetRequest& request);
  base::Result<pb::CommandResponse> replay(const pb::ReplayGapsRequest& request);
  base::Result<pb::CommandResponse> set_throttle(const pb::SetThrottleRequest& request);
  base::Result<pb::CommandResponse> reload(const pb::ReloadRequest& request);
  base::Result<pb::TranslateResponse> translate(const pb::TranslateRequest& request);
  base::Result<pb::ListConsumersResponse> consumers(const std::string& glob);
  base::Result<pb::ListConsumersResponse> sync_consumers(const pb::SyncConsumersRequest& request);
  // As long as it takes; `show` is called with the progress.
  base::Result<pb::VerifyReport> verify(const pb::VerifyRequest& request,
                                        const std::function<void(const pb::VerifyProgress&)>& show);
  base::Result<pb::EndReport> failover(const pb::FailoverRequest& request);
  base::Result<pb::EndReport> promote(const pb::PromoteRequest& request);
  // Calls `show` with every snapshot until it returns false (ok) or the stream ends (its error).
  base::Status watch(const std::string& glob, std::uint32_t interval_ms,
                     const std::function<bool(const pb::WatchPartitionsResponse&)>& show);

 private:
  AdminClient(AdminTarget target, std::string token, std::shared_ptr<grpc::Channel> channel);
  template <class Method, class Request, class Response>
  base::Result<Response> call(const char* verb, Method method, const Request& request, Response response,
                              std::chrono::milliseconds more = {});
  base::Error error(const char* verb, const grpc::Status& status) const;

  AdminTarget target_;
  std::string token_;
  std::unique_ptr<pb::Admin::Stub> stub_;
};

}  // namespace cli
