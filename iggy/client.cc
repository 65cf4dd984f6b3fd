#include "iggy/client.h"

#include <algorithm>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/check.h"
#include "base/task.h"
#include "iggy/connection.h"
#include "iggy/gate.h"
#include "iggy/probe.h"
#include "iggy/roster.h"
#include "iggy/tcp_transport.h"
#include "iggy/with_deadline.h"

namespace iggy {
namespace {

using enum base::ErrorCode;
using ConnectionPtr = std::shared_ptr<Connection>;

// Kept back from a login in a dialect that was not probed just now, to find out what is there when it fails.
constexpr base::Duration kDiagnosisMax = std::chrono::seconds(1);
// A leader that can't be reached at the address it advertises is not tried again for so long.
constexpr base::Duration kShunLeaderFor = std::chrono::seconds(5);
// Between two questions for the roster: after a refusal, and while nobody leads.
constexpr base::Duration kRosterIntervalMin = std::chrono::milliseconds(250);
// Slots that were left because the leader moved: their callers may still be waiting for an answer.
constexpr std::size_t kRetiredMax = 64;
constexpr std::uint32_t kNotHere = 58;

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto existing = spdlog::get("iggy");
    if (existing) return existing;
    auto made = spdlog::default_logger()->clone("iggy");
    spdlog::register_logger(made);  // so that it follows when the level is changed
    return made;
  }();
  return *logger;
}

std::string_view name_of_role(Role role) {
  switch (role) {
    case Role::kControl:
      return "control";
    case Role::kPoll:
      return "poll";
    case Role::kSend:
      return "send";
  }
  return "unknown";
}

std::string_view server_of(Dialect dialect) { return dialect == Dialect::kLegacy ? "server 0.8" : "server 0.9"; }

base::Error stopped() { return {kStopped, "client", "", "closed"}; }

// A metadata operation of vsr: one in flight per client identity, a second one is answered 57.
bool is_metadata_operation(const Request& request) {
  const auto operation = static_cast<std::uint8_t>(vsr::operation_of(request));
  return operation >= static_cast<std::uint8_t>(vsr::Operation::kCreateStream) &&
         operation < static_cast<std::uint8_t>(vsr::Operation::kSendMessages);
}

// "orders/events" of a request about a topic by name.
std::optional<base::TopicName> topic_of(const Request& request) {
  return std::visit(
      []<class T>(const T& value) -> std::optional<base::TopicName> {
        if constexpr (requires {
                        value.stream;
                        value.topic;
                      }) {
          const auto* stream = std::get_if<std::string>(&value.stream);
          const auto* topic = std::get_if<std::string>(&value.topic);
          if (stream != nullptr && topic != nullptr) return base::TopicName{*stream, *topic};
        }
        return std::nullopt;
      },
      request);
}

// Errors that another address of the same cluster would not change, or that only a person can.
bool ends_attempt(const base::Error& error) {
  return error.code() == kCredentials || error.code() == kUnsupported || error.code() == kInvalidArgument ||
         error.code() == kStopped;
}

class PooledClient final : public Client {
 public:
  PooledClient(asio::io_context& io, base::Clock& clock, ConnectionString target, ClientOptions options,
               std::unique_ptr<Connector> connector)
      : io_(io),
        clock_(clock),
        target_(std::move(target)),
        options_(options),
        connector_(std::move(connector)),
        random_(options.seed != 0 ? options.seed : std::random_device{}() * 0x1'0000'0001ULL ^ std::random_device{}()),
        roster_(target_.hosts),
        dialect_(target_.dialect),
        sends_(io, options.sends_outstanding_max),
        stopping_(io),
        unused_(io),
        ask_roster_(io),
        tasks_(io) {
    base::check(options_.poll_connections > 0 && options_.send_connections > 0, "a role has at least one connection");
    base::check(options_.sends_outstanding_max > 0, "at least one send may be outstanding");
    unused_.set();
  }
  ~PooledClient() override { base::check(in_use_ == 0, "a client is closed before it is destroyed"); }

