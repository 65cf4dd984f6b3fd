#include "integration/sandbox/server.h"

#include <charconv>
#include <stdexcept>
#include <utility>

#include <asio/experimental/as_tuple.hpp>
#include <asio/read_until.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "integration/sandbox/control.h"

namespace sandbox {
namespace {

using asio::ip::tcp;
constexpr auto kTuple = asio::experimental::as_tuple(asio::use_awaitable);

tcp::endpoint parse_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  if (colon == std::string::npos || std::from_chars(text.data() + colon + 1, end, port).ptr != end)
    throw std::invalid_argument("not an address and port: " + text);
  return {asio::ip::make_address(text.substr(0, colon)), port};
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

}  // namespace

Server::Server(asio::io_context& io, ServerOptions options)
    : io_(io),
      options_(std::move(options)),
      clock_(base::system_clock(io)),
      broker_(options_.broker),
      cluster_(broker_, options_.nodes),
      resumed_(io),
      stopping_(io),
      control_acceptor_(io, parse_endpoint(options_.control)),
      tasks_(io) {
  if (options_.nodes == 0 || (options_.nodes > 1 && broker_.profile().dialect == iggy::Dialect::kLegacy))
    throw std::invalid_argument("a cluster has nodes, and they are of 0.9");
  tcp::endpoint listen = parse_endpoint(options_.listen);
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    Services services{.broker = broker_, .faults = faults_, .nodes = cluster_, .node = i};
    services.cluster = [this] { return cluster(); };
    nodes_.push_back(std::make_unique<Node>(io, listen, std::move(services)));
    listen.port(0);
  }
  if (!options_.tls_certificate.empty()) {
    tls_.emplace(asio::ssl::context::tls_server);
    tls_->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
    tls_->use_certificate_chain_file(options_.tls_certificate);
    tls_->use_private_key_file(options_.tls_key, asio::ssl::context::pem);
  }
}

Server::~Server() = default;

void Server::start() {
  for (const auto& node : nodes_) tasks_.spawn(accept_loop(*node));
  tasks_.spawn(control_loop());
  tasks_.spawn(tick_loop());
}

base::Task<void> Server::stop() {
  stopping_.set();
  asio::error_code ignored;
  for (const auto& node : nodes_) node->acceptor.close(ignored);
  control_acceptor_.close(ignored);
  for (const Accepted& accepted : connections_)
    if (const auto connection = accepted.connection.lock()) connection->goodbye();
  for (const auto& weak : control_connections_)
    if (const auto socket = weak.lock()) socket->close(ignored);
  auto closing = tasks_.close();
  co_await std::move(closing);
  if (!abandoned_) broker_.save_all(true);
}

base::Task<void> Server::accept_loop(Node& node) {
  while (!stopping_.is_set()) {
    auto accepting = node.acceptor.async_accept(kTuple);
    auto [error, socket] = co_await std::move(accepting);
    if (error) {
      if (!node.acceptor.is_open()) break;
      auto pausing = clock_->sleep_for(std::chrono::milliseconds(10));
      co_await std::move(pausing);
      continue;
    }
    asio::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const tcp::endpoint peer = socket.remote_endpoint(ignored);
    if (ignored) continue;
    auto connection =
        std::make_shared<Connection>(io_, *clock_, node.services, resumed_,
                                     make_byte_stream(std::move(socket), tls_ ? &*tls_ : nullptr), text_of(peer));
    std::erase_if(connections_, [](const Accepted& accepted) { return accepted.connection.expired(); });
    connections_.push_back({node.services.node, connection});
    tasks_.spawn(Connection::read_loop(connection));
    tasks_.spawn(Connection::write_loop(connection));
  }
}

// Down: as a killed process, whose port refuses connections.
void Server::set_up(std::size_t number, bool up) {
  Node& node = *nodes_[number];
  if (up == node.acceptor.is_open()) return;
  if (up) {
    node.acceptor = tcp::acceptor(io_, node.address);
    tasks_.spawn(accept_loop(node));
    return;
  }
  asio::error_code ignored;
  node.acceptor.close(ignored);
  for (const Accepted& accepted : connections_) {
    const auto connection = accepted.connection.lock();
    if (connection && accepted.node == number) connection->cut();
  }
}

base::Task<void> Server::control_loop() {
  while (!stopping_.is_set()) {
    auto accepting = control_acceptor_.async_accept(kTuple);
    auto [error, socket] = co_await std::move(accepting);
    if (error) {
      if (!control_acceptor_.is_open()) break;
      continue;
    }
    auto shared = std::make_shared<tcp::socket>(std::move(socket));
    std::erase_if(control_connections_, [](const auto& weak) { return weak.expired(); });
    control_connections_.push_back(shared);
    tasks_.spawn(control_connection(shared));
  }
}

base::Task<void> Server::control_connection(std::shared_ptr<tcp::socket> socket) {
  std::string inbox;
  while (true) {
    auto reading = asio::async_read_until(*socket, asio::dynamic_buffer(inbox, 64 * 1024), '\n', kTuple);
    auto [error, size] = co_await std::move(reading);
    if (error) break;
    std::string line = inbox.substr(0, size - 1);
    inbox.erase(0, size);
    if (line.ends_with('\r')) line.pop_back();
    const std::string answer = control(line) + "\n";
    auto writing = asio::async_write(*socket, asio::buffer(answer), kTuple);
    auto [write_error, count] = co_await std::move(writing);
    if (write_error) break;
  }
}

base::Task<void> Server::tick_loop() {
  while (!stopping_.is_set()) {
    auto waiting = base::wait_until(*clock_, stopping_, clock_->now() + std::chrono::seconds(1));
    co_await std::move(waiting);
    broker_.tick();
  }
}

std::string Server::control(const std::string& line) {
  return run_control(line, ControlTarget{.broker = broker_,
                                         .faults = faults_,
                                         .nodes = cluster_,
                                         .resume = [this] { resumed_.pulse(); },
                                         .cut_all =
                                             [this] {
                                               std::size_t count = 0;
                                               for (const Accepted& accepted : connections_)
                                                 if (const auto connection = accepted.connection.lock()) {
                                                   connection->cut();
                                                   ++count;
                                                 }
                                               return count;
                                             },
                                         .set_up = [this](std::size_t node, bool up) { set_up(node, up); }});
}

iggy::ClusterMetadata Server::cluster() const {
  if (nodes_.size() > 1) {  // the same at every node, and of dead nodes as well
    iggy::ClusterMetadata metadata{.name = "sandbox", .nodes = {}};
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const tcp::endpoint& address = nodes_[i]->address;
      metadata.nodes.push_back({.name = "node-" + std::to_string(i + 1),
                                .ip = address.address().to_string(),
                                .tcp = address.port(),
                                .role = static_cast<std::uint8_t>(i == cluster_.leader() ? 0 : 1)});
    }
    return metadata;
  }
  iggy::ClusterNode node{.name = "iggy-node", .ip = {}, .tcp = address().port()};
  if (!options_.advertise.empty()) {
    const std::size_t colon = options_.advertise.rfind(':');
    node.ip = options_.advertise.substr(0, colon);
    node.tcp = static_cast<std::uint16_t>(std::stoul(options_.advertise.substr(colon + 1)));
  } else {
    node.ip = address().address().is_unspecified() ? "127.0.0.1" : address().address().to_string();
  }
  if (broker_.profile().dialect == iggy::Dialect::kLegacy) {  // the other default ports; nothing listens there
    node.quic = 8080;
    node.http = 3000;
    node.websocket = 8092;
  }
  return {.name = "single-node", .nodes = {std::move(node)}};
}

}  // namespace sandbox
