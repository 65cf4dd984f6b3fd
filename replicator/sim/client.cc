#include "replicator/sim/client.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/status.h"
#include "iggy/codec/vsr.h"

namespace replicator::sim {

namespace {

using base::ErrorCode;

base::Error stopped(std::string operation) { return {ErrorCode::kStopped, std::move(operation), "", "closed"}; }

// What the server makes of a send. A frame that it would not take is a bug of ours.
std::vector<Message> decode(iggy::Dialect dialect, const iggy::OutgoingSend& frame) {
  base::Bytes bytes;
  for (const base::ByteView piece : frame.pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  const base::ByteView view(bytes);
  base::Result<iggy::Request> request = [&]() -> base::Result<iggy::Request> {
    if (dialect == iggy::Dialect::kLegacy) {
      return iggy::legacy::decode_request(iggy::legacy::read_request_header(view).code,
                                          view.subspan(iggy::legacy::kHeaderSize));
    }
    auto header = iggy::vsr::read_request_header(view);
    base::check(header.has_value(), "a send has a valid header");
    header->client = {1, 1};
    header->session = header->request = 1;
    header->request_checksum = {};
    return iggy::vsr::decode_request(*header, view.subspan(iggy::vsr::kHeaderSize));
  }();
  base::check(request.has_value(), "a server accepts what we encode");
  std::vector<Message> messages;
  for (const base::Record& record : std::get<iggy::SendMessages>(*request).records) {
    Message message;
    message.id = record.id;
    message.origin = record.origin_timestamp;
    message.payload_length = record.payload_length;
    message.body = base::as_text(record.body);
    messages.push_back(std::move(message));
  }
  return messages;
}

bool leaves_open(std::uint32_t status) { return iggy::error_of_status(status, "").code() == ErrorCode::kUncertain; }

}  // namespace

std::string_view to_string(Trouble trouble) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "none", "lose", "ack lost", "late", "partial", "slow", "silence", "refuse", "no offset", "empty", "short"};
  return kNames.at(static_cast<std::size_t>(trouble));
}

Client::Client(asio::io_context& io, base::Clock& clock, Cluster& cluster, Weather& weather,
               iggy::ClientOptions options, std::uint64_t seed)
    : io_(io), clock_(clock), cluster_(cluster), weather_(weather), options_(options), dice_(seed) {
  identity_ = {cluster.dialect(), cluster.is_legacy() ? "0.8.0" : "0.9.0", {cluster.name(), 8090}, "user"};
}

Client::~Client() { end_all(); }

void Client::die() {
  closed_ = true;
  end_all();
}

void Client::end_all() {
  for (auto& [slot, session] : std::exchange(slots_, {})) {
    if (session) cluster_.end(session);
  }
}

Planned Client::take(std::deque<Planned>& planned) {
  if (planned.empty()) return {};
  const Planned first = planned.front();
  planned.pop_front();
  return first;
}

base::Task<base::Result<SessionPtr>> Client::acquire(iggy::Role role, std::uint32_t slot) {
  if (closed_) {  // whoever asks a dead client again and again gets time to hear of the end
    auto pause = clock_.sleep_for(std::chrono::milliseconds(50));
    co_await std::move(pause);
    co_return stopped("connect");
  }
  const Slot key{role, role == iggy::Role::kControl ? 0 : slot % 2};
  if (const auto open = slots_.find(key); open != slots_.end() && open->second->open) co_return open->second;
  auto way = clock_.sleep_for(2 * latency());
  co_await std::move(way);
  if (closed_) co_return stopped("connect");
  if (cluster_.is_down()) {
    auto pause = clock_.sleep_for(std::chrono::milliseconds(300));
    co_await std::move(pause);
    if (closed_) co_return stopped("connect");
    co_return base::Error(ErrorCode::kConnectFailed, "connect", cluster_.name(), "connection refused");
  }
  SessionPtr& session = slots_[key];
  if (session && session->open) co_return session;  // somebody else was faster
  session = cluster_.connect([this] {
    for (const ExchangePtr& each : under_way_) {
      if (!each->session->open) each->over.set();
    }
  });
  co_return session;
}