  base::Task<base::Result<ServerIdentity>> connect() override;
  const ServerIdentity& server() const override {
    base::check(identity_.has_value(), "server() after connect()");
    return *identity_;
  }
  base::Task<base::Result<Reply>> call(Request request, Role role, std::uint32_t slot) override;
  base::Task<base::Result<SendAck>> send(base::TopicName topic, std::uint32_t partition, OutgoingSend frame,
                                         std::uint32_t count, std::uint32_t slot, SendTrace* trace) override;
  base::Task<base::Result<SendTrace>> open_send(base::TopicName topic, std::uint32_t partition) override;
  bool is_open(const SendTrace& trace) const override;
  base::Task<base::Result<bool>> is_listed(SendTrace trace) override;
  std::optional<base::TimePoint> lost_at() const override {
    const auto control = std::ranges::find(slots_, Role::kControl, [](const auto& slot) { return slot->role; });
    if (control == slots_.end() || !(*control)->connection) return control_lost_at_;
    const ConnectionPtr& connection = (*control)->connection;
    return connection->is_open() ? std::nullopt : std::optional(connection->closed_at());
  }
  base::Task<void> close() override;

 private:
  // Opening a connection, shared by all that wait for it.
  struct Attempt {
    explicit Attempt(asio::io_context& io) : done(io) {}
    base::Event done;
    std::optional<base::Error> error;
  };
  struct Slot {
    Slot(asio::io_context& io, Role r, std::uint32_t i, HostPort at, base::BackoffPolicy policy, std::uint64_t seed)
        : role(r), index(i), node(std::move(at)), backoff(policy, seed), metadata(io, 1) {}
    Role role;
    std::uint32_t index;
    HostPort node;         // that it connects to; the control slot: whichever can be reached
    bool retired = false;  // it opens no more connections
    VsrIdentity identity;
    ConnectionPtr connection;
    std::shared_ptr<Attempt> attempt;
    base::Backoff backoff;
    base::Duration last_delay{};
    base::TimePoint not_before = base::TimePoint::min();  // of the next attempt
    SendTrace trace;                                      // Role::kSend
    Gate metadata;                                        // vsr metadata operations, one at a time
  };
  // Counts a public call, so that close() can wait for the last one.
  struct InUse {
    explicit InUse(PooledClient& c) : client(c) {
      ++client.in_use_;
      client.unused_.reset();
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    ~InUse() {
      if (--client.in_use_ == 0) client.unused_.set();
    }
    PooledClient& client;
  };

  Slot& slot_of(Role role, std::uint32_t index, HostPort node);
  base::Task<base::Result<Slot*>> slot_for(Role role, std::uint32_t index, std::optional<base::TopicName> topic);
  base::MessageId random_id();

  base::Task<void> follow_leader();
  base::Task<std::optional<HostPort>> leader_elsewhere(HostPort here, base::TimePoint deadline);
  void learn(const ClusterMetadata& metadata);
  void came_home(HostPort before);
  void retire(Slot& slot);
  base::Task<void> drain(Slot& slot);
  bool shuns(const HostPort& node) const {
    return shunned_ && shunned_->first == node && clock_.now() < shunned_->second;
  }

  base::Task<base::Result<ConnectionPtr>> acquire(Slot& slot);
  base::Task<void> run_attempt(Slot& slot, std::shared_ptr<Attempt> attempt);
  base::Task<base::Result<ConnectionPtr>> establish(Slot& slot, base::TimePoint deadline);
  base::Task<base::Result<ConnectionPtr>> move_to_leader(Slot& slot, ConnectionPtr connection,
                                                         base::TimePoint deadline);
  base::Task<base::Result<ConnectionPtr>> establish_at(Slot& slot, HostPort host, base::TimePoint deadline);
  base::Task<base::Result<Dialect>> probe_at(HostPort host, base::TimePoint deadline);
  base::Task<base::Result<ConnectionPtr>> log_in(Slot& slot, HostPort host, Dialect dialect, base::TimePoint deadline);
  base::Task<base::Status> introduce(Slot& slot, HostPort host, ConnectionPtr connection, LoggedIn logged_in,
                                     base::TimePoint deadline);
  base::Task<base::Error> diagnosed(base::Error error, HostPort host, Dialect assumed, base::TimePoint deadline);

