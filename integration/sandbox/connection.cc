#include "integration/sandbox/connection.h"

#include <algorithm>
#include <utility>

namespace sandbox {
namespace {

constexpr std::size_t kReadAhead = 64 * 1024;
// A client that does not read its answers is not read either.
constexpr std::size_t kMaxQueuedBytes = 64 * kMiB;
constexpr std::size_t kMaxQueued = 4096;
constexpr std::size_t kMaxPiecesPerWrite = 64;

}  // namespace

Connection::Connection(asio::io_context& io, base::Clock& clock, Services& services, base::Event& resumed,
                       std::unique_ptr<ByteStream> stream, std::string peer)
    : clock_(clock),
      services_(services),
      resumed_(resumed),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      queue_changed_(io),
      queue_drained_(io) {}

base::Task<bool> Connection::read_exactly(std::span<std::byte> into) {
  while (!into.empty()) {
    if (inbox_start_ == inbox_.size()) {
      if (into.size() >= kReadAhead) {  // large bodies go where they belong
        auto reading = stream_->read_some(into);
        const std::size_t direct = co_await std::move(reading);
        if (direct == 0) co_return false;
        into = into.subspan(direct);
        continue;
      }
      inbox_.resize(kReadAhead);
      inbox_start_ = 0;
      auto reading = stream_->read_some(inbox_);
      const std::size_t count = co_await std::move(reading);
      inbox_.resize(count);
      if (count == 0) co_return false;
    }
    const std::size_t count = std::min(into.size(), inbox_.size() - inbox_start_);
    std::copy_n(inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_start_), count, into.begin());
    inbox_start_ += count;
    into = into.subspan(count);
  }
  co_return true;
}

void Connection::unread(base::ByteView bytes) {
  base::Bytes joined(bytes.begin(), bytes.end());
  joined.insert(joined.end(), inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_start_), inbox_.end());
  inbox_ = std::move(joined);
  inbox_start_ = 0;
}

base::Task<void> Connection::wait_while_paused() {
  while (services_.faults.paused && !closing_ && !closed_) {
    auto waiting = resumed_.wait();
    co_await std::move(waiting);
  }
}

base::Task<void> Connection::read_loop(std::shared_ptr<Connection> self) {
  auto opening = self->stream_->open();
  const bool open = co_await std::move(opening);
  if (open && !self->closed_) {
    self->session_ = make_session(self->services_, *self, self->peer_);
    base::Bytes header(self->session_->header_size());
    while (!self->closing_ && !self->closed_) {
      auto reading_header = self->read_exactly(header);
      const bool got_header = co_await std::move(reading_header);
      if (!got_header) break;
      if (self->hanging_) continue;
      const std::optional<std::size_t> size = self->session_->body_size(header);
      if (!size) break;
      auto body = std::make_shared<base::Buffer>(*size);
      auto reading_body = self->read_exactly(body->writable());
      const bool got_body = co_await std::move(reading_body);
      if (!got_body) break;
      auto pausing = self->wait_while_paused();
      co_await std::move(pausing);
      if (self->closing_ || self->closed_) break;
      self->session_->request(header, std::move(body));
      while (self->queued_bytes_ > kMaxQueuedBytes || self->queue_.size() > kMaxQueued) {
        if (self->closed_) break;
        auto waiting = self->queue_drained_.wait();
        co_await std::move(waiting);
      }
    }
  }
  self->session_.reset();
  self->close();
}

base::Task<void> Connection::write_loop(std::shared_ptr<Connection> self) {
  while (!self->closed_) {
    if (self->queue_.empty()) {
      if (self->closing_) break;
      auto waiting = self->queue_changed_.wait();
      co_await std::move(waiting);
      continue;
    }
    if (const base::TimePoint due = self->queue_.front().due; due > self->clock_.now()) {
      auto waiting = base::wait_until(self->clock_, self->queue_changed_, due);
      co_await std::move(waiting);
      continue;
    }
    // Small answers that are due leave in one write.
    std::vector<base::ByteView> pieces;
    std::vector<Outgoing> leaving;
    const base::TimePoint now = self->clock_.now();
    while (!self->queue_.empty() && self->queue_.front().due <= now && pieces.size() < kMaxPiecesPerWrite) {
      leaving.push_back(std::move(self->queue_.front()));
      self->queue_.pop_front();
      self->queued_bytes_ -= leaving.back().size;
      pieces.emplace_back(leaving.back().head);
      for (const Chunk& chunk : leaving.back().chunks) pieces.push_back(chunk.bytes);
    }
    self->queue_drained_.pulse();
    auto writing = self->stream_->write(std::move(pieces));
    const bool written = co_await std::move(writing);
    if (!written) break;
  }
  self->closed_ = true;
  self->stream_->close(false);
  self->queue_drained_.pulse();
  self->resumed_.pulse();
}

void Connection::answer(base::Bytes head, std::vector<Chunk> chunks) {
  if (closing_ || closed_ || hanging_) return;
  Outgoing out{.due = clock_.now() + services_.faults.delay, .head = std::move(head), .chunks = std::move(chunks)};
  out.size = out.head.size();
  for (const Chunk& chunk : out.chunks) out.size += chunk.bytes.size();
  queued_bytes_ += out.size;
  queue_.push_back(std::move(out));
  queue_changed_.pulse();
}

void Connection::close() {
  closing_ = true;
  queue_changed_.pulse();
}

void Connection::cut() {
  closed_ = true;
  stream_->close(false);
  queue_changed_.pulse();
  queue_drained_.pulse();
  resumed_.pulse();
}

void Connection::goodbye() {
  if (session_) session_->goodbye();
  close();
}

}  // namespace sandbox
