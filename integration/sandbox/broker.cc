#include "integration/sandbox/broker.h"

#include <algorithm>

#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"

namespace sandbox {

std::uint32_t IdPool::take() {
  if (free_.empty()) return next_++;
  const auto at = lowest_first_ ? std::ranges::min_element(free_) : std::prev(free_.end());
  const std::uint32_t id = *at;
  free_.erase(at);
  return id;
}

void IdPool::mark_used(std::uint32_t id) {
  while (next_ <= id) free_.push_back(next_++);
  std::erase(free_, id);
}

Broker::Broker(BrokerOptions options)
    : options_(std::move(options)),
      stream_ids_(options_.profile.lowest_id_first),
      user_ids_(options_.profile.lowest_id_first),
      random_state_(options_.seed != 0 ? options_.seed
                                       : base::system_wall_micros() ^ static_cast<std::uint64_t>(::getpid()) << 32U) {
  started_at_ = last_saved_at_ = last_cleaned_at_ = now();
  if (!options_.data.empty()) {
    std::filesystem::create_directories(options_.data / "logs");
    journal_ = Journal(options_.data / "metadata");
    load();
  }
  if (users_.empty()) {
    UserState& root = users_[user_ids_.take()];
    root = {.id = 0,
            .created_at = now(),
            .name = options_.username,
            .password = options_.password,
            .permissions = iggy::all_permissions(),
            .tokens = {}};
    store(root);
  }
}

std::uint64_t Broker::now() const { return options_.wall_micros ? options_.wall_micros() : base::system_wall_micros(); }

// --- finding

StreamState* Broker::find_stream(const iggy::Ident& ident) {
  if (const auto* id = std::get_if<std::uint32_t>(&ident)) {
    const auto at = streams_.find(*id);
    return at == streams_.end() ? nullptr : &at->second;
  }
  for (auto& [id, stream] : streams_)
    if (stream.name == std::get<std::string>(ident)) return &stream;
  return nullptr;
}

TopicState* Broker::find_topic(StreamState& stream, const iggy::Ident& ident) {
  if (const auto* id = std::get_if<std::uint32_t>(&ident)) {
    const auto at = stream.topics.find(*id);
    return at == stream.topics.end() ? nullptr : &at->second;
  }
  for (auto& [id, topic] : stream.topics)
    if (topic.name == std::get<std::string>(ident)) return &topic;
  return nullptr;
}

Outcome<TopicState*> Broker::topic_of(const iggy::Ident& stream_ident, const iggy::Ident& topic_ident) {
  StreamState* stream = find_stream(stream_ident);
  if (stream == nullptr) return refuse(status::kStreamNotFound);
  TopicState* topic = find_topic(*stream, topic_ident);
  if (topic == nullptr) return refuse(status::kTopicNotFound);
  return topic;
}

Outcome<PartitionState*> Broker::partition_of(const iggy::Ident& stream, const iggy::Ident& topic_ident,
                                              std::uint32_t partition) {
  const Outcome<TopicState*> topic = topic_of(stream, topic_ident);
  if (!topic) return refuse(topic.error());
  if (partition >= (*topic)->partitions.size()) return refuse(status::kPartitionNotFound);
  return (*topic)->partitions[partition].get();
}

// --- making and dropping

std::filesystem::path Broker::log_path(std::uint64_t uid) const {
  return options_.data.empty() ? std::filesystem::path() : options_.data / "logs" / std::to_string(uid);
}

std::unique_ptr<PartitionState> Broker::make_partition(std::uint64_t uid, std::uint64_t created_at,
                                                       const LogSettings& log) {
  auto out = std::make_unique<PartitionState>(uid, created_at, PartitionLog(options_.profile, log, log_path(uid)));
  out->log.set_disk_full(disk_full_);
  return out;
}

void Broker::add_partitions(StreamState& stream, TopicState& topic, std::uint32_t count, std::uint64_t created_at) {
  for (; count > 0; --count) {
    topic.partitions.push_back(make_partition(next_uid_++, created_at, topic.log_settings));
    store(*topic.partitions.back());
  }
  for (auto& [id, group] : topic.groups) rebalance(topic, group);
  store(stream, topic);
}

TopicState& Broker::add_topic(StreamState& stream, const std::string& name, std::uint32_t partitions,
                              iggy::TopicSettings settings, std::vector<iggy::Option> derived, LogSettings log) {
  const std::uint32_t id = stream.topic_ids.take();
  TopicState& topic = stream.topics[id];
  topic.id = id;
  topic.created_at = now();
  topic.name = name;
  topic.settings = std::move(settings);
  topic.derived = std::move(derived);
  topic.log_settings = log;
  topic.group_ids = IdPool(false);
  // On 0.8.0 the partitions are a few µs younger than their topic.
  add_partitions(stream, topic, partitions, topic.created_at + (options_.profile.created_at_shifts ? 6 : 0));
  return topic;
}

void Broker::drop_partition(TopicState& topic) {
  erase_partition(*topic.partitions.back());
  topic.partitions.pop_back();
}

void Broker::drop_topic(StreamState& stream, std::uint32_t id) {
  TopicState& topic = stream.topics.at(id);
  for (auto& [group_id, group] : topic.groups) {
    while (!group.members.empty()) leave(*group.members.back().caller, stream, topic, group);
    journal_.erase(key_of(stream, topic, group));
  }
  journal_.erase(key_of(stream, topic));
  while (!topic.partitions.empty()) drop_partition(topic);
  stream.topics.erase(id);
  stream.topic_ids.release(id);
}

void Broker::drop_stream(std::uint32_t id) {
  StreamState& stream = streams_.at(id);
  while (!stream.topics.empty()) drop_topic(stream, stream.topics.begin()->first);
  journal_.erase(key_of(stream));
  streams_.erase(id);
  stream_ids_.release(id);
}

void Broker::purge(TopicState& topic) {
  for (auto& partition : topic.partitions) {
    erase_partition(*partition);
    const bool shifted = partition->shifted;
    partition = make_partition(next_uid_++, partition->created_at, topic.log_settings);
    partition->shifted = shifted;
    store(*partition);
  }
  for (const auto& [stream_id, stream] : streams_)
    for (const auto& [topic_id, candidate] : stream.topics)
      if (&candidate == &topic) store(stream, topic);
}

Outcome<void> Broker::recreate(StreamState& stream, const std::string& name) {
  TopicState* old = find_topic(stream, name);
  if (old == nullptr) return refuse(status::kTopicNotFound);
  const auto partitions = static_cast<std::uint32_t>(old->partitions.size());
  iggy::TopicSettings settings = old->settings;
  std::vector<iggy::Option> derived = old->derived;
  const LogSettings log = old->log_settings;
  drop_topic(stream, old->id);
  add_topic(stream, name, partitions, std::move(settings), std::move(derived), log);
  return {};
}

// --- retention and other movers of the log

// Segments that end above the smallest stored offset stay.
std::uint64_t Broker::barrier(const PartitionState& partition) const {
  std::uint64_t lowest = ~0ULL - 1;
  for (const auto& [key, offset] : partition.offsets) lowest = std::min(lowest, offset);
  return lowest;
}

void Broker::clean(TopicState& topic) {
  const std::uint64_t expiry = topic.settings.message_expiry == iggy::kNeverExpire ? 0 : topic.settings.message_expiry;
  std::uint64_t cap = 0;
  if (topic.settings.max_topic_size != iggy::kUnlimitedSize && topic.settings.max_topic_size != 0 &&
      !topic.partitions.empty()) {
    cap = topic.settings.max_topic_size / topic.partitions.size();
    if (options_.profile.size_cap_slack != 0)
      cap = std::max(cap, topic.log_settings.segment_size + options_.profile.size_cap_slack);
  }
  for (auto& partition : topic.partitions) {
    const std::uint32_t before = partition->log.segments();
    partition->log.clean(now(), expiry, cap, barrier(*partition));
    if (partition->log.segments() != before) store(*partition);
  }
}

void Broker::clean() {
  for (auto& [stream_id, stream] : streams_)
    for (auto& [topic_id, topic] : stream.topics) clean(topic);
}

void Broker::tick() {
  const std::uint64_t at = now();
  const auto due = [at](std::uint64_t& last, std::chrono::microseconds interval) {
    if (interval.count() == 0 || at < last + static_cast<std::uint64_t>(interval.count())) return false;
    last = at;
    return true;
  };
  if (due(last_saved_at_, options_.profile.saver_interval)) save_all(false);
  if (due(last_cleaned_at_, options_.profile.cleaner_interval)) clean();
}

void Broker::save_all(bool clean_stop) {
  for (auto& [stream_id, stream] : streams_)
    for (auto& [topic_id, topic] : stream.topics)
      for (auto& partition : topic.partitions) {
        partition->log.save();
        if (clean_stop && partition->reserved > partition->log.next_offset()) {
          partition->reserved = partition->log.next_offset();
          store(*partition);
        }
      }
}

void Broker::set_disk_full(bool full) {
  disk_full_ = full;
  for (auto& [stream_id, stream] : streams_)
    for (auto& [topic_id, topic] : stream.topics)
      for (auto& partition : topic.partitions) partition->log.set_disk_full(full);
}

void Broker::lose_tail(PartitionState& partition, std::uint64_t count) {
  partition.log.lose_tail(count);
  partition.reserved = std::min(partition.reserved, partition.log.next_offset());
  for (auto& [key, offset] : partition.offsets)
    store_offset(partition, key, std::min(offset, partition.log.current_offset()));
  store(partition);
}

void Broker::jump(PartitionState& partition, std::uint64_t count) {
  partition.log.continue_at(partition.log.next_offset() + count);
  store(partition);
}

void Broker::trim(PartitionState& partition, std::uint64_t before) {
  partition.log.trim(before);
  store(partition);
}

void Broker::expire(TopicState& topic) {
  for (auto& partition : topic.partitions) {
    partition->log.expire_all();
    store(*partition);
  }
}

// --- describing

iggy::Topic Broker::describe(const TopicState& topic) const {
  iggy::Topic out{.id = topic.id,
                  .created_at = topic.created_at,
                  .partitions_count = static_cast<std::uint32_t>(topic.partitions.size()),
                  .settings = topic.settings,
                  .derived = topic.derived,
                  .size_bytes = topic.deleted_bytes,
                  .messages_count = topic.deleted_messages,
                  .name = topic.name};
  for (const auto& partition : topic.partitions) {
    out.size_bytes += partition->log.size_bytes();
    out.messages_count += partition->log.messages();
  }
  return out;
}

iggy::Stream Broker::describe(const StreamState& stream) const {
  iggy::Stream out{.id = stream.id,
                   .created_at = stream.created_at,
                   .topics_count = static_cast<std::uint32_t>(stream.topics.size()),
                   .name = stream.name,
                   .options = stream.options};
  for (const auto& [id, topic] : stream.topics) {
    for (const auto& partition : topic.partitions) {
      out.size_bytes += partition->log.size_bytes();
      out.messages_count += partition->log.messages();
    }
  }
  return out;
}

iggy::TopicDetails Broker::details(const TopicState& topic) const {
  iggy::TopicDetails out{.topic = describe(topic), .partitions = {}};
  out.partitions.reserve(topic.partitions.size());
  for (std::uint32_t i = 0; i < topic.partitions.size(); ++i) {
    const PartitionState& partition = *topic.partitions[i];
    out.partitions.push_back({.id = i,
                              .created_at = partition.created_at,
                              .segments_count = partition.log.segments(),
                              .current_offset = partition.log.current_offset(),
                              .size_bytes = partition.log.size_bytes(),
                              .messages_count = partition.log.messages()});
  }
  return out;
}

}  // namespace sandbox
