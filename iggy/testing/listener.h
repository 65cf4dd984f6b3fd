// A listening socket on 127.0.0.1 and a port of the system's choice, plain or TLS.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <asio/experimental/as_tuple.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl.hpp>
#include <asio/use_awaitable.hpp>

#include "iggy/stream_transport.h"

namespace iggy::testing {

class Listener {
 public:
  explicit Listener(asio::io_context& io) : acceptor_(io, {asio::ip::address_v4::loopback(), 0}) {}
  Listener(asio::io_context& io, const std::string& certificate_file, const std::string& key_file) : Listener(io) {
    context_.emplace(asio::ssl::context::tls_server);
    context_->use_certificate_chain_file(certificate_file);
    context_->use_private_key_file(key_file, asio::ssl::context::pem);
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void close() { acceptor_.close(); }

  // The next connection, after its TLS handshake; a handshake that fails is an error, and the next call goes on.
  base::Task<base::Result<std::unique_ptr<Transport>>> accept() {
    auto accepting = acceptor_.async_accept(asio::experimental::as_tuple(asio::use_awaitable));
    auto [error, socket] = co_await std::move(accepting);
    if (error) co_return base::Error(base::ErrorCode::kStopped, "accept", "", error.message());
    if (!context_) co_return std::make_unique<StreamTransport<asio::ip::tcp::socket>>(std::move(socket));
    asio::ssl::stream<asio::ip::tcp::socket> stream(std::move(socket), *context_);
    auto shaking =
        stream.async_handshake(asio::ssl::stream_base::server, asio::experimental::as_tuple(asio::use_awaitable));
    const auto [refused] = co_await std::move(shaking);
    if (refused) co_return base::Error(base::ErrorCode::kConnectFailed, "accept", "", refused.message());
    co_return std::make_unique<StreamTransport<asio::ssl::stream<asio::ip::tcp::socket>>>(std::move(stream));
  }

 private:
  asio::ip::tcp::acceptor acceptor_;
  std::optional<asio::ssl::context> context_;
};

}  // namespace iggy::testing
