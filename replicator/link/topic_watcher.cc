#include "replicator/link/topic_watcher.h"

#include <utility>

namespace replicator {

namespace {

bool differs(const PartitionView& a, const PartitionView& b) {
  return a.created != b.created || a.end != b.end || a.messages_count != b.messages_count;
}

}  // namespace

PartitionView view_from(const iggy::Topic& topic, const iggy::Partition& partition) {
  PartitionView view;
  // A stream that was created again has topics that were: its own created_at says nothing more.
  view.created = {0, topic.created_at, partition.created_at};
  view.messages_count = partition.messages_count;
  // current_offset is 0 for an empty partition and for one message: the count tells them apart. After retention took
  // everything it stays.
  view.end = partition.current_offset == 0 && partition.messages_count == 0 ? 0 : partition.current_offset + 1;
  const iggy::TopicSettings& settings = topic.settings;
  view.expiry_micros = settings.message_expiry == iggy::kNeverExpire ? 0 : settings.message_expiry;
  view.max_bytes = settings.max_topic_size == iggy::kUnlimitedSize ? 0 : settings.max_topic_size;
  view.has_retention = view.expiry_micros != 0 || view.max_bytes != 0;
  return view;
}

TopicWatcher::TopicWatcher(asio::io_context& io, base::Clock& clock, iggy::Client& client, base::TopicName topic,
                           base::Duration interval)
    : clock_(clock),
      client_(client),
      topic_(std::move(topic)),
      interval_(interval),
      ask_now_(io),
      news_(io),
      stop_(io) {}

base::Task<void> TopicWatcher::run() {
  while (!stop_.is_set()) {
    ask_now_.reset();
    ++asked_;
    auto call = client_.call(iggy::GetTopic{topic_.stream, topic_.topic});
    auto reply = co_await std::move(call);
    answered_ = asked_;
    if (!reply) {
      error_ = std::move(reply).error();
    } else if (const auto* details = std::get_if<iggy::TopicDetails>(&*reply)) {
      error_.reset();
      views_.clear();
      for (const iggy::Partition& partition : details->partitions)
        views_.push_back(view_from(details->topic, partition));
      answered_at_ = clock_.now();
    } else {
      error_ = base::Error(base::ErrorCode::kNotFound, "get_topic", topic_.to_string(), "the topic is not there");
      views_.clear();
    }
    news_.pulse();
    if (stop_.is_set()) break;
    auto wait = base::wait_until(clock_, ask_now_, clock_.now() + interval_);
    co_await std::move(wait);
  }
  news_.set();
}

void TopicWatcher::stop() {
  stop_.set();
  ask_now_.set();
  news_.set();
}

std::optional<Observed> TopicWatcher::observed(std::uint32_t partition) const {
  if (partition >= views_.size()) return std::nullopt;
  return Observed{views_[partition], answered_at_};
}

base::Result<PartitionView> TopicWatcher::view_of(std::uint32_t partition) const {
  if (error_) return *error_;
  if (partition >= views_.size()) {
    return base::Error(base::ErrorCode::kNotFound, "get_topic", topic_.to_string(),
                       "there is no partition " + std::to_string(partition) + " (the topic has " +
                           std::to_string(views_.size()) + ")");
  }
  return views_[partition];
}

base::Task<base::Result<PartitionView>> TopicWatcher::fresh(std::uint32_t partition) {
  const std::uint64_t ticket = asked_ + 1;
  while (answered_ < ticket) {
    if (stop_.is_set())
      co_return base::Error(base::ErrorCode::kStopped, "get_topic", topic_.to_string(), "asked to stop");
    ask_now_.set();
    auto wait = news_.wait();
    co_await std::move(wait);
  }
  co_return view_of(partition);
}

base::Task<base::Result<PartitionView>> TopicWatcher::wait_for_change(std::uint32_t partition, PartitionView seen,
                                                                      base::Duration at_most) {
  const base::TimePoint deadline = clock_.now() + at_most;
  while (true) {
    if (stop_.is_set())
      co_return base::Error(base::ErrorCode::kStopped, "get_topic", topic_.to_string(), "asked to stop");
    auto view = view_of(partition);
    if (!view || differs(*view, seen) || clock_.now() >= deadline) co_return view;
    auto wait = base::wait_until(clock_, news_, deadline);
    co_await std::move(wait);
  }
}

}  // namespace replicator