  asio::io_context& io_;
  base::Clock& clock_;
  ConnectionString target_;
  ClientOptions options_;
  std::unique_ptr<Connector> connector_;
  std::mt19937_64 random_;
  Roster roster_;
  std::optional<std::pair<HostPort, base::TimePoint>> shunned_;  // a leader that can't be reached, and until when
  bool follows_ = false;                                         // follow_leader() runs
  std::uint64_t send_connections_ = 0;                           // opened so far
  std::optional<Dialect> dialect_;                               // configured or found; never changes afterwards
  std::optional<ServerIdentity> identity_;
  std::vector<std::unique_ptr<Slot>> slots_;   // made at first use
  std::deque<std::unique_ptr<Slot>> retired_;  // newest last
  std::optional<base::TimePoint> control_lost_at_;
  Gate sends_;
  base::Event stopping_;
  bool closed_ = false;
  std::size_t in_use_ = 0;
  base::Event unused_;
  base::Event ask_roster_;
  base::TaskGroup tasks_;
};

PooledClient::Slot& PooledClient::slot_of(Role role, std::uint32_t index, HostPort node) {
  index %= role == Role::kControl ? 1 : role == Role::kPoll ? options_.poll_connections : options_.send_connections;
  for (const auto& slot : slots_) {
    if (slot->role == role && slot->index == index && (role == Role::kControl || slot->node == node)) return *slot;
  }
  slots_.push_back(std::make_unique<Slot>(io_, role, index, std::move(node), options_.reconnect, random_()));
  slots_.back()->identity.client = random_id();
  return *slots_.back();
}

// `index` is the partition of `topic` in the roles that have a place.
base::Task<base::Result<PooledClient::Slot*>> PooledClient::slot_for(Role role, std::uint32_t index,
                                                                     std::optional<base::TopicName> topic) {
  if (role == Role::kControl) co_return &slot_of(role, 0, {});
  if (!identity_) {
    auto acquiring = acquire(slot_of(Role::kControl, 0, {}));
    auto connection = co_await std::move(acquiring);
    CO_RETURN_IF_ERROR(connection);
  }
  const HostPort& home = identity_->endpoint;
  co_return &slot_of(role, index, topic ? roster_.route(*topic, index, home) : home);
}

base::MessageId PooledClient::random_id() {
  base::MessageId id;
  while (id.is_zero()) id = {random_(), random_()};
  return id;
}

// --- opening

base::Task<base::Result<ConnectionPtr>> PooledClient::acquire(Slot& slot) {
  if (closed_) co_return stopped();
  if (slot.connection && slot.connection->is_open()) co_return slot.connection;
  if (slot.connection) {
    // Lost since the last call. One that lived longer than it was waited for starts the backoff anew.
    const base::TimePoint lost_at = slot.connection->closed_at();
    if (lost_at - slot.connection->opened_at() > slot.last_delay) slot.backoff.reset();
    slot.last_delay = slot.backoff.next();
    slot.not_before = lost_at + slot.last_delay;
    log().debug("connection lost: role={} host={} cause=\"{}\"", name_of_role(slot.role),
                slot.connection->peer().to_string(), slot.connection->why_closed().message());
    if (slot.role == Role::kControl) control_lost_at_ = lost_at;
    slot.connection = nullptr;
  }
  if (!slot.attempt) {
    slot.attempt = std::make_shared<Attempt>(io_);
    if (!tasks_.spawn(run_attempt(slot, slot.attempt))) co_return stopped();
  }
  const std::shared_ptr<Attempt> attempt = slot.attempt;
  while (!attempt->done.is_set()) {
    auto waiting = attempt->done.wait();
    co_await std::move(waiting);
  }
  if (closed_) co_return stopped();
  if (attempt->error) co_return *attempt->error;
  if (!slot.connection) co_return base::Error(kConnectionLost, "connect", "", "lost again at once");
  co_return slot.connection;
}

base::Task<void> PooledClient::run_attempt(Slot& slot, std::shared_ptr<Attempt> attempt) {
  using namespace asio::experimental::awaitable_operators;
  if (slot.not_before > clock_.now()) {
    auto waiting = base::wait_until(clock_, stopping_, slot.not_before);
    co_await std::move(waiting);
  }
  base::Result<ConnectionPtr> outcome = stopped();
  if (!closed_) {
    auto race = establish(slot, clock_.now() + options_.connect_timeout) || stopping_.wait();
    auto finished = co_await std::move(race);
    if (finished.index() == 0) outcome = std::get<0>(std::move(finished));
  }
  if ((closed_ || slot.retired) && outcome) {
    const base::Error why = closed_ ? stopped() : base::Error(kConnectionLost, "connect", "", "the leader moved");
    (*outcome)->abort(why);
    outcome = why;
  }
  if (outcome) {
    slot.connection = *std::move(outcome);
    log().debug("connected: role={} host={}", name_of_role(slot.role), slot.connection->peer().to_string());
  } else {
    attempt->error = std::move(outcome).error();
    if (slot.role != Role::kControl && slot.node != identity_->endpoint) roster_.forget_routes_to(slot.node);
    // What only a person can change is not asked for every second.
    const base::Duration delay = slot.backoff.next();
    slot.last_delay = attempt->error->retry() == base::Retry::kNeedsOperator ? options_.reconnect.max : delay;
    slot.not_before = clock_.now() + slot.last_delay;
    log().debug("connect failed: role={} cause=\"{}\"", name_of_role(slot.role), attempt->error->to_string());
  }
  slot.attempt = nullptr;
  attempt->done.set();
}

base::Task<base::Result<ConnectionPtr>> PooledClient::establish(Slot& slot, base::TimePoint deadline) {
  std::optional<HostPort> in_use;
  if (identity_) in_use = identity_->endpoint;
  std::vector<HostPort> hosts{slot.node};
  if (slot.role == Role::kControl) {
    hosts = roster_.candidates(in_use);
    // A leader that could not be reached comes last.
    const auto shunned = std::ranges::find_if(hosts, [this](const HostPort& host) { return shuns(host); });
    if (shunned != hosts.end()) std::rotate(shunned, std::next(shunned), hosts.end());
  }
  std::optional<base::Error> failed;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const base::TimePoint now = clock_.now();
    const auto share = (deadline - now) / static_cast<std::int64_t>(hosts.size() - i);
    auto opening = establish_at(slot, hosts[i], now + share);
    auto opened = co_await std::move(opening);
    if (opened && slot.role == Role::kControl) {
      auto moving = move_to_leader(slot, *std::move(opened), deadline);
      opened = co_await std::move(moving);
    }
    if (opened) co_return opened;
    base::Error error = std::move(opened).error();
    if (ends_attempt(error)) co_return error;
    // All failures in one sentence; the code of the one that says most: something answered there.
    if (failed) {
      const base::Error& telling = failed->code() == kConnectFailed ? error : *failed;
      const base::Retry retry = telling.retry();
      base::Error both(telling.code(), "connect", "", failed->to_string() + "; " + error.to_string());
      failed = both.with_retry(retry);
    } else {
      failed = std::move(error);
    }
  }
  co_return *failed;
}

