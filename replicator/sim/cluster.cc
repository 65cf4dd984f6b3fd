#include "replicator/sim/cluster.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/digest.h"
#include "iggy/codec/status.h"
#include "replicator/topics/durability.h"

namespace replicator::sim {

namespace {

std::string text(const iggy::Ident& ident) { return std::get<std::string>(ident); }

Log fresh_log(std::uint64_t wall, std::uint64_t segment) {
  Log log;
  log.created_at = wall;
  log.segment = segment;
  return log;
}

iggy::PolledMessages to_reply(const std::vector<Message>& messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += message.body.size();
  auto frame = std::make_shared<base::Buffer>(bytes);
  iggy::PolledMessages reply;
  reply.batch.records.reserve(messages.size());
  std::size_t at = 0;
  for (const Message& message : messages) {
    std::memcpy(frame->data() + at, message.body.data(), message.body.size());
    base::Record record;
    record.offset = message.offset;
    record.id = message.id;
    record.timestamp = message.timestamp;
    record.origin_timestamp = message.origin;
    record.payload_length = message.payload_length;
    record.body = frame->view().subspan(at, message.body.size());
    reply.batch.records.push_back(record);
    at += message.body.size();
  }
  reply.batch.frame = std::move(frame);
  return reply;
}

}  // namespace

Cluster::Cluster(Agenda& agenda, Flavour flavour, std::string name, std::uint64_t seed)
    : agenda_(agenda), flavour_(flavour), name_(std::move(name)), dice_(seed) {}

void Cluster::note(std::string_view what, std::uint64_t a, std::uint64_t b) {
  if (on_note) on_note(what, a, b);
  base::Bytes bytes;
  base::ByteWriter writer(bytes);
  writer.u64(trace_);
  writer.u64(static_cast<std::uint64_t>(now().time_since_epoch().count()));
  writer.u64(a);
  writer.u64(b);
  writer.text(what);
  trace_ = base::xxh3_64(bytes);
}

// ---------------------------------------------------------------------------------------------------------------------
// What happens to it

Topic& Cluster::create(const base::TopicName& name, std::uint32_t partitions, iggy::TopicSettings settings) {
  streams.insert(name.stream);
  Topic topic;
  if (free_ids_.empty()) {
    topic.id = next_id_++;
  } else {  // recycled: 0.8 the last freed, 0.9 the lowest
    topic.id = *free_ids_.begin();
    free_ids_.erase(free_ids_.begin());
  }
  topic.created_at = wall();
  topic.settings = std::move(settings);
  const std::uint64_t segment = dice_.between(5, 80);
  const bool persists = is_persisted(describe(name.topic, topic));
  for (std::uint32_t i = 0; i < partitions; ++i) {
    topic.partitions.push_back(fresh_log(wall() + 5, segment));
    topic.partitions.back().persisted = persists;
  }
  note("create", partitions);
  return topics.insert_or_assign(name, std::move(topic)).first->second;
}

void Cluster::grow(const base::TopicName& name, std::uint32_t count) {
  Topic& topic = topics.at(name);
  for (; count > 0; --count) {
    topic.partitions.push_back(fresh_log(wall(), topic.partitions.front().segment));
    topic.partitions.back().persisted = topic.partitions.front().persisted;
  }
  note("grow", topic.partitions.size());
}

void Cluster::drop(const base::TopicName& name) {
  free_ids_.insert(topics.at(name).id);
  topics.erase(name);
  note("drop");
}

void Cluster::recreate(const base::TopicName& name, base::Duration done_after) {
  Topic old = std::move(topics.at(name));
  drop(name);
  Topic& fresh = create(name, static_cast<std::uint32_t>(old.partitions.size()), old.settings);
  if (is_legacy()) return;
  for (std::size_t i = 0; i < fresh.partitions.size(); ++i) {
    fresh.partitions[i].limbo = Log::Limbo{now() + done_after, std::move(old.partitions[i].kept), true};
  }
}

void Cluster::purge(const base::TopicName& name, base::Duration done_after) {
  for (Log& log : topics.at(name).partitions) log.clear(!is_legacy(), now() + done_after);
  note("purge");
}

std::uint64_t Cluster::append(const base::TopicName& name, std::uint32_t partition, std::vector<Message> messages) {
  Log& log = topics.at(name).partitions.at(partition);
  const std::uint64_t base = log.append(std::move(messages), wall());
  note("append", partition, log.next);
  return base;
}

void Cluster::crash(bool flushed) {
  ++boot_;
  for (auto& [name, topic] : topics) {
    if (is_legacy() && !topic.partitions.front().shifted) topic.created_at += 12'000;
    for (Log& log : topic.partitions) {
      if (flushed) log.saved = log.next;
      log.crash(flavour_);
      log.dedups = dedup_by_id && is_legacy();
    }
  }
  cut();
  sessions_.clear();
  note("crash", flushed ? 1 : 0);
}

void Cluster::cut() {
  const auto all = sessions_;
  for (const auto& [number, session] : all) end(session);
  note("cut");
}

void Cluster::clean() {
  for (auto& [name, topic] : topics) {
    const std::uint64_t expiry =
        topic.settings.message_expiry == iggy::kNeverExpire ? 0 : topic.settings.message_expiry;
    const std::uint64_t size =
        topic.settings.max_topic_size == iggy::kUnlimitedSize ? 0 : topic.settings.max_topic_size;
    if (expiry == 0 && size == 0) continue;
    for (Log& log : topic.partitions) log.clean(expiry, size / topic.partitions.size(), wall());
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Sessions

bool Cluster::is_down() const { return now() < down_until_; }

SessionPtr Cluster::connect(std::function<void()> on_end) {
  auto session = std::make_shared<Session>();
  session->number = ++sessions_made_;
  session->address = name_ + ":" + std::to_string(session->number);
  session->on_end = std::move(on_end);
  sessions_.emplace(session->number, session);
  return session;
}

void Cluster::end(const SessionPtr& session, bool leaks) {
  if (!session->open) return;
  session->open = false;
  session->leaked = leaks;
  if (!leaks && session->unfinished == 0) sessions_.erase(session->number);
  if (auto told = std::exchange(session->on_end, nullptr)) told();
}

bool Cluster::is_listed(const std::string& address) const {
  return std::ranges::any_of(sessions_, [&](const auto& entry) {
    const Session& session = *entry.second;
    return session.address == address && (session.open || session.leaked || session.unfinished > 0);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Requests

base::Error Cluster::refusal(std::uint32_t status, std::string operation) const {
  return iggy::error_of_status(status, std::move(operation));
}

Log* Cluster::find(const base::TopicName& name, std::uint32_t partition) {
  const auto topic = topics.find(name);
  if (topic == topics.end() || partition >= topic->second.partitions.size()) return nullptr;
  return &topic->second.partitions[partition];
}

Topic* Cluster::topic_of(const iggy::Ident& stream, const iggy::Ident& topic) {
  const auto found = topics.find({text(stream), text(topic)});
  return found == topics.end() ? nullptr : &found->second;
}

iggy::Topic Cluster::describe(const std::string& name, const Topic& topic) const {
  iggy::Topic described;
  described.id = topic.id;
  described.name = name;
  described.created_at = topic.created_at;
  described.partitions_count = static_cast<std::uint32_t>(topic.partitions.size());
  described.settings = topic.settings;
  for (const Log& log : topic.partitions) described.messages_count += log.visible_count(now());
  return described;
}

iggy::TopicDetails Cluster::details(const std::string& name, const Topic& topic) const {
  iggy::TopicDetails reply{describe(name, topic), {}};
  for (const Log& log : topic.partitions) {
    iggy::Partition partition;
    partition.id = static_cast<std::uint32_t>(reply.partitions.size());
    partition.created_at = log.created_at;
    const std::uint64_t end = log.visible_end(now());
    partition.current_offset = end == 0 ? 0 : end - 1;
    partition.messages_count = log.visible_count(now());
    reply.partitions.push_back(partition);
  }
  return reply;
}

base::Result<iggy::Reply> Cluster::poll(const iggy::PollMessages& request) {
  using Kind = iggy::PollStrategy::Kind;
  const Topic* topic = topic_of(request.stream, request.topic);
  if (topic == nullptr) return refusal(streams.contains(text(request.stream)) ? 2010 : 1009, "poll");
  if (denied.contains(Right::kPoll)) return refusal(41, "poll");
  if (*request.partition >= topic->partitions.size()) return refusal(3007, "poll");
  const Log& log = topic->partitions[*request.partition];
  bool refused = false;
  std::vector<Message> messages;
  switch (request.strategy.kind) {
    case Kind::kLast:
      messages = log.last(request.count, now());
      break;
    case Kind::kTimestamp:
      messages = log.at_time(request.strategy.value, request.count);
      break;
    default:
      messages =
          log.read(request.strategy.kind == Kind::kOffset ? request.strategy.value : 0, request.count, now(), refused);
  }
  if (refused) return refusal(4100, "poll");
  iggy::PolledMessages reply = to_reply(messages);
  const std::uint64_t end = log.visible_end(now());
  reply.partition = *request.partition;
  reply.current_offset = end == 0 ? 0 : end - 1;
  return iggy::Reply(std::move(reply));
}

base::Result<iggy::Reply> Cluster::execute(const iggy::Request& request) {
  const auto forbidden = [this](Right right) { return denied.contains(right); };
  const std::string operation(iggy::name_of(request));
  if (const auto* asked = std::get_if<iggy::PollMessages>(&request)) return poll(*asked);
  if (std::holds_alternative<iggy::Ping>(request)) return iggy::Reply(iggy::Done{});
  if (std::holds_alternative<iggy::DescribeOptions>(request)) {
    iggy::OptionDescriptions known;
    if (flavour_ == Flavour::kVsrReserving) known.options.emplace_back().key = kDurability;
    return iggy::Reply(std::move(known));
  }
  if (const auto* asked = std::get_if<iggy::GetTopic>(&request)) {
    const Topic* topic = topic_of(asked->stream, asked->topic);
    if (topic == nullptr) return iggy::Reply(iggy::NotThere{});
    if (forbidden(Right::kReadTopics)) return refusal(41, operation);
    return iggy::Reply(details(text(asked->topic), *topic));
  }
  if (const auto* asked = std::get_if<iggy::GetStream>(&request)) {
    if (!streams.contains(text(asked->stream))) return iggy::Reply(iggy::NotThere{});
    if (forbidden(Right::kReadTopics)) return refusal(41, operation);
    iggy::StreamDetails reply;
    reply.stream.name = text(asked->stream);
    return iggy::Reply(std::move(reply));
  }
  if (std::holds_alternative<iggy::GetStreams>(request)) {
    if (forbidden(Right::kReadTopics)) return refusal(41, operation);
    iggy::Streams reply;
    for (const std::string& stream : streams) {
      iggy::Stream described;
      described.name = stream;
      reply.streams.push_back(std::move(described));
    }
    return iggy::Reply(std::move(reply));
  }
  if (const auto* asked = std::get_if<iggy::GetTopics>(&request)) {
    if (!streams.contains(text(asked->stream))) return refusal(1009, operation);
    if (forbidden(Right::kReadTopics)) return refusal(41, operation);
    iggy::Topics reply;
    for (const auto& [name, topic] : topics) {
      if (name.stream == text(asked->stream)) reply.topics.push_back(describe(name.topic, topic));
    }
    return iggy::Reply(std::move(reply));
  }
  if (const auto* asked = std::get_if<iggy::FlushUnsaved>(&request)) {
    Log* log = find({text(asked->stream), text(asked->topic)}, asked->partition);
    if (!is_legacy()) return refusal(3, operation);  // 0.9 has none
    if (log == nullptr) return refusal(2010, operation);
    if (forbidden(Right::kSend)) return refusal(41, operation);
    log->saved = log->next;
    note("flush", asked->partition, log->saved);
    return iggy::Reply(iggy::Done{});
  }
  if (forbidden(Right::kManage)) return refusal(41, operation);
  if (const auto* asked = std::get_if<iggy::CreateStream>(&request)) {
    if (!streams.insert(asked->name).second) return refusal(1012, operation);
    return iggy::Reply(iggy::Done{});
  }
  if (const auto* asked = std::get_if<iggy::CreateTopic>(&request)) {
    const base::TopicName name{text(asked->stream), asked->name};
    if (!streams.contains(name.stream)) return refusal(1009, operation);
    if (topics.contains(name)) return refusal(2013, operation);
    create(name, asked->partitions_count, asked->settings);
    return iggy::Reply(iggy::Done{});
  }
  if (const auto* asked = std::get_if<iggy::CreatePartitions>(&request)) {
    if (topic_of(asked->stream, asked->topic) == nullptr) return refusal(2010, operation);
    grow({text(asked->stream), text(asked->topic)}, asked->count);
    return iggy::Reply(iggy::Done{});
  }
  return refusal(3, operation);
}

base::Result<iggy::SendAck> Cluster::send(const base::TopicName& topic, std::uint32_t partition,
                                          std::vector<Message> messages) {
  Log* log = find(topic, partition);
  if (log == nullptr) return refusal(is_legacy() ? 2010 : 20, "send");
  if (denied.contains(Right::kSend)) return refusal(41, "send");
  if (log->limbo && now() < log->limbo->until) {
    if (log->limbo->refuses) return refusal(58, "send");
    // Acknowledged at the old end, and wiped with the rest.
    const std::uint64_t end = log->limbo->old.empty() ? 0 : log->limbo->old.back().offset + 1;
    return iggy::SendAck{end + messages.size()};
  }
  const std::size_t sent = messages.size();
  if (log->dedups) {
    std::erase_if(messages, [log](const Message& m) { return log->ids.contains({m.id.high, m.id.low}); });
    if (messages.empty()) {  // observed: the server ends
      ++dedup_crashes;
      crash(false);
      return refusal(11001, "send");
    }
  }
  log->append(std::move(messages), wall());
  note("send", sent, log->next);
  // 0.8 answers nothing: the client asks for the topic behind the send.
  return iggy::SendAck{log->next};
}

}  // namespace replicator::sim
