#include "replicator/admin/admin_server.h"

#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server_builder.h>
#include <openssl/ssl.h>

#include "replicator/model/listen_address.h"

namespace replicator {
namespace {

constexpr unsigned kLookAtFilesEverySeconds = 1;
constexpr int kThreadsMax = AdminService::kWatchesMax + 8;

base::Error cannot_start(const AdminOptions& options, std::string message, std::string hint = {}) {
  return {base::ErrorCode::kInvalidArgument, "listen", options.address, std::move(message), std::move(hint)};
}

base::Result<std::string> read_file(const AdminOptions& options, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) return cannot_start(options, "can't read " + path + ", or it is empty");
  return text.str();
}

base::Result<std::shared_ptr<grpc::ServerCredentials>> credentials(const AdminOptions& options) {
  if (options.tls_cert.empty() && options.tls_key.empty()) return grpc::InsecureServerCredentials();
  // gRPC says nothing about files that it can't use.
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> trial(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (SSL_CTX_use_certificate_chain_file(trial.get(), options.tls_cert.c_str()) != 1)
    return cannot_start(options, options.tls_cert + " is no readable PEM certificate");
  if (SSL_CTX_use_PrivateKey_file(trial.get(), options.tls_key.c_str(), SSL_FILETYPE_PEM) != 1)
    return cannot_start(options, options.tls_key + " is no readable PEM key of the certificate in " + options.tls_cert);
  namespace tls = grpc::experimental;
  tls::TlsServerCredentialsOptions watched(std::make_shared<tls::FileWatcherCertificateProvider>(
      options.tls_key, options.tls_cert, kLookAtFilesEverySeconds));
  watched.watch_identity_key_cert_pairs();
  return tls::TlsServerCredentials(watched);
}

}  // namespace

base::Result<std::unique_ptr<AdminServer>> AdminServer::start(const AdminOptions& options, StatusBoard& board,
                                                              Commands& commands) {
  auto listen = parse_listen_address(options.address);
  if (!listen) return cannot_start(options, listen.error().message());
  if (!listen->is_loopback && options.tls_cert.empty() && options.token_file.empty()) {
    return cannot_start(options, "the admin API would be open to other machines without TLS or a token",
                        "give admin.tls_cert and admin.tls_key, or admin.token_file, or listen on 127.0.0.1");
  }
  std::string token;
  if (!options.token_file.empty()) {
    auto text = read_file(options, options.token_file);
    if (!text) return std::move(text).error();
    token = text->substr(0, text->find_first_of("\r\n"));
    if (token.empty()) return cannot_start(options, "the first line of " + options.token_file + " is empty");
  }
  auto creds = credentials(options);
  if (!creds) return std::move(creds).error();

  static std::once_flag plugins;
  std::call_once(plugins, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
  std::unique_ptr<AdminServer> admin(new AdminServer(board, commands, std::move(token)));
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("admin");
  quota.SetMaxThreads(kThreadsMax);
  builder.SetResourceQuota(quota);
  // Otherwise a second process could listen on the same port, and callers would reach either.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int port = 0;
  builder.AddListeningPort(listen->to_string(), *creds, &port);
  builder.RegisterService(&admin->service_);
  admin->server_ = builder.BuildAndStart();
  if (!admin->server_ || port == 0) {
    return base::Error(base::ErrorCode::kConnectFailed, "listen", options.address, "can't bind the admin address",
                       "another process may use it; choose one with --admin-address, or fix the TLS files");
  }
  admin->server_->GetHealthCheckService()->SetServingStatus(pb::Admin::service_full_name(), true);
  listen->port = static_cast<std::uint16_t>(port);
  admin->address_ = listen->to_string();
  return admin;
}

AdminServer::~AdminServer() {
  service_.stop();
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
}

}  // namespace replicator
