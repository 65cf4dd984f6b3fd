// A small Iggy cluster in memory, and clients of it with switches. FakeBroker is one cluster; several FakeClients may
// share it (two processes, or two URLs of one cluster). Topology and polls only, sends for messages that are JSON text.
//
// Switches: `before` may refuse a request before it is executed, `after` may lose its reply; both get the request and
// its number, counted from 1. `frozen_until` makes every call wait, as a stopped process does.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "iggy/client.h"

namespace replicator::testing {

struct FakeMessage {
  std::uint64_t offset = 0;
  std::uint64_t timestamp = 0;  // µs
  std::string payload;
};

struct FakeTopic {
  iggy::Topic topic;
  std::vector<FakeMessage> messages;  // of partition 0
  std::uint64_t end = 0;              // next offset of partition 0
};

struct FakeStream {
  iggy::Stream stream;
  std::vector<FakeTopic> topics;
};

class FakeBroker {
 public:
  explicit FakeBroker(base::Clock& clock, iggy::Dialect dialect = iggy::Dialect::kLegacy)
      : clock_(clock), dialect_(dialect) {}

  std::vector<FakeStream> streams;
  std::vector<std::string> option_keys;  // what describe_options knows

  iggy::Dialect dialect() const { return dialect_; }
  std::uint64_t now() const { return clock_.wall_micros(); }

  FakeStream* stream(const std::string& name) {
    const auto at = std::ranges::find(streams, name, [](const FakeStream& each) { return each.stream.name; });
    return at == streams.end() ? nullptr : &*at;
  }
  FakeTopic* topic(const base::TopicName& name) {
    FakeStream* in = stream(name.stream);
    if (in == nullptr) return nullptr;
    const auto at = std::ranges::find(in->topics, name.topic, [](const FakeTopic& each) { return each.topic.name; });
    return at == in->topics.end() ? nullptr : &*at;
  }
  FakeStream& add_stream(const std::string& name) {
    if (FakeStream* there = stream(name)) return *there;
    FakeStream added;
    added.stream.name = name;
    added.stream.created_at = now();
    return streams.emplace_back(std::move(added));
  }
  FakeTopic& add_topic(const base::TopicName& name, std::uint32_t partitions, iggy::TopicSettings settings = {}) {
    FakeTopic added;
    added.topic.name = name.topic;
    added.topic.created_at = now();
    added.topic.partitions_count = partitions;
    added.topic.settings = std::move(settings);
    return add_stream(name.stream).topics.emplace_back(std::move(added));
  }
  void append(FakeTopic& topic, std::string payload) {
    topic.messages.push_back({topic.end++, now(), std::move(payload)});
  }

 private:
  base::Clock& clock_;
  iggy::Dialect dialect_;
};

class FakeClient final : public iggy::Client {
 public:
  using Hook = std::function<std::optional<base::Error>(const iggy::Request&, std::size_t number)>;

  FakeClient(FakeBroker& broker, base::Clock& clock) : broker_(broker), clock_(clock) {
    identity_.dialect = broker.dialect();
  }

  Hook before, after;
  base::TimePoint frozen_until{};
  std::vector<iggy::Request> requests;  // everything asked for, in order; a send is a SendMessages without records
  std::string last_sent;                // payload of the newest send
  std::optional<iggy::Permissions> permissions;  // of the user, as get_user tells; nothing is enforced
  std::optional<std::uint64_t> stored_offset;    // by the newest store_consumer_offset

