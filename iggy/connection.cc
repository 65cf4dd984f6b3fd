#include "iggy/connection.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/status.h"
#include "iggy/codec/vsr_layout.h"

namespace iggy {
namespace {

using enum base::ErrorCode;

constexpr base::TimePoint kNever = base::TimePoint::max();
constexpr base::Duration kLoginRetryDelay = std::chrono::milliseconds(100);
constexpr std::uint64_t kAnswerMax = 64ULL << 20;  // of metadata: some 100,000 topics
constexpr std::string_view kClientVersion = "0.1.0";

constexpr std::uint32_t kInvalidCommand = 3;
constexpr std::uint32_t kDisconnected = 8;
constexpr std::uint32_t kNotCommitted = 57;
constexpr std::uint32_t kNotAcceptedStatus = 58;

// A 0.8 server closes after these, or is a connection that has lost its login.
bool ends_legacy_connection(std::uint32_t status) {
  return status == kDisconnected || status == 30 || status == 40 || status == 100;
}
// Raised before the body of a send was read: the stream is out of step. Source: dispatch of server 0.8.0.
bool breaks_step_after_send(std::uint32_t status) { return status == kInvalidCommand || status == 6 || status == 82; }

bool is_read(const Request& request) {
  return std::visit(
      []<class T>(const T&) {
        return std::is_same_v<T, Ping> || std::is_same_v<T, GetStats> || std::is_same_v<T, GetClusterMetadata> ||
               std::is_same_v<T, DescribeOptions> || std::is_same_v<T, GetMe> || std::is_same_v<T, GetClient> ||
               std::is_same_v<T, GetClients> || std::is_same_v<T, GetUser> || std::is_same_v<T, GetUsers> ||
               std::is_same_v<T, LoginUser> || std::is_same_v<T, LoginToken> || std::is_same_v<T, Logout> ||
               std::is_same_v<T, GetTokens> || std::is_same_v<T, GetStream> || std::is_same_v<T, GetStreams> ||
               std::is_same_v<T, GetTopic> || std::is_same_v<T, GetTopics> || std::is_same_v<T, PollMessages> ||
               std::is_same_v<T, GetConsumerOffset> || std::is_same_v<T, GetGroup> || std::is_same_v<T, GetGroups> ||
               std::is_same_v<T, SyncGroup> || std::is_same_v<T, AttachConsumerSession> ||
               std::is_same_v<T, GetPollRouting> || std::is_same_v<T, PollMessagesOnPrimary> ||
               std::is_same_v<T, GetConsumerOffsetRouting>;
      },
      request);
}

std::uint64_t answer_max(const Request& request) {
  if (const auto* poll = std::get_if<PollMessages>(&request)) return poll->room_bytes + kLargestMessage;
  if (const auto* poll = std::get_if<PollMessagesOnPrimary>(&request)) return poll->poll.room_bytes + kLargestMessage;
  return kAnswerMax;
}

std::string text_of(const Ident& ident) {
  if (const auto* name = std::get_if<std::string>(&ident)) return *name;
  return std::to_string(std::get<std::uint32_t>(ident));
}

// "orders/events" of a request about a topic, for errors.
std::string object_of(const Request& request) {
  return std::visit(
      []<class T>(const T& value) -> std::string {
        if constexpr (requires {
                        value.topic;
                        value.stream;
                      }) {
          return text_of(value.stream) + "/" + text_of(value.topic);
        } else if constexpr (requires { value.stream; }) {
          return text_of(value.stream);
        } else {
          return {};
        }
      },
      request);
}

base::Error lost(std::string message) { return {kConnectionLost, "connection", "", std::move(message)}; }

// Another code, the rest as it is.
base::Error recoded(const base::Error& error, base::ErrorCode code) {
  base::Error out(code, error.operation(), error.object(), error.message(), error.hint());
  if (code == error.code()) out.with_retry(error.retry());
  out.with_status(error.wire_status());
  return out;
}

constexpr std::string_view kCredentialsHint = "check user and password, or the access token, in the connection string";
std::string credentials_refused(bool by_token) {
  return by_token ? "the access token is refused" : "user or password is refused";
}

std::string seconds_of(base::Duration duration) {
  return fmt::format("{:g} s", static_cast<double>(duration.count()) / 1e6);
}

}  // namespace

struct Connection::Exchange {
  explicit Exchange(asio::io_context& io) : done(io) {}

