// Consumer groups: members are connections; every change deals the partitions out anew, round robin.
#include <algorithm>

#include "integration/sandbox/broker.h"
#include "integration/sandbox/contains.h"

namespace sandbox {

GroupState* Broker::find_group(TopicState& topic, const iggy::Ident& ident) {
  if (const auto* id = std::get_if<std::uint32_t>(&ident)) {
    const auto at = topic.groups.find(*id);
    return at == topic.groups.end() ? nullptr : &at->second;
  }
  for (auto& [id, group] : topic.groups)
    if (group.name == std::get<std::string>(ident)) return &group;
  return nullptr;
}

void Broker::rebalance(TopicState& topic, GroupState& group) {
  ++group.generation;
  for (GroupMember& member : group.members) {
    member.partitions.clear();
    member.turn = 0;
  }
  if (group.members.empty()) return;
  for (std::uint32_t i = 0; i < topic.partitions.size(); ++i)
    group.members[i % group.members.size()].partitions.push_back(i);
}

void Broker::join(Caller& caller, const StreamState& stream, TopicState& topic, GroupState& group) {
  if (contains(group.members, &caller, &GroupMember::caller)) return;
  group.members.push_back({.id = group.next_member++, .caller = &caller, .partitions = {}});
  caller.groups.push_back({stream.id, topic.id, group.id});
  rebalance(topic, group);
}

bool Broker::leave(Caller& caller, const StreamState& stream, TopicState& topic, GroupState& group) {
  if (std::erase_if(group.members, [&](const GroupMember& member) { return member.caller == &caller; }) == 0)
    return false;
  std::erase(caller.groups, iggy::ClientInfo::Membership{stream.id, topic.id, group.id});
  rebalance(topic, group);
  return true;
}

void Broker::drop_group(const StreamState& stream, TopicState& topic, GroupState& group) {
  while (!group.members.empty()) leave(*group.members.back().caller, stream, topic, group);
  for (auto& partition : topic.partitions) erase_offset(*partition, {iggy::ConsumerKind::kGroup, group.id});
  journal_.erase(key_of(stream, topic, group));
  // Numbers of groups are recycled on 0.8.0 only.
  if (!options_.profile.lowest_id_first) topic.group_ids.release(group.id);
  topic.groups.erase(group.id);
}

}  // namespace sandbox
