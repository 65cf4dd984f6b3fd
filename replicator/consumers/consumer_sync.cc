#include "replicator/consumers/consumer_sync.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace replicator {

namespace {

std::string_view word(iggy::ConsumerKind kind) { return kind == iggy::ConsumerKind::kGroup ? "group" : "consumer"; }

// About one consumer, not about a whole side.
bool is_refusal(const base::Error& error) {
  switch (error.code()) {
    case base::ErrorCode::kPermission:
    case base::ErrorCode::kNotFound:
    case base::ErrorCode::kServerRefused:
    case base::ErrorCode::kNotAccepted:
    case base::ErrorCode::kUncertain:
      return true;
    default:
      return false;
  }
}

}  // namespace

base::Task<base::Result<std::vector<std::string>>> ConsumerSync::group_names(iggy::Client& client,
                                                                             base::TopicName topic) {
  std::vector<std::string> names;
  auto call = client.call(iggy::GetGroups{topic.stream, topic.topic});
  auto reply = co_await std::move(call);
  if (!reply && is_refusal(reply.error())) co_return names;  // no right to look, or no such topic: none to move
  CO_RETURN_IF_ERROR(reply);
  if (const auto* groups = std::get_if<iggy::Groups>(&*reply)) {
    for (const iggy::Group& group : groups->groups) names.push_back(group.name);
  }
  co_return names;
}

base::Task<base::Result<std::optional<std::uint64_t>>> ConsumerSync::stored(iggy::Client& client, base::TopicName topic,
                                                                            iggy::Consumer consumer,
                                                                            std::uint32_t partition) {
  auto call = client.call(iggy::GetConsumerOffset{std::move(consumer), topic.stream, topic.topic, partition});
  auto reply = co_await std::move(call);
  CO_RETURN_IF_ERROR(reply);
  const auto* offset = std::get_if<iggy::ConsumerOffset>(&*reply);
  if (offset == nullptr) co_return std::optional<std::uint64_t>();
  co_return std::optional(offset->stored_offset);
}

// One row per partition that has a position. `there`: the downstream has the group (a consumer needs no making).
base::Task<base::Result<ConsumerSync::Entries>> ConsumerSync::look(SyncedTopic topic, iggy::ConsumerKind kind,
                                                                   std::string name, bool there) {
  Entries entries;
  for (const std::uint32_t partition : topic.partitions) {
    Entry entry;
    entry.row.key = {topic.upstream, partition};
    entry.row.kind = word(kind);
    entry.row.name = name;
    entry.row.seen_at = clock_.wall_micros();
    const auto known = std::ranges::find_if(known_, [&](const state::ConsumerRow& row) {
      return row.key == entry.row.key && row.kind == entry.row.kind && row.name == name;
    });
    if (known != known_.end()) entry.row.synced_at = known->synced_at;
    // The upstream first: what it says must be covered by a map that is read later.
    base::Result<std::optional<std::uint64_t>> up = std::optional<std::uint64_t>();
    if (up_ != nullptr) {
      auto up_call = stored(*up_, topic.upstream, {kind, name}, partition);
      up = co_await std::move(up_call);
    } else if (known == known_.end()) {
      continue;  // never seen
    } else {
      up = known->up_offset;
      entry.row.seen_at = known->seen_at;
    }
    base::Result<std::optional<std::uint64_t>> down = std::optional<std::uint64_t>();
    if (up && there) {
      auto down_call = stored(down_, topic.downstream, {kind, name}, partition);
      down = co_await std::move(down_call);
    }
    if (!up || !down) {
      const base::Error& error = up ? down.error() : up.error();
      if (!is_refusal(error)) co_return error;
      entry.row.state = to_string(ConsumerState::kFailed);
      entry.row.detail = error.to_string();
      entries.push_back(std::move(entry));
      continue;
    }
    auto map_call = store_.offset_map(entry.row.key);
    auto map = co_await std::move(map_call);
    if (!map && map.error().code() == base::ErrorCode::kNotFound) continue;  // has not started yet
    CO_RETURN_IF_ERROR(map);
    entry.row.up_offset = *up;
    entry.row.down_offset = *down;
    ConsumerDecision decision = decide(*map, known == known_.end() ? nullptr : &*known, *up, *down);
    entry.row.state = to_string(decision.state);
    entry.row.detail = std::move(decision.detail);
    entry.store = decision.store;
    if (decision.state == ConsumerState::kSynced && !decision.store) entry.row.synced_at = clock_.wall_micros();
    entries.push_back(std::move(entry));
  }
  co_return entries;
}

