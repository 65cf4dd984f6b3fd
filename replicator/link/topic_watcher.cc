#include "replicator/link/topic_watcher.h"

#include <utility>

#include <asio/experimental/awaitable_operators.hpp>

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

TopicWatcher::TopicWatcher(asio::io_context& io, base::Clock& clock, iggy::Client& client, base::TopicName topic)
    : io_(io), clock_(clock), client_(client), topic_(std::move(topic)), ask_now_(io), answer_came_(io), stop_(io) {
  ask_now_.set();
}

base::Task<void> TopicWatcher::run() {
  while (true) {
    auto waiting = ask_now_.wait();
    co_await std::move(waiting);
    if (stop_.is_set()) break;
    ask_now_.reset();
    ++asked_;
    auto call = client_.call(iggy::GetTopic{topic_.stream, topic_.topic});
    auto reply = co_await std::move(call);
    answered_ = asked_;
    const std::optional<iggy::Topic> before = std::exchange(line_, std::nullopt);
    if (!reply) {
      error_ = std::move(reply).error();
    } else if (auto* details = std::get_if<iggy::TopicDetails>(&*reply)) {
      error_.reset();
      views_.clear();
      for (const iggy::Partition& partition : details->partitions)
        views_.push_back(view_from(details->topic, partition));
      answered_at_ = clock_.now();
      line_ = std::move(details->topic);
    } else {
      error_ = base::Error(base::ErrorCode::kNotFound, "get_topic", topic_.to_string(), "the topic is not there");
      views_.clear();
    }
    if (line_ != before) changed_at_ = clock_.now();
    answer_came_.pulse();
    for (Waiter* waiter : waiters_) {
      if (has_news(*waiter)) waiter->news.set();
    }
  }
}

void TopicWatcher::stop() {
  stop_.set();
  ask_now_.set();
  answer_came_.set();
  for (Waiter* waiter : waiters_) waiter->news.set();
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

bool TopicWatcher::has_news(const Waiter& waiter) const {
  if (error_ || waiter.partition >= views_.size()) return true;
  return differs(views_[waiter.partition], waiter.seen);
}

base::Task<base::Result<PartitionView>> TopicWatcher::fresh(std::uint32_t partition) {
  const std::uint64_t ticket = asked_ + 1;
  while (answered_ < ticket) {
    if (stop_.is_set())
      co_return base::Error(base::ErrorCode::kStopped, "get_topic", topic_.to_string(), "asked to stop");
    ask_now_.set();
    auto wait = answer_came_.wait();
    co_await std::move(wait);
  }
  co_return view_of(partition);
}

base::Task<base::Result<PartitionView>> TopicWatcher::wait_for_change(std::uint32_t partition, PartitionView seen,
                                                                      base::Duration at_most, base::Event& cancel) {
  using namespace asio::experimental::awaitable_operators;
  Waiter waiter{partition, seen, base::Event(io_)};
  const bool known = answered_at_ != base::TimePoint{} || error_;
  if (!stop_.is_set() && !(known && has_news(waiter))) {
    struct Listed {  // also when the waiting coroutine is cut short
      std::list<Waiter*>& waiters;
      std::list<Waiter*>::iterator place;
      ~Listed() { waiters.erase(place); }
    } listed{waiters_, waiters_.insert(waiters_.end(), &waiter)};
    auto waiting = base::wait_until(clock_, waiter.news, clock_.now() + at_most) || cancel.wait();
    co_await std::move(waiting);
  }
  if (stop_.is_set())
    co_return base::Error(base::ErrorCode::kStopped, "get_topic", topic_.to_string(), "asked to stop");
  co_return view_of(partition);
}

}  // namespace replicator
