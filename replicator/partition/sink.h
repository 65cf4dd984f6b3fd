// What a pipeline needs from the downstream: one partition that it alone writes. Real: iggy_sink.h. In memory: sim/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replicator/partition/source.h"

namespace replicator {

// A confirmed send: [end - count, end) is ours.
struct Acked {
  std::uint64_t end = 0;  // downstream end right after the send, as the server confirmed it
  bool known = true;      // false: success without a base offset; read the tail before believing anything
};

// Errors of send(): kNotAccepted (certainly not done: repeat), kUncertain / kTimeout / kConnectionLost (outcome
// unknown: settle(), then resync), kNotFound, kPermission, kInvalidRecord, kServerRefused (certainly refused).
// Affinity: the pipeline's io_context. Only one call at a time: one unresolved send per partition.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual bool is_legacy() const = 0;
  // Also opens what send() will use: whatever a crashed server lost was lost before this look.
  virtual base::Task<base::Result<PartitionView>> view() = 0;
  // The newest view that was seen without asking for it, and when; absent when there is none. Never waits.
  virtual std::optional<Observed> observed() const { return std::nullopt; }
  // Reads back, at the node that accepts sends.
  virtual base::Task<base::Result<Polled>> read(std::uint64_t from, std::uint32_t count) = 0;
  virtual base::Task<base::Result<Polled>> last() = 0;
  // How many of `records` fit into the next send; kInvalidRecord names why records[0] can never be sent.
  virtual base::Result<std::size_t> fit(std::span<const base::Record> records) const = 0;
  // Never opens a connection: when the one of the last view() has died, kConnectionLost and nothing was sent. (A server
  // that came back has perhaps lost its tail, and would append behind what is left of it.)
  virtual base::Task<base::Result<Acked>> send(std::span<const base::Record> records) = 0;
  // Opens the connection that sends will use, before anything is looked at. When it is lost, send() answers
  // kConnectionLost and writes nothing, until open() was called again: the server behind it may have restarted and lost
  // what the look relied on.
  virtual base::Task<base::Status> open() { co_return base::ok(); }
  // Whether that connection is still open. A server that ended it may have restarted and lost what it acknowledged.
  virtual bool is_open() const { return true; }
  // Whether acks are not yet what was promised: then a position may be committed only after flush() has returned ok.
  virtual bool flushes() const { return false; }
  // Makes everything that was acked on the connection of open() outlive the server's process. kConnectionLost when that
  // connection was lost meanwhile: the server that flushed may be another one than the one that acked.
  virtual base::Task<base::Status> flush() { co_return base::ok(); }
  // After an uncertain send: returns when nothing of it can land any more (the abandoned connection has left the
  // server's client list), or when the time limit or missing rights leave only two equal tail reads a second apart. The
  // tail may be trusted afterwards.
  virtual base::Task<base::Status> settle() = 0;
};

}  // namespace replicator
