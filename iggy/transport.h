// A byte stream to one server, and what opens it. Implemented by tcp_transport.h (TCP, TLS) and, for tests, by
// testing/loopback_transport.h.
//
// One read and one write may be in progress at the same time. Errors are kConnectionLost with a readable cause; after
// one the transport is only good for close(). Affinity: one io_context, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "iggy/connection_string.h"

namespace iggy {

class Transport {
 public:
  virtual ~Transport() = default;

  // Reads at least one byte; 0 = the peer closed its side. REQUIRES: `into` is not empty.
  virtual base::Task<base::Result<std::size_t>> read_some(std::span<std::byte> into) = 0;
  // Writes every piece, in order. After close() the pieces are not touched any more.
  virtual base::Task<base::Status> write(std::span<const base::ByteView> pieces) = 0;
  // Ends reads and writes in progress, at once. Idempotent.
  virtual void close() = 0;
  // "ip:port" of our end, as a server without address translation between would print it.
  virtual std::string local_address() const = 0;
  // When the peer's certificate ends, µs since the epoch; none without TLS.
  virtual std::optional<std::uint64_t> certificate_ends() const { return std::nullopt; }
  // Ask the kernel to acknowledge at once before each read. A 0.8 server that answers twice waits for the
  // acknowledgment of the first answer, 40 ms without this. Observed: iggy-server 0.8.0.
  virtual void set_quick_acks(bool) {}
};

class Connector {
 public:
  virtual ~Connector() = default;
  // Resolves, connects and, when configured, does the TLS handshake. kConnectFailed; kInvalidArgument for a CA file
  // that can't be read. A certificate that is not accepted is kConnectFailed with Retry::kNeedsOperator.
  virtual base::Task<base::Result<std::unique_ptr<Transport>>> connect(HostPort host, base::TimePoint deadline) = 0;
};

}  // namespace iggy
