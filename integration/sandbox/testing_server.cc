#include "integration/sandbox/testing_server.h"

#include <future>
#include <stdexcept>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/vsr.h"

namespace sandbox {

TestingServer::TestingServer(std::string_view version, std::filesystem::path data, std::uint64_t segment_size,
                             const std::string& tls_certificate, const std::string& tls_key)
    : io_(std::make_unique<asio::io_context>(1)) {
  ServerOptions options;
  options.broker.profile = profile_for(version).value();
  options.broker.data = std::move(data);
  options.broker.log.segment_size = segment_size;
  options.tls_certificate = tls_certificate;
  options.tls_key = tls_key;
  options.broker.wall_micros = [this] {
    const std::uint64_t fixed = wall_micros_;
    return fixed != 0 ? fixed : base::system_wall_micros();
  };
  dialect_ = options.broker.profile.dialect;
  server_ = std::make_unique<Server>(*io_, options);
  port_ = server_->address().port();
  server_->start();
  thread_ = std::thread([this] { io_->run(); });
}

TestingServer::~TestingServer() { kill(); }

void TestingServer::join() {
  if (thread_.joinable()) thread_.join();
}

void TestingServer::stop() {
  asio::co_spawn(*io_, server_->stop(), asio::detached);
  join();
  server_.reset();
}

// Everything ends in an orderly way but for the log: what had not been saved is dropped with the folder's lock on it.
void TestingServer::kill() {
  if (!server_) return;
  asio::post(*io_, [this] { server_->abandon(); });
  asio::co_spawn(*io_, server_->stop(), asio::detached);
  join();
  server_.reset();
}

std::string TestingServer::control(const std::string& line) {
  std::promise<std::string> answer;
  asio::post(*io_, [&] { answer.set_value(server_->control(line)); });
  return answer.get_future().get();
}

iggy::ConnectionString TestingServer::url() const {
  iggy::ConnectionString out;
  out.hosts = {{"127.0.0.1", port_}};
  out.credentials = iggy::Password{"iggy", iggy::Secret("iggy")};
  out.dialect = dialect_;
  return out;
}

RawConnection::RawConnection(std::uint16_t port, iggy::Dialect dialect) : dialect_(dialect) {
  file_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(port);
  if (::connect(file_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) throw std::runtime_error("connect");
}
RawConnection::~RawConnection() { ::close(file_); }

bool RawConnection::write(base::ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return true;
}

bool RawConnection::read_exactly(std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::recv(file_, into.data(), into.size(), 0);
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

std::optional<base::Bytes> RawConnection::read_frame(std::chrono::milliseconds timeout) {
  pollfd waiting{file_, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(timeout.count())) != 1) return std::nullopt;
  const bool legacy = dialect_ == iggy::Dialect::kLegacy;
  base::Bytes frame(legacy ? iggy::legacy::kHeaderSize : iggy::vsr::kHeaderSize);
  if (!read_exactly(frame)) return std::nullopt;
  const std::size_t header = frame.size();
  frame.resize(legacy ? header + base::load<std::uint32_t>(frame.data() + 4)
                      : base::load<std::uint32_t>(frame.data() + 48));
  if (!read_exactly(std::span(frame).subspan(header))) return std::nullopt;
  return frame;
}

bool RawConnection::at_end() {
  pollfd waiting{file_, POLLIN, 0};
  std::byte one{};
  return ::poll(&waiting, 1, 5000) == 1 && ::recv(file_, &one, 1, 0) <= 0;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sandbox-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}
TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

}  // namespace sandbox