base::Task<base::Status> ConsumerSync::store(SyncedTopic topic, iggy::Consumer consumer, Entries& entries) {
  for (Entry& entry : entries) {
    if (!entry.store) continue;
    auto call = down_.call(iggy::StoreConsumerOffset{consumer, topic.downstream.stream, topic.downstream.topic,
                                                     entry.row.key.partition, *entry.store});
    auto reply = co_await std::move(call);
    if (!reply) {
      if (!is_refusal(reply.error())) co_return std::move(reply).error();
      entry.row.state = to_string(ConsumerState::kFailed);
      entry.row.detail = reply.error().to_string();
      continue;
    }
    entry.row.down_offset = entry.store;
    entry.row.synced_at = clock_.wall_micros();
  }
  co_return base::ok();
}

// Only a member may store a group's offset: joins, when nobody else is in it, stores, leaves.
base::Task<base::Status> ConsumerSync::enter_group(SyncedTopic topic, std::string name, bool there, Entries& entries) {
  const std::string& stream = topic.downstream.stream;
  const std::string& on = topic.downstream.topic;
  const auto all = [&](ConsumerState state, const std::string& detail) {
    for (Entry& entry : entries) {
      if (!entry.store) continue;
      entry.row.state = to_string(state);
      entry.row.detail = detail;
    }
  };
  if (!there) {
    auto creating = down_.call(iggy::CreateGroup{stream, on, name});
    auto created = co_await std::move(creating);
    if (!created && created.error().code() != base::ErrorCode::kAlreadyExists) {
      if (!is_refusal(created.error())) co_return std::move(created).error();
      all(ConsumerState::kFailed, created.error().to_string());
      co_return base::ok();
    }
  }
  // Looks before joining and after: somebody may come in between.
  for (const std::size_t members : {std::size_t{0}, std::size_t{1}}) {
    if (members == 1) {
      auto joining = down_.call(iggy::JoinGroup{stream, on, name});
      auto joined = co_await std::move(joining);
      if (!joined) {
        if (!is_refusal(joined.error())) co_return std::move(joined).error();
        all(ConsumerState::kFailed, joined.error().to_string());
        co_return base::ok();
      }
    }
    auto looking = down_.call(iggy::GetGroup{stream, on, name});
    auto group = co_await std::move(looking);
    const auto* details = group ? std::get_if<iggy::GroupDetails>(&*group) : nullptr;
    if (details != nullptr && details->group.members_count <= members) continue;
    all(details == nullptr ? ConsumerState::kFailed : ConsumerState::kBusy,
        details == nullptr ? "the group can't be looked at downstream"
                           : fmt::format("{} members are in it downstream",
                                         details->group.members_count - static_cast<std::uint32_t>(members)));
    if (members == 1) {
      auto leaving = down_.call(iggy::LeaveGroup{stream, on, name});
      auto left = co_await std::move(leaving);
      if (!left && !is_refusal(left.error())) co_return std::move(left).error();
    }
    co_return base::ok();
  }
  auto storing = store(topic, {iggy::ConsumerKind::kGroup, name}, entries);
  auto stored = co_await std::move(storing);
  auto leaving = down_.call(iggy::LeaveGroup{stream, on, name});
  auto left = co_await std::move(leaving);
  CO_RETURN_IF_ERROR(stored);
  if (!left && !is_refusal(left.error())) co_return std::move(left).error();
  co_return base::ok();
}

base::Task<base::Status> ConsumerSync::move(SyncedTopic topic, iggy::ConsumerKind kind, std::string name, bool there,
                                            Entries& entries) {
  const bool any = std::ranges::any_of(entries, [](const Entry& entry) { return entry.store.has_value(); });
  if (!any && there) co_return base::ok();
  auto moving = kind == iggy::ConsumerKind::kGroup ? enter_group(topic, std::move(name), there, entries)
                                                   : store(topic, {kind, std::move(name)}, entries);
  co_return co_await std::move(moving);
}

