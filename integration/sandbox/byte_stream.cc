#include "integration/sandbox/byte_stream.h"

#include <array>
#include <utility>

#include <asio/experimental/as_tuple.hpp>
#include <asio/read.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

namespace sandbox {
namespace {

constexpr auto kTuple = asio::experimental::as_tuple(asio::use_awaitable);
using Socket = asio::ip::tcp::socket;

void close_socket(Socket& socket, bool abrupt) {
  asio::error_code ignored;
  if (abrupt) {
    socket.set_option(asio::socket_base::linger(true, 0), ignored);
  } else {
    socket.shutdown(Socket::shutdown_both, ignored);
  }
  socket.close(ignored);
}

std::vector<asio::const_buffer> buffers_of(const std::vector<base::ByteView>& pieces) {
  std::vector<asio::const_buffer> out;
  out.reserve(pieces.size());
  for (base::ByteView piece : pieces) out.emplace_back(piece.data(), piece.size());
  return out;
}

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}
  base::Task<bool> open() override { co_return true; }
  base::Task<std::size_t> read_some(std::span<std::byte> into) override {
    auto reading = socket_.async_read_some(asio::buffer(into.data(), into.size()), kTuple);
    auto [error, count] = co_await std::move(reading);
    co_return error ? 0 : count;
  }
  base::Task<bool> write(std::vector<base::ByteView> pieces) override {
    const std::vector<asio::const_buffer> buffers = buffers_of(pieces);
    auto writing = asio::async_write(socket_, buffers, kTuple);
    auto [error, count] = co_await std::move(writing);
    co_return !error;
  }
  void close(bool abrupt) override { close_socket(socket_, abrupt); }

 private:
  Socket socket_;
};

class TlsStream final : public ByteStream {
 public:
  TlsStream(Socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}
  base::Task<bool> open() override {
    // Anything but a TLS record gets an end without an alert.
    std::array<std::byte, 1> first{};
    auto peeking = stream_.next_layer().async_receive(asio::buffer(first), Socket::message_peek, kTuple);
    auto [peek_error, peeked] = co_await std::move(peeking);
    if (peek_error || peeked == 0 || first[0] != std::byte{0x16}) co_return false;
    auto shaking = stream_.async_handshake(asio::ssl::stream_base::server, kTuple);
    auto [error] = co_await std::move(shaking);
    co_return !error;
  }
  base::Task<std::size_t> read_some(std::span<std::byte> into) override {
    auto reading = stream_.async_read_some(asio::buffer(into.data(), into.size()), kTuple);
    auto [error, count] = co_await std::move(reading);
    co_return error ? 0 : count;
  }
  base::Task<bool> write(std::vector<base::ByteView> pieces) override {
    const std::vector<asio::const_buffer> buffers = buffers_of(pieces);
    auto writing = asio::async_write(stream_, buffers, kTuple);
    auto [error, count] = co_await std::move(writing);
    co_return !error;
  }
  void close(bool abrupt) override { close_socket(stream_.next_layer(), abrupt); }

 private:
  asio::ssl::stream<Socket> stream_;
};

}  // namespace

std::unique_ptr<ByteStream> make_byte_stream(asio::ip::tcp::socket socket, asio::ssl::context* tls) {
  if (tls == nullptr) return std::make_unique<PlainStream>(std::move(socket));
  return std::make_unique<TlsStream>(std::move(socket), *tls);
}

}  // namespace sandbox