// From the node that was reached to the one that leads, as far as that can be reached.
base::Task<base::Result<ConnectionPtr>> PooledClient::move_to_leader(Slot& slot, ConnectionPtr connection,
                                                                     base::TimePoint deadline) {
  constexpr int kHopsMax = 3;  // nodes may disagree while they elect
  for (int hop = 0; hop < kHopsMax; ++hop) {
    const HostPort here = connection->peer();
    auto looking = leader_elsewhere(here, deadline);
    const std::optional<HostPort> leads = co_await std::move(looking);
    if (!leads) break;
    const HostPort& leader = *leads;
    // A login belongs to its slot: at one node at a time.
    connection->abort({kConnectionLost, "connect", here.to_string(), "moving to the leader " + leader.to_string()});
    auto opening = establish_at(slot, leader, clock_.now() + (deadline - clock_.now()) / 2);
    auto opened = co_await std::move(opening);
    if (!opened) {
      log().warn("{} leads and takes no login: {}", leader.to_string(), opened.error().message());
      shunned_ = {leader, clock_.now() + kShunLeaderFor};
      auto returning = establish_at(slot, here, deadline);
      opened = co_await std::move(returning);
    }
    if (!opened) co_return opened;
    connection = *std::move(opened);
  }
  co_return connection;
}

base::Task<base::Result<ConnectionPtr>> PooledClient::establish_at(Slot& slot, HostPort host,
                                                                   base::TimePoint deadline) {
  const bool assumed = dialect_.has_value();
  if (!assumed) {
    auto probing = probe_at(host, deadline);
    auto found = co_await std::move(probing);
    CO_RETURN_IF_ERROR(found);
    if (!dialect_) dialect_ = *found;
    log().debug("found: host={} dialect={}", host.to_string(), to_string(*found));
  }
  const Dialect dialect = *dialect_;
  const base::Duration kept_back =
      assumed ? std::min<base::Duration>(kDiagnosisMax, (deadline - clock_.now()) / 4) : base::Duration::zero();
  auto logging_in = log_in(slot, host, dialect, deadline - kept_back);
  auto connection = co_await std::move(logging_in);
  if (connection || !assumed) co_return connection;
  base::Error error = std::move(connection).error();
  if (error.code() == kConnectFailed || ends_attempt(error)) co_return error;
  auto diagnosing = diagnosed(std::move(error), host, dialect, deadline);
  auto cause = co_await std::move(diagnosing);
  co_return cause;
}

