#include "replicator/link/upstream_offset.h"

#include <utility>

#include <fmt/format.h>

#include "replicator/topics/rights.h"

namespace replicator {

UpstreamOffset::UpstreamOffset(base::Clock& clock, iggy::Client& upstream, base::PartitionKey key, std::string consumer,
                               base::Duration alarm_after)
    : clock_(clock),
      client_(upstream),
      key_(std::move(key)),
      consumer_(std::move(consumer)),
      alarm_after_(alarm_after),
      held_since_(clock.now()) {}

// Iggy stores the last processed offset: nothing can be said below the first message.
base::Task<base::Status> UpstreamOffset::store(std::uint64_t next) {
  iggy::StoreConsumerOffset request;
  request.consumer = {iggy::ConsumerKind::kConsumer, consumer_};
  request.stream = key_.topic.stream;
  request.topic = key_.topic.topic;
  request.partition = key_.partition;
  request.offset = next - 1;
  auto call = client_.call(std::move(request));
  auto reply = co_await std::move(call);
  if (!reply) co_return name_right(std::move(reply).error(), "upstream", client_, iggy::Access::kPoll, key_.topic);
  co_return base::ok();
}

base::Task<std::optional<std::string>> UpstreamOffset::update(Seen seen) {
  if (seen.committed > 0 && stored_ != seen.committed) {
    auto storing = store(seen.committed);
    auto stored = co_await std::move(storing);
    error_ = stored ? std::string() : stored.error().to_string();
    if (stored) {
      stored_ = seen.committed;
      held_since_ = clock_.now();
    }
  }
  if (!stored_) co_return std::nullopt;
  above_.reset();
  if (seen.end) above_ = *seen.end - std::min(*seen.end, *stored_);
  if (above_ == 0) held_since_ = clock_.now();
  const bool alarm = seen.has_retention && clock_.now() - held_since_ >= alarm_after_;
  if (alarm == std::exchange(alarm_, alarm)) co_return std::nullopt;
  if (!alarm)
    co_return fmt::format("consumer `{}` moves again: upstream retention is free up to offset {}", consumer_, *stored_);
  co_return fmt::format(
      "consumer `{}` holds back upstream retention at offset {}: {} messages are above it, and it has not moved for {} "
      "s{}",
      consumer_, *stored_, above_ ? std::to_string(*above_) : "an unknown number of",
      std::chrono::duration_cast<std::chrono::seconds>(clock_.now() - held_since_).count(),
      error_.empty() ? "" : "; " + error_);
}

std::optional<Pin> UpstreamOffset::pin() const {
  if (!stored_ && error_.empty()) return std::nullopt;
  Pin pin;
  pin.next = stored_.value_or(0);
  pin.messages = above_;
  pin.held_micros = static_cast<std::uint64_t>((clock_.now() - held_since_).count());
  if (above_ == 0) pin.held_micros = 0;
  pin.alarm = alarm_;
  pin.error = error_;
  return pin;
}

}  // namespace replicator
