// TCP, and TLS over it (1.2 or newer, server certificate and name checked, SNI sent).
//
// A dead peer is found by the kernel: keep-alive on an idle connection, the user time-out while bytes of ours are not
// acknowledged. A peer that is merely slow acknowledges and is waited for.
#pragma once

#include <memory>

#include "iggy/transport.h"

namespace iggy {

inline constexpr int kKeepAliveIdleSeconds = 10;     // quiet time before the first probe
inline constexpr int kKeepAliveIntervalSeconds = 5;  // between probes
inline constexpr int kKeepAliveProbes = 4;           // unanswered ones until the connection is dead
inline constexpr int kUserTimeoutMillis = 30'000;    // unacknowledged data, or a full window that never opens

// The CA file is read at each connect, so that a renewed one is used without a restart. `io` and `clock` must outlive
// it.
std::unique_ptr<Connector> tcp_connector(asio::io_context& io, base::Clock& clock, TlsOptions tls);

}  // namespace iggy
