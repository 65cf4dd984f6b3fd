#include "replicator/marker/links.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace replicator {
namespace {

bool may_be_alive(const MarkerRecord& record, std::uint64_t now) {
  return record.state == LinkState::kActive && record.timestamp + kLinkRecordLife > now;
}

bool same_cluster(const std::string& identity, const std::string& url, const std::string& other_identity,
                  const std::string& other_url) {
  if (!identity.empty() && !other_identity.empty()) return identity == other_identity;
  return same_address(url, other_url);
}

std::optional<Rules> rules_of(const MarkerRecord& record) {
  auto rules = Rules::compile(record.topics, record.exclude, record.rename, "off");
  if (!rules) return std::nullopt;
  return *std::move(rules);
}

}  // namespace

void Links::add(MarkerRecord record) {
  if (!record.cluster.empty()) {
    if (identity_.empty()) identity_ = record.cluster;
    ++identities_[record.cluster];
  }
  const std::string name = record.link;
  const auto [at, is_new] = links_.try_emplace(name);
  Link& link = at->second;
  if (record.state == LinkState::kPromoted) link.promoted = true;
  Link::Writer& writer = link.writers[record.process];
  if (record.state == LinkState::kActive && record.written_at > writer.written_at) {
    ++writer.records;
    writer.written_at = record.written_at;
  }
  const MarkerRecord& holder = link.holder;
  const bool is_claim = is_new || record.generation > holder.generation;
  const bool is_newer = record.generation == holder.generation && record.process == holder.process &&
                        record.written_at >= holder.written_at;
  if (is_claim || is_newer) link.holder = std::move(record);
}

void Links::add_all(const iggy::PolledMessages& polled) {
  for (const base::Record& message : polled.batch.records) {
    auto record = decode_marker_record(base::as_text(message.payload()));
    if (!record) continue;
    record->timestamp = message.timestamp;
    add(*std::move(record));
  }
}

const Links::Link* Links::find(const std::string& link) const {
  const auto at = links_.find(link);
  return at == links_.end() ? nullptr : &at->second;
}

std::uint64_t Links::signs_of_others(const std::string& link, const std::string& process) const {
  std::uint64_t count = 0;
  if (const Link* at = find(link)) {
    for (const auto& [name, writer] : at->writers) {
      if (name != process) count += writer.records;
    }
  }
  return count;
}

base::Task<base::Result<LinksFound>> read_links(iggy::Client& client, base::TopicName topic) {
  LinksFound found;
  iggy::PollMessages poll;
  poll.consumer.id = std::string("iggy-replicate");
  poll.stream = topic.stream;
  poll.topic = topic.topic;
  poll.partition = 0;
  poll.strategy = {iggy::PollStrategy::Kind::kLast, 0};
  poll.count = kLinkRecordsRead;
  auto call = client.call(std::move(poll));
  auto reply = co_await std::move(call);
  if (!reply) {
    if (reply.error().code() == base::ErrorCode::kNotFound) co_return found;
    co_return std::move(reply).error();
  }
  found.present = true;
  if (const auto* polled = std::get_if<iggy::PolledMessages>(&*reply)) found.links.add_all(*polled);
  co_return found;
}

std::vector<std::string> reverse_links(const Links& at_upstream, const LinkInView& ours, std::uint64_t now) {
  std::vector<std::string> found;
  for (const auto& [name, link] : at_upstream.all()) {
    const MarkerRecord& other = link.holder;
    if (name == ours.link_id || link.promoted || !may_be_alive(other, now)) continue;
    if (!same_cluster(other.upstream_identity, other.upstream, ours.downstream_identity, ours.downstream)) continue;
    const auto theirs = rules_of(other);
    if (!theirs) continue;
    for (const base::TopicName& source : ours.sources) {
      const auto there = ours.rules->target(source);
      const auto back = there ? theirs->target(*there) : std::nullopt;
      if (!back || !ours.rules->target(*back)) continue;
      found.push_back(fmt::format(
          "{} would go round in a circle: we copy it to {}, and link {} (process {}) copies that back to {}; stop or "
          "promote that link, or exclude the topic on one side",
          source.to_string(), there->to_string(), name, other.process, back->to_string()));
    }
  }
  return found;
}

bool is_rival(const MarkerRecord& other, const LinkInView& ours, std::uint64_t now) {
  if (other.link == ours.link_id || !may_be_alive(other, now)) return false;
  if (!same_cluster(other.upstream_identity, other.upstream, ours.upstream_identity, ours.upstream)) return false;
  const auto theirs = rules_of(other);
  if (!theirs) return false;
  return std::ranges::any_of(ours.sources, [&](const base::TopicName& source) {
    const auto target = ours.rules->target(source);
    return target && theirs->target(source) == target;
  });
}

bool same_address(std::string_view url, std::string_view other) {
  const auto hosts = [](std::string_view text) {
    text = text.substr(0, text.find('?'));
    if (const auto at = text.rfind('@'); at != std::string_view::npos) {
      text.remove_prefix(at + 1);
    } else if (const auto scheme = text.find("://"); scheme != std::string_view::npos) {
      text.remove_prefix(scheme + 3);
    }
    return text;
  };
  return !hosts(url).empty() && hosts(url) == hosts(other);
}

}  // namespace replicator
