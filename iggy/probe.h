// Which dialect a server speaks, found without credentials.
//
//   1  send a vsr ping           status 3 frames of 8 bytes = legacy;  a 256-byte reply = vsr;  anything else: not Iggy
//   2  vsr: a login of nothing but protocol word 0 is refused before credentials are looked at; the refusal carries the
//      window of accepted protocol words
//
// The connection is used up: a 0.8 server is out of step afterwards, a 0.9 server has evicted it.
// Observed: iggy-server 0.8.0 and 0.9.0-edge.5. Golden: iggy/codec/golden/*/recordings/23-*.json.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "iggy/connection_string.h"
#include "iggy/dialect.h"
#include "iggy/transport.h"

namespace iggy {

// kLegacy or kVsr11. kUnsupported: a server whose protocol window leaves ours out (0.10 and newer, or older previews).
// kNotIggy: something else answers. kTimeout: nothing answers. kConnectionLost: reset while probing. Each with a
// sentence that says what was found and what to do. `tls`: whether `transport` is TLS already.
base::Task<base::Result<Dialect>> probe(base::Clock& clock, Transport& transport, HostPort host, bool tls,
                                        base::TimePoint deadline);

}  // namespace iggy
