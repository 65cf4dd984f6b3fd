#include "iggy/tcp_transport.h"

#include <optional>
#include <utility>
#include <vector>

#include <asio/experimental/as_tuple.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl.hpp>
#include <asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "iggy/certificate.h"
#include "iggy/stream_transport.h"
#include "iggy/with_deadline.h"

namespace iggy {
namespace {

using asio::ip::tcp;
constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);
using TlsStream = asio::ssl::stream<tcp::socket>;

base::Error connect_failed(const HostPort& host, std::string message, std::string hint = {}) {
  return {base::ErrorCode::kConnectFailed, "connect", host.to_string(), std::move(message), std::move(hint)};
}

// Failures are ignored: the connection works without, only less promptly.
void tune(tcp::socket& socket) {
  const int fd = socket.native_handle();
  const auto set = [fd](int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof(value)); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMillis);
}

class TcpConnector final : public Connector {
 public:
  TcpConnector(asio::io_context& io, base::Clock& clock, TlsOptions tls)
      : io_(io), clock_(clock), tls_(std::move(tls)) {}

  base::Task<base::Result<std::unique_ptr<Transport>>> connect(HostPort host, base::TimePoint deadline) override {
    std::optional<asio::ssl::context> context;
    if (tls_.enabled) {
      auto made = tls_context();
      CO_RETURN_IF_ERROR(made);
      context = *std::move(made);
    }
    auto resolving = resolve(host, deadline);
    auto endpoints = co_await std::move(resolving);
    CO_RETURN_IF_ERROR(endpoints);

    base::Error last = connect_failed(host, "the name has no address");
    std::optional<tcp::socket> socket;
    for (std::size_t i = 0; i < endpoints->size() && !socket; ++i) {
      const base::TimePoint now = clock_.now();
      const auto share = (deadline - now) / static_cast<std::int64_t>(endpoints->size() - i);
      auto limited = with_deadline(clock_, now + share, open(host, (*endpoints)[i]),
                                   connect_failed(host, "no answer to the connection request"));
      auto opened = co_await std::move(limited);
      if (opened) {
        socket = *std::move(opened);
      } else {
        last = std::move(opened).error();
      }
    }
    if (!socket) co_return last;
    if (!context) {
      co_return std::make_unique<StreamTransport<tcp::socket>>(*std::move(socket));
    }
    auto limited = with_deadline(
        clock_, deadline, handshake(host, *std::move(socket), *std::move(context)),
        connect_failed(host, "the TLS handshake was not answered", "is it a TLS port? without TLS: remove tls=true"));
    auto secured = co_await std::move(limited);
    co_return secured;
  }

 private:
  base::Result<asio::ssl::context> tls_context() const {
    asio::ssl::context context(asio::ssl::context::tls_client);
    asio::error_code error;
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    context.set_verify_mode(asio::ssl::verify_peer, error);
    if (tls_.ca_file.empty()) {
      context.set_default_verify_paths(error);
    } else {
      context.load_verify_file(tls_.ca_file, error);
    }
    if (error) {
      return base::Error(base::ErrorCode::kInvalidArgument, "connect", "",
                         fmt::format("the CA file '{}' can't be read: {}", tls_.ca_file, error.message()),
                         "tls_ca_file must name a PEM file");
    }
    return context;
  }

  // getaddrinfo can't be interrupted: a look-up that takes too long is left to itself, and its result thrown away.
  base::Task<base::Result<std::vector<tcp::endpoint>>> resolve(HostPort host, base::TimePoint deadline) {
    asio::error_code not_numeric;
    const auto address = asio::ip::make_address(host.host, not_numeric);
    if (!not_numeric) co_return std::vector<tcp::endpoint>{{address, host.port}};

    struct Lookup {
      explicit Lookup(asio::io_context& io) : resolver(io), done(io) {}
      tcp::resolver resolver;
      base::Event done;
      asio::error_code error;
      std::vector<tcp::endpoint> endpoints;
    };
    const auto lookup = std::make_shared<Lookup>(io_);
    lookup->resolver.async_resolve(host.host, std::to_string(host.port), tcp::resolver::numeric_service,
                                   [lookup](const asio::error_code& error, const tcp::resolver::results_type& results) {
                                     lookup->error = error;
                                     for (const auto& entry : results) lookup->endpoints.push_back(entry.endpoint());
                                     lookup->done.set();
                                   });
    auto waiting = base::wait_until(clock_, lookup->done, deadline);
    co_await std::move(waiting);
    if (!lookup->done.is_set())
      co_return connect_failed(host, "the name could not be resolved in time",
                               "check the host name and the name server");
    if (lookup->error) {
      co_return connect_failed(host, fmt::format("the name can't be resolved: {}", lookup->error.message()),
                               "check the host name");
    }
    co_return std::move(lookup->endpoints);
  }