base::Task<bool> Client::exchange(SessionPtr session, Planned plan, bool is_write, std::function<void()> work,
                                  base::Duration patience) {
  auto under_way = std::make_shared<Exchange>(io_);
  under_way->session = session;
  const bool arrives = plan.trouble != Trouble::kLose && plan.trouble != Trouble::kSilence;
  const bool is_cut =
      plan.trouble == Trouble::kLose || plan.trouble == Trouble::kLate || plan.trouble == Trouble::kPartial;
  if (arrives) {
    ++session->unfinished;
    const bool survives_cuts = is_write && (is_cut || !dice_.chance(weather_.lost_in_cuts));
    const auto at_server = [&cluster = cluster_, session, plan, survives_cuts, work = std::move(work),
                            boot = cluster_.boot(), way_back = latency(), answer = std::weak_ptr(under_way)] {
      --session->unfinished;
      if (boot != cluster.boot()) return;
      if (session->open || survives_cuts) work();
      if (plan.trouble == Trouble::kAckLost) cluster.end(session);
      if (!session->open) return;
      cluster.agenda().in(way_back, [session, answer] {
        const ExchangePtr waiting = answer.lock();
        if (!waiting || !session->open) return;
        waiting->answered = true;
        waiting->over.set();
      });
    };
    weather_.lands_until = std::max(weather_.lands_until, cluster_.now() + plan.delay);
    cluster_.agenda().in(latency() + plan.delay, at_server);
  }
  under_way_.insert(under_way);
  if (is_cut) cluster_.end(session, weather_.leaks);
  if (plan.trouble == Trouble::kSlow || plan.trouble == Trouble::kSilence) {
    auto waiting = base::wait_until(clock_, under_way->over, clock_.now() + patience);
    co_await std::move(waiting);
  } else {
    auto waiting = under_way->over.wait();
    co_await std::move(waiting);
  }
  under_way_.erase(under_way);
  const bool answered = under_way->answered && session->open;
  if (!under_way->over.is_set()) cluster_.end(session);
  co_return answered;
}

base::Task<base::Result<iggy::Reply>> Client::ask(SessionPtr session, Planned plan, bool is_write,
                                                  iggy::Request request) {
  const std::string operation(iggy::name_of(request));
  auto outcome = std::make_shared<std::optional<base::Result<iggy::Reply>>>();
  const auto work = [outcome, request, plan, &cluster = cluster_] {
    if (plan.trouble == Trouble::kRefuse) {
      if (leaves_open(plan.status) && (plan.status & 1U) != 0) (void)cluster.execute(request);
      outcome->emplace(cluster.refusal(plan.status, std::string(iggy::name_of(request))));
      return;
    }
    iggy::Request asked = request;
    if (auto* poll = std::get_if<iggy::PollMessages>(&asked); poll != nullptr && plan.trouble == Trouble::kShort) {
      poll->count = (poll->count + 1) / 2;
    }
    outcome->emplace(cluster.execute(asked));
    if (plan.trouble == Trouble::kEmpty && *outcome && (**outcome).has_value()) {
      if (auto* polled = std::get_if<iggy::PolledMessages>(&***outcome)) polled->batch.records.clear();
    }
  };
  const base::TimePoint begun = clock_.now();
  auto going = exchange(session, plan, is_write, work, options_.read_timeout);
  const bool answered = co_await std::move(going);
  if (closed_) co_return stopped(operation);
  if (!answered) {
    if (is_write) co_return base::Error(ErrorCode::kUncertain, operation, "", "connection lost before the answer");
    if (clock_.now() - begun >= options_.read_timeout) {
      co_return base::Error(ErrorCode::kTimeout, operation, "", "no answer");
    }
    co_return base::Error(ErrorCode::kConnectionLost, operation, "", "connection reset");
  }
  if (!is_write && !**outcome && (**outcome).error().code() == ErrorCode::kUncertain) {
    co_return base::Error(ErrorCode::kNotAccepted, operation, "", (**outcome).error().message());
  }
  co_return std::move(**outcome);
}

base::Task<base::Result<iggy::ServerIdentity>> Client::connect() {
  auto acquiring = acquire(iggy::Role::kControl, 0);
  auto session = co_await std::move(acquiring);
  CO_RETURN_IF_ERROR(session);
  co_return identity_;
}

base::Task<base::Result<iggy::Reply>> Client::call(iggy::Request request, iggy::Role role, std::uint32_t slot) {
  auto acquiring = acquire(role, slot);
  auto session = co_await std::move(acquiring);
  CO_RETURN_IF_ERROR(session);
  const bool is_write = std::holds_alternative<iggy::CreateStream>(request) ||
                        std::holds_alternative<iggy::CreateTopic>(request) ||
                        std::holds_alternative<iggy::CreatePartitions>(request);
  auto asking = ask(*session, take(is_write ? weather_.writes : weather_.reads), is_write, std::move(request));
  co_return co_await std::move(asking);
}