base::Task<base::Result<Dialect>> PooledClient::probe_at(HostPort host, base::TimePoint deadline) {
  auto connecting = connector_->connect(host, deadline);
  auto transport = co_await std::move(connecting);
  CO_RETURN_IF_ERROR(transport);
  auto probing = probe(clock_, **transport, host, target_.tls.enabled, deadline);
  auto found = co_await std::move(probing);
  (*transport)->close();
  co_return found;
}

base::Task<base::Result<ConnectionPtr>> PooledClient::log_in(Slot& slot, HostPort host, Dialect dialect,
                                                             base::TimePoint deadline) {
  auto connecting = connector_->connect(host, deadline);
  auto transport = co_await std::move(connecting);
  CO_RETURN_IF_ERROR(transport);
  const auto certificate_ends = (*transport)->certificate_ends();
  ConnectionOptions options;
  options.dialect = dialect;
  options.read_timeout = options_.read_timeout;
  options.send_timeout = options_.send_timeout;
  options.heartbeat_interval = target_.heartbeat_interval;
  options.verify_checksums = options_.verify_checksums;
  options.peer = host;
  const ConnectionPtr connection =
      Connection::start(io_, clock_, tasks_, *std::move(transport), std::move(options), slot.identity);
  struct AbortUnlessReady {  // also when this attempt is cut short by close()
    ConnectionPtr connection;
    bool ready = false;
    ~AbortUnlessReady() {
      if (!ready) connection->abort(base::Error(kConnectionLost, "connect", "", "the attempt was given up"));
    }
  } guard{connection};

  auto logging_in = connection->login(target_.credentials, deadline);
  auto logged_in = co_await std::move(logging_in);
  if (!logged_in) {
    // The id belongs to another user's session (vsr eviction 12): the next attempt takes another.
    if (logged_in.error().code() == kServerRefused) slot.identity = {random_id(), 1};
    co_return std::move(logged_in).error();
  }
  auto introducing = introduce(slot, host, connection, *std::move(logged_in), deadline);
  auto introduced = co_await std::move(introducing);
  CO_RETURN_IF_ERROR(introduced);
  if (slot.role == Role::kControl && identity_) identity_->certificate_ends = certificate_ends;
  guard.ready = true;
  co_return connection;
}

// What a fresh connection is asked before anybody uses it.
base::Task<base::Status> PooledClient::introduce(Slot& slot, HostPort host, ConnectionPtr connection,
                                                 LoggedIn logged_in, base::TimePoint deadline) {
  const Dialect dialect = *dialect_;
  const base::Error late(kTimeout, "connect", host.to_string(), "logged in, but the next question was not answered");
  if (slot.role == Role::kControl) {
    ServerIdentity identity{dialect, std::move(logged_in.server_version), std::move(host), {}};
    if (const auto* named = std::get_if<Password>(&target_.credentials)) identity.user = named->username;
    if (dialect == Dialect::kLegacy) {  // needs the right read_servers: without it the version stays unknown
      auto asking = with_deadline(clock_, deadline, connection->call(GetStats{}), late);
      auto stats = co_await std::move(asking);
      if (!stats && (!connection->is_open() || stats.error().code() == kTimeout)) co_return std::move(stats).error();
      if (stats && std::holds_alternative<Stats>(*stats)) identity.version = std::get<Stats>(*stats).server_version;
    }
    if (dialect != Dialect::kLegacy) {  // 0.8 has no clusters
      auto asking = with_deadline(clock_, deadline, connection->call(GetClusterMetadata{}), late);
      auto cluster = co_await std::move(asking);
      if (!cluster && (!connection->is_open() || cluster.error().code() == kTimeout))
        co_return std::move(cluster).error();
      if (const auto* metadata = cluster ? std::get_if<ClusterMetadata>(&*cluster) : nullptr) learn(*metadata);
    }
    const HostPort before = identity_ ? identity_->endpoint : identity.endpoint;
    identity_ = std::move(identity);
    came_home(before);
  } else if (slot.role == Role::kSend) {
    slot.trace = {connection->local_address(), 0, ++send_connections_, host};
    auto asking = with_deadline(clock_, deadline, connection->call(GetMe{}), late);
    auto me = co_await std::move(asking);
    if (!me && (!connection->is_open() || me.error().code() == kTimeout)) co_return std::move(me).error();
    // The server's view of our address: it differs behind address translation.
    if (me && std::holds_alternative<ClientInfo>(*me)) {
      const auto& info = std::get<ClientInfo>(*me);
      slot.trace = {info.address, info.client_id, slot.trace.number, host};
    }
  }
  co_return base::ok();
}