base::Task<base::Result<std::vector<state::ConsumerRow>>> ConsumerSync::pass(std::vector<SyncedTopic> topics,
                                                                             bool dry_run) {
  auto known_call = store_.consumers();
  auto known = co_await std::move(known_call);
  CO_RETURN_IF_ERROR(known);
  known_ = std::move(*known);
  std::vector<std::string> consumers = options_.names;
  for (const state::ConsumerRow& row : known_) {
    if (up_ == nullptr && row.kind == "consumer") consumers.push_back(row.name);
  }
  std::ranges::sort(consumers);
  consumers.erase(std::unique(consumers.begin(), consumers.end()), consumers.end());
  std::vector<state::ConsumerRow> rows;
  for (const SyncedTopic& topic : topics) {
    std::vector<std::string> there;
    std::vector<std::string> listed;  // groups upstream
    std::vector<std::pair<iggy::ConsumerKind, std::string>> who;
    for (const std::string& name : consumers) who.emplace_back(iggy::ConsumerKind::kConsumer, name);
    if (options_.groups) {
      std::vector<std::string> names;
      if (up_ != nullptr) {
        auto up_call = group_names(*up_, topic.upstream);
        auto found = co_await std::move(up_call);
        CO_RETURN_IF_ERROR(found);
        names = std::move(*found);
      }
      listed = names;
      for (const state::ConsumerRow& row : known_) {
        if (row.key.topic != topic.upstream || row.kind != "group") continue;
        names.push_back(row.name);  // a group that was deleted upstream is reported
        if (up_ == nullptr && row.up_offset) listed.push_back(row.name);
      }
      std::ranges::sort(names);
      names.erase(std::unique(names.begin(), names.end()), names.end());
      for (std::string& name : names) who.emplace_back(iggy::ConsumerKind::kGroup, name);
      if (!names.empty()) {
        auto down_call = group_names(down_, topic.downstream);
        auto down_names = co_await std::move(down_call);
        CO_RETURN_IF_ERROR(down_names);
        there = std::move(*down_names);
      }
    }
    for (const auto& [kind, name] : who) {
      const bool is_there = kind == iggy::ConsumerKind::kConsumer || std::ranges::find(there, name) != there.end();
      auto looking = look(topic, kind, name, is_there);
      auto entries = co_await std::move(looking);
      CO_RETURN_IF_ERROR(entries);
      // A group that is gone upstream is reported, and not made downstream.
      const bool may_move = kind == iggy::ConsumerKind::kConsumer || std::ranges::find(listed, name) != listed.end();
      if (!dry_run && may_move) {
        auto moving = move(topic, kind, name, is_there, *entries);
        auto moved = co_await std::move(moving);
        CO_RETURN_IF_ERROR(moved);
      }
      for (Entry& entry : *entries) {
        if (dry_run && entry.store) entry.row.detail = fmt::format("would be stored: {}", *entry.store);
        rows.push_back(std::move(entry.row));
      }
    }
  }
  std::ranges::sort(rows, {}, [](const state::ConsumerRow& row) { return std::tie(row.key, row.kind, row.name); });
  if (!dry_run && !rows.empty()) {
    state::Transaction transaction;
    transaction.consumers = rows;
    auto applying = store_.apply(std::move(transaction));
    auto applied = co_await std::move(applying);
    CO_RETURN_IF_ERROR(applied);
  }
  co_return rows;
}

base::Task<base::Result<std::vector<state::ConsumerRow>>> ConsumerSync::pass_over_all() {
  auto rows_call = store_.partitions();
  auto partitions = co_await std::move(rows_call);
  CO_RETURN_IF_ERROR(partitions);
  std::map<base::TopicName, SyncedTopic> topics;
  for (const state::PartitionRow& row : *partitions) {
    SyncedTopic& topic = topics[row.key.topic];
    topic.upstream = row.key.topic;
    topic.downstream = row.downstream;
    topic.partitions.push_back(row.key.partition);
  }
  std::vector<SyncedTopic> list;
  for (auto& [name, topic] : topics) list.push_back(std::move(topic));
  auto passing = pass(std::move(list), false);
  co_return co_await std::move(passing);
}

SyncSummary summary_of(const std::vector<state::ConsumerRow>& rows, std::uint64_t now) {
  std::map<std::string, std::size_t> counts;
  std::uint64_t oldest = now;
  for (const state::ConsumerRow& row : rows) {
    if (row.state == to_string(ConsumerState::kNone)) continue;
    ++counts[row.state];
    oldest = std::min(oldest, row.seen_at);
  }
  if (counts.empty()) return {"no stored offset was seen upstream", std::nullopt};
  std::string text;
  for (const auto& [state, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  text = fmt::format("stored offsets: {}; the upstream's as of {:.1f} s before", text,
                     static_cast<double>(now - oldest) / 1e6);
  const auto stuck = std::ranges::find_if(rows, [](const state::ConsumerRow& row) {
    return row.state == to_string(ConsumerState::kFailed) || row.state == to_string(ConsumerState::kBusy);
  });
  if (stuck == rows.end()) return {std::move(text), std::nullopt};
  return {std::move(text), fmt::format("{} {} of {} was not moved: {}", stuck->kind, stuck->name,
                                       stuck->key.to_string(), stuck->detail)};
}

}  // namespace replicator
