#include "integration/load/blocking_client.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/status.h"
#include "iggy/codec/vsr.h"

namespace load {
namespace {

namespace vsr = iggy::vsr;
using base::ErrorCode;

// Where a vsr request header carries who asks.
constexpr std::size_t kClientAt = 128, kRequestAt = 168, kSessionAt = 184;

base::Error lost(const std::string& operation) {
  return {ErrorCode::kConnectionLost, operation, "", std::strerror(errno)};
}

struct TlsDeleter {
  void operator()(SSL* tls) const { SSL_free(tls); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

}  // namespace

// Blocking, with a time-out on every read and write.
class BlockingClient::Socket {
 public:
  static base::Result<std::unique_ptr<Socket>> open(const iggy::HostPort& to, const iggy::TlsOptions& tls,
                                                    std::chrono::seconds timeout) {
    std::signal(SIGPIPE, SIG_IGN);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0)
      return base::Error(ErrorCode::kConnectFailed, "resolve", to.to_string(), "no such host");
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    auto out = std::make_unique<Socket>();
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
      const int file = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
      if (file < 0) continue;
      const timeval limit{timeout.count(), 0};
      const int on = 1;
      ::setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      ::setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (::connect(file, at->ai_addr, at->ai_addrlen) == 0) {
        out->file_ = file;
        break;
      }
      ::close(file);
    }
    if (out->file_ < 0) return base::Error(ErrorCode::kConnectFailed, "connect", to.to_string(), std::strerror(errno));
    if (tls.enabled && !out->start_tls(tls, to.host))
      return base::Error(ErrorCode::kConnectFailed, "TLS handshake", to.to_string(),
                         ERR_reason_error_string(ERR_get_error()) != nullptr ? "refused" : "failed");
    return out;
  }
  Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (file_ >= 0) ::close(file_);
  }

  bool read(std::span<std::byte> into) {
    while (!into.empty()) {
      const ssize_t got =
          tls_ ? SSL_read(tls_.get(), into.data(), static_cast<int>(std::min<std::size_t>(into.size(), 1U << 30U)))
               : ::recv(file_, into.data(), into.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) errno = ECONNRESET;
      if (got <= 0) return false;
      into = into.subspan(static_cast<std::size_t>(got));
    }
    return true;
  }
  bool write(base::ByteView bytes) {
    while (!bytes.empty()) {
      const ssize_t done =
          tls_ ? SSL_write(tls_.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1U << 30U)))
               : ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return true;
  }

 private:
  bool start_tls(const iggy::TlsOptions& options, const std::string& host) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    const bool roots = options.ca_file.empty()
                           ? SSL_CTX_set_default_verify_paths(context_.get()) == 1
                           : SSL_CTX_load_verify_locations(context_.get(), options.ca_file.c_str(), nullptr) == 1;
    if (!roots) return false;
    tls_.reset(SSL_new(context_.get()));
    const std::string& name = options.domain.empty() ? host : options.domain;
    SSL_set_tlsext_host_name(tls_.get(), name.c_str());
    X509_VERIFY_PARAM* verify = SSL_get0_param(tls_.get());
    if (X509_VERIFY_PARAM_set1_ip_asc(verify, name.c_str()) != 1) SSL_set1_host(tls_.get(), name.c_str());
    SSL_set_fd(tls_.get(), file_);
    return SSL_connect(tls_.get()) == 1;
  }

  int file_ = -1;
  std::unique_ptr<SSL_CTX, TlsDeleter> context_;
  std::unique_ptr<SSL, TlsDeleter> tls_;
};

BlockingClient::BlockingClient() {
  std::random_device random;
  client_ = {random() | 1ULL, static_cast<std::uint64_t>(random()) << 32U | random()};
}
BlockingClient::BlockingClient(BlockingClient&&) noexcept = default;
BlockingClient& BlockingClient::operator=(BlockingClient&&) noexcept = default;
BlockingClient::~BlockingClient() = default;
iggy::Dialect BlockingClient::dialect() const { return dialect_; }

base::Result<BlockingClient> BlockingClient::connect(const iggy::ConnectionString& target,
                                                     std::chrono::seconds timeout) {
  base::Error last(ErrorCode::kInvalidArgument, "connect", "", "no host");
  for (const iggy::HostPort& host : target.hosts) {
    BlockingClient client;
    auto socket = Socket::open(host, target.tls, timeout);
    if (!socket) {
      last = socket.error();
      continue;
    }
    if (target.dialect) {
      client.dialect_ = *target.dialect;
    } else {
      // A vsr ping: eight bytes `status 3` come from 0.8, a 256-byte frame from 0.9.
      const auto ping = vsr::encode_request(iggy::Ping{}, {.client = client.client_, .session = 0, .request = 1});
      std::array<std::byte, 8> answer{};
      if (!(*socket)->write(*ping) || !(*socket)->read(answer)) {
        last = lost("probe");
        continue;
      }
      client.dialect_ = base::load<std::uint64_t>(answer.data()) == 3 ? iggy::Dialect::kLegacy : iggy::Dialect::kVsr11;
      socket = Socket::open(host, target.tls, timeout);
      if (!socket) {
        last = socket.error();
        continue;
      }
    }
    client.socket_ = std::move(*socket);
    if (base::Status logged_in = client.log_in(target.credentials); !logged_in) return logged_in.error();
    return client;
  }
  return last;
}

