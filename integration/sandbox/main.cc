// iggy-sandbox: an Iggy-compatible test broker. It is not Apache Iggy.
#include <filesystem>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <asio/co_spawn.hpp>
#include <asio/signal_set.hpp>
#include <fmt/format.h>

#include "integration/sandbox/server.h"

namespace {

constexpr const char* kAbout =
    "iggy-sandbox: a test broker that answers like an Apache Iggy server of the chosen version.\n"
    "It is NOT Apache Iggy: for demos and tests only, no guarantee for data. Faults on command: see its README.";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kAbout);
  sandbox::ServerOptions options;
  std::string server = "0.9.0";
  std::string data, port_file;
  std::uint64_t cleaner_seconds = 0;
  app.add_option("--server", server, "version to imitate: 0.8.0, 0.9.0-edge.5, 0.9.0 (unverified)")
      ->capture_default_str();
  app.add_option("--listen", options.listen, "address:port of the broker; port 0 = any")->capture_default_str();
  app.add_option("--control", options.control, "address:port of the control port")->capture_default_str();
  app.add_option("--advertise", options.advertise, "host:port that get_cluster_metadata names");
  app.add_option("--nodes", options.nodes, "addresses of one cluster; 0.9 only, all but the first on any port");
  app.add_option("--data", data, "data folder; without it everything is in memory");
  app.add_option("--username", options.broker.username)->capture_default_str();
  app.add_option("--password", options.broker.password)->capture_default_str();
  app.add_option("--tls-cert", options.tls_certificate, "PEM file; the port then speaks only TLS");
  app.add_option("--tls-key", options.tls_key, "PEM file");
  app.add_option("--port-file", port_file, "write 'tcp control' ports there when ready");
  app.add_option("--segment-size", options.broker.log.segment_size, "bytes; 0.8.0 only, topics of 0.9 have an option")
      ->capture_default_str();
  app.add_option("--messages-required-to-save", options.broker.log.messages_to_save, "0.8.0 only")
      ->capture_default_str();
  app.add_option("--bytes-required-to-save", options.broker.log.bytes_to_save, "0.8.0 only")->capture_default_str();
  app.add_flag("--enforce-fsync", options.broker.log.fsync, "0.8.0 only");
  app.add_option("--cleaner-interval", cleaner_seconds, "seconds between retention runs; 0 = as the server's default");
  CLI11_PARSE(app, argc, argv);

  const auto profile = sandbox::profile_for(server);
  if (!profile) {
    std::cerr << "iggy-sandbox: no such server version: " << server << "\n";
    return 2;
  }
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    std::cerr << "iggy-sandbox: --tls-cert and --tls-key belong together\n";
    return 2;
  }
  options.broker.profile = *profile;
  options.broker.data = data;
  if (cleaner_seconds != 0) options.broker.profile.cleaner_interval = std::chrono::seconds(cleaner_seconds);

  try {
    if (!port_file.empty()) std::filesystem::remove(port_file);  // of an earlier run
    asio::io_context io(1);
    sandbox::Server broker(io, options);
    broker.start();
    asio::signal_set signals(io, SIGTERM, SIGINT);
    signals.async_wait([&](const asio::error_code& error, int) {
      if (error) return;
      asio::co_spawn(io, broker.stop(), [&io](const std::exception_ptr&) { io.stop(); });
    });
    std::cerr << "iggy-sandbox (not Apache Iggy) imitating server " << server << "\n";
    if (!port_file.empty()) {
      std::ofstream ports(port_file + ".new");
      ports << broker.address().port() << " " << broker.control_address().port();
      for (std::size_t i = 1; i < options.nodes; ++i) ports << " " << broker.address(i).port();
      ports << "\n";
      ports.close();
      std::filesystem::rename(port_file + ".new", port_file);
    }
    std::cout << fmt::format("listening tcp={}:{} control={}:{} server={} data={}",
                             broker.address().address().to_string(), broker.address().port(),
                             broker.control_address().address().to_string(), broker.control_address().port(), server,
                             data.empty() ? "memory" : data)
              << std::endl;
    io.run();
  } catch (const std::exception& failure) {
    std::cerr << "iggy-sandbox: " << failure.what() << "\n";
    return 1;
  }
  return 0;
}