  // An optional, because a socket has no empty state for with_deadline() to start from.
  base::Task<base::Result<std::optional<tcp::socket>>> open(HostPort host, tcp::endpoint endpoint) {
    tcp::socket socket(io_);
    auto connecting = socket.async_connect(endpoint, kAwait);
    const auto [error] = co_await std::move(connecting);
    if (error == asio::error::connection_refused)
      co_return connect_failed(host, "connection refused", "is the server running, and is the port right?");
    if (error) co_return connect_failed(host, error.message());
    tune(socket);
    co_return std::optional<tcp::socket>(std::move(socket));
  }

  base::Task<base::Result<std::unique_ptr<Transport>>> handshake(HostPort host, tcp::socket socket,
                                                                 asio::ssl::context context) {
    TlsStream stream(std::move(socket), context);
    const std::string& domain = tls_.domain.empty() ? host.host : tls_.domain;
    SSL* ssl = stream.native_handle();
    X509_VERIFY_PARAM* verify = SSL_get0_param(ssl);
    asio::error_code not_numeric;
    asio::ip::make_address(domain, not_numeric);
    if (not_numeric) {
      SSL_set_tlsext_host_name(ssl, domain.c_str());
      X509_VERIFY_PARAM_set1_host(verify, domain.c_str(), domain.size());
    } else {
      X509_VERIFY_PARAM_set1_ip_asc(verify, domain.c_str());
    }
    auto shaking = stream.async_handshake(asio::ssl::stream_base::client, kAwait);
    const auto [error] = co_await std::move(shaking);
    if (error) co_return handshake_error(host, domain, error, SSL_get_verify_result(ssl));
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl), X509_free);
    const auto ends = end_of(certificate.get());
    co_return std::make_unique<StreamTransport<TlsStream>>(std::move(stream), ends);
  }

  base::Error handshake_error(const HostPort& host, const std::string& domain, const asio::error_code& error,
                              long verify) const {
    if (verify == X509_V_ERR_HOSTNAME_MISMATCH || verify == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      return connect_failed(host, fmt::format("the server's certificate is not for '{}'", domain),
                            "set tls_domain to a name that the certificate carries")
          .with_retry(base::Retry::kNeedsOperator);
    }
    if (verify == X509_V_ERR_CERT_HAS_EXPIRED || verify == X509_V_ERR_CERT_NOT_YET_VALID) {
      return connect_failed(host,
                            fmt::format("the server's certificate {}",
                                        verify == X509_V_ERR_CERT_HAS_EXPIRED ? "has expired" : "is not valid yet"),
                            "renew it at the server; is the clock of this machine right?")
          .with_retry(base::Retry::kNeedsOperator);
    }
    if (verify != X509_V_OK) {
      return connect_failed(
                 host,
                 fmt::format("the server's certificate is not trusted: {}", X509_verify_cert_error_string(verify)),
                 tls_.ca_file.empty() ? "set tls_ca_file to the authority's PEM file"
                                      : "tls_ca_file must hold the authority that signed it")
          .with_retry(base::Retry::kNeedsOperator);
    }
    // A 0.8 server answers with its own frames, a 0.9 server resets. Observed: iggy-server 0.8.0, 0.9.0-edge.5.
    base::Error failed = connect_failed(host, fmt::format("the TLS handshake failed: {}", error.message()),
                                        "the port probably does not speak TLS; then remove tls=true");
    if (error.category() == asio::error::get_ssl_category()) failed.with_retry(base::Retry::kNeedsOperator);
    return failed;
  }

  asio::io_context& io_;
  base::Clock& clock_;
  TlsOptions tls_;
};

}  // namespace

std::unique_ptr<Connector> tcp_connector(asio::io_context& io, base::Clock& clock, TlsOptions tls) {
  return std::make_unique<TcpConnector>(io, clock, std::move(tls));
}

}  // namespace iggy