// A login in a dialect that was not probed just now has failed: says so when the server speaks another one.
base::Task<base::Error> PooledClient::diagnosed(base::Error error, HostPort host, Dialect assumed,
                                                base::TimePoint deadline) {
  auto probing = probe_at(host, deadline);
  auto found = co_await std::move(probing);
  const std::string where = host.to_string();
  if (found && *found == assumed) co_return error;
  if (target_.dialect) {
    const std::string configured = fmt::format("dialect={} ({}) is configured", to_string(assumed), server_of(assumed));
    if (found) {
      co_return base::Error(
          kUnsupported, "connect", where,
          fmt::format("{}, but the server speaks {} ({})", configured, to_string(*found), server_of(*found)),
          "correct dialect= in the connection string, or leave it out");
    }
    base::Error cause = found.error().code() == kNotIggy || found.error().code() == kUnsupported
                            ? std::move(found).error()
                            : std::move(error);
    base::Error named(cause.code(), cause.operation(), where, fmt::format("{}; {}", cause.message(), configured),
                      cause.hint());
    co_return named.with_retry(cause.retry());
  }
  if (found) {
    co_return base::Error(kUnsupported, "connect", where,
                          fmt::format("the server was replaced: it spoke {} ({}) before and now speaks {} ({})",
                                      to_string(assumed), server_of(assumed), to_string(*found), server_of(*found)),
                          "restart this program to take the new server as it is");
  }
  co_return found.error().code() == kTimeout ? std::move(error) : std::move(found).error();
}

// --- the cluster's leader

void PooledClient::learn(const ClusterMetadata& metadata) {
  roster_.learn(metadata);
  if (shunned_ && roster_.leader() != shunned_->first) shunned_.reset();
}

// The node that leads, when it is another one and can be reached.
base::Task<std::optional<HostPort>> PooledClient::leader_elsewhere(HostPort here, base::TimePoint deadline) {
  const std::optional<HostPort> leader = roster_.leader();
  if (!leader || *leader == here || shuns(*leader)) co_return std::nullopt;
  auto connecting = connector_->connect(*leader, clock_.now() + (deadline - clock_.now()) / 2);
  auto transport = co_await std::move(connecting);
  if (transport) {
    (*transport)->close();
    co_return leader;
  }
  if (!shunned_) {
    log().warn("{} leads, as {} says, and can't be reached there: {}", leader->to_string(), here.to_string(),
               transport.error().message());
  }
  shunned_ = {*leader, clock_.now() + kShunLeaderFor};
  co_return std::nullopt;
}

// The control connection stands at identity_->endpoint. What belongs to the node before is left when it is answered.
void PooledClient::came_home(HostPort before) {
  identity_->nodes = roster_.size();
  identity_->node = roster_.is_cluster() ? roster_.name_of(identity_->endpoint) : std::string();
  if (roster_.is_cluster() && !follows_) follows_ = tasks_.spawn(follow_leader());
  if (before == identity_->endpoint) return;
  log().info("now at {}{}, before at {}", identity_->endpoint.to_string(),
             identity_->node.empty() ? "" : " (" + identity_->node + ")", before.to_string());
  roster_.forget_routes();
  std::vector<Slot*> leaving;
  for (const auto& slot : slots_) {
    if (slot->role != Role::kControl && slot->node != identity_->endpoint) leaving.push_back(slot.get());
  }
  for (Slot* slot : leaving) retire(*slot);
}

