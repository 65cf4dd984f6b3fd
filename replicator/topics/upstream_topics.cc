#include "replicator/topics/upstream_topics.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace replicator {
namespace {

using base::ErrorCode;
using base::TopicName;

// Lives inside list_upstream_topics()' frame.
class Listing {
 public:
  Listing(iggy::Client& upstream, const Rules& rules) : upstream_(upstream), rules_(rules) {}

  base::Task<base::Status> run();
  void report_rules();
  UpstreamTopics take() { return std::move(found_); }

 private:
  base::Task<base::Status> list_all_streams();
  base::Task<base::Status> list_stream(std::string stream);
  base::Task<base::Status> list_topic(TopicName name);
  void add(const std::string& stream, iggy::Topic topic);

  iggy::Client& upstream_;
  const Rules& rules_;
  UpstreamTopics found_;
};

// Streams that the rules name are asked for one by one, which needs fewer rights than a list of all.
base::Task<base::Status> Listing::run() {
  bool needs_list = false;
  std::map<std::string, bool> streams;  // -> whether all of its topics are needed
  std::set<TopicName> topics;
  for (const TopicPattern& include : rules_.includes()) {
    const auto stream = include.stream.literal();
    const auto topic = include.topic.literal();
    if (!stream) {
      needs_list = true;
    } else if (!topic) {
      streams[*stream] = true;
    } else {
      topics.insert({*stream, *topic});
    }
  }
  if (needs_list) {
    auto listing = list_all_streams();
    auto listed = co_await std::move(listing);
    CO_RETURN_IF_ERROR(listed);
  }
  std::set<std::string> done;
  for (const auto& [name, topic] : found_.wanted) done.insert(name.stream);
  for (const TopicName& name : found_.unwanted) done.insert(name.stream);
  for (const auto& [stream, all] : streams) {
    if (done.contains(stream) || found_.hidden_streams.contains(stream)) continue;
    done.insert(stream);
    auto listing = list_stream(stream);
    auto listed = co_await std::move(listing);
    CO_RETURN_IF_ERROR(listed);
  }
  for (const TopicName& name : topics) {
    if (done.contains(name.stream)) continue;
    auto listing = list_topic(name);
    auto listed = co_await std::move(listing);
    CO_RETURN_IF_ERROR(listed);
  }
  co_return base::ok();
}

base::Task<base::Status> Listing::list_all_streams() {
  auto call = upstream_.call(iggy::GetStreams{});
  auto reply = co_await std::move(call);
  if (!reply) {
    if (concerns_whole_side(reply.error())) co_return std::move(reply).error();
    found_.streams_hidden = true;
    found_.notices.push_back(refusal_in_words("the streams upstream can't be listed", reply.error(),
                                              "read_streams (or rules that name their streams)"));
    co_return base::ok();
  }
  const auto* streams = std::get_if<iggy::Streams>(&*reply);
  if (streams == nullptr) co_return base::ok();
  for (const iggy::Stream& stream : streams->streams) {
    const bool wanted = std::ranges::any_of(
        rules_.includes(), [&](const TopicPattern& include) { return include.stream.matches(stream.name); });
    if (!wanted || stream.name == kMarkerStream) continue;
    auto listing = list_stream(stream.name);
    auto listed = co_await std::move(listing);
    CO_RETURN_IF_ERROR(listed);
  }
  co_return base::ok();
}

base::Task<base::Status> Listing::list_stream(std::string stream) {
  auto call = upstream_.call(iggy::GetTopics{stream});
  auto reply = co_await std::move(call);
  if (!reply) {
    if (concerns_whole_side(reply.error())) co_return std::move(reply).error();
    if (reply.error().code() == ErrorCode::kNotFound) co_return base::ok();
    found_.hidden_streams.insert(stream);
    found_.notices.push_back(refusal_in_words(fmt::format("the topics of stream {} can't be listed upstream", stream),
                                              reply.error(), "read_stream on it, or read_topics"));
    co_return base::ok();
  }
  if (auto* topics = std::get_if<iggy::Topics>(&*reply)) {
    for (iggy::Topic& topic : topics->topics) add(stream, std::move(topic));
  }
  co_return base::ok();
}

base::Task<base::Status> Listing::list_topic(TopicName name) {
  auto getting = find_topic(upstream_, name);
  auto topic = co_await std::move(getting);
  if (!topic) {
    if (concerns_whole_side(topic.error())) co_return std::move(topic).error();
    found_.hidden_topics.insert(name);
    found_.notices.push_back(refusal_in_words(fmt::format("{} can't be read upstream", name.to_string()), topic.error(),
                                              "read_topic on it (and poll_messages to copy it)"));
    co_return base::ok();
  }
  if (*topic) add(name.stream, **std::move(topic));
  co_return base::ok();
}

void Listing::add(const std::string& stream, iggy::Topic topic) {
  TopicName name{stream, topic.name};
  if (!rules_.target(name)) {
    if (rules_.is_marker_stream(stream) && rules_.marker() != name) {
      found_.notices.push_back(
          fmt::format("{} is not copied: its stream is the marker's, which is always left out", name.to_string()));
    }
    found_.unwanted.insert(std::move(name));
    return;
  }
  if (topic.partitions_count == 0) {
    found_.notices.push_back(
        fmt::format("{} has no partitions upstream: nothing to copy until it has", name.to_string()));
  }
  found_.wanted.insert_or_assign(std::move(name), std::move(topic));
}

void Listing::report_rules() {
  if (found_.streams_hidden) return;
  for (const TopicPattern& include : rules_.includes()) {
    if (std::ranges::any_of(found_.wanted, [&](const auto& source) { return include.matches(source.first); })) continue;
    const auto stream = include.stream.literal();
    if (stream ? found_.hidden_streams.contains(*stream) : !found_.hidden_streams.empty()) continue;
    const auto topic = include.topic.literal();
    if (stream && topic && found_.hidden_topics.contains({*stream, *topic})) continue;
    found_.notices.push_back(fmt::format("the rule {} matches no topic upstream", include.text));
  }
}

}  // namespace

