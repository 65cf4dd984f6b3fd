// Goal: what only sockets show: resolving, refusing, TLS with its certificates, and errors a person can act on.
// Method: the real client against TinyServers on ports of the system's choice in the same thread; the certificates are
// made by the openssl command line for this run.
#include "iggy/tcp_transport.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/testing/run_until_done.h"
#include "iggy/client.h"
#include "iggy/testing/listener.h"
#include "iggy/testing/tiny_server.h"

namespace iggy {
namespace {

using base::Task;
using testing::Listener;
using testing::TinyServer;
using enum base::ErrorCode;

// An authority, a server certificate for localhost and 127.0.0.1 signed by it, and an authority that signed nothing.
class Certificates {
 public:
  Certificates() {
    std::string pattern = (std::filesystem::temp_directory_path() / "iggy-tls-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(folder_ / "names") << "subjectAltName=DNS:localhost,DNS:broker.example,IP:127.0.0.1\n";
    const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes ";
    run("req -x509" + key + "-keyout ca.key -out ca.pem -subj /CN=authority -days 2");
    run("req -x509" + key + "-keyout other.key -out other.pem -subj /CN=other -days 2");
    run("req" + key + "-keyout key.pem -out request.pem -subj /CN=localhost");
    run("x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem");
  }
  ~Certificates() { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  bool complete() const { return complete_; }

 private:
  void run(const std::string& arguments) {
    const std::string command = "cd '" + folder_.string() + "' && openssl " + arguments + " 2>/dev/null";
    complete_ = std::system(command.c_str()) == 0 && complete_;
  }
  std::filesystem::path folder_;
  bool complete_ = true;
};

const Certificates& certificates() {
  static const Certificates made;
  EXPECT_TRUE(made.complete()) << "the openssl command line is needed";
  return made;
}

Task<void> accept_all(Listener& listener, TinyServer& server) {
  while (true) {
    auto accepting = listener.accept();
    auto transport = co_await std::move(accepting);
    if (transport) {
      server.serve(*std::move(transport));
    } else if (transport.error().code() == kStopped) {
      co_return;
    }
  }
}

struct Bench {
  explicit Bench(Dialect dialect, bool tls = false)
      : server(io, dialect),
        listener(tls ? std::make_unique<Listener>(io, certificates().path("cert.pem"), certificates().path("key.pem"))
                     : std::make_unique<Listener>(io)) {
    tasks.spawn(accept_all(*listener, server));
  }
  ~Bench() {
    listener->close();
    run(server.close());
    run(tasks.close());
  }
  template <class T>
  T run(Task<T> task) {
    return base::testing::run_until_done(io, std::move(task));
  }
  std::string at(std::string_view host, std::string_view options = "") const {
    return "iggy://iggy:hunter2@" + std::string(host) + ":" + std::to_string(listener->port()) + std::string(options);
  }
  base::Result<ServerIdentity> connect(const std::string& target, base::Duration limit = std::chrono::seconds(5)) {
    const auto parsed = parse_connection_string(target);
    EXPECT_TRUE(parsed.has_value()) << target;
    ClientOptions options;
    options.connect_timeout = limit;
    auto client = make_client(io, *clock, *parsed, options);
    const auto start = clock->now();
    auto identity = run(client->connect());
    took = clock->now() - start;
    run(client->close());
    return identity;
  }
  // `words` must be in the error.
  void expect_error(const base::Result<ServerIdentity>& identity, base::ErrorCode code,
                    std::initializer_list<std::string_view> words) {
    ASSERT_FALSE(identity.has_value());
    const std::string text = identity.error().to_string();
    EXPECT_EQ(identity.error().code(), code) << text;
    for (const std::string_view word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  }

  asio::io_context io;
  std::unique_ptr<base::Clock> clock = base::system_clock(io);
  base::TaskGroup tasks{io};
  TinyServer server;
  std::unique_ptr<Listener> listener;
  base::Duration took{};
};

std::string ca(const char* file, std::string_view more = "") {
  return "?tls=true&tls_ca_file=" + certificates().path(file) + std::string(more);
}

TEST(TcpTransport, ConnectsByAddressAndByName) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    Bench bench(dialect);
    for (const std::string_view host : {"127.0.0.1", "localhost"}) {
      const auto identity = bench.connect(bench.at(host));
      ASSERT_TRUE(identity.has_value()) << identity.error().to_string();
      EXPECT_EQ(identity->dialect, dialect);
    }
  }
}

TEST(TcpTransport, TlsWithAPrivateAuthority) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    Bench bench(dialect, true);
    for (const auto& target : {bench.at("localhost", ca("ca.pem")), bench.at("127.0.0.1", ca("ca.pem")),
                               bench.at("127.0.0.1", ca("ca.pem", "&tls_domain=broker.example"))}) {
      const auto identity = bench.connect(target);
      ASSERT_TRUE(identity.has_value()) << identity.error().to_string();
      EXPECT_EQ(identity->dialect, dialect);
    }
  }
}

TEST(TcpTransport, AWrongAuthorityFailsAtOnce) {
  Bench bench(Dialect::kVsr11, true);
  const auto identity = bench.connect(bench.at("localhost", ca("other.pem")));
  bench.expect_error(identity, kConnectFailed, {"certificate is not trusted", "tls_ca_file"});
  EXPECT_EQ(identity.error().retry(), base::Retry::kNeedsOperator);
  EXPECT_LT(bench.took, std::chrono::seconds(2));
  bench.expect_error(bench.connect(bench.at("localhost", "?tls=true")), kConnectFailed,
                     {"certificate is not trusted", "set tls_ca_file"});
}

TEST(TcpTransport, AWrongDomainFailsAtOnce) {
  Bench bench(Dialect::kVsr11, true);
  const auto identity = bench.connect(bench.at("localhost", ca("ca.pem", "&tls_domain=elsewhere.example")));
  bench.expect_error(identity, kConnectFailed, {"not for 'elsewhere.example'", "tls_domain"});
  EXPECT_EQ(identity.error().retry(), base::Retry::kNeedsOperator);
  EXPECT_LT(bench.took, std::chrono::seconds(2));
  bench.expect_error(bench.connect(bench.at("127.0.0.1", ca("ca.pem", "&tls_domain=127.0.0.2"))), kConnectFailed,
                     {"not for '127.0.0.2'"});
}

TEST(TcpTransport, AnUnreadableAuthorityFileIsNamed) {
  Bench bench(Dialect::kVsr11, true);
  bench.expect_error(bench.connect(bench.at("localhost", ca("missing.pem"))), kInvalidArgument, {"missing.pem"});
}

TEST(TcpTransport, TlsOnAPlainPortIsSaid) {
  Bench bench(Dialect::kLegacy);
  bench.expect_error(bench.connect(bench.at("localhost", ca("ca.pem"))), kConnectFailed,
                     {"TLS handshake failed", "remove tls=true"});
}

// What the test server's TLS does with plain bytes (an alert, then the end) is answered alike.
TEST(TcpTransport, NoTlsOnATlsPortIsSaid) {
  Bench bench(Dialect::kVsr11, true);
  bench.expect_error(bench.connect(bench.at("localhost")), kNotIggy, {"TLS", "tls=true"});
}

TEST(TcpTransport, AClosedPort) {
  Bench bench(Dialect::kVsr11);
  const std::string target = bench.at("127.0.0.1");
  bench.listener->close();
  bench.expect_error(bench.connect(target), kConnectFailed, {"connection refused", "is the server running"});
}

TEST(TcpTransport, AnUnresolvableHost) {
  Bench bench(Dialect::kVsr11);
  bench.expect_error(bench.connect("iggy://iggy:hunter2@no-such-host.invalid:8090"), kConnectFailed,
                     {"no-such-host.invalid", "name"});
}

TEST(TcpTransport, ASilentPortAndASilentTlsPort) {
  asio::io_context other;
  const Listener silent(other);  // the kernel accepts, nobody reads
  Bench bench(Dialect::kVsr11);
  const std::string target = "iggy://iggy:hunter2@127.0.0.1:" + std::to_string(silent.port());
  const auto limit = std::chrono::milliseconds(300);
  bench.expect_error(bench.connect(target, limit), kTimeout, {"does not answer"});
  EXPECT_LT(bench.took, std::chrono::seconds(3));
  bench.expect_error(bench.connect(target + ca("ca.pem"), limit), kConnectFailed, {"TLS handshake was not answered"});
}

TEST(TcpTransport, ALargeFrameOfManyPiecesArrivesWholeAndInOrder) {
  for (const bool tls : {false, true}) {
    Bench bench(Dialect::kVsr11, tls);
    std::vector<std::string> bodies;
    bool same = false;
    bench.server.on_request = [&](const Request& request) -> std::optional<TinyServer::Answer> {
      if (const auto* send = std::get_if<SendMessages>(&request)) {
        same = send->records.size() == bodies.size();
        for (std::size_t i = 0; same && i < bodies.size(); ++i)
          same = base::as_text(send->records[i].payload()) == bodies[i];
      }
      return std::nullopt;
    };
    std::vector<base::Record> records;
    for (int i = 0; i < 300; ++i)
      bodies.emplace_back(10'000 + static_cast<std::size_t>(i), static_cast<char>('a' + i % 26));
    for (const std::string& body : bodies) {
      base::Record record;
      record.origin_timestamp = 1;
      record.payload_length = static_cast<std::uint32_t>(body.size());
      record.body = base::as_bytes(body);
      records.push_back(record);
    }
    auto frame = encode_send(Dialect::kVsr11, {"s", "t"}, 0, records);
    ASSERT_TRUE(frame.has_value());
    EXPECT_GT(frame->pieces.size(), 64U) << "more than one writev takes";
    const auto target = parse_connection_string(bench.at("localhost", tls ? ca("ca.pem") : ""));
    auto client = make_client(bench.io, *bench.clock, *target, {});
    const auto ack = bench.run(client->send({"s", "t"}, 0, *std::move(frame), 300, 0, nullptr));
    ASSERT_TRUE(ack.has_value()) << ack.error().to_string();
    EXPECT_EQ(ack->end, 310U);
    EXPECT_TRUE(same);
    bench.run(client->close());
  }
}

}  // namespace
}  // namespace iggy