base::Task<base::Result<iggy::SendAck>> Client::send(base::TopicName topic, std::uint32_t partition,
                                                     iggy::OutgoingSend frame, std::uint32_t count, std::uint32_t slot,
                                                     iggy::SendTrace* trace) {
  auto acquiring = acquire(iggy::Role::kSend, slot);
  auto acquired = co_await std::move(acquiring);
  CO_RETURN_IF_ERROR(acquired);
  const SessionPtr session = *acquired;
  if (trace != nullptr) {
    if (trace->number != 0 && trace->number != session->number) {
      co_return base::Error(ErrorCode::kConnectionLost, "send", topic.to_string(), "another connection by now");
    }
    *trace = {session->address, 0, session->number, {}};
  }
  Planned plan = take(weather_.sends);
  // A 0.8 server answers in order, and will answer.
  if (cluster_.is_legacy() && plan.trouble == Trouble::kSilence) plan.trouble = Trouble::kSlow;
  std::vector<Message> messages = decode(identity_.dialect, frame);
  base::check(messages.size() == count, "a send holds what it says");
  if (plan.trouble == Trouble::kPartial) messages.resize((messages.size() + 1) / 2);
  auto outcome = std::make_shared<std::optional<base::Result<iggy::SendAck>>>();
  const auto work = [outcome, plan, topic, partition, messages = std::move(messages), &cluster = cluster_] {
    if (plan.trouble == Trouble::kRefuse) {
      if (leaves_open(plan.status) && (plan.status & 1U) != 0) (void)cluster.send(topic, partition, messages);
      outcome->emplace(cluster.refusal(plan.status, "send"));
      return;
    }
    outcome->emplace(cluster.send(topic, partition, messages));
    if (plan.trouble == Trouble::kNoOffset && (**outcome).has_value()) (**outcome)->end.reset();
  };
  if (!unresolved_.emplace(topic, partition).second) ++weather_.double_sends;
  auto going = exchange(session, plan, true, work,
                        cluster_.is_legacy() ? std::chrono::hours(1) : base::Duration(options_.send_timeout));
  const base::TimePoint begun = clock_.now();
  const bool answered = co_await std::move(going);
  unresolved_.erase({topic, partition});
  if (closed_) co_return stopped("send");
  if (answered) co_return std::move(**outcome);
  if (!cluster_.is_legacy() && clock_.now() - begun >= options_.send_timeout) {
    co_return base::Error(ErrorCode::kTimeout, "send", topic.to_string(), "no answer");
  }
  co_return base::Error(ErrorCode::kUncertain, "send", topic.to_string(), "connection lost before the answer");
}

base::Task<base::Result<iggy::SendTrace>> Client::open_send(base::TopicName, std::uint32_t partition) {
  auto acquiring = acquire(iggy::Role::kSend, partition);
  auto session = co_await std::move(acquiring);
  CO_RETURN_IF_ERROR(session);
  co_return iggy::SendTrace{(*session)->address, 0, (*session)->number, {}};
}

bool Client::is_open(const iggy::SendTrace& trace) const {
  return std::ranges::any_of(slots_, [&](const auto& slot) {
    return slot.second && slot.second->open && slot.second->number == trace.number;
  });
}

base::Task<base::Result<bool>> Client::is_listed(iggy::SendTrace trace) {
  auto acquiring = acquire(iggy::Role::kControl, 0);
  auto session = co_await std::move(acquiring);
  CO_RETURN_IF_ERROR(session);
  auto listed = std::make_shared<std::optional<bool>>();
  const auto work = [listed, trace, &cluster = cluster_] {
    if (!cluster.denied.contains(Right::kReadServers)) listed->emplace(cluster.is_listed(trace.local_address));
  };
  auto going = exchange(*session, take(weather_.reads), false, work, options_.read_timeout);
  const bool answered = co_await std::move(going);
  if (closed_) co_return stopped("get_clients");
  if (!answered) co_return base::Error(ErrorCode::kConnectionLost, "get_clients", "", "connection reset");
  if (!*listed) co_return cluster_.refusal(41, "get_clients");
  co_return **listed;
}

base::Task<void> Client::close() {
  die();
  co_return;
}

}  // namespace replicator::sim
