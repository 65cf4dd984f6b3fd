// Bytes in and out of one accepted socket, plain or TLS. Affinity: the socket's io_context.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>

#include "base/bytes.h"
#include "base/task.h"

namespace sandbox {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // TLS handshake; a peer that does not speak TLS is turned away without a byte. Plain: true at once.
  virtual base::Task<bool> open() = 0;
  // At least one byte; 0 at the end or after close().
  virtual base::Task<std::size_t> read_some(std::span<std::byte> into) = 0;
  // Everything in order; false when the connection ended first.
  virtual base::Task<bool> write(std::vector<base::ByteView> pieces) = 0;
  // Ends reads and writes in progress. Idempotent. `abrupt`: with a reset instead of an orderly end.
  virtual void close(bool abrupt) = 0;
};

// `tls` null: plain; else it must outlive the stream.
std::unique_ptr<ByteStream> make_byte_stream(asio::ip::tcp::socket socket, asio::ssl::context* tls);

}  // namespace sandbox