bool UpstreamTopics::is_gone(const TopicName& name) const {
  return !wanted.contains(name) && !streams_hidden && !hidden_streams.contains(name.stream) &&
         !hidden_topics.contains(name);
}

base::Task<base::Result<UpstreamTopics>> list_upstream_topics(iggy::Client& upstream, const Rules& rules) {
  Listing listing(upstream, rules);
  auto running = listing.run();
  auto listed = co_await std::move(running);
  CO_RETURN_IF_ERROR(listed);
  listing.report_rules();
  co_return listing.take();
}

base::Task<base::Result<std::optional<iggy::Topic>>> find_topic(iggy::Client& client, TopicName name) {
  auto call = client.call(iggy::GetTopic{name.stream, name.topic});
  auto reply = co_await std::move(call);
  if (!reply) {
    if (reply.error().code() == ErrorCode::kNotFound) co_return std::optional<iggy::Topic>();
    co_return std::move(reply).error();
  }
  if (auto* details = std::get_if<iggy::TopicDetails>(&*reply)) {
    co_return std::optional<iggy::Topic>(std::move(details->topic));
  }
  co_return std::optional<iggy::Topic>();
}

bool concerns_whole_side(const base::Error& error) {
  switch (error.code()) {
    case ErrorCode::kConnectFailed:
    case ErrorCode::kConnectionLost:
    case ErrorCode::kTimeout:
    case ErrorCode::kNotIggy:
    case ErrorCode::kCredentials:
    case ErrorCode::kStopped:
      return true;
    default:
      return false;
  }
}

std::string refusal_in_words(std::string_view what, const base::Error& error, std::string_view right) {
  if (error.code() == ErrorCode::kPermission) {
    return fmt::format(
        "{}: the user lacks the right {} (a right given on an id is lost when the stream or topic is re-created)", what,
        right);
  }
  return fmt::format("{}: {}", what, error.to_string());
}

}  // namespace replicator