  // The request: pieces view into `owned`, `send`, or the caller's records.
  base::Bytes owned;
  OutgoingSend send;
  std::vector<base::ByteView> pieces;
  std::uint64_t number = 0;
  base::TimePoint deadline = kNever;
  std::string name;
  bool is_ping = false;
  bool is_send = false;
  std::uint64_t answer_max = kAnswerMax;

  bool handed = false;   // the transport has it, or a part of it
  bool written = false;  // completely
  bool replied = false;
  std::uint32_t status = 0;  // legacy
  vsr::ReplyHeader header;   // vsr
  std::shared_ptr<base::Buffer> body;
  std::optional<base::Error> error;
  base::Event done;  // failed, or replied and written: the pieces' memory is free again

  void settle() {
    if (error || (replied && written)) done.set();
  }
};

// Lives in the frame of a caller whose memory is being written.
struct Connection::AbortUnlessWritten {
  Connection& connection;
  Exchange& exchange;
  ~AbortUnlessWritten() {
    if (!exchange.done.is_set() && !exchange.written) connection.abort(lost("a send was abandoned"));
  }
};

Connection::Connection(asio::io_context& io, base::Clock& clock, std::unique_ptr<Transport> transport,
                       ConnectionOptions options, VsrIdentity& identity)
    : io_(io),
      clock_(clock),
      transport_(std::move(transport)),
      options_(std::move(options)),
      identity_(identity),
      opened_at_(clock.now()),
      queued_(io),
      recheck_(io),
      planned_(clock.now()) {
  transport_->set_quick_acks(is_legacy());
}

Connection::~Connection() = default;

std::shared_ptr<Connection> Connection::start(asio::io_context& io, base::Clock& clock, base::TaskGroup& tasks,
                                              std::unique_ptr<Transport> transport, ConnectionOptions options,
                                              VsrIdentity& identity) {
  std::shared_ptr<Connection> self(new Connection(io, clock, std::move(transport), std::move(options), identity));
  const bool started =
      tasks.spawn(self->write_loop(self)) && tasks.spawn(self->read_loop(self)) && tasks.spawn(self->watch_loop(self));
  if (!started) self->abort({kStopped, "connection", "", "stopping"});
  return self;
}

void Connection::abort(base::Error why) {
  if (why_) return;
  why_ = std::move(why);
  closed_at_ = clock_.now();
  transport_->close();
  const auto fail = [this](const ExchangePtr& exchange) {
    if (!exchange->replied && !exchange->error) exchange->error = *why_;
    exchange->written = true;  // the transport does not touch the memory any more
    exchange->settle();
  };
  for (const auto& [number, exchange] : outstanding_) fail(exchange);
  for (const ExchangePtr& exchange : writing_) fail(exchange);
  outstanding_.clear();
  queue_.clear();
  queued_.set();
  recheck_.set();
}

// --- requests

base::Result<Connection::ExchangePtr> Connection::make_exchange(const Request& request, base::TimePoint deadline) {
  auto exchange = std::make_shared<Exchange>(io_);
  exchange->name = name_of(request);
  exchange->deadline = deadline;
  exchange->answer_max = answer_max(request);
  const bool is_login = std::holds_alternative<LoginUser>(request) || std::holds_alternative<LoginToken>(request);
  base::Result<base::Bytes> frame = base::Bytes{};
  if (is_legacy()) {
    exchange->number = legacy_number_++;
    frame = legacy::encode_request(request);
  } else {
    exchange->number = is_login ? 0 : identity_.next_request++;
    frame = vsr::encode_request(request, {identity_.client, is_login ? 0 : session_, exchange->number});
  }
  if (!frame) return std::move(frame).error();
  exchange->owned = *std::move(frame);
  exchange->pieces.emplace_back(exchange->owned);
  return exchange;
}

void Connection::submit(const ExchangePtr& exchange) {
  if (why_) {
    exchange->error = *why_;
    exchange->settle();
    return;
  }
  outstanding_.emplace(exchange->number, exchange);
  queue_.push_back(exchange);
  queued_.set();
  if (exchange->deadline < planned_) recheck_.set();
}

base::Task<void> Connection::answered(ExchangePtr exchange) {
  while (!exchange->done.is_set()) {
    auto waiting = exchange->done.wait();
    co_await std::move(waiting);
  }
}

base::Error Connection::failure(const Exchange& exchange, std::string operation, std::string object,
                                bool is_write) const {
  const base::Error& why = *exchange.error;
  base::ErrorCode code = why.code();
  // A send that was not answered in time keeps its name: the caller counts them. Its outcome is as unknown.
  if (is_write && exchange.handed && code != kStopped && !(exchange.is_send && code == kTimeout)) code = kUncertain;
  if (object.empty()) object = options_.peer.to_string();
  base::Error error(code, std::move(operation), std::move(object), why.message(), why.hint());
  error.with_status(why.wire_status());
  if (code == why.code()) error.with_retry(why.retry());  // a wrapper must not hide that it can be tried again
  return error;
}

// What a status means depends on whether something was to be written.
base::Result<Reply> Connection::refused(std::uint32_t status, std::string operation, std::string object,
                                        bool is_write) {
  base::Error error = error_of_status(status, std::move(operation));
  error.with_object(std::move(object));
  if (is_write && error.code() == kConnectionLost) return recoded(error, kNotAccepted);  // not logged in any more
  if (!is_write && error.code() == kUncertain)
    return recoded(error, status == kDisconnected ? kConnectionLost : kServerRefused);
  return error;
}

base::Result<Reply> Connection::decode(const Request& request, const Exchange& exchange, bool is_write) {
  const base::ByteView body = exchange.body->view();
  if (is_legacy()) {
    if (exchange.status != 0)
      return refused(exchange.status, std::string(name_of(request)), object_of(request), is_write);
    auto reply = legacy::decode_reply(request, body, exchange.body);
    if (!reply && is_write) return recoded(reply.error(), kUncertain);
    return reply;
  }
  auto reply = vsr::decode_reply(request, exchange.header, body, exchange.body, options_.verify_checksums);
  if (reply) return reply;
  base::Error error = std::move(reply).error();
  if (error.object().empty()) error.with_object(object_of(request));
  if (error.code() == kConnectionLost) abort(lost("the server does not know our login any more"));
  if (is_write && error.code() == kConnectionLost) return recoded(error, kNotAccepted);
  if (is_write && error.code() == kMalformed) return recoded(error, kUncertain);
  if (!is_write && error.code() == kUncertain) return recoded(error, kNotAccepted);  // 57 to a read: ask again
  return error;
}

base::Task<base::Result<Reply>> Connection::call(Request request) {
  const bool is_write = !is_read(request);
  auto exchange = make_exchange(request, clock_.now() + options_.read_timeout);
  CO_RETURN_IF_ERROR(exchange);
  submit(*exchange);
  auto waiting = answered(*exchange);
  co_await std::move(waiting);
  if ((*exchange)->error) co_return failure(**exchange, std::string(name_of(request)), object_of(request), is_write);
  co_return decode(request, **exchange, is_write);
}

base::Task<base::Result<LoggedIn>> Connection::login(Credentials credentials, base::TimePoint deadline) {
  Request request;
  if (const auto* password = std::get_if<Password>(&credentials)) {
    LoginUser user;
    user.username = password->username;
    user.password = password->password.reveal();
    user.client_version = kClientVersion;
    request = std::move(user);
  } else {
    LoginToken token;
    token.token = std::get<AccessTokenSecret>(credentials).token.reveal();
    token.client_version = kClientVersion;
    request = std::move(token);
  }
  while (true) {
    auto exchange = make_exchange(request, deadline);
    if (!exchange) {
      abort(exchange.error());
      co_return std::move(exchange).error();
    }
    submit(*exchange);
    auto waiting = answered(*exchange);
    co_await std::move(waiting);
    if ((*exchange)->error) co_return failure(**exchange, "login", "", false);
    auto reply = decode(request, **exchange, false);
    if (reply) {
      auto* logged_in = std::get_if<LoggedIn>(&*reply);
      if (logged_in == nullptr) {
        abort(lost("a login was answered with something else"));
        co_return base::Error(kMalformed, "login", options_.peer.to_string(), "answered with something else");
      }
      if (!is_legacy() && logged_in->protocol_word >> 10 != vsr::kProtocolWord >> 10) {
        base::Error error(
            kUnsupported, "login", options_.peer.to_string(),
            fmt::format("the server {} speaks protocol {}.{}, this connection speaks 0.11", logged_in->server_version,
                        logged_in->protocol_word >> 20, (logged_in->protocol_word >> 10) & 0x3FF));
        abort(error);
        co_return error;
      }
      session_ = logged_in->session;
      logged_in_ = true;
      co_return std::move(*logged_in);
    }
    const std::uint32_t status = reply.error().wire_status();
    const bool not_yet = !is_legacy() && (status == kNotCommitted || status == kNotAcceptedStatus);
    if (!not_yet || clock_.now() + kLoginRetryDelay >= deadline) {
      // A 0.8 server answers a wrong token with 20, and lengths out of range with 43 and 44.
      const bool credential =
          status == 20 || status == 42 || status == 43 || status == 44 || status == 47 || status == 53 || status == 54;
      const bool by_token = std::holds_alternative<AccessTokenSecret>(credentials);
      const std::string message = credential ? credentials_refused(by_token) : reply.error().message();
      base::Error error(credential ? kCredentials : reply.error().code(), "login", options_.peer.to_string(), message,
                        credential ? std::string(kCredentialsHint) : std::string());
      error.with_status(status);
      if (!credential) error.with_retry(reply.error().retry());
      abort(error);
      co_return error;
    }
    auto sleeping = clock_.sleep_for(kLoginRetryDelay);
    co_await std::move(sleeping);
  }
}

// --- sends

base::Task<base::Result<SendAck>> Connection::send(base::TopicName topic, std::uint32_t partition, OutgoingSend frame,
                                                   std::uint32_t count) {
  return is_legacy() ? send_legacy(std::move(topic), partition, std::move(frame))
                     : send_vsr(std::move(topic), partition, std::move(frame), count);
}

// The get_topic is answered after the send, so it includes it; nothing else is between the two.
base::Task<base::Result<SendAck>> Connection::send_legacy(base::TopicName topic, std::uint32_t partition,
                                                          OutgoingSend frame) {
  const std::string object = topic.to_string() + "/" + std::to_string(partition);
  const Request get = GetTopic{topic.stream, topic.topic};
  auto sent = std::make_shared<Exchange>(io_);
  sent->name = "send_messages";
  sent->is_send = true;
  sent->send = std::move(frame);
  sent->pieces = std::move(sent->send.pieces);
  sent->number = legacy_number_++;
  auto asked = make_exchange(get, kNever);
  CO_RETURN_IF_ERROR(asked);
  for (const auto& [number, waiting] : outstanding_) {
    if (waiting->is_ping) waiting->deadline = kNever;  // from now on a send waits too
  }
  const AbortUnlessWritten guard{*this, *sent};
  submit(sent);
  submit(*asked);
  auto first = answered(sent);
  co_await std::move(first);
  if (sent->error) co_return failure(*sent, "send", object, true);
  auto second = answered(*asked);
  co_await std::move(second);

  if (sent->status != 0) co_return refused(sent->status, "send", object, true).error();
  if ((*asked)->error || (*asked)->status != 0) co_return SendAck{};
  const auto reply = legacy::decode_reply(get, (*asked)->body->view(), (*asked)->body);
  const TopicDetails* details = reply ? std::get_if<TopicDetails>(&*reply) : nullptr;
  if (details == nullptr) co_return SendAck{};
  for (const Partition& found : details->partitions) {
    // Without messages the offset says nothing: the topic was purged in between.
    if (found.id == partition && found.messages_count > 0) co_return SendAck{found.current_offset + 1};
  }
  co_return SendAck{};
}

base::Task<base::Result<SendAck>> Connection::send_vsr(base::TopicName topic, std::uint32_t partition,
                                                       OutgoingSend frame, std::uint32_t count) {
  const std::string object = topic.to_string() + "/" + std::to_string(partition);
  auto sent = std::make_shared<Exchange>(io_);
  sent->name = "send_messages";
  sent->is_send = true;
  sent->send = std::move(frame);
  sent->pieces = std::move(sent->send.pieces);
  sent->number = identity_.next_request++;
  sent->deadline = clock_.now() + options_.send_timeout;
  base::check(sent->send.scratch.size() >= vsr::kHeaderSize, "a vsr send begins with its header");
  std::byte* header = sent->send.scratch.data();
  base::store(header + vsr::at::kRequestClient, identity_.client.low);
  base::store(header + vsr::at::kRequestClient + 8, identity_.client.high);
  base::store(header + vsr::at::kRequestNumber, sent->number);
  base::store(header + vsr::at::kRequestSession, session_);

  const AbortUnlessWritten guard{*this, *sent};
  submit(sent);
  auto waiting = answered(sent);
  co_await std::move(waiting);
  if (sent->error) co_return failure(*sent, "send", object, true);
  const Request request = SendMessages{};
  auto reply = decode(request, *sent, true);
  if (!reply) co_return std::move(reply).error().with_object(object);
  const auto* confirmed = std::get_if<SendConfirmed>(&*reply);
  if (confirmed == nullptr || confirmed->duplicate || !confirmed->base_offset) co_return SendAck{};
  co_return SendAck{*confirmed->base_offset + count};
}

// --- writer

base::Task<void> Connection::write_loop(std::shared_ptr<Connection> self) {
  std::vector<base::ByteView> pieces;
  while (is_open()) {
    if (queue_.empty()) {
      queued_.reset();
      auto waiting = queued_.wait();
      co_await std::move(waiting);
      continue;
    }
    writing_ = std::exchange(queue_, {});
    pieces.clear();
    for (const ExchangePtr& exchange : writing_) {
      exchange->handed = true;
      pieces.insert(pieces.end(), exchange->pieces.begin(), exchange->pieces.end());
    }
    auto writing = transport_->write(pieces);
    auto written = co_await std::move(writing);
    if (!written) {
      abort(std::move(written).error());
    } else {
      for (const ExchangePtr& exchange : writing_) {
        exchange->written = true;
        exchange->settle();
      }
    }
    writing_.clear();
  }
}

// --- reader

base::Task<void> Connection::read_loop(std::shared_ptr<Connection> self) {
  while (is_open()) {
    auto receiving = is_legacy() ? receive_legacy() : receive_vsr();
    auto received = co_await std::move(receiving);
    if (!received) abort(std::move(received).error());
  }
}

// Waits for `size` bytes in the stage. REQUIRES: size <= stage_.size().
base::Task<base::Status> Connection::fill(std::size_t size) {
  while (stage_end_ - stage_begin_ < size) {
    if (stage_begin_ > 0) {
      std::copy(stage_.begin() + static_cast<std::ptrdiff_t>(stage_begin_),
                stage_.begin() + static_cast<std::ptrdiff_t>(stage_end_), stage_.begin());
      stage_end_ -= stage_begin_;
      stage_begin_ = 0;
    }
    auto reading = transport_->read_some(std::span(stage_).subspan(stage_end_));
    auto count = co_await std::move(reading);
    CO_RETURN_IF_ERROR(count);
    if (*count == 0)
      co_return lost(stage_end_ == 0 ? "closed by the server" : "closed by the server in the middle of an answer");
    stage_end_ += *count;
  }
  co_return base::ok();
}

base::Task<base::Status> Connection::read_body(std::uint64_t size, const Exchange* asked,
                                               std::shared_ptr<base::Buffer>& body) {
  if (const std::uint64_t limit = asked != nullptr ? asked->answer_max : kAnswerMax; size > limit) {
    co_return base::Error(kMalformed, "connection", options_.peer.to_string(),
                          fmt::format("the server announces an answer of {} bytes to {}, and {} is the most that was "
                                      "asked for",
                                      size, asked != nullptr ? asked->name : "nothing that was asked", limit),
                          "is this an Iggy server of the right version?");
  }
  body = std::make_shared<base::Buffer>(static_cast<std::size_t>(size));
  std::span<std::byte> rest = body->writable();
  const std::size_t staged = std::min(rest.size(), stage_end_ - stage_begin_);
  std::copy_n(stage_.begin() + static_cast<std::ptrdiff_t>(stage_begin_), staged, rest.begin());
  stage_begin_ += staged;
  rest = rest.subspan(staged);
  while (!rest.empty()) {
    auto reading = transport_->read_some(rest);
    auto count = co_await std::move(reading);
    CO_RETURN_IF_ERROR(count);
    if (*count == 0) co_return lost("closed by the server in the middle of an answer");
    rest = rest.subspan(*count);
  }
  co_return base::ok();
}

Connection::ExchangePtr Connection::take_outstanding(std::uint64_t number) {
  const auto found = outstanding_.find(number);
  if (found == outstanding_.end()) return nullptr;
  ExchangePtr exchange = std::move(found->second);
  outstanding_.erase(found);
  return exchange;
}

base::Task<base::Status> Connection::receive_legacy() {
  auto filling = fill(legacy::kHeaderSize);
  auto filled = co_await std::move(filling);
  CO_RETURN_IF_ERROR(filled);
  const legacy::ReplyHeader header = legacy::read_reply_header(base::ByteView(stage_).subspan(stage_begin_));
  stage_begin_ += legacy::kHeaderSize;
  // What has not been written yet can't have been answered.
  if (outstanding_.empty() || !outstanding_.begin()->second->handed) {
    // A stopping server says so to idle connections, unasked.
    if (header.status == kDisconnected) co_return lost("the server is stopping");
    co_return base::Error(kMalformed, "connection", options_.peer.to_string(), "an answer that nothing had asked for");
  }
  std::shared_ptr<base::Buffer> body;
  auto reading = read_body(header.length, outstanding_.begin()->second.get(), body);
  auto read = co_await std::move(reading);
  CO_RETURN_IF_ERROR(read);
  if (!is_open()) co_return base::ok();
  const ExchangePtr exchange = take_outstanding(outstanding_.begin()->first);
  exchange->status = header.status;
  exchange->body = std::move(body);
  exchange->replied = true;
  exchange->settle();
  if (ends_legacy_connection(header.status) || (exchange->is_send && breaks_step_after_send(header.status)))
    co_return lost(fmt::format("ended by {} ({})", name_of_status(header.status), header.status));
  co_return base::ok();
}

base::Task<base::Status> Connection::receive_vsr() {
  if (!any_reply_) {
    auto filling = fill(legacy::kHeaderSize);
    auto filled = co_await std::move(filling);
    CO_RETURN_IF_ERROR(filled);
    const legacy::ReplyHeader foreign = legacy::read_reply_header(base::ByteView(stage_).subspan(stage_begin_));
    if (foreign.status == kInvalidCommand && foreign.length == 0) {
      co_return base::Error(kNotIggy, "connection", options_.peer.to_string(), "the server answers as server 0.8 does",
                            "it needs dialect=legacy");
    }
    any_reply_ = true;
  }
  auto filling = fill(vsr::kHeaderSize);
  auto filled = co_await std::move(filling);
  CO_RETURN_IF_ERROR(filled);
  auto header = vsr::read_reply_header(base::ByteView(stage_).subspan(stage_begin_, vsr::kHeaderSize));
  CO_RETURN_IF_ERROR(header);
  stage_begin_ += vsr::kHeaderSize;
  if (const auto* eviction = std::get_if<vsr::Eviction>(&*header)) {
    evicted(*eviction);
    co_return base::ok();
  }
  const auto& reply = std::get<vsr::ReplyHeader>(*header);
  std::shared_ptr<base::Buffer> body;
  const auto asked = outstanding_.find(reply.request);
  const bool expected = asked != outstanding_.end() && asked->second->handed;
  auto reading = read_body(reply.size - vsr::kHeaderSize, expected ? asked->second.get() : nullptr, body);
  auto read = co_await std::move(reading);
  CO_RETURN_IF_ERROR(read);
  const ExchangePtr exchange = expected ? take_outstanding(reply.request) : nullptr;
  if (exchange == nullptr) {
    ++unknown_replies_;
    co_return base::ok();
  }
  exchange->header = reply;
  exchange->body = std::move(body);
  exchange->replied = true;
  exchange->settle();
  co_return base::ok();
}

// An eviction names no request: it ends them all.
void Connection::evicted(const vsr::Eviction& eviction) {
  const std::uint32_t status = vsr::status_of_eviction(eviction.reason);
  constexpr std::uint8_t kInvalidCredentials = 9, kInvalidToken = 10, kUserInactive = 11, kProtocol = 14;
  const std::string peer = options_.peer.to_string();
  if (logged_in_) {
    abort(lost(fmt::format("the server ended the session: {} (eviction {})", name_of_status(status), eviction.reason))
              .with_status(status));
  } else if (eviction.reason >= kInvalidCredentials && eviction.reason <= kUserInactive) {
    const std::string what = eviction.reason == kUserInactive ? "the user is inactive"
                                                              : credentials_refused(eviction.reason == kInvalidToken);
    abort(base::Error(kCredentials, "login", peer, what, std::string(kCredentialsHint)).with_status(status));
  } else if (eviction.reason == kProtocol) {
    const auto text = [](std::uint32_t word) {
      return fmt::format("{}.{}.{}", word >> 20, (word >> 10) & 0x3FF, word & 0x3FF);
    };
    abort(base::Error(kUnsupported, "login", peer,
                      fmt::format("the server accepts protocol {} to {}, this connection speaks {}",
                                  text(eviction.protocol_min), text(eviction.protocol_max), text(vsr::kProtocolWord)))
              .with_status(status));
  } else {
    abort(base::Error(kServerRefused, "login", peer,
                      fmt::format("refused: {} (eviction {})", name_of_status(status), eviction.reason))
              .with_status(status)
              .with_retry(base::Retry::kSameCall));
  }
}

// --- watchdog

void Connection::ping() {
  bool send_waits = false;
  for (const auto& [number, waiting] : outstanding_) {
    if (waiting->is_ping) return;
    send_waits = send_waits || waiting->is_send;
  }
  const bool patient = is_legacy() && send_waits;  // its answer comes after the send's
  auto exchange = make_exchange(Ping{}, patient ? kNever : clock_.now() + options_.read_timeout);
  base::check(exchange.has_value(), "a ping can be encoded");
  (*exchange)->is_ping = true;
  submit(*exchange);
}

void Connection::expire(Exchange& overdue) {
  const bool by_login = !logged_in_;
  const base::Duration patience = overdue.is_send ? options_.send_timeout : options_.read_timeout;
  const std::string message = by_login ? fmt::format("no answer to {} in time", overdue.name)
                                       : fmt::format("no answer to {} within {}", overdue.name, seconds_of(patience));
  overdue.error = base::Error(kTimeout, "connection", "", message);
  abort(lost("closed by us: " + message));
}

base::Task<void> Connection::watch_loop(std::shared_ptr<Connection> self) {
  base::TimePoint next_ping = clock_.now() + options_.heartbeat_interval;
  while (is_open()) {
    recheck_.reset();
    planned_ = next_ping;
    for (const auto& [number, waiting] : outstanding_) planned_ = std::min(planned_, waiting->deadline);
    auto waiting = base::wait_until(clock_, recheck_, planned_);
    co_await std::move(waiting);
    if (!is_open()) break;
    const base::TimePoint now = clock_.now();
    const auto overdue = std::find_if(outstanding_.begin(), outstanding_.end(),
                                      [now](const auto& entry) { return entry.second->deadline <= now; });
    if (overdue != outstanding_.end()) {
      const ExchangePtr exchange = overdue->second;
      expire(*exchange);
      break;
    }
    if (now >= next_ping) {
      next_ping = now + options_.heartbeat_interval;
      if (logged_in_) ping();
    }
  }
}

}  // namespace iggy