void PooledClient::retire(Slot& slot) {
  const auto at = std::ranges::find(slots_, &slot, &std::unique_ptr<Slot>::get);
  slot.retired = true;
  retired_.push_back(std::move(*at));
  slots_.erase(at);
  tasks_.spawn(drain(slot));
  // So many moves ago that nobody can be waiting any more.
  if (retired_.size() > kRetiredMax && !retired_.front()->connection && !retired_.front()->attempt)
    retired_.pop_front();
}

// Every answer comes or is overdue some time; then the connection is closed.
base::Task<void> PooledClient::drain(Slot& slot) {
  const ConnectionPtr connection = slot.connection;
  const base::TimePoint deadline = clock_.now() + std::max(options_.read_timeout, options_.send_timeout);
  while (connection && connection->is_open() && !connection->is_idle() && clock_.now() < deadline) {
    auto pause = base::wait_until(clock_, stopping_, clock_.now() + std::chrono::milliseconds(50));
    co_await std::move(pause);
    if (closed_) break;
  }
  if (connection) connection->abort({kConnectionLost, "connection", "", "the leader moved"});
  slot.connection = nullptr;
}

// Asks for the roster as long as the client lives; moves when another node leads.
base::Task<void> PooledClient::follow_leader() {
  base::TimePoint asked = clock_.now();
  while (!closed_) {
    const auto interval = roster_.leader() ? options_.roster_interval : kRosterIntervalMin;
    auto waiting = base::wait_until(clock_, ask_roster_, asked + interval);
    co_await std::move(waiting);
    auto pausing = base::wait_until(clock_, stopping_, asked + kRosterIntervalMin);
    co_await std::move(pausing);
    if (closed_) break;
    ask_roster_.reset();
    asked = clock_.now();
    Slot& slot = slot_of(Role::kControl, 0, {});
    auto acquiring = acquire(slot);
    auto connection = co_await std::move(acquiring);
    if (!connection || closed_) continue;
    auto calling = (*connection)->call(GetClusterMetadata{});
    auto reply = co_await std::move(calling);
    const auto* metadata = reply ? std::get_if<ClusterMetadata>(&*reply) : nullptr;
    if (metadata == nullptr || closed_ || slot.retired) continue;
    learn(*metadata);
    came_home(identity_->endpoint);
    auto looking = leader_elsewhere(identity_->endpoint, clock_.now() + options_.connect_timeout);
    const std::optional<HostPort> leader = co_await std::move(looking);
    if (!leader || closed_ || slot.retired) continue;
    log().info("{} leads, no longer {}", leader->to_string(), identity_->endpoint.to_string());
    retire(slot);  // the next one goes to the leader
    auto moving = acquire(slot_of(Role::kControl, 0, {}));
    auto moved = co_await std::move(moving);
    (void)moved;  // the next caller tries again
  }
}

// --- public calls

base::Task<base::Result<ServerIdentity>> PooledClient::connect() {
  const InUse in_use(*this);
  auto acquiring = acquire(slot_of(Role::kControl, 0, {}));
  auto connection = co_await std::move(acquiring);
  CO_RETURN_IF_ERROR(connection);
  co_return *identity_;
}

base::Task<base::Result<Reply>> PooledClient::call(Request request, Role role, std::uint32_t index) {
  const InUse in_use(*this);
  auto finding = slot_for(role, index, topic_of(request));
  auto found = co_await std::move(finding);
  CO_RETURN_IF_ERROR(found);
  Slot& slot = **found;
  auto acquiring = acquire(slot);
  auto connection = co_await std::move(acquiring);
  CO_RETURN_IF_ERROR(connection);
  Gate::Permit permit;
  if (*dialect_ != Dialect::kLegacy && is_metadata_operation(request)) {
    auto entering = slot.metadata.enter();
    permit = co_await std::move(entering);
  }
  auto calling = (*connection)->call(std::move(request));
  auto reply = co_await std::move(calling);
  if (!reply && closed_) co_return stopped();
  if (!reply && reply.error().wire_status() == kNotHere) ask_roster_.set();
  co_return reply;
}

