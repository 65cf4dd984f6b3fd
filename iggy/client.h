// One Iggy cluster as seen by us: finds the dialect, logs in, keeps a few connections open, calls commands.
//
//   Client ──▶ Connection (one socket, one login) ──▶ Transport (TCP or TLS)
//      └ Roster: which nodes there are, which one leads
//
// Roles never share a connection: polls, sends and control requests each have their own. A connection is opened at
// first use and again after it failed; opening is shared by all that wait for it and backs off (1 s first, doubling
// with jitter to 30 s).
//
// In a cluster the control connection goes to the leader that get_cluster_metadata names (asked at login, every
// `roster_interval`, and at once after a refusal with 58), or to any other node when that can't be reached. Polls and
// sends of a partition go to the same node, or to the one that takes its sends (roster.h): other nodes answer polls
// with an old end. When the leader moves, what is unanswered at the old one is waited for, and its connections are
// closed then: a trace of a send connection there is no longer open, so that nothing is sent before both sides were
// looked at. Time-outs: connect 5 s (resolve, TCP, TLS, probe, login); read 30 s, after which the connection is closed,
// because a half-read frame can't be resumed. A legacy send has no time-out while TCP lives; a vsr send has
// `send_timeout`. Affinity: one io_context, one thread. Lifetime: close() before destruction.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/result.h"
#include "iggy/codec/send.h"
#include "iggy/connection_string.h"
#include "iggy/replies.h"
#include "iggy/requests.h"
#include "iggy/transport.h"

namespace iggy {

enum class Role : std::uint8_t { kControl, kPoll, kSend };

struct ClientOptions {
  base::Duration connect_timeout = std::chrono::seconds(5);
  base::Duration read_timeout = std::chrono::seconds(30);
  base::Duration send_timeout = std::chrono::seconds(30);  // vsr only
  base::BackoffPolicy reconnect;
  base::Duration roster_interval = std::chrono::seconds(2);
  std::uint32_t sends_outstanding_max = 64;  // per endpoint; above it send() waits its turn
  std::uint32_t poll_connections = 2;        // slots of Role::kPoll; a caller's `slot` is taken modulo this
  std::uint32_t send_connections = 2;
  std::uint64_t seed = 0;        // client ids and jitter; 0 = random
  bool verify_checksums = true;  // of polled vsr batches
};

// What was found at the other end.
struct ServerIdentity {
  Dialect dialect = Dialect::kLegacy;
  std::string version;  // "0.8.0", "0.9.0-edge.5"; empty when the right to read it is missing (legacy)
  HostPort endpoint{};  // the address in use
  std::string node{};   // its name in the roster; empty when there is no cluster
  std::size_t nodes = 1;
  std::string user{};                               // logged in by name; empty with a token
  std::optional<std::uint64_t> certificate_ends{};  // µs since the epoch; none without TLS
};

struct SendAck {
  // Downstream end right after this send: vsr base offset + count; legacy from the get_topic pipelined behind the send
  // on the same connection (strict order: it always includes it). Absent: success without an offset, look at the tail.
  std::optional<std::uint64_t> end;
};

// The connection that a send was written to, to be looked for in the server's client list.
struct SendTrace {
  std::string local_address;    // "ip:port" of our end
  std::uint32_t client_id = 0;  // as get_me reported when it was opened; 0 = unknown
  std::uint64_t number = 0;     // counts the send connections of this client; 0 = none
  HostPort node{};              // the node that it went to
};

class Client {
 public:
  virtual ~Client() = default;

  // Probes (unless configured) and logs in on the control connection. Errors carry a sentence that says what was found
  // and what to do: kConnectFailed, kNotIggy, kUnsupported (0.10), kCredentials, kTimeout.
  virtual base::Task<base::Result<ServerIdentity>> connect() = 0;
  // Known after the first connect(). REQUIRES: connect() succeeded once.
  virtual const ServerIdentity& server() const = 0;

  // One command on the control connection (or `role`), with read time-out and reconnect. In another role `slot` is a
  // partition's number, and a request about a topic goes to the node that takes that partition's sends. Errors by
  // base::ErrorCode; a time-out or a cut during a write command is kUncertain, during a read kTimeout or
  // kConnectionLost.
  virtual base::Task<base::Result<Reply>> call(Request request, Role role = Role::kControl, std::uint32_t slot = 0) = 0;

  // Sends to one explicit partition on send connection `slot`. The pieces' memory must outlive the call. At most one
  // unresolved send per partition is the caller's promise. `trace`: in, the connection that must be used (of open_send;
  // number 0 = any): when it is gone, kConnectionLost and nothing is written; out, filled before the first byte is
  // written. Errors: kNotAccepted (58), kUncertain (cut, 57, I/O status) and kTimeout (vsr, written and not answered)
  // of unknown outcome, kConnectionLost and kConnectFailed (not written), the rest certainly refused.
  virtual base::Task<base::Result<SendAck>> send(base::TopicName topic, std::uint32_t partition, OutgoingSend frame,
                                                 std::uint32_t count, std::uint32_t slot, SendTrace* trace) = 0;

  // Opens the send connection of a partition if need be, and names it. What is looked at afterwards holds for sends on
  // it: a server that restarted in between has ended it.
  virtual base::Task<base::Result<SendTrace>> open_send(base::TopicName topic, std::uint32_t partition) = 0;
  // Whether that very connection is open now.
  virtual bool is_open(const SendTrace& trace) const = 0;

  // Whether a connection of ours is still in its server's client list. kPermission without the right read_servers;
  // kNotFound when it went to another node than the one in use and that one can't be asked.
  virtual base::Task<base::Result<bool>> is_listed(SendTrace trace) = 0;

  // When the control connection ended that was open last; absent while one is open, and before the first.
  virtual std::optional<base::TimePoint> lost_at() const { return std::nullopt; }

  // Closes every connection; calls in flight end with kStopped. Idempotent.
  virtual base::Task<void> close() = 0;
};

// `io` and `clock` must outlive it.
std::unique_ptr<Client> make_client(asio::io_context& io, base::Clock& clock, ConnectionString target,
                                    ClientOptions options);
// With its own way to open transports, for tests and simulations.
std::unique_ptr<Client> make_client(asio::io_context& io, base::Clock& clock, ConnectionString target,
                                    ClientOptions options, std::unique_ptr<Connector> connector);

}  // namespace iggy
