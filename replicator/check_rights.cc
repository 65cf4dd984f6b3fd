#include "replicator/check_rights.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "replicator/topics/rights.h"

namespace replicator {
namespace {

using iggy::Access;

struct Need {
  Access access;
  std::string purpose;  // completes "needed …"
  std::set<base::TopicName> objects;
  Verdict without = Verdict::kFail;
};

// What the link does with one end.
class Needs {
 public:
  void add(Access access, base::TopicName object, std::string purpose, Verdict without = Verdict::kFail) {
    const auto same =
        std::ranges::find_if(all_, [&](const Need& need) { return need.access == access && need.purpose == purpose; });
    if (same != all_.end()) {
      same->objects.insert(std::move(object));
    } else {
      all_.push_back({access, std::move(purpose), {std::move(object)}, without});
    }
  }
  const std::vector<Need>& all() const { return all_; }

 private:
  std::vector<Need> all_;
};

std::string name_of(const base::TopicName& object) { return object.topic.empty() ? object.stream : object.to_string(); }

std::string join(const std::vector<base::TopicName>& objects) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> names;
  for (const base::TopicName& object : objects) names.push_back(name_of(object));
  const std::size_t more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

base::Task<void> compare(std::string side, iggy::Client& client, Needs needs, CheckReport& report) {
  auto looking = Rights::look(client);
  Rights rights = co_await std::move(looking);
  bool complete = true;
  for (const Need& need : needs.all()) {
    std::vector<base::TopicName> missing, unknown;
    for (const base::TopicName& object : need.objects) {
      auto asking = rights.have(need.access, object);
      const std::optional<bool> has = co_await std::move(asking);
      if (!has) unknown.push_back(object);
      if (has == false) missing.push_back(object);
    }
    const std::string item = fmt::format("right {}", iggy::name_of(need.access));
    if (!missing.empty()) {
      complete = false;
      report.items.push_back(
          {side, item, need.without,
           fmt::format("{}; needed {}", lacks(side, client, need.access, join(missing)), need.purpose)});
    }
    if (!unknown.empty()) {
      complete = false;
      const std::string objects = join(unknown);
      report.items.push_back({side, item, Verdict::kWarn,
                              fmt::format("needed {}{}{}; whether the user has it can't be told: it may not read its "
                                          "own rights, and a trial would change something",
                                          need.purpose, objects.empty() ? "" : " on ", objects)});
    }
  }
  if (complete) {
    report.items.push_back(
        {side, "rights", Verdict::kOk,
         rights.are_known() ? "all that the link needs" : "all that the link needs, as far as trials tell"});
  }
}

Needs of_upstream(const Rules& rules, const Topology& topology) {
  Needs needs;
  for (const TopicPattern& include : rules.includes()) {
    const auto stream = include.stream.literal();
    const auto topic = include.topic.literal();
    if (!stream) {
      needs.add(Access::kListStreams, {}, "because a rule matches streams by pattern");
    } else if (!topic) {
      needs.add(Access::kListTopics, {*stream, ""}, "because a rule matches topics by pattern");
    } else {
      needs.add(Access::kReadTopic, {*stream, *topic}, "to see its partitions");
      needs.add(Access::kPoll, {*stream, *topic}, "to copy");
    }
  }
  for (const WantedPartition& wanted : topology.partitions) {
    needs.add(Access::kReadTopic, wanted.key.topic, "to see its partitions");
    needs.add(Access::kPoll, wanted.key.topic, "to copy");
  }
  return needs;
}

Needs of_downstream(const Topology& topology) {
  Needs needs;
  needs.add(Access::kReadServers, {},
            "to settle an uncertain send by proof; without it by two equal looks a second apart", Verdict::kWarn);
  std::set<base::TopicName> new_topics;
  for (const Action& action : topology.actions) {
    switch (action.kind) {
      case Action::Kind::kCreateStream:
        needs.add(Access::kManageStreams, {}, fmt::format("to create stream {}", action.downstream.stream));
        break;
      case Action::Kind::kCreateTopic:
        new_topics.insert(action.downstream);
        needs.add(Access::kManageTopics, {action.downstream.stream, ""}, "to create topics");
        break;
      case Action::Kind::kGrow:
        needs.add(Access::kManageTopic, action.downstream, "to add partitions");
        break;
    }
  }
  for (const WantedPartition& wanted : topology.partitions) {
    if (new_topics.contains(wanted.downstream)) continue;  // who creates a topic may use it
    needs.add(Access::kReadTopic, wanted.downstream, "to see its partitions");
    needs.add(Access::kPoll, wanted.downstream, "to read back what was sent");
    needs.add(Access::kSend, wanted.downstream, "to copy");
  }
  return needs;
}

// The link's record downstream.
base::Task<void> add_marker(iggy::Client& downstream, base::TopicName marker, Needs& needs) {
  const std::string why = "for the link's record (or set marker = \"off\")";
  auto looking = find_topic(downstream, marker);
  auto topic = co_await std::move(looking);
  const bool there = topic ? topic->has_value() : topic.error().code() == base::ErrorCode::kPermission;
  if (there) {
    needs.add(Access::kPoll, marker, why);
    needs.add(Access::kSend, marker, why);
    co_return;
  }
  auto asking = downstream.call(iggy::GetStream{marker.stream});
  auto stream = co_await std::move(asking);
  const bool has_stream = stream ? std::holds_alternative<iggy::StreamDetails>(*stream)
                                 : stream.error().code() == base::ErrorCode::kPermission;
  if (has_stream) {
    needs.add(Access::kManageTopics, {marker.stream, ""}, fmt::format("to create {} {}", marker.to_string(), why));
  } else {
    needs.add(Access::kManageStreams, {}, fmt::format("to create {} {}", marker.to_string(), why));
  }
}

}  // namespace

base::Task<void> check_rights(iggy::Client& upstream, iggy::Client& downstream, const Rules& rules,
                              const Topology& topology, CheckReport& report) {
  auto above = compare("upstream", upstream, of_upstream(rules, topology), report);
  co_await std::move(above);
  Needs needs = of_downstream(topology);
  if (rules.marker()) {
    auto adding = add_marker(downstream, *rules.marker(), needs);
    co_await std::move(adding);
  }
  auto below = compare("downstream", downstream, std::move(needs), report);
  co_await std::move(below);
}

}  // namespace replicator
