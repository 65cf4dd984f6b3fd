#include "replicator/monitor/http.h"

#include <set>
#include <thread>

#include <asio/buffer.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/read_until.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include "base/clock.h"
#include "base/task.h"
#include "replicator/model/listen_address.h"
#include "replicator/monitor/metrics.h"
#include "replicator/monitor/page.h"

namespace replicator {
namespace {

using asio::ip::tcp;

constexpr std::size_t kConnectionsMax = 32;
constexpr std::size_t kHeadBytesMax = 8 * 1024;
constexpr std::chrono::seconds kRequestTimeout(5);
constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);

std::string_view phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

HttpResponse respond(std::string_view head, const HttpHandler& handler) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t method_end = line.find(' ');
  const std::size_t target_end = line.rfind(' ');
  if (method_end == std::string_view::npos || target_end == method_end ||
      !line.substr(target_end + 1).starts_with("HTTP/1.")) {
    return {400, "text/plain; charset=utf-8", "not an HTTP/1.1 request\n"};
  }
  if (line.substr(0, method_end) != "GET") return {405, "text/plain; charset=utf-8", "only GET\n"};
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  return handler(target.substr(0, target.find('?')));
}

}  // namespace

HttpHandler operating_handler(const StatusBoard& board) {
  return [&board](std::string_view path) -> HttpResponse {
    if (path == "/metrics") {
      return {200, "text/plain; version=0.0.4; charset=utf-8",
              prometheus::TextSerializer().Serialize(Metrics(board).Collect())};
    }
    if (path == "/") {
      // Whatever the names on it hold, nothing of it runs, loads or is kept.
      return {200, "text/html; charset=utf-8", status_page(*board.read()),
              "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
              "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
              "Cache-Control: no-store\r\n"};
    }
    if (path == "/healthz") return {.body = "ok\n"};
    if (path == "/readyz") {
      const auto status = board.read();
      std::string reason;
      if (status->state != "running") {
        reason = "the link is " + status->state;
      } else if (!status->upstream.connected) {
        reason = "the upstream is not connected";
      } else if (!status->downstream.connected) {
        reason = "the downstream is not connected";
      }
      if (reason.empty()) return {.body = "ok\n"};
      return {503, "text/plain; charset=utf-8", reason + "\n"};
    }
    return {404, "text/plain; charset=utf-8", "try /, /metrics, /healthz or /readyz\n"};
  };
}

struct HttpServer::Loop {
  explicit Loop(HttpHandler answer) : handler(std::move(answer)) {}

  base::Task<void> accept() {
    while (acceptor.is_open()) {
      auto accepting = acceptor.async_accept(kAwait);
      auto [error, socket] = co_await std::move(accepting);
      if (error) {
        // Out of descriptors, say: others may close theirs.
        auto pause = clock->sleep_for(std::chrono::milliseconds(100));
        if (acceptor.is_open()) co_await std::move(pause);
        continue;
      }
      if (open.size() < kConnectionsMax) tasks.spawn(serve(std::move(socket)));
    }
  }

  base::Task<void> serve(tcp::socket socket) {
    using namespace asio::experimental::awaitable_operators;
    open.insert(&socket);
    auto either = exchange(socket) || clock->sleep_for(kRequestTimeout);
    co_await std::move(either);
    open.erase(&socket);
  }

  base::Task<void> exchange(tcp::socket& socket) {
    std::string request;
    auto reading = asio::async_read_until(socket, asio::dynamic_buffer(request, kHeadBytesMax), "\r\n\r\n", kAwait);
    auto [read_error, size] = co_await std::move(reading);
    if (read_error && read_error != asio::error::not_found) co_return;
    HttpResponse response{400, "text/plain; charset=utf-8", "the request head is too long\n"};
    if (!read_error) response = respond(request, handler);
    const std::string reply = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}", response.status,
        phrase(response.status), response.content_type, response.body.size(), response.headers, response.body);
    auto writing = asio::async_write(socket, asio::buffer(reply), kAwait);
    auto [write_error, written] = co_await std::move(writing);
    if (!write_error) socket.shutdown(tcp::socket::shutdown_send, write_error);
  }

  HttpHandler handler;
  asio::io_context io{1};
  std::unique_ptr<base::Clock> clock = base::system_clock(io);
  tcp::acceptor acceptor{io};
  base::TaskGroup tasks{io};
  std::set<tcp::socket*> open;  // each is owned by its serve()
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

base::Result<std::unique_ptr<HttpServer>> HttpServer::start(std::string_view address, HttpHandler handler) {
  auto listen = parse_listen_address(address);
  if (!listen) return std::move(listen).error();
  std::error_code error;
  const auto ip = asio::ip::make_address(listen->host == "localhost" ? "127.0.0.1" : listen->host, error);
  if (error) {
    return base::Error(base::ErrorCode::kInvalidArgument, "listen", std::string(address),
                       "a metrics address is an IP address or localhost");
  }
  auto loop = std::make_unique<Loop>(std::move(handler));
  tcp::acceptor& acceptor = loop->acceptor;
  const tcp::endpoint endpoint(ip, listen->port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    return base::Error(base::ErrorCode::kConnectFailed, "listen", std::string(address), error.message(),
                       "choose another with --metrics-address, or off");
  }
  listen->port = acceptor.local_endpoint().port();
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(loop)));
  server->address_ = listen->to_string();
  Loop* const running = server->loop_.get();
  running->tasks.spawn(running->accept());
  running->thread = std::thread([running] { running->io.run(); });
  return server;
}

HttpServer::~HttpServer() {
  Loop& loop = *loop_;
  asio::post(loop.io, [&loop] {
    std::error_code ignored;
    loop.acceptor.close(ignored);
    for (tcp::socket* socket : loop.open) socket->close(ignored);
  });
  // The loop ends when its last coroutine has.
  if (loop.thread.joinable()) loop.thread.join();
}

}  // namespace replicator
