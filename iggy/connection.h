// One transport with one login: writes requests, matches answers, watches time-outs.
//
//   call(), send() ──▶ queue ──▶ writer (gathers what waits into one write)
//        ▲                                                       server
//        └── exchange ◀── outstanding, by number ◀── reader (header, then one buffer for the body)
//
// Matching: vsr by request number, in any order; legacy in order, so that an exchange's number is its place. One
// watchdog sends a ping every heartbeat interval and closes the connection when an answer is overdue, because a
// half-read frame can't be resumed. A legacy send, and what is queued with it, is never overdue: the server answers in
// order and will.
//
// The three loops run in the task group given, and hold the connection until it is closed: abort() or a failure ends
// them. A caller that is cancelled while its send is being written closes the connection (its memory must not be
// touched later). Affinity: one io_context, one thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/task.h"
#include "iggy/client.h"
#include "iggy/codec/vsr.h"
#include "iggy/transport.h"

namespace iggy {

struct ConnectionOptions {
  Dialect dialect = Dialect::kLegacy;
  base::Duration read_timeout = std::chrono::seconds(30);
  base::Duration send_timeout = std::chrono::seconds(30);  // vsr only
  base::Duration heartbeat_interval = std::chrono::seconds(5);
  bool verify_checksums = true;
  HostPort peer;
};

// Who we are to a vsr server: kept across the connections of a slot, so that a number never repeats within a client id.
struct VsrIdentity {
  base::MessageId client;          // random, never 0
  std::uint64_t next_request = 1;  // 0 is the login's
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Starts the loops. `clock`, `tasks` and `identity` (vsr; untouched by legacy) must outlive it.
  static std::shared_ptr<Connection> start(asio::io_context& io, base::Clock& clock, base::TaskGroup& tasks,
                                           std::unique_ptr<Transport> transport, ConnectionOptions options,
                                           VsrIdentity& identity);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // Logs in; repeats 57 and 58 every 100 ms until the deadline. kCredentials, kUnsupported (protocol), kTimeout;
  // kNotIggy when the first answer is in the other dialect. After an error the connection is closed.
  base::Task<base::Result<LoggedIn>> login(Credentials credentials, base::TimePoint deadline);

  // Errors by base::ErrorCode: kTimeout and kConnectionLost for reads and for what never reached the transport,
  // kUncertain for writes that did.
  base::Task<base::Result<Reply>> call(Request request);

  // See Client::send().
  base::Task<base::Result<SendAck>> send(base::TopicName topic, std::uint32_t partition, OutgoingSend frame,
                                         std::uint32_t count);

  // Closes the transport; everything outstanding fails with `why`. The first reason stays.
  void abort(base::Error why);
  bool is_open() const { return !why_.has_value(); }
  bool is_idle() const { return outstanding_.empty(); }  // nothing is unanswered
  // REQUIRES: !is_open().
  const base::Error& why_closed() const { return *why_; }

  const HostPort& peer() const { return options_.peer; }
  base::TimePoint opened_at() const { return opened_at_; }
  // REQUIRES: !is_open().
  base::TimePoint closed_at() const { return closed_at_; }
  std::string local_address() const { return transport_->local_address(); }
  std::uint64_t unknown_replies() const { return unknown_replies_; }

 private:
  struct Exchange;
  using ExchangePtr = std::shared_ptr<Exchange>;
  struct AbortUnlessWritten;

  Connection(asio::io_context& io, base::Clock& clock, std::unique_ptr<Transport> transport, ConnectionOptions options,
             VsrIdentity& identity);

  base::Task<void> write_loop(std::shared_ptr<Connection> self);
  base::Task<void> read_loop(std::shared_ptr<Connection> self);
  base::Task<void> watch_loop(std::shared_ptr<Connection> self);

  bool is_legacy() const { return options_.dialect == Dialect::kLegacy; }
  base::Result<ExchangePtr> make_exchange(const Request& request, base::TimePoint deadline);
  void submit(const ExchangePtr& exchange);
  base::Task<void> answered(ExchangePtr exchange);
  base::Result<Reply> decode(const Request& request, const Exchange& exchange, bool is_write);
  base::Error failure(const Exchange& exchange, std::string operation, std::string object, bool is_write) const;
  base::Result<Reply> refused(std::uint32_t status, std::string operation, std::string object, bool is_write);
  base::Task<base::Result<SendAck>> send_legacy(base::TopicName topic, std::uint32_t partition, OutgoingSend frame);
  base::Task<base::Result<SendAck>> send_vsr(base::TopicName topic, std::uint32_t partition, OutgoingSend frame,
                                             std::uint32_t count);

  base::Task<base::Status> receive_legacy();
  base::Task<base::Status> receive_vsr();
  base::Task<base::Status> fill(std::size_t size);
  // `asked`: what it answers, if known; looked at before the first wait only.
  base::Task<base::Status> read_body(std::uint64_t size, const Exchange* asked, std::shared_ptr<base::Buffer>& body);
  ExchangePtr take_outstanding(std::uint64_t number);
  void evicted(const vsr::Eviction& eviction);
  void ping();
  void expire(Exchange& overdue);

  asio::io_context& io_;
  base::Clock& clock_;
  std::unique_ptr<Transport> transport_;
  ConnectionOptions options_;
  VsrIdentity& identity_;
  base::TimePoint opened_at_;
  base::TimePoint closed_at_;
  std::uint64_t session_ = 0;        // vsr, from the login
  std::uint64_t legacy_number_ = 1;  // place of the next exchange
  bool logged_in_ = false;

  std::vector<ExchangePtr> queue_;                    // not yet taken by the writer
  std::vector<ExchangePtr> writing_;                  // in the write in progress
  std::map<std::uint64_t, ExchangePtr> outstanding_;  // submitted and unanswered, by number
  base::Event queued_;
  base::Event recheck_;  // for the watchdog: a deadline earlier than its plan, or closed
  base::TimePoint planned_;
  std::optional<base::Error> why_;

  std::array<std::byte, 4096> stage_;  // read ahead: headers and small bodies, so that one read gets both
  std::size_t stage_begin_ = 0;
  std::size_t stage_end_ = 0;
  bool any_reply_ = false;
  std::uint64_t unknown_replies_ = 0;
};

}  // namespace iggy
