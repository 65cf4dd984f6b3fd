// A Transport over an open socket, plain or TLS. Used by tcp_transport.cc, and by servers in tests.
#pragma once

#include <algorithm>
#include <cerrno>
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
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "iggy/transport.h"

namespace iggy {

// `Stream` is asio::ip::tcp::socket or ssl::stream<asio::ip::tcp::socket>.
template <class Stream>
class StreamTransport final : public Transport {
 public:
  explicit StreamTransport(Stream stream, std::optional<std::uint64_t> certificate_ends = {})
      : stream_(std::move(stream)), local_address_(address_of(socket())), certificate_ends_(certificate_ends) {}

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
    if constexpr (std::is_same_v<Stream, asio::ip::tcp::socket>) {
      auto gathering = write_gathered(pieces);
      co_return co_await std::move(gathering);
    } else {
      buffers_.clear();
      for (const base::ByteView piece : pieces) buffers_.emplace_back(piece.data(), piece.size());
      auto writing = asio::async_write(stream_, std::span<const asio::const_buffer>(buffers_),
                                       asio::experimental::as_tuple(asio::use_awaitable));
      const auto [error, size] = co_await std::move(writing);
      if (error) co_return lost(error);
      co_return base::ok();
    }
  }

  // No TLS goodbye: it would have to wait for a peer that may be gone.
  void close() override {
    asio::error_code ignored;
    socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket().close(ignored);
  }

  std::string local_address() const override { return local_address_; }
  std::optional<std::uint64_t> certificate_ends() const override { return certificate_ends_; }
  void set_quick_acks(bool on) override { quick_acks_ = on; }

 private:
  // A batch has two pieces per message. The kernel takes IOV_MAX (1,024) in one call, asio would hand it 64.
  base::Task<base::Status> write_gathered(std::span<const base::ByteView> pieces) {
    pieces_.clear();
    for (const base::ByteView piece : pieces) {
      pieces_.push_back({const_cast<std::byte*>(piece.data()), piece.size()});  // iovec serves reads as well
    }
    std::span<iovec> left(pieces_);
    while (!left.empty()) {
      if (!stream_.is_open()) co_return lost(asio::error::operation_aborted);
      msghdr message{};
      message.msg_iov = left.data();
      message.msg_iovlen = std::min<std::size_t>(left.size(), IOV_MAX);
      const ssize_t sent = ::sendmsg(stream_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        co_return lost(asio::error_code(errno, asio::error::get_system_category()));
      }
      for (auto size = static_cast<std::size_t>(std::max<ssize_t>(sent, 0)); !left.empty();) {
        const std::size_t step = std::min(size, left.front().iov_len);
        left.front().iov_base = static_cast<std::byte*>(left.front().iov_base) + step;
        left.front().iov_len -= step;
        size -= step;
        if (left.front().iov_len > 0) break;
        left = left.subspan(1);
      }
      if (sent >= 0) continue;
      auto waiting =
          stream_.async_wait(asio::socket_base::wait_write, asio::experimental::as_tuple(asio::use_awaitable));
      const auto [error] = co_await std::move(waiting);
      if (error) co_return lost(error);
    }
    co_return base::ok();
  }

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
  const std::optional<std::uint64_t> certificate_ends_;
  std::vector<asio::const_buffer> buffers_;  // of a TLS stream
  std::vector<iovec> pieces_;                // of a plain one
  bool quick_acks_ = false;
};

}  // namespace iggy
