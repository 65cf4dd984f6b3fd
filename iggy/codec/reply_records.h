// Records of replies that both dialects lay out the same way. Reading never fails by itself: ask the reader at the end.
//
//   Stats       | 108 fixed bytes | five long texts | semver u32 | cache | threads u32 | free u64 | total u64 |
//   Cluster     | long name | count u32 | node… |   node: | long name | long ip | 4 × port u16 | role u8 | status u8 |
//   ClientInfo  | id u32 | user u32 | transport u8 | long address | groups u32 | then 12 bytes each, not in lists |
//   Partition   | id u32 | created u64 | segments u32 | current offset u64 | size u64 | messages u64 |
//   Group       | id u32 | partitions u32 | members u32 | Name |
//   Member      | id u32 | count u32 | partition u32… |
//   Offset      | partition u32 | current u64 | stored u64 |
//
// Source: apache/iggy tag server-0.8.0, core/binary_protocol/src/responses/; the same in the released 0.11.0.
#pragma once

#include "iggy/codec/primitives.h"
#include "iggy/model.h"

namespace iggy {

Stats read_stats(WireReader& reader);
void write(WireWriter& out, const Stats& stats);

ClusterNode read_cluster_node(WireReader& reader);
void write(WireWriter& out, const ClusterNode& node);
ClusterMetadata read_cluster(WireReader& reader);
void write(WireWriter& out, const ClusterMetadata& cluster);

// `with_groups`: get_me and get_client carry the memberships, get_clients only their number.
ClientInfo read_client(WireReader& reader, bool with_groups);
void write(WireWriter& out, const ClientInfo& client, bool with_groups);

Partition read_partition(WireReader& reader);
void write(WireWriter& out, const Partition& partition);

Group read_group(WireReader& reader);
void write(WireWriter& out, const Group& group);
// Group and exactly its members_count members.
GroupDetails read_group_details(WireReader& reader);
void write(WireWriter& out, const GroupDetails& details);

ConsumerOffset read_consumer_offset(WireReader& reader);
void write(WireWriter& out, const ConsumerOffset& offset);

AccessToken read_access_token(WireReader& reader);
void write(WireWriter& out, const AccessToken& token);

}  // namespace iggy
