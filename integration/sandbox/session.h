// One connection's protocol: cuts frames, asks the broker, answers in the dialect. Knows no sockets.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "integration/sandbox/broker.h"
#include "integration/sandbox/cluster.h"
#include "integration/sandbox/faults.h"

namespace sandbox {

// The connection, as a session uses it.
class Wire {
 public:
  virtual ~Wire() = default;
  // Queues a frame: `head`, then the bytes of `chunks`.
  virtual void answer(base::Bytes head, std::vector<Chunk> chunks = {}) = 0;
  // These bytes are read again as the next ones: how 0.8.0 falls out of step.
  virtual void unread(base::ByteView bytes) = 0;
  // Closes when everything queued has been written.
  virtual void close() = 0;
  // Closes now.
  virtual void cut() = 0;
  // Stays open, but never answers anything again.
  virtual void hang() = 0;
};

// What sessions at one node share.
struct Services {
  Broker& broker;
  Faults& faults;
  Cluster& nodes;
  std::size_t node = 0;  // this one
  // For get_cluster_metadata.
  std::function<iggy::ClusterMetadata()> cluster = {};
  std::uint32_t last_client_id = 0;  // vsr: a counter per node
  std::uint64_t commit = 0;          // vsr: position of the last replicated operation
};

class Session {
 public:
  virtual ~Session() = default;
  virtual std::size_t header_size() const = 0;
  // Bytes that follow `header`; nullopt when the connection has to be closed.
  virtual std::optional<std::size_t> body_size(base::ByteView header) = 0;
  virtual void request(base::ByteView header, std::shared_ptr<base::Buffer> body) = 0;
  // The server stops: last words to an idle connection.
  virtual void goodbye() = 0;
};

// `services` and `wire` must outlive the session. `peer` is "ip:port".
std::unique_ptr<Session> make_legacy_session(Services& services, Wire& wire, std::string peer);
std::unique_ptr<Session> make_vsr_session(Services& services, Wire& wire, std::string peer);
std::unique_ptr<Session> make_session(Services& services, Wire& wire, std::string peer);

}  // namespace sandbox
