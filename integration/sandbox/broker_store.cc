// The metadata journal: one entry per thing, keys by number.
//
//   stream/S   topic/S/T   group/S/T/G   part/UID   offset/UID/KIND/ID   user/U   next_uid
#include <algorithm>
#include <charconv>
#include <set>

#include "base/check.h"
#include "integration/sandbox/broker.h"

namespace sandbox {
namespace {

std::vector<std::uint64_t> numbers_of(std::string_view key) {
  std::vector<std::uint64_t> out;
  while (!key.empty()) {
    const std::size_t slash = key.find('/');
    const std::string_view part = key.substr(0, slash);
    std::uint64_t value = 0;
    std::from_chars(part.data(), part.data() + part.size(), value);
    out.push_back(value);
    key.remove_prefix(slash == std::string_view::npos ? key.size() : slash + 1);
  }
  return out;
}

template <class... Numbers>
std::string join_key(std::string_view prefix, Numbers... numbers) {
  std::string out(prefix);
  bool first = true;
  ((out += (first ? "" : "/") + std::to_string(numbers), first = false), ...);
  return out;
}

void write_options(base::ByteWriter& out, const std::vector<iggy::Option>& options) {
  out.u32(static_cast<std::uint32_t>(options.size()));
  for (const iggy::Option& option : options) {
    out.text32(option.key);
    out.u8(option.kind);
    out.text32(base::as_text(option.value));
  }
}
std::vector<iggy::Option> read_options(base::ByteReader& in) {
  std::vector<iggy::Option> out(in.u32());
  for (iggy::Option& option : out) {
    option.key = in.text32();
    option.kind = in.u8();
    const base::ByteView value = in.bytes(in.u32());
    option.value.assign(value.begin(), value.end());
  }
  return out;
}

void write_permissions(base::ByteWriter& out, const std::optional<iggy::Permissions>& permissions) {
  out.u8(permissions ? 1 : 0);
  if (!permissions) return;
  const iggy::Permissions& p = *permissions;
  for (bool flag : {p.manage_servers, p.read_servers, p.manage_users, p.read_users, p.manage_streams, p.read_streams,
                    p.manage_topics, p.read_topics, p.poll_messages, p.send_messages})
    out.u8(flag ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(p.streams.size()));
  for (const auto& s : p.streams) {
    out.u32(s.id);
    for (bool flag : {s.manage_stream, s.read_stream, s.manage_topics, s.read_topics, s.poll_messages, s.send_messages})
      out.u8(flag ? 1 : 0);
    out.u32(static_cast<std::uint32_t>(s.topics.size()));
    for (const auto& t : s.topics) {
      out.u32(t.id);
      for (bool flag : {t.manage_topic, t.read_topic, t.poll_messages, t.send_messages}) out.u8(flag ? 1 : 0);
    }
  }
}
std::optional<iggy::Permissions> read_permissions(base::ByteReader& in) {
  if (in.u8() == 0) return std::nullopt;
  iggy::Permissions p;
  for (bool* flag : {&p.manage_servers, &p.read_servers, &p.manage_users, &p.read_users, &p.manage_streams,
                     &p.read_streams, &p.manage_topics, &p.read_topics, &p.poll_messages, &p.send_messages})
    *flag = in.u8() != 0;
  p.streams.resize(in.u32());
  for (auto& s : p.streams) {
    s.id = in.u32();
    for (bool* flag :
         {&s.manage_stream, &s.read_stream, &s.manage_topics, &s.read_topics, &s.poll_messages, &s.send_messages})
      *flag = in.u8() != 0;
    s.topics.resize(in.u32());
    for (auto& t : s.topics) {
      t.id = in.u32();
      for (bool* flag : {&t.manage_topic, &t.read_topic, &t.poll_messages, &t.send_messages}) *flag = in.u8() != 0;
    }
  }
  return p;
}

}  // namespace

std::string Broker::key_of(const StreamState& stream) { return join_key("stream/", stream.id); }
std::string Broker::key_of(const StreamState& stream, const TopicState& topic) {
  return join_key("topic/", stream.id, topic.id);
}
std::string Broker::key_of(const StreamState& stream, const TopicState& topic, const GroupState& group) {
  return join_key("group/", stream.id, topic.id, group.id);
}

void Broker::store(const StreamState& stream) {
  base::Bytes value;
  base::ByteWriter out(value);
  out.u64(stream.created_at);
  out.u8(stream.shifted ? 1 : 0);
  out.text32(stream.name);
  journal_.put(key_of(stream), std::move(value));
}

void Broker::store(const StreamState& stream, const TopicState& topic) {
  base::Bytes value;
  base::ByteWriter out(value);
  out.u64(topic.created_at);
  out.u8(topic.shifted ? 1 : 0);
  out.text32(topic.name);
  out.u8(static_cast<std::uint8_t>(topic.settings.compression));
  out.u64(topic.settings.message_expiry);
  out.u64(topic.settings.max_topic_size);
  out.u8(topic.settings.replication_factor);
  write_options(out, topic.settings.options);
  write_options(out, topic.derived);
  out.u64(topic.log_settings.segment_size);
  out.u32(topic.log_settings.messages_to_save);
  out.u64(topic.log_settings.bytes_to_save);
  out.u8(topic.log_settings.fsync ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(topic.partitions.size()));
  for (const auto& partition : topic.partitions) out.u64(partition->uid);
  journal_.put(key_of(stream, topic), std::move(value));
  base::Bytes uid;
  base::ByteWriter(uid).u64(next_uid_);
  journal_.put("next_uid", std::move(uid));
}

void Broker::store(const StreamState& stream, const TopicState& topic, const GroupState& group) {
  base::Bytes value;
  base::ByteWriter(value).text32(group.name);
  journal_.put(key_of(stream, topic, group), std::move(value));
}

void Broker::store(const PartitionState& partition) {
  base::Bytes value;
  base::ByteWriter out(value);
  out.u64(partition.created_at);
  out.u64(partition.log.first_offset());
  // The end is known from the log, unless nothing is left of it or a jump was made.
  const bool end_is_in_log = partition.log.messages() > 0 && partition.log.ends_with_message();
  out.u64(end_is_in_log ? 0 : partition.log.next_offset());
  out.u64(partition.reserved);
  out.u8(partition.shifted ? 1 : 0);
  journal_.put(join_key("part/", partition.uid), std::move(value));
}

void Broker::store(const UserState& user) {
  base::Bytes value;
  base::ByteWriter out(value);
  out.u64(user.created_at);
  out.u8(user.status);
  out.text32(user.name);
  out.text32(user.password);
  write_permissions(out, user.permissions);
  out.u32(static_cast<std::uint32_t>(user.tokens.size()));
  for (const TokenState& token : user.tokens) {
    out.text32(token.name);
    out.text32(token.token);
    out.u64(token.expiry_at);
  }
  journal_.put(join_key("user/", user.id), std::move(value));
}

void Broker::store_offset(PartitionState& partition, OffsetKey key, std::uint64_t offset) {
  partition.offsets[key] = offset;
  base::Bytes value;
  base::ByteWriter(value).u64(offset);
  journal_.put(join_key("offset/", partition.uid, static_cast<unsigned>(key.first), key.second), std::move(value));
}

void Broker::erase_offset(PartitionState& partition, OffsetKey key) {
  partition.offsets.erase(key);
  journal_.erase(join_key("offset/", partition.uid, static_cast<unsigned>(key.first), key.second));
}

void Broker::erase_partition(const PartitionState& partition) {
  journal_.erase(join_key("part/", partition.uid));
  journal_.erase_prefix(join_key("offset/", partition.uid) + "/");
  if (!options_.data.empty()) std::filesystem::remove(log_path(partition.uid));
}

void Broker::load() {
  const Profile& server = options_.profile;
  if (const base::Bytes* uid = journal_.find("next_uid")) next_uid_ = base::ByteReader(*uid).u64();
  // Changes are made after each walk, because storing alters the map that is walked.
  journal_.for_each("user/", [&](std::string_view key, base::ByteView value) {
    base::ByteReader in(value);
    const auto id = static_cast<std::uint32_t>(numbers_of(key)[0]);
    UserState& user = users_[id];
    user.id = id;
    user.created_at = in.u64();
    user.status = in.u8();
    user.name = in.text32();
    user.password = in.text32();
    user.permissions = read_permissions(in);
    user.tokens.resize(in.u32());
    for (TokenState& token : user.tokens) {
      token.name = in.text32();
      token.token = in.text32();
      token.expiry_at = in.u64();
    }
    user_ids_.mark_used(id);
  });
  journal_.for_each("stream/", [&](std::string_view key, base::ByteView value) {
    base::ByteReader in(value);
    const auto id = static_cast<std::uint32_t>(numbers_of(key)[0]);
    StreamState& stream = streams_[id];
    stream.id = id;
    stream.topic_ids = IdPool(server.lowest_id_first);
    stream.created_at = in.u64();
    stream.shifted = in.u8() != 0;
    stream.name = in.text32();
    stream_ids_.mark_used(id);
  });
  std::set<std::uint64_t> live;
  journal_.for_each("topic/", [&](std::string_view key, base::ByteView value) {
    const auto ids = numbers_of(key);
    const auto parent = streams_.find(static_cast<std::uint32_t>(ids[0]));
    if (parent == streams_.end()) return;
    base::ByteReader in(value);
    const auto id = static_cast<std::uint32_t>(ids[1]);
    TopicState& topic = parent->second.topics[id];
    topic.id = id;
    topic.created_at = in.u64();
    topic.shifted = in.u8() != 0;
    topic.name = in.text32();
    topic.settings.compression = static_cast<iggy::Compression>(in.u8());
    topic.settings.message_expiry = in.u64();
    topic.settings.max_topic_size = in.u64();
    topic.settings.replication_factor = in.u8();
    topic.settings.options = read_options(in);
    topic.derived = read_options(in);
    topic.log_settings.segment_size = in.u64();
    topic.log_settings.messages_to_save = in.u32();
    topic.log_settings.bytes_to_save = in.u64();
    topic.log_settings.fsync = in.u8() != 0;
    for (std::uint32_t count = in.u32(); count > 0; --count) {
      const std::uint64_t uid = in.u64();
      live.insert(uid);
      topic.partitions.push_back(make_partition(uid, topic.created_at, topic.log_settings));
      PartitionState& partition = *topic.partitions.back();
      if (const base::Bytes* state = journal_.find(join_key("part/", uid))) {
        base::ByteReader part(*state);
        partition.created_at = part.u64();
        const std::uint64_t first = part.u64();
        const std::uint64_t end = part.u64();
        partition.reserved = part.u64();
        partition.shifted = part.u8() != 0;
        partition.log.trim(first);
        if (server.restart_rewinds_empty_log && partition.log.messages() == 0) {
          partition.log.rewind();
        } else {
          partition.log.continue_at(end);
        }
        partition.log.continue_at(partition.reserved);
      }
      journal_.for_each(join_key("offset/", uid) + "/", [&](std::string_view rest, base::ByteView offset) {
        const auto parts = numbers_of(rest);
        partition.offsets[{static_cast<iggy::ConsumerKind>(parts[0]), static_cast<std::uint32_t>(parts[1])}] =
            std::min(base::ByteReader(offset).u64(), partition.log.current_offset());
      });
    }
    parent->second.topic_ids.mark_used(id);
  });
  journal_.for_each("group/", [&](std::string_view key, base::ByteView value) {
    const auto ids = numbers_of(key);
    const auto parent = streams_.find(static_cast<std::uint32_t>(ids[0]));
    if (parent == streams_.end()) return;
    const auto topic = parent->second.topics.find(static_cast<std::uint32_t>(ids[1]));
    if (topic == parent->second.topics.end()) return;
    const auto id = static_cast<std::uint32_t>(ids[2]);
    base::ByteReader in(value);
    GroupState& group = topic->second.groups[id];
    group.id = id;
    group.name = in.text32();
    topic->second.group_ids.mark_used(id);
  });
  // Logs whose topic never made it into the journal, or left it.
  for (const auto& file : std::filesystem::directory_iterator(options_.data / "logs"))
    if (!live.contains(numbers_of(file.path().filename().string())[0])) std::filesystem::remove(file.path());
  if (server.created_at_shifts) shift_created_at();
}

// As 0.8.0 does at the first start after something was created: replaying its own log makes everything a little
// younger.
void Broker::shift_created_at() {
  for (auto& [stream_id, stream] : streams_) {
    if (!stream.shifted) {
      stream.created_at += 12;
      stream.shifted = true;
      store(stream);
    }
    for (auto& [topic_id, topic] : stream.topics) {
      const std::uint64_t before = topic.created_at;
      if (!topic.shifted) {
        topic.created_at += 900 + 1100 * topic.partitions.size();
        topic.shifted = true;
        store(stream, topic);
      }
      for (auto& partition : topic.partitions) {
        if (partition->shifted) continue;
        const bool as_old_as_topic = partition->created_at <= before + 20;
        partition->created_at = as_old_as_topic ? topic.created_at + 5 : partition->created_at + 3700;
        partition->shifted = true;
        store(*partition);
      }
    }
  }
}

}  // namespace sandbox
