// The listening side of the sandbox: accepts connections, runs their sessions on one broker, obeys the control port.
//
// Affinity: one io_context with one thread; start() and stop() on it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>

#include "base/clock.h"
#include "base/task.h"
#include "integration/sandbox/connection.h"

namespace sandbox {

struct ServerOptions {
  BrokerOptions broker;
  std::string listen = "127.0.0.1:0";
  std::string control = "127.0.0.1:0";
  std::string advertise;                 // "host:port" in get_cluster_metadata; empty = the listening address
  std::string tls_certificate, tls_key;  // PEM files; both or none
  std::size_t nodes = 1;                 // of a cluster; the second and all further ones listen on any port
};

class Server {
 public:
  // Binds both ports. Throws std::system_error when that, the data folder or a certificate fails.
  Server(asio::io_context& io, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  void start();
  // Orderly: last words to every connection, end of all of them, everything saved.
  base::Task<void> stop();
  // The next stop() saves nothing, as if the process had been killed. For tests in one process.
  void abandon() { abandoned_ = true; }

  asio::ip::tcp::endpoint address(std::size_t node = 0) const { return nodes_[node]->address; }
  asio::ip::tcp::endpoint control_address() const { return control_acceptor_.local_endpoint(); }
  Broker& broker() { return broker_; }
  Faults& faults() { return faults_; }

  // Executes one line of the control port and gives its one line of answer.
  std::string control(const std::string& line);

 private:
  struct Node {
    Node(asio::io_context& io, const asio::ip::tcp::endpoint& listen, Services shared)
        : services(std::move(shared)), acceptor(io, listen), address(acceptor.local_endpoint()) {}
    Services services;
    asio::ip::tcp::acceptor acceptor;  // closed while the node is down
    asio::ip::tcp::endpoint address;
  };
  struct Accepted {
    std::size_t node = 0;
    std::weak_ptr<Connection> connection;
  };
  base::Task<void> accept_loop(Node& node);
  void set_up(std::size_t node, bool up);
  base::Task<void> control_loop();
  base::Task<void> control_connection(std::shared_ptr<asio::ip::tcp::socket> socket);
  base::Task<void> tick_loop();
  iggy::ClusterMetadata cluster() const;

  asio::io_context& io_;
  ServerOptions options_;
  std::unique_ptr<base::Clock> clock_;
  std::optional<asio::ssl::context> tls_;
  Broker broker_;
  Faults faults_;
  Cluster cluster_;
  base::Event resumed_;
  base::Event stopping_;
  std::vector<std::unique_ptr<Node>> nodes_;
  asio::ip::tcp::acceptor control_acceptor_;
  std::vector<Accepted> connections_;
  std::vector<std::weak_ptr<asio::ip::tcp::socket>> control_connections_;
  base::TaskGroup tasks_;
  bool abandoned_ = false;
};

}  // namespace sandbox
