// A server of one dialect that knows enough for a client to log in, with switches for what can go wrong. It stores
// nothing: a test says what it answers. (The broker that behaves like Iggy is iggy-sandbox.)
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/task.h"
#include "iggy/dialect.h"
#include "iggy/testing/peer.h"

namespace iggy::testing {

class TinyServer {
 public:
  TinyServer(asio::io_context& io, Dialect dialect) : dialect_(dialect), tasks_(io) {}

  // What a request gets; nullopt = no answer, a number = that status. Unset: the defaults below.
  using Answer = std::variant<std::monostate, std::uint32_t, Reply>;
  std::function<std::optional<Answer>(const Request&)> on_request;
  std::uint32_t login_status = 0;  // legacy: refuses logins with it; vsr: as an eviction of this reason
  vsr::Eviction window{.protocol_max = vsr::kProtocolWord, .protocol_min = vsr::kProtocolWord, .reason = 14};

  // What was seen.
  int connections = 0;
  int logins = 0;
  int open = 0;
  std::vector<Request> requests;
  std::vector<vsr::RequestHeader> headers;  // vsr: of `requests`

  void set_dialect(Dialect dialect) { dialect_ = dialect; }
  void serve(std::unique_ptr<Transport> transport) {
    ++connections;
    peers_.push_back(std::make_shared<Peer>(std::move(transport)));
    tasks_.spawn(serve_peer(peers_.back(), dialect_));
  }
  // Ends every open connection, as a crash does.
  void cut() {
    for (const auto& peer : peers_) peer->transport().close();
    peers_.clear();
  }
  base::Task<void> close() {
    cut();
    auto closing = tasks_.close();
    co_await std::move(closing);
  }

 private:
  base::Task<void> serve_peer(std::shared_ptr<Peer> peer, Dialect dialect) {
    ++open;
    while (true) {
      auto serving = dialect == Dialect::kLegacy ? serve_legacy(peer) : serve_vsr(peer);
      const bool more = co_await std::move(serving);
      if (!more) break;
    }
    --open;
    peer->transport().close();
  }

  base::Task<bool> serve_legacy(std::shared_ptr<Peer> peer) {
    auto reading = peer->legacy_call();
    auto call = co_await std::move(reading);
    if (!call) co_return false;
    auto request = legacy::decode_request(call->code, call->payload);
    base::Bytes bytes;
    if (!request) {
      bytes = legacy::encode_error(request.error().wire_status());
    } else {
      const Answer answer = answer_to(*request);
      if (std::holds_alternative<std::monostate>(answer)) co_return true;
      const auto* status = std::get_if<std::uint32_t>(&answer);
      bytes = status != nullptr ? legacy::encode_error(*status) : legacy::encode_reply(std::get<Reply>(answer));
    }
    auto writing = peer->write(std::move(bytes));
    const auto written = co_await std::move(writing);
    co_return written.has_value();
  }

  base::Task<bool> serve_vsr(std::shared_ptr<Peer> peer) {
    auto reading = peer->vsr_call();
    auto call = co_await std::move(reading);
    if (!call) co_return false;
    auto request = vsr::decode_request(call->header, call->body);
    base::Bytes bytes;
    if (!request && call->header.operation == std::to_underlying(vsr::Operation::kRegister)) {
      bytes = vsr::encode_eviction(call->header.client, window);
    } else if (!request) {
      bytes = vsr::encode_refusal(call->header, request.error());
    } else {
      headers.push_back(call->header);
      const Answer answer = answer_to(*request);
      if (std::holds_alternative<std::monostate>(answer)) co_return true;
      if (const auto* status = std::get_if<std::uint32_t>(&answer)) {
        bytes = is_login(*request)
                    ? vsr::encode_eviction(call->header.client, {.reason = static_cast<std::uint8_t>(*status)})
                    : vsr::encode_status(call->header, *status);
      } else {
        bytes = vsr::encode_reply(*request, call->header, std::get<Reply>(answer), 1);
      }
    }
    auto writing = peer->write(std::move(bytes));
    const auto written = co_await std::move(writing);
    co_return written.has_value();
  }

  static bool is_login(const Request& request) {
    return std::holds_alternative<LoginUser>(request) || std::holds_alternative<LoginToken>(request);
  }

  Answer answer_to(const Request& request) {
    requests.push_back(request);
    if (on_request) {
      if (auto answer = on_request(request)) return *std::move(answer);
    }
    if (is_login(request)) {
      ++logins;
      if (login_status != 0) return login_status;
      return Reply(LoggedIn{1, static_cast<std::uint64_t>(logins), vsr::kProtocolWord, "0.9.0"});
    }
    if (std::holds_alternative<Ping>(request)) return Reply(Done{});
    if (std::holds_alternative<GetStats>(request)) {
      Stats stats;
      stats.server_version = "0.8.0";
      return Reply(stats);
    }
    if (std::holds_alternative<GetMe>(request)) {
      ClientInfo info;
      info.client_id = 7;
      info.address = "10.0.0.1:5000";
      return Reply(info);
    }
    if (std::holds_alternative<SendMessages>(request)) return Reply(SendConfirmed{.base_offset = 10});
    return std::uint32_t{3};
  }

  Dialect dialect_;
  std::vector<std::shared_ptr<Peer>> peers_;
  base::TaskGroup tasks_;
};

}  // namespace iggy::testing
