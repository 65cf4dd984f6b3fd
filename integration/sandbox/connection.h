// One accepted connection: a reader that feeds whole frames to the session, and a writer that sends its answers.
// Destroyed when both have ended.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/task.h"
#include "integration/sandbox/byte_stream.h"
#include "integration/sandbox/session.h"

namespace sandbox {

class Connection final : public Wire, public std::enable_shared_from_this<Connection> {
 public:
  // `resumed` is pulsed when `services.faults.paused` ends. All references must outlive the connection.
  Connection(asio::io_context& io, base::Clock& clock, Services& services, base::Event& resumed,
             std::unique_ptr<ByteStream> stream, std::string peer);

  // Both run once, until the connection ends.
  static base::Task<void> read_loop(std::shared_ptr<Connection> self);
  static base::Task<void> write_loop(std::shared_ptr<Connection> self);

  void goodbye();  // last words, then an orderly end

  // Wire
  void answer(base::Bytes head, std::vector<Chunk> chunks) override;
  void unread(base::ByteView bytes) override;
  void close() override;
  void cut() override;
  void hang() override { hanging_ = true; }

 private:
  struct Outgoing {
    base::TimePoint due;
    base::Bytes head;
    std::vector<Chunk> chunks;
    std::size_t size = 0;
  };
  base::Task<bool> read_exactly(std::span<std::byte> into);
  base::Task<void> wait_while_paused();

  base::Clock& clock_;
  Services& services_;
  base::Event& resumed_;
  std::unique_ptr<ByteStream> stream_;
  std::string peer_;
  std::unique_ptr<Session> session_;
  base::Bytes inbox_;            // read ahead
  std::size_t inbox_start_ = 0;  // first byte of it that was not consumed
  std::deque<Outgoing> queue_;
  std::size_t queued_bytes_ = 0;
  base::Event queue_changed_;  // something to write, or the end
  base::Event queue_drained_;
  bool closing_ = false;
  bool closed_ = false;
  bool hanging_ = false;
};

}  // namespace sandbox
