// Test helper: a sandbox on a thread of its own, and raw blocking connections to it.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/bytes.h"
#include "iggy/connection_string.h"
#include "integration/sandbox/server.h"

namespace sandbox {

class TestingServer {
 public:
  // `data` empty: in memory.
  explicit TestingServer(std::string_view version, std::filesystem::path data = {},
                         std::uint64_t segment_size = kDefaultSegmentSize, const std::string& tls_certificate = {},
                         const std::string& tls_key = {});
  TestingServer(const TestingServer&) = delete;
  TestingServer& operator=(const TestingServer&) = delete;
  ~TestingServer();  // as a kill: nothing more is saved

  void stop();  // orderly
  void kill();  // as SIGKILL
  std::uint16_t port() const { return port_; }
  std::string control(const std::string& line);  // on the server's thread
  iggy::ConnectionString url() const;
  iggy::Dialect dialect() const { return dialect_; }
  // Wall clock of the server from now on, µs since the epoch; 0 = the system's.
  void set_wall_micros(std::uint64_t micros) { wall_micros_ = micros; }

 private:
  void join();
  std::unique_ptr<asio::io_context> io_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::uint16_t port_ = 0;
  iggy::Dialect dialect_ = iggy::Dialect::kLegacy;
  std::atomic<std::uint64_t> wall_micros_ = 0;
};

// A blocking socket that cuts replies; every wait ends after some seconds.
class RawConnection {
 public:
  RawConnection(std::uint16_t port, iggy::Dialect dialect);
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection();
  bool write(base::ByteView bytes);  // false when the server has closed
  // One whole frame; nullopt at the end of the connection or when none came in time.
  std::optional<base::Bytes> read_frame(std::chrono::milliseconds timeout = std::chrono::seconds(5));
  // Nothing more came, and the server closed.
  bool at_end();

 private:
  bool read_exactly(std::span<std::byte> into);
  int file_ = -1;
  iggy::Dialect dialect_;
};

// A fresh folder, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sandbox
