#include "replicator/topics/reconciler.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "replicator/topics/durability.h"

namespace replicator {
namespace {

using base::ErrorCode;
using base::TopicName;

constexpr std::uint32_t kPartitionsPerRequest = 1000;  // above: status 2015, both dialects

// vsr: what an acknowledgment of the topic proves. 0.9.0 has the first two, 0.9.0-edge.5 the others.
constexpr std::array<std::string_view, 4> kDurabilityKeys = {"durability", "consumer_offset_durability",
                                                             "enforce_fsync", "messages_required_to_save"};

std::string count_of(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Explicit, else the default that the server resolved; `messages_required_to_save` only when somebody asked for it.
const iggy::Option* effective(const iggy::Topic& topic, std::string_view key) {
  const auto explicit_at = std::ranges::find(topic.settings.options, key, &iggy::Option::key);
  if (explicit_at != topic.settings.options.end()) return &*explicit_at;
  if (key == "messages_required_to_save") return nullptr;
  const auto derived_at = std::ranges::find(topic.derived, key, &iggy::Option::key);
  return derived_at == topic.derived.end() ? nullptr : &*derived_at;
}

std::string kept_in_words(std::uint64_t expiry, std::uint64_t size) {
  return fmt::format("keeps messages {}{}, size {}", expiry == iggy::kNeverExpire ? "" : "for ",
                     expiry_in_words(expiry), size_in_words(size));
}
std::string_view compression_in_words(iggy::Compression compression) {
  return compression == iggy::Compression::kGzip ? "gzip" : "none";
}
FaultKind fault_of(const base::Error& error) {
  return error.code() == ErrorCode::kPermission ? FaultKind::kPermission : FaultKind::kTargetMissing;
}
bool has_limit(std::uint64_t value) { return value != iggy::kNeverExpire; }  // also the sentinel of unlimited size

// One pass. Lives inside reconcile()'s frame.
class Pass {
 public:
  Pass(iggy::Client& upstream, iggy::Client& downstream, const Rules& rules, const Config& config,
       ReconcileOptions options)
      : upstream_(upstream), downstream_(downstream), rules_(rules), config_(config), options_(std::move(options)) {}

  base::Task<base::Result<Topology>> run();

 private:
  struct Source {
    iggy::Topic topic;
    TopicName downstream;
  };
  // What a call that concerns one object came to, when it did not do.
  struct Obstacle {
    std::string reason;
    FaultKind fault = FaultKind::kTargetMissing;
  };
  struct DownstreamStream {
    bool exists = false;
    bool listed = false;  // `topics` is complete
    std::map<std::string, iggy::Topic> topics;
    std::optional<Obstacle> create_failed;
  };

  // --- upstream
  void take(UpstreamTopics found);
  void report_known(const UpstreamTopics& found);
  void refuse_conflicts();

  // --- downstream
  base::Task<base::Result<DownstreamStream*>> look_downstream(std::string stream);
  base::Task<base::Status> place(TopicName name, Source source);
  base::Task<base::Result<std::optional<Obstacle>>> create_stream(std::string name, DownstreamStream& stream);
  base::Task<base::Result<std::optional<Obstacle>>> create_topic(Source source);
  // Returns the partitions that are there afterwards.
  base::Task<base::Result<std::uint32_t>> grow(Source source, std::uint32_t have, std::optional<Obstacle>& obstacle);
  base::Task<iggy::TopicSettings> settings_for(const iggy::Topic& topic);
  void report_drift(const Source& source, const iggy::Topic& there);
  std::optional<Obstacle> too_weak(const TopicName& name, const iggy::Topic& there) const;

  void want(const TopicName& name, const TopicName& downstream, std::uint32_t partition);
  void miss(const TopicName& name, const Source& source, std::uint32_t from, const Obstacle& obstacle);
  void act(Action::Kind kind, TopicName downstream, std::string text) {
    result_.actions.push_back({kind, std::move(downstream), std::move(text)});
  }

  iggy::Client& upstream_;
  iggy::Client& downstream_;
  const Rules& rules_;
  const Config& config_;
  const ReconcileOptions options_;
  Topology result_;
  std::map<TopicName, Source> sources_;
  std::map<std::string, DownstreamStream> downstream_streams_;
  std::optional<std::set<std::string>> downstream_keys_;
};

base::Task<base::Result<Topology>> Pass::run() {
  auto listing = list_upstream_topics(upstream_, rules_);
  auto listed = co_await std::move(listing);
  CO_RETURN_IF_ERROR(listed);
  take(*std::move(listed));
  refuse_conflicts();
  for (const auto& [name, source] : sources_) {
    auto placing = place(name, source);
    auto placed = co_await std::move(placing);
    CO_RETURN_IF_ERROR(placed);
  }
  std::ranges::sort(result_.partitions, {}, &WantedPartition::key);
  std::ranges::sort(result_.missing, {}, &MissingPartition::key);
  co_return std::move(result_);
}

// ---------------------------------------------------------------------------------------------------------------------
// Upstream

void Pass::take(UpstreamTopics found) {
  result_.notices = found.notices;
  for (const auto& [name, topic] : found.wanted) {
    sources_.emplace(name, Source{topic, *rules_.target(name)});
  }
  report_known(found);
}

// A known partition that was not found is deleted only when its place could be looked at.
void Pass::report_known(const UpstreamTopics& found) {
  std::map<TopicName, std::size_t> deleted;
  std::set<TopicName> unwanted;
  for (const base::PartitionKey& key : options_.known) {
    const auto source = sources_.find(key.topic);
    if (source != sources_.end()) {
      if (key.partition < source->second.topic.partitions_count) continue;
      result_.deleted.push_back(key);
      ++deleted[key.topic];
      continue;
    }
    const auto target = rules_.target(key.topic);
    if (!target) {
      result_.unwanted.push_back(key);
      unwanted.insert(key.topic);
    } else if (!found.is_gone(key.topic)) {
      want(key.topic, *target, key.partition);  // goes on; its own pipeline says what it may not do
    } else {
      result_.deleted.push_back(key);
      ++deleted[key.topic];
    }
  }
  for (const auto& [name, count] : deleted) {
    result_.notices.push_back(fmt::format("{} ({}) was deleted upstream; what was copied stays downstream",
                                          name.to_string(), count_of(count, "partition")));
  }
  for (const TopicName& name : unwanted) {
    result_.notices.push_back(
        fmt::format("{} was copied before and is no longer wanted by the rules", name.to_string()));
  }
}

// A source that is copied already keeps its target; the newcomer is refused.
void Pass::refuse_conflicts() {
  std::map<TopicName, std::vector<TopicName>> sources_of;
  for (const auto& [name, source] : sources_) sources_of[source.downstream].push_back(name);
  const auto refuse = [&](const TopicName& name, const std::string& reason) {
    const Source source = sources_.at(name);
    miss(name, source, 0, {reason});
    result_.refusals.push_back(fmt::format("{}: {}", name.to_string(), reason));
    result_.notices.push_back(result_.refusals.back());
    sources_.erase(name);
  };
  for (const auto& [target, names] : sources_of) {
    const auto is_known = [&](const TopicName& name) { return options_.known.contains({name, 0}); };
    const bool one_is_known = std::ranges::count_if(names, is_known) == 1;
    for (const TopicName& name : names) {
      if (auto reason = rules_.invalid_target(name)) {
        refuse(name, *reason);
      } else if (auto loop = options_.same_cluster ? rules_.feeds_itself(name) : std::nullopt) {
        refuse(name, *loop);
      } else if (names.size() > 1 && !(one_is_known && is_known(name))) {
        const auto other = std::ranges::find_if(names, [&](const TopicName& each) { return each != name; });
        refuse(name, fmt::format("{} would be copied into {} as well; exclude one of them or rename them apart",
                                 other->to_string(), target.to_string()));
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Downstream

base::Task<base::Result<Pass::DownstreamStream*>> Pass::look_downstream(std::string stream) {
  const auto [at, is_new] = downstream_streams_.try_emplace(stream);
  DownstreamStream& state = at->second;
  if (!is_new) co_return &state;
  auto list_call = downstream_.call(iggy::GetTopics{stream});
  auto list = co_await std::move(list_call);
  if (list) {
    state.listed = true;
    if (auto* topics = std::get_if<iggy::Topics>(&*list)) {
      for (iggy::Topic& topic : topics->topics) {
        std::string name = topic.name;
        state.topics.emplace(std::move(name), std::move(topic));
      }
    }
    state.exists = !state.topics.empty();
    if (state.exists) co_return &state;
  } else if (concerns_whole_side(list.error())) {
    co_return std::move(list).error();
  } else if (list.error().code() == ErrorCode::kNotFound) {
    state.listed = true;
    co_return &state;
  } else {
    // What is forbidden exists: a missing stream is answered as missing, whatever the rights.
    state.exists = list.error().code() == ErrorCode::kPermission;
    co_return &state;
  }
  // No topics: an empty stream and no stream look the same here.
  auto get_call = downstream_.call(iggy::GetStream{stream});
  auto got = co_await std::move(get_call);
  if (got) {
    state.exists = std::holds_alternative<iggy::StreamDetails>(*got);
  } else if (concerns_whole_side(got.error())) {
    co_return std::move(got).error();
  } else {
    state.exists = got.error().code() == ErrorCode::kPermission;
  }
  co_return &state;
}

base::Task<base::Status> Pass::place(TopicName name, Source source) {
  const std::uint32_t want_count = source.topic.partitions_count;
  if (want_count == 0) co_return base::ok();
  const TopicName& target = source.downstream;
  auto looking = look_downstream(target.stream);
  auto looked = co_await std::move(looking);
  CO_RETURN_IF_ERROR(looked);
  DownstreamStream& stream = **looked;

  std::optional<iggy::Topic> there;
  if (const auto at = stream.topics.find(target.topic); at != stream.topics.end()) {
    there = at->second;
  } else if (stream.exists && !stream.listed) {
    auto getting = find_topic(downstream_, target);
    auto got = co_await std::move(getting);
    if (!got) {
      if (concerns_whole_side(got.error())) co_return std::move(got).error();
      miss(name, source, 0,
           {refusal_in_words(fmt::format("{} can't be read downstream", target.to_string()), got.error(),
                             "read_topic or read_topics"),
            fault_of(got.error())});
      co_return base::ok();
    }
    there = *std::move(got);
  }

  std::uint32_t have = 0;
  std::optional<Obstacle> obstacle;
  if (there) {
    have = there->partitions_count;
    report_drift(source, *there);
    obstacle = too_weak(target, *there);
  } else {
    if (!config_.create_topics) {
      obstacle = Obstacle{fmt::format("{} is not there downstream, and create_topics = false", target.to_string())};
    } else if (!stream.exists) {
      auto creating = create_stream(target.stream, stream);
      auto created = co_await std::move(creating);
      CO_RETURN_IF_ERROR(created);
      obstacle = *std::move(created);
    }
    if (!obstacle) {
      auto creating = create_topic(source);
      auto created = co_await std::move(creating);
      CO_RETURN_IF_ERROR(created);
      obstacle = *std::move(created);
      have = std::min(want_count, kPartitionsPerRequest);
      if (!options_.dry_run) {  // it may have been there before, made by somebody else a moment ago
        auto getting = find_topic(downstream_, target);
        auto got = co_await std::move(getting);
        if (!got && concerns_whole_side(got.error())) co_return std::move(got).error();
        if (got && *got) {
          have = (*got)->partitions_count;
          obstacle = too_weak(target, **got);
          report_drift(source, **got);
        } else if (obstacle || got) {
          have = 0;
          if (!obstacle) obstacle = Obstacle{fmt::format("{} was created and is not there yet", target.to_string())};
        }
      }
    }
  }
  if (obstacle && obstacle->fault == FaultKind::kNotDurable) have = 0;
  if (!obstacle && have < want_count) {
    if (config_.create_topics) {
      auto growing = grow(source, have, obstacle);
      auto grown = co_await std::move(growing);
      CO_RETURN_IF_ERROR(grown);
      have = *grown;
    } else {
      obstacle = Obstacle{fmt::format("{} has {} downstream and {} upstream, and create_topics = false",
                                      target.to_string(), count_of(have, "partition"), want_count)};
    }
  }
  for (std::uint32_t partition = 0; partition < std::min(have, want_count); ++partition) want(name, target, partition);
  if (have < want_count) {
    miss(name, source, have, obstacle.value_or(Obstacle{"not there downstream yet"}));
  }
  co_return base::ok();
}

base::Task<base::Result<std::optional<Pass::Obstacle>>> Pass::create_stream(std::string name,
                                                                            DownstreamStream& stream) {
  if (stream.create_failed) co_return stream.create_failed;
  if (!options_.dry_run) {
    auto call = downstream_.call(iggy::CreateStream{name, {}});
    auto reply = co_await std::move(call);
    if (!reply && reply.error().code() == ErrorCode::kAlreadyExists) {
      stream.exists = true;
      co_return std::optional<Obstacle>();
    }
    if (!reply) {
      if (reply.error().code() == ErrorCode::kStopped) co_return std::move(reply).error();
      stream.create_failed = Obstacle{
          refusal_in_words(fmt::format("stream {} can't be created downstream", name), reply.error(), "manage_streams"),
          fault_of(reply.error())};
      result_.notices.push_back(stream.create_failed->reason);
      co_return stream.create_failed;
    }
  }
  stream.exists = true;
  stream.listed = true;
  act(Action::Kind::kCreateStream, {name, ""}, fmt::format("create stream {}", name));
  co_return std::optional<Obstacle>();
}

base::Task<iggy::TopicSettings> Pass::settings_for(const iggy::Topic& topic) {
  iggy::TopicSettings settings;
  settings.compression = topic.settings.compression;
  if (config_.retention == RetentionCopy::kCopy) {
    if (topic.settings.message_expiry != 0) settings.message_expiry = topic.settings.message_expiry;
    if (topic.settings.max_topic_size != 0) settings.max_topic_size = topic.settings.max_topic_size;
  }
  if (downstream_.server().dialect == iggy::Dialect::kLegacy) co_return settings;
  if (config_.ack == Ack::kPersisted) settings.options.push_back(persisted());
  for (const std::string_view key : kDurabilityKeys) {
    const iggy::Option* option = effective(topic, key);
    if (option == nullptr || (key == kDurability && config_.ack == Ack::kPersisted)) continue;
    if (!downstream_keys_) {
      downstream_keys_.emplace();
      auto call = downstream_.call(iggy::DescribeOptions{});
      auto reply = co_await std::move(call);
      if (reply) {
        if (const auto* described = std::get_if<iggy::OptionDescriptions>(&*reply)) {
          for (const iggy::OptionDescription& each : described->options) downstream_keys_->insert(each.key);
        }
      } else {
        result_.notices.push_back(
            fmt::format("the downstream did not say which topic options it knows, topics are created without "
                        "durability options: {}",
                        reply.error().to_string()));
      }
    }
    if (downstream_keys_->contains(std::string(key))) settings.options.push_back(*option);
  }
  co_return settings;
}

base::Task<base::Result<std::optional<Pass::Obstacle>>> Pass::create_topic(Source source) {
  const TopicName& target = source.downstream;
  const std::uint32_t count = std::min(source.topic.partitions_count, kPartitionsPerRequest);
  auto deciding = settings_for(source.topic);
  iggy::TopicSettings settings = co_await std::move(deciding);
  std::string text =
      fmt::format("create topic {}: {}, compression {}, {}", target.to_string(),
                  count_of(source.topic.partitions_count, "partition"), compression_in_words(settings.compression),
                  kept_in_words(settings.message_expiry, settings.max_topic_size));
  const iggy::TopicSettings& original = source.topic.settings;
  if (original.message_expiry != settings.message_expiry || original.max_topic_size != settings.max_topic_size) {
    text += fmt::format(" (upstream {})", kept_in_words(original.message_expiry, original.max_topic_size));
  } else if (has_limit(settings.message_expiry) || has_limit(settings.max_topic_size)) {
    text += " (counted from the arrival downstream; newer servers split the size over the partitions)";
  }
  for (const iggy::Option& option : settings.options) {
    text += ", " + option.key;
    if (option.kind == 2) text += fmt::format(" {}", base::as_text(option.value));
  }
  if (!options_.dry_run) {
    auto call = downstream_.call(iggy::CreateTopic{target.stream, target.topic, count, std::move(settings)});
    auto reply = co_await std::move(call);
    if (!reply && reply.error().code() == ErrorCode::kAlreadyExists) co_return std::optional<Obstacle>();
    if (!reply) {
      if (reply.error().code() == ErrorCode::kStopped) co_return std::move(reply).error();
      co_return std::optional<Obstacle>(
          {refusal_in_words(fmt::format("{} can't be created downstream", target.to_string()), reply.error(),
                            fmt::format("manage_topics (on stream {} or on all)", target.stream)),
           fault_of(reply.error())});
    }
  }
  act(Action::Kind::kCreateTopic, target, std::move(text));
  co_return std::optional<Obstacle>();
}

base::Task<base::Result<std::uint32_t>> Pass::grow(Source source, std::uint32_t have,
                                                   std::optional<Obstacle>& obstacle) {
  const TopicName& target = source.downstream;
  const std::uint32_t want_count = source.topic.partitions_count;
  const std::uint32_t before = have;
  while (have < want_count && !obstacle) {
    const std::uint32_t step = std::min(want_count - have, kPartitionsPerRequest);
    if (options_.dry_run) {
      have += step;
      continue;
    }
    auto call = downstream_.call(iggy::CreatePartitions{target.stream, target.topic, step});
    auto reply = co_await std::move(call);
    if (reply) {
      have += step;
      continue;
    }
    if (reply.error().code() == ErrorCode::kStopped) co_return std::move(reply).error();
    obstacle = Obstacle{refusal_in_words(fmt::format("partitions can't be added to {} downstream", target.to_string()),
                                         reply.error(), "manage_topic on it, or manage_topics"),
                        fault_of(reply.error())};
    // The reply may have been lost behind the deed: look, never repeat blindly.
    auto getting = find_topic(downstream_, target);
    auto got = co_await std::move(getting);
    if (!got && concerns_whole_side(got.error())) co_return std::move(got).error();
    if (got && *got) have = std::max(have, (*got)->partitions_count);
    if (have >= want_count) obstacle.reset();
  }
  if (have > before) {
    act(Action::Kind::kGrow, target,
        fmt::format("add {} to {}, which then has {}", count_of(have - before, "partition"), target.to_string(), have));
  }
  if (obstacle) {
    result_.notices.push_back(fmt::format("{} has {} of {} downstream: {}", target.to_string(), have,
                                          count_of(want_count, "partition"), obstacle->reason));
  }
  co_return have;
}

// What is acknowledged for a topic that is there already can be less than what was promised.
std::optional<Pass::Obstacle> Pass::too_weak(const TopicName& name, const iggy::Topic& there) const {
  if (config_.ack != Ack::kPersisted || is_persisted(there)) return std::nullopt;
  return Obstacle{fmt::format("{} is there downstream without durability = persisted, which is fixed at its creation, "
                              "and copy.ack = persisted was asked for",
                              name.to_string()),
                  FaultKind::kNotDurable};
}

void Pass::report_drift(const Source& source, const iggy::Topic& there) {
  const std::string name = source.downstream.to_string();
  const iggy::TopicSettings& up = source.topic.settings;
  const iggy::TopicSettings& down = there.settings;
  if (there.partitions_count > source.topic.partitions_count) {
    result_.notices.push_back(fmt::format("{} has {} downstream and {} upstream: nothing is copied into those above",
                                          name, count_of(there.partitions_count, "partition"),
                                          source.topic.partitions_count));
  }
  if (up.compression != down.compression) {
    result_.notices.push_back(fmt::format("{} has compression {} downstream and {} upstream; it is left as it is", name,
                                          compression_in_words(down.compression),
                                          compression_in_words(up.compression)));
  }
  const bool same = up.message_expiry == down.message_expiry && up.max_topic_size == down.max_topic_size;
  if (config_.retention == RetentionCopy::kCopy) {
    if (!same) {
      result_.notices.push_back(fmt::format("{} {} downstream, and upstream {}; it is left as it is", name,
                                            kept_in_words(down.message_expiry, down.max_topic_size),
                                            kept_in_words(up.message_expiry, up.max_topic_size)));
    }
  } else if (has_limit(down.message_expiry) || has_limit(down.max_topic_size)) {
    result_.notices.push_back(
        fmt::format("{} {} downstream (counted from the arrival there): copied messages will be deleted", name,
                    kept_in_words(down.message_expiry, down.max_topic_size)));
  }
  for (const std::string_view key : kDurabilityKeys) {
    const iggy::Option* wanted = effective(source.topic, key);
    const iggy::Option* found = effective(there, key);
    if (wanted != nullptr && found != nullptr && wanted->value != found->value) {
      result_.notices.push_back(
          fmt::format("{} has another {} downstream than upstream; it is fixed at creation", name, key));
    }
  }
}

void Pass::want(const TopicName& name, const TopicName& downstream, std::uint32_t partition) {
  result_.partitions.push_back({{name, partition}, downstream, options_.link_is_new});
}

void Pass::miss(const TopicName& name, const Source& source, std::uint32_t from, const Obstacle& obstacle) {
  for (std::uint32_t partition = from; partition < source.topic.partitions_count; ++partition) {
    result_.missing.push_back({{name, partition}, source.downstream, obstacle.reason, obstacle.fault});
  }
}

}  // namespace

base::Task<base::Result<Topology>> reconcile(iggy::Client& upstream, iggy::Client& downstream, const Rules& rules,
                                             const Config& config, ReconcileOptions options) {
  Pass pass(upstream, downstream, rules, config, std::move(options));
  auto running = pass.run();
  co_return co_await std::move(running);
}

std::string expiry_in_words(std::uint64_t micros) {
  if (micros == iggy::kNeverExpire) return "for ever";
  if (micros == 0) return "the server's default time";
  struct Unit {
    std::uint64_t micros;
    std::string_view name;
  };
  constexpr std::uint64_t kSecond = 1'000'000;
  for (const Unit& unit : {Unit{86'400 * kSecond, "day"}, Unit{3'600 * kSecond, "hour"}, Unit{60 * kSecond, "minute"},
                           Unit{kSecond, "second"}}) {
    if (micros % unit.micros == 0) return count_of(micros / unit.micros, unit.name);
  }
  return count_of(micros, "microsecond");
}

std::string size_in_words(std::uint64_t bytes) {
  if (bytes == iggy::kUnlimitedSize) return "unlimited";
  if (bytes == 0) return "the server's default";
  for (const auto& [shift, name] : {std::pair{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}}) {
    if (bytes % (1ULL << shift) == 0) return fmt::format("{} {}", bytes >> shift, name);
  }
  return count_of(bytes, "byte");
}

}  // namespace replicator
