// Two ends of a byte stream in memory, with a switch to cut it. What one end writes, the other reads, in order.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "iggy/transport.h"

namespace iggy::testing {

// One direction. `limit`: bytes that still get through before the direction is cut; what was let through can be read.
struct LoopbackPipe {
  explicit LoopbackPipe(asio::io_context& io) : changed(io) {}
  std::deque<std::byte> bytes;
  std::size_t limit = ~std::size_t{0};
  bool ended = false;  // nothing more will come
  base::Event changed;
};

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(std::shared_ptr<LoopbackPipe> in, std::shared_ptr<LoopbackPipe> out, std::string address)
      : in_(std::move(in)), out_(std::move(out)), address_(std::move(address)) {}
  ~LoopbackTransport() override { end(); }

  base::Task<base::Result<std::size_t>> read_some(std::span<std::byte> into) override {
    const auto pipe = in_;
    while (pipe->bytes.empty() && !pipe->ended) {
      auto waiting = pipe->changed.wait();
      co_await std::move(waiting);
    }
    const std::size_t count = std::min(into.size(), pipe->bytes.size());
    std::copy_n(pipe->bytes.begin(), count, into.begin());
    pipe->bytes.erase(pipe->bytes.begin(), pipe->bytes.begin() + static_cast<std::ptrdiff_t>(count));
    co_return count;
  }

  base::Task<base::Status> write(std::span<const base::ByteView> pieces) override {
    while (stalled_ && !out_->ended) {
      auto waiting = out_->changed.wait();
      co_await std::move(waiting);
    }
    for (const base::ByteView piece : pieces) {
      if (out_->ended) co_return base::Error(base::ErrorCode::kConnectionLost, "connection", "", "broken pipe");
      const std::size_t count = std::min(piece.size(), out_->limit);
      out_->bytes.insert(out_->bytes.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
      out_->limit -= count;
      if (out_->limit == 0) cut();
      out_->changed.pulse();
    }
    co_return base::ok();
  }

  void close() override { end(); }
  std::string local_address() const override { return address_; }

  // Ends both directions. What was written before can still be read, as on a socket.
  void cut() { end(); }
  // Lets `bytes` more of what this end writes through, then cuts.
  void cut_after(std::size_t bytes) {
    out_->limit = bytes;
    if (bytes == 0) cut();
  }
  // A full window: writes of this end wait until it is taken back, or until a cut.
  void stall_writes(bool stalled) {
    stalled_ = stalled;
    out_->changed.pulse();
  }

 private:
  void end() {
    in_->ended = out_->ended = true;
    in_->changed.pulse();
    out_->changed.pulse();
  }
  std::shared_ptr<LoopbackPipe> in_, out_;
  std::string address_;
  bool stalled_ = false;
};

// {client's end, server's end}
inline std::pair<std::unique_ptr<LoopbackTransport>, std::unique_ptr<LoopbackTransport>> make_loopback(
    asio::io_context& io) {
  auto up = std::make_shared<LoopbackPipe>(io);
  auto down = std::make_shared<LoopbackPipe>(io);
  return {std::make_unique<LoopbackTransport>(down, up, "127.0.0.1:50001"),
          std::make_unique<LoopbackTransport>(up, down, "127.0.0.1:8090")};
}

}  // namespace iggy::testing
