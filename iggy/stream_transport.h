// A Transport over an open socket, plain or TLS. Used by tcp_transport.cc, and by servers in tests.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "iggy/transport.h"

namespace iggy {

// `Stream` is asio::ip::tcp::socket or ssl::stream<asio::ip::tcp::socket>.
template <class Stream>
class StreamTransport final : public Transport {
 public:
  explicit StreamTransport(Stream stream) : stream_(std::move(stream)), local_address_(address_of(socket())) {}

  base::Task<base::Result<std::size_t>> read_some(std::span<std::byte> into) override {
    if (quick_acks_) {  // not sticky: the kernel falls back to delayed ones by itself
      const int on = 1;
      ::setsockopt(socket().native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
    }
    auto reading = stream_.async_read_some(asio::buffer(into.data(), into.size()),
                                           asio::experimental::as_tuple(asio::use_awaitable));
    const auto [error, size] = co_await std::move(reading);
    if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) co_return std::size_t{0};
    if (error) co_return lost(error);
    co_return size;
  }

  base::Task<base::Status> write(std::span<const base::ByteView> pieces) override {
    buffers_.clear();
    for (const base::ByteView piece : pieces) buffers_.emplace_back(piece.data(), piece.size());
    auto writing = asio::async_write(stream_, std::span<const asio::const_buffer>(buffers_),
                                     asio::experimental::as_tuple(asio::use_awaitable));
    const auto [error, size] = co_await std::move(writing);
    if (error) co_return lost(error);
    co_return base::ok();
  }

  // No TLS goodbye: it would have to wait for a peer that may be gone.
  void close() override {
    asio::error_code ignored;
    socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket().close(ignored);
  }

  std::string local_address() const override { return local_address_; }
  void set_quick_acks(bool on) override { quick_acks_ = on; }

 private:
  static base::Error lost(const asio::error_code& error) {
    return {base::ErrorCode::kConnectionLost, "connection", "", error.message()};
  }
  static std::string address_of(const asio::ip::tcp::socket& socket) {
    asio::error_code error;
    const auto endpoint = socket.local_endpoint(error);
    if (error) return {};
    return HostPort{endpoint.address().to_string(), endpoint.port()}.to_string();
  }
  asio::ip::tcp::socket& socket() {
    if constexpr (std::is_same_v<Stream, asio::ip::tcp::socket>) {
      return stream_;
    } else {
      return stream_.next_layer();
    }
  }

  Stream stream_;  // a TLS one holds its context by itself (OpenSSL counts)
  std::string local_address_;
  std::vector<asio::const_buffer> buffers_;
  bool quick_acks_ = false;
};

}  // namespace iggy
