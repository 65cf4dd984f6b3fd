// Listens for the admin API: the service, health (grpc.health.v1) and reflection.
//
// Lifetime: board and commands must outlive it. Affinity: start and destruction from one thread, not a gRPC one.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/server.h>

#include "base/result.h"
#include "replicator/admin/admin_service.h"

namespace replicator {

struct AdminOptions {
  std::string address = "127.0.0.1:8095";  // port 0 = any free one
  std::string tls_cert, tls_key;           // PEM files, both or neither; renewed ones are used within a second or two
  std::string token_file;                  // first line = bearer token; empty = none asked for
};

class AdminServer {
 public:
  // kInvalidArgument: address malformed, or open to other machines without TLS or a token; a file can't be read.
  // kConnectFailed: the port is taken.
  static base::Result<std::unique_ptr<AdminServer>> start(const AdminOptions& options, StatusBoard& board,
                                                          Commands& commands);
  // Ends watches, lets running calls finish for up to 2 s, then cancels them.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  // "127.0.0.1:41234": with the port that is really bound.
  const std::string& address() const { return address_; }

 private:
  AdminServer(StatusBoard& board, Commands& commands, std::string token)
      : service_(board, commands, std::move(token)) {}

  AdminService service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace replicator