base::Task<base::Result<SendAck>> PooledClient::send(base::TopicName topic, std::uint32_t partition, OutgoingSend frame,
                                                     std::uint32_t count, std::uint32_t index, SendTrace* trace) {
  const InUse in_use(*this);
  auto entering = sends_.enter();
  const Gate::Permit permit = co_await std::move(entering);
  auto finding = slot_for(Role::kSend, index, topic);
  auto found = co_await std::move(finding);
  if (!found) co_return base::Error(kConnectionLost, "send", topic.to_string(), found.error().message());
  Slot& slot = **found;
  auto acquiring = acquire(slot);
  auto connection = co_await std::move(acquiring);
  if (!connection) {
    // Nothing was written: a login that was not answered must not count as a send that was not.
    if (connection.error().code() != kTimeout) co_return std::move(connection).error();
    co_return base::Error(kConnectionLost, "send", topic.to_string(), connection.error().message());
  }
  if (trace != nullptr) {
    if (trace->number != 0 && trace->number != slot.trace.number) {
      co_return base::Error(kConnectionLost, "send", topic.to_string(),
                            "the connection for sends is another one by now");
    }
    *trace = slot.trace;
  }
  auto sending = (*connection)->send(topic, partition, std::move(frame), count);
  auto ack = co_await std::move(sending);
  if (!ack && closed_) co_return stopped();
  if (ack) {
    roster_.accepted(topic, partition);
  } else if (ack.error().wire_status() == kNotHere) {
    roster_.refused(topic, partition, slot.node, identity_->endpoint);
    ask_roster_.set();
  }
  co_return ack;
}

base::Task<base::Result<SendTrace>> PooledClient::open_send(base::TopicName topic, std::uint32_t partition) {
  const InUse in_use(*this);
  auto finding = slot_for(Role::kSend, partition, std::move(topic));
  auto found = co_await std::move(finding);
  CO_RETURN_IF_ERROR(found);
  Slot& slot = **found;
  auto acquiring = acquire(slot);
  auto connection = co_await std::move(acquiring);
  CO_RETURN_IF_ERROR(connection);
  co_return slot.trace;
}

bool PooledClient::is_open(const SendTrace& trace) const {
  return std::ranges::any_of(slots_, [&trace](const auto& slot) {
    return slot->role == Role::kSend && slot->trace.number == trace.number && slot->connection &&
           slot->connection->is_open();
  });
}

base::Task<base::Result<bool>> PooledClient::is_listed(SendTrace trace) {
  const InUse in_use(*this);
  const bool away = identity_ && !trace.node.host.empty() && trace.node != identity_->endpoint;
  auto acquiring = acquire(away ? slot_of(Role::kPoll, 0, trace.node) : slot_of(Role::kControl, 0, {}));
  auto connection = co_await std::move(acquiring);
  if (!connection && away) {
    co_return base::Error(kNotFound, "get_clients", trace.node.to_string(), connection.error().message());
  }
  CO_RETURN_IF_ERROR(connection);
  auto asking = (*connection)->call(GetClients{});
  auto reply = co_await std::move(asking);
  if (!reply && closed_) co_return stopped();
  CO_RETURN_IF_ERROR(reply);
  const auto* clients = std::get_if<Clients>(&*reply);
  if (clients == nullptr) co_return base::Error(kMalformed, "get_clients", "", "answered with something else");
  co_return std::any_of(clients->clients.begin(), clients->clients.end(), [&trace](const ClientInfo& client) {
    return client.address == trace.local_address && (trace.client_id == 0 || client.client_id == trace.client_id);
  });
}

base::Task<void> PooledClient::close() {
  closed_ = true;
  stopping_.set();
  ask_roster_.set();
  sends_.close();
  const auto end = [](const std::unique_ptr<Slot>& slot) {
    slot->metadata.close();
    if (slot->connection) slot->connection->abort(stopped());
  };
  std::ranges::for_each(slots_, end);
  std::ranges::for_each(retired_, end);
  auto ending = tasks_.close();
  co_await std::move(ending);
  while (!unused_.is_set()) {
    auto waiting = unused_.wait();
    co_await std::move(waiting);
  }
}

}  // namespace

std::unique_ptr<Client> make_client(asio::io_context& io, base::Clock& clock, ConnectionString target,
                                    ClientOptions options, std::unique_ptr<Connector> connector) {
  return std::make_unique<PooledClient>(io, clock, std::move(target), options, std::move(connector));
}

std::unique_ptr<Client> make_client(asio::io_context& io, base::Clock& clock, ConnectionString target,
                                    ClientOptions options) {
  auto connector = tcp_connector(io, clock, target.tls);
  return make_client(io, clock, std::move(target), options, std::move(connector));
}

}  // namespace iggy
