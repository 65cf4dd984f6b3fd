// A small HTTP/1.1 responder for GET: metrics and health beside the link, not a web server.
//
//   GET /          the status page (page.h)
//   GET /metrics   Prometheus text format
//   GET /healthz   200 while the process answers
//   GET /readyz    200 while the link runs and both ends are connected, else 503 with the reason
//
// Bounds: 32 connections at once, a request head of 8 KiB, 5 s per request; one request per connection.
// Affinity: a thread of its own; start and destruction from any one other thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "replicator/model/status.h"

namespace replicator {

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string headers = {};  // more of them, each with its line break
};
// Called on the server's thread with the path, without a query.
using HttpHandler = std::function<HttpResponse(std::string_view path)>;

// The handler for the paths above. `board` must outlive it.
HttpHandler operating_handler(const StatusBoard& board);

class HttpServer {
 public:
  // `address`: "127.0.0.1:8096"; an IP address or localhost, port 0 = any free one.
  // kInvalidArgument: malformed. kConnectFailed: can't bind.
  static base::Result<std::unique_ptr<HttpServer>> start(std::string_view address, HttpHandler handler);
  // Closes every connection and joins the thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port that is really bound.
  const std::string& address() const { return address_; }

 private:
  struct Loop;
  explicit HttpServer(std::unique_ptr<Loop> loop);
  std::string address_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace replicator
