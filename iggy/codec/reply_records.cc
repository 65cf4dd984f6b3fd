#include "iggy/codec/reply_records.h"

namespace iggy {

namespace {

// Every field of the two fixed parts, in wire order.
void for_each_fixed_field(auto&& stats, auto&& field) {
  field(stats.process_id);
  field(stats.cpu_usage);
  field(stats.total_cpu_usage);
  field(stats.memory_usage);
  field(stats.total_memory);
  field(stats.available_memory);
  field(stats.run_time);
  field(stats.start_time);
  field(stats.read_bytes);
  field(stats.written_bytes);
  field(stats.messages_size_bytes);
  field(stats.streams_count);
  field(stats.topics_count);
  field(stats.partitions_count);
  field(stats.segments_count);
  field(stats.messages_count);
  field(stats.clients_count);
  field(stats.groups_count);
}
void for_each_cache_field(auto&& cache, auto&& field) {
  field(cache.stream);
  field(cache.topic);
  field(cache.partition);
  field(cache.hits);
  field(cache.misses);
  field(cache.ratio);
}

auto reading(WireReader& reader) {
  return [&reader]<class T>(T& field) { field = reader.read<T>(); };
}
auto writing(WireWriter& out) {
  return [&out](const auto& field) { out.write(field); };
}

}  // namespace

Stats read_stats(WireReader& reader) {
  Stats stats;
  for_each_fixed_field(stats, reading(reader));
  stats.hostname = reader.long_text();
  stats.os_name = reader.long_text();
  stats.os_version = reader.long_text();
  stats.kernel_version = reader.long_text();
  stats.server_version = reader.long_text();
  stats.server_semver = reader.u32();
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i)
    for_each_cache_field(stats.cache.emplace_back(), reading(reader));
  stats.threads_count = reader.u32();
  stats.free_disk = reader.u64();
  stats.total_disk = reader.u64();
  return stats;
}

void write(WireWriter& out, const Stats& stats) {
  for_each_fixed_field(stats, writing(out));
  for (const std::string* text :
       {&stats.hostname, &stats.os_name, &stats.os_version, &stats.kernel_version, &stats.server_version})
    out.text32(*text);
  out.u32(stats.server_semver);
  out.u32(static_cast<std::uint32_t>(stats.cache.size()));
  for (const Stats::CacheMetrics& cache : stats.cache) for_each_cache_field(cache, writing(out));
  out.u32(stats.threads_count);
  out.u64(stats.free_disk);
  out.u64(stats.total_disk);
}

ClusterNode read_cluster_node(WireReader& reader) {
  ClusterNode node;
  node.name = reader.long_text();
  node.ip = reader.long_text();
  for (std::uint16_t* port : {&node.tcp, &node.quic, &node.http, &node.websocket}) *port = reader.u16();
  node.role = reader.u8();
  node.status = reader.u8();
  return node;
}

void write(WireWriter& out, const ClusterNode& node) {
  out.text32(node.name);
  out.text32(node.ip);
  for (const std::uint16_t port : {node.tcp, node.quic, node.http, node.websocket}) out.u16(port);
  out.u8(node.role);
  out.u8(node.status);
}

ClusterMetadata read_cluster(WireReader& reader) {
  ClusterMetadata cluster;
  cluster.name = reader.long_text();
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) cluster.nodes.push_back(read_cluster_node(reader));
  return cluster;
}

void write(WireWriter& out, const ClusterMetadata& cluster) {
  out.text32(cluster.name);
  out.u32(static_cast<std::uint32_t>(cluster.nodes.size()));
  for (const ClusterNode& node : cluster.nodes) write(out, node);
}

ClientInfo read_client(WireReader& reader, bool with_groups) {
  ClientInfo client;
  client.client_id = reader.u32();
  client.user_id = reader.u32();
  client.transport = reader.u8();
  client.address = reader.long_text();
  client.groups_count = reader.u32();
  for (std::uint32_t i = 0; with_groups && i < client.groups_count && reader.ok(); ++i) {
    ClientInfo::Membership& membership = client.groups.emplace_back();
    membership.stream = reader.u32();
    membership.topic = reader.u32();
    membership.group = reader.u32();
  }
  return client;
}

void write(WireWriter& out, const ClientInfo& client, bool with_groups) {
  out.u32(client.client_id);
  out.u32(client.user_id);
  out.u8(client.transport);
  out.text32(client.address);
  out.u32(with_groups ? static_cast<std::uint32_t>(client.groups.size()) : client.groups_count);
  if (!with_groups) return;
  for (const ClientInfo::Membership& membership : client.groups) {
    out.u32(membership.stream);
    out.u32(membership.topic);
    out.u32(membership.group);
  }
}

Partition read_partition(WireReader& reader) {
  Partition partition;
  partition.id = reader.u32();
  partition.created_at = reader.u64();
  partition.segments_count = reader.u32();
  partition.current_offset = reader.u64();
  partition.size_bytes = reader.u64();
  partition.messages_count = reader.u64();
  return partition;
}

void write(WireWriter& out, const Partition& partition) {
  out.u32(partition.id);
  out.u64(partition.created_at);
  out.u32(partition.segments_count);
  out.u64(partition.current_offset);
  out.u64(partition.size_bytes);
  out.u64(partition.messages_count);
}

Group read_group(WireReader& reader) {
  Group group;
  group.id = reader.u32();
  group.partitions_count = reader.u32();
  group.members_count = reader.u32();
  group.name = reader.name();
  return group;
}

void write(WireWriter& out, const Group& group) {
  out.u32(group.id);
  out.u32(group.partitions_count);
  out.u32(group.members_count);
  out.name(group.name, "group name");
}

GroupDetails read_group_details(WireReader& reader) {
  GroupDetails details;
  details.group = read_group(reader);
  for (std::uint32_t i = 0; i < details.group.members_count && reader.ok(); ++i) {
    GroupMember& member = details.members.emplace_back();
    member.id = reader.u32();
    const std::uint32_t count = reader.u32();
    for (std::uint32_t k = 0; k < count && reader.ok(); ++k) member.partitions.push_back(reader.u32());
  }
  return details;
}

void write(WireWriter& out, const GroupDetails& details) {
  write(out, details.group);
  for (const GroupMember& member : details.members) {
    out.u32(member.id);
    out.u32(static_cast<std::uint32_t>(member.partitions.size()));
    for (const std::uint32_t partition : member.partitions) out.u32(partition);
  }
}

ConsumerOffset read_consumer_offset(WireReader& reader) {
  ConsumerOffset offset;
  offset.partition = reader.u32();
  offset.current_offset = reader.u64();
  offset.stored_offset = reader.u64();
  return offset;
}

void write(WireWriter& out, const ConsumerOffset& offset) {
  out.u32(offset.partition);
  out.u64(offset.current_offset);
  out.u64(offset.stored_offset);
}

AccessToken read_access_token(WireReader& reader) {
  AccessToken token;
  token.name = reader.name();
  token.expiry_at = reader.u64();
  return token;
}

void write(WireWriter& out, const AccessToken& token) {
  out.name(token.name, "token name");
  out.u64(token.expiry_at);
}

}  // namespace iggy
