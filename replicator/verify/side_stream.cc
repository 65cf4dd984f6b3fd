#include "replicator/verify/side_stream.h"

#include <algorithm>
#include <utility>

namespace replicator {

namespace {

constexpr std::uint32_t kCountMax = 10'000;

// The connection, not what was asked.
bool passes(const base::Error& error) {
  switch (error.code()) {
    case base::ErrorCode::kConnectFailed:
    case base::ErrorCode::kConnectionLost:
    case base::ErrorCode::kTimeout:
    case base::ErrorCode::kNotAccepted:
      return true;
    default:
      return false;
  }
}

base::Error stopped() { return {base::ErrorCode::kStopped, "verify", "", "asked to stop"}; }

}  // namespace

template <class T>
base::Task<base::Result<T>> SideStream::insist(std::function<base::Task<base::Result<T>>()> call) {
  const base::TimePoint give_up = clock_.now() + options_.unreachable_after;
  while (true) {
    if (stop_.is_set()) co_return stopped();
    auto asking = call();
    auto answer = co_await std::move(asking);
    if (answer) {
      backoff_.reset();
      co_return answer;
    }
    if (!passes(answer.error()) || clock_.now() >= give_up) co_return answer;
    auto wait = base::wait_until(clock_, stop_, std::min(give_up, clock_.now() + backoff_.next()));
    co_await std::move(wait);
  }
}

void SideStream::learn(const base::RecordBatch& batch) {
  if (batch.empty()) return;
  const std::size_t bytes = batch.size();
  bytes_read_ += bytes;
  const std::size_t average = std::max<std::size_t>(bytes / batch.records.size(), 64);
  count_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(options_.chunk_bytes / average, 1, kCountMax));
}

base::Task<base::Result<base::RecordBatch>> SideStream::look(std::uint64_t from, std::uint32_t count) {
  auto reading = insist<Polled>([this, from, count] { return side_.read(from, count); });
  auto polled = co_await std::move(reading);
  CO_RETURN_IF_ERROR(polled);
  learn(polled->batch);
  co_return std::move(polled->batch);
}

base::Task<base::Result<PartitionView>> SideStream::view() {
  auto asking = insist<PartitionView>([this] { return side_.view(); });
  co_return co_await std::move(asking);
}

base::Task<base::Result<std::optional<std::uint64_t>>> SideStream::floor() {
  auto looking = look(0, 1);
  auto oldest = co_await std::move(looking);
  CO_RETURN_IF_ERROR(oldest);
  if (oldest->empty()) co_return std::optional<std::uint64_t>();
  co_return std::optional(oldest->records.front().offset);
}

void SideStream::seek(std::uint64_t from, std::uint64_t end) {
  while (at_ < batch_.records.size() && batch_.records[at_].offset < from) ++at_;
  if (at_ == batch_.records.size()) next_ = std::max(next_, from);
  end_ = end;
}

base::Task<base::Status> SideStream::fill() {
  std::optional<base::TimePoint> empty_since;
  while (!is_ready()) {
    auto looking = look(next_, static_cast<std::uint32_t>(std::min<std::uint64_t>(count_, end_ - next_)));
    auto batch = co_await std::move(looking);
    CO_RETURN_IF_ERROR(batch);
    while (!batch->empty() && batch->records.back().offset >= end_) batch->records.pop_back();
    if (!batch->empty()) {
      next_ = batch->records.back().offset + 1;
      batch_ = std::move(*batch);
      at_ = 0;
      co_return base::ok();
    }
    if (!empty_since) empty_since = clock_.now();
    if (clock_.now() - *empty_since >= options_.confirm_for) {
      batch_ = {};
      at_ = 0;
      next_ = end_;
      co_return base::ok();
    }
    if (stop_.is_set()) co_return stopped();
    auto wait = base::wait_until(
        clock_, stop_, clock_.now() + std::min<base::Duration>(options_.confirm_for, std::chrono::milliseconds(500)));
    co_await std::move(wait);
  }
  co_return base::ok();
}

}  // namespace replicator