  template <class T>
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        requests, [](const iggy::Request& request) { return std::holds_alternative<T>(request); }));
  }
  // Refuses every T with `code`.
  template <class T>
  void deny(base::ErrorCode code = base::ErrorCode::kPermission) {
    before = [code, previous = before](const iggy::Request& request, std::size_t number) -> std::optional<base::Error> {
      if (std::holds_alternative<T>(request)) return base::Error(code, "fake", "", "refused by the test");
      return previous ? previous(request, number) : std::nullopt;
    };
  }

  base::Task<base::Result<iggy::ServerIdentity>> connect() override { co_return identity_; }
  const iggy::ServerIdentity& server() const override { return identity_; }
  base::Task<base::Result<iggy::SendTrace>> open_send(base::TopicName, std::uint32_t) override {
    co_return iggy::SendTrace{};
  }
  bool is_open(const iggy::SendTrace&) const override { return true; }
  base::Task<base::Result<bool>> is_listed(iggy::SendTrace) override { co_return false; }
  base::Task<void> close() override { co_return; }

  base::Task<base::Result<iggy::Reply>> call(iggy::Request request, iggy::Role, std::uint32_t) override {
    if (auto refusal = co_await enter(request)) co_return *std::move(refusal);
    const std::size_t number = requests.size();
    base::Result<iggy::Reply> reply = std::visit([this](const auto& each) { return execute(each); }, request);
    if (auto lost = after ? after(request, number) : std::nullopt) co_return *std::move(lost);
    co_return reply;
  }

  base::Task<base::Result<iggy::SendAck>> send(base::TopicName topic, std::uint32_t partition, iggy::OutgoingSend frame,
                                               std::uint32_t, std::uint32_t, iggy::SendTrace*) override {
    iggy::Request request = iggy::SendMessages{topic.stream, topic.topic, {}, {}, {}};
    if (auto refusal = co_await enter(request)) co_return *std::move(refusal);
    if (partition != 0) co_return refuse(base::ErrorCode::kNotFound, topic.to_string());
    const std::size_t number = requests.size();
    FakeTopic* at = broker_.topic(topic);
    if (at == nullptr) co_return refuse(base::ErrorCode::kNotFound, topic.to_string());
    last_sent = json_of(frame);
    broker_.append(*at, last_sent);
    iggy::SendAck ack;
    if (broker_.dialect() != iggy::Dialect::kLegacy) ack.end = at->end;
    if (auto lost = after ? after(request, number) : std::nullopt) co_return *std::move(lost);
    co_return ack;
  }

 private:
  static base::Error refuse(base::ErrorCode code, std::string object) {
    return {code, "fake", std::move(object), "refused by the broker"};
  }
  static std::string name(const iggy::Ident& ident) { return std::get<std::string>(ident); }

  base::Task<std::optional<base::Error>> enter(const iggy::Request& request) {
    requests.push_back(request);
    const std::size_t number = requests.size();
    if (clock_.now() < frozen_until) {
      auto sleeping = clock_.sleep_until(frozen_until);
      co_await std::move(sleeping);
    }
    co_return before ? before(request, number) : std::nullopt;
  }

  // Payload and (empty) user headers of the only message end the frame in both dialects; the JSON text starts at its
  // brace.
  static std::string json_of(const iggy::OutgoingSend& frame) {
    std::string bytes;
    for (const base::ByteView piece : frame.pieces) bytes += base::as_text(piece);
    const std::size_t begin = bytes.rfind("{\"v\"");
    base::check(begin != std::string::npos, "the fake takes messages of JSON text only");
    return bytes.substr(begin);
  }

  template <class T>
  base::Result<iggy::Reply> execute(const T&) {
    base::check(false, "the fake does not know this request");
    return iggy::Reply(iggy::Done{});
  }
  base::Result<iggy::Reply> execute(const iggy::DescribeOptions&) {
    iggy::OptionDescriptions reply;
    for (const std::string& key : broker_.option_keys) reply.options.push_back({key, 2, {}, ""});
    return iggy::Reply(std::move(reply));
  }
  base::Result<iggy::Reply> execute(const iggy::GetStreams&) {
    iggy::Streams reply;
    for (const FakeStream& each : broker_.streams) reply.streams.push_back(each.stream);
    return iggy::Reply(std::move(reply));
  }
  base::Result<iggy::Reply> execute(const iggy::GetStream& request) {
    const FakeStream* at = broker_.stream(name(request.stream));
    if (at == nullptr) return iggy::Reply(iggy::NotThere{});
    iggy::StreamDetails reply{at->stream, {}};
    for (const FakeTopic& each : at->topics) reply.topics.push_back(each.topic);
    return iggy::Reply(std::move(reply));
  }
  base::Result<iggy::Reply> execute(const iggy::GetTopics& request) {
    iggy::Topics reply;
    if (const FakeStream* at = broker_.stream(name(request.stream))) {
      for (const FakeTopic& each : at->topics) reply.topics.push_back(line(each));
    }
    return iggy::Reply(std::move(reply));
  }
  base::Result<iggy::Reply> execute(const iggy::GetTopic& request) {
    const FakeTopic* at = broker_.topic({name(request.stream), name(request.topic)});
    if (at == nullptr) return iggy::Reply(iggy::NotThere{});
    return iggy::Reply(details(*at));
  }
  base::Result<iggy::Reply> execute(const iggy::CreateStream& request) {
    if (broker_.stream(request.name) != nullptr) return refuse(base::ErrorCode::kAlreadyExists, request.name);
    return iggy::Reply(iggy::StreamDetails{broker_.add_stream(request.name).stream, {}});
  }
  base::Result<iggy::Reply> execute(const iggy::CreateTopic& request) {
    const base::TopicName topic{name(request.stream), request.name};
    if (broker_.stream(topic.stream) == nullptr) return refuse(base::ErrorCode::kNotFound, topic.stream);
    if (broker_.topic(topic) != nullptr) return refuse(base::ErrorCode::kAlreadyExists, topic.to_string());
    if (request.partitions_count > 1000) return refuse(base::ErrorCode::kServerRefused, topic.to_string());
    return iggy::Reply(details(broker_.add_topic(topic, request.partitions_count, request.settings)));
  }
  base::Result<iggy::Reply> execute(const iggy::CreatePartitions& request) {
    FakeTopic* at = broker_.topic({name(request.stream), name(request.topic)});
    if (at == nullptr) return refuse(base::ErrorCode::kNotFound, name(request.topic));
    if (request.count == 0 || request.count > 1000) return refuse(base::ErrorCode::kServerRefused, name(request.topic));
    at->topic.partitions_count += request.count;
    return iggy::Reply(iggy::Done{});
  }
  base::Result<iggy::Reply> execute(const iggy::GetMe&) {
    iggy::ClientInfo me;
    me.user_id = 7;
    return iggy::Reply(std::move(me));
  }
  base::Result<iggy::Reply> execute(const iggy::GetUser&) { return iggy::Reply(iggy::UserDetails{{}, permissions}); }
  base::Result<iggy::Reply> execute(const iggy::GetClients&) { return iggy::Reply(iggy::Clients{}); }
  base::Result<iggy::Reply> execute(const iggy::StoreConsumerOffset& request) {
    stored_offset = request.offset;
    return iggy::Reply(iggy::Done{});
  }
  base::Result<iggy::Reply> execute(const iggy::PollMessages& request) {
    const FakeTopic* at = broker_.topic({name(request.stream), name(request.topic)});
    if (at == nullptr) return refuse(base::ErrorCode::kNotFound, name(request.topic));
    using enum iggy::PollStrategy::Kind;
    std::size_t begin = 0;
    if (request.strategy.kind == kLast) {
      begin = at->messages.size() - std::min<std::size_t>(at->messages.size(), request.count);
    } else if (request.strategy.kind == kOffset) {
      while (begin < at->messages.size() && at->messages[begin].offset < request.strategy.value) ++begin;
    } else {
      base::check(request.strategy.kind == kFirst, "the fake polls by offset, first or last");
    }
    const std::size_t end = std::min(at->messages.size(), begin + request.count);
    std::size_t bytes = 0;
    for (std::size_t i = begin; i < end; ++i) bytes += at->messages[i].payload.size();
    auto frame = std::make_shared<base::Buffer>(bytes);
    iggy::PolledMessages reply;
    std::size_t position = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const FakeMessage& message = at->messages[i];
      std::memcpy(frame->data() + position, message.payload.data(), message.payload.size());
      base::Record record;
      record.offset = message.offset;
      record.timestamp = message.timestamp;
      record.payload_length = static_cast<std::uint32_t>(message.payload.size());
      record.body = frame->view().subspan(position, message.payload.size());
      reply.batch.records.push_back(record);
      position += message.payload.size();
    }
    reply.current_offset = at->end == 0 ? 0 : at->end - 1;
    reply.batch.frame = std::move(frame);
    return iggy::Reply(std::move(reply));
  }
  static iggy::Topic line(const FakeTopic& topic) {
    iggy::Topic line = topic.topic;
    line.messages_count = topic.messages.size();
    return line;
  }
  static iggy::TopicDetails details(const FakeTopic& topic) {
    iggy::TopicDetails reply{line(topic), {}};
    for (std::uint32_t id = 0; id < topic.topic.partitions_count; ++id) {
      iggy::Partition partition;
      partition.id = id;
      partition.created_at = topic.topic.created_at;
      if (id == 0 && topic.end > 0) {
        partition.current_offset = topic.end - 1;
        partition.messages_count = topic.messages.size();
      }
      reply.partitions.push_back(partition);
    }
    return reply;
  }

  FakeBroker& broker_;
  base::Clock& clock_;
  iggy::ServerIdentity identity_;
};

}  // namespace replicator::testing