base::Status BlockingClient::log_in(const iggy::Credentials& credentials) {
  iggy::Request request;
  if (const auto* password = std::get_if<iggy::Password>(&credentials)) {
    request = iggy::LoginUser{.username = password->username,
                              .password = password->password.reveal(),
                              .client_name = "iggy-load",
                              .client_version = "0.1.0",
                              .context = {}};
  } else {
    request = iggy::LoginToken{.token = std::get<iggy::AccessTokenSecret>(credentials).token.reveal(),
                               .client_name = "iggy-load",
                               .client_version = "0.1.0",
                               .context = {}};
  }
  auto reply = call(request);
  if (!reply) return reply.error();
  session_ = std::get<iggy::LoggedIn>(*reply).session;
  return base::ok();
}

base::Result<iggy::Reply> BlockingClient::call(const iggy::Request& request) {
  base::Result<base::Bytes> frame = base::Bytes{};
  if (dialect_ == iggy::Dialect::kLegacy) {
    frame = iggy::legacy::encode_request(request);
  } else {
    const bool login = vsr::operation_of(request) == vsr::Operation::kRegister;
    frame = vsr::encode_request(
        request, {.client = client_, .session = login ? 0 : session_, .request = login ? 0 : ++last_request_});
    if (login) last_request_ = 0;
  }
  if (!frame) return frame.error();
  if (!socket_->write(*frame)) return lost(std::string(iggy::name_of(request)));
  return receive(request, last_request_);
}

base::Result<iggy::SendConfirmed> BlockingClient::send(iggy::OutgoingSend& frame) {
  if (dialect_ != iggy::Dialect::kLegacy) {
    base::store(frame.scratch.data() + kClientAt, client_.low);
    base::store(frame.scratch.data() + kClientAt + 8, client_.high);
    base::store(frame.scratch.data() + kRequestAt, ++last_request_);
    base::store(frame.scratch.data() + kSessionAt, session_);
  }
  for (base::ByteView piece : frame.pieces)
    if (!socket_->write(piece)) return base::Error(ErrorCode::kUncertain, "send_messages", "", std::strerror(errno));
  auto reply = receive(iggy::SendMessages{}, last_request_);
  if (!reply) {
    if (reply.error().code() == ErrorCode::kConnectionLost)
      return base::Error(ErrorCode::kUncertain, "send_messages", "", reply.error().message());
    return reply.error();
  }
  return std::get<iggy::SendConfirmed>(*reply);
}

base::Result<iggy::Reply> BlockingClient::receive(const iggy::Request& request, std::uint64_t number) {
  const std::string operation(iggy::name_of(request));
  if (dialect_ == iggy::Dialect::kLegacy) {
    std::array<std::byte, iggy::legacy::kHeaderSize> bytes{};
    if (!socket_->read(bytes)) return lost(operation);
    const auto header = iggy::legacy::read_reply_header(bytes);
    if (header.status != 0) return iggy::error_of_status(header.status, operation);
    auto payload = std::make_shared<base::Buffer>(header.length);
    if (!socket_->read(payload->writable())) return lost(operation);
    if (std::holds_alternative<iggy::SendMessages>(request)) return iggy::Reply(iggy::SendConfirmed{});
    return iggy::legacy::decode_reply(request, payload->view(), payload);
  }
  while (true) {
    std::array<std::byte, vsr::kHeaderSize> bytes{};
    if (!socket_->read(bytes)) return lost(operation);
    const auto header = vsr::read_reply_header(bytes);
    if (!header) return header.error();
    if (const auto* eviction = std::get_if<vsr::Eviction>(&*header))
      return iggy::error_of_status(vsr::status_of_eviction(eviction->reason), operation);
    const auto& reply = std::get<vsr::ReplyHeader>(*header);
    auto body = std::make_shared<base::Buffer>(reply.size - vsr::kHeaderSize);
    if (!socket_->read(body->writable())) return lost(operation);
    if (reply.request != number) continue;  // of a request that we gave up on
    return vsr::decode_reply(request, reply, body->view(), body, true);
  }
}

}  // namespace load
