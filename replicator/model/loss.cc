#include "replicator/model/loss.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace replicator {
namespace {

// One partition's part: absent = unknown.
struct Part {
  base::PartitionKey key;
  std::optional<std::uint64_t> messages;
  std::optional<std::uint64_t> micros;
  std::uint64_t known_at = 0;
  double unseen = 0;
};

template <class Sum>
void add(Sum& sum, const Part& part, bool first) {
  ++sum.partitions;
  if (!part.messages) {
    ++sum.unknown;
    sum.micros.reset();
    return;
  }
  sum.messages += *part.messages;
  const bool known_so_far = first || sum.micros;
  sum.micros =
      known_so_far && part.micros ? std::optional(std::max(sum.micros.value_or(0), *part.micros)) : std::nullopt;
  sum.known_at = sum.known_at == 0 ? part.known_at : std::min(sum.known_at, part.known_at);
}

Loss sum_up(const std::vector<Part>& parts, std::uint64_t taken_at) {
  Loss loss;
  loss.taken_at = taken_at;
  std::map<base::TopicName, TopicLoss> topics;
  std::map<base::TopicName, double> unseen;
  double unseen_in_all = 0;
  for (const Part& part : parts) {
    TopicLoss& topic = topics[part.key.topic];
    unseen[part.key.topic] += part.unseen;
    unseen_in_all += part.unseen;
    topic.topic = part.key.topic;
    add(topic, part, topic.partitions == 0);
    add(loss, part, loss.partitions == 0);
    if (part.messages.value_or(0) > loss.worst_messages) {
      loss.worst_messages = *part.messages;
      loss.worst_partition = part.key.to_string();
    }
  }
  loss.unseen = static_cast<std::uint64_t>(std::llround(unseen_in_all));
  for (auto& [name, topic] : topics) {
    topic.unseen = static_cast<std::uint64_t>(std::llround(unseen[name]));
    loss.topics.push_back(std::move(topic));
  }
  return loss;
}

}  // namespace

Loss loss_of(const std::vector<PartitionStatus>& partitions, std::uint64_t taken_at, std::uint64_t until) {
  std::vector<Part> parts;
  for (const PartitionStatus& status : partitions) {
    Part& part = parts.emplace_back();
    part.key = status.key;
    if (!status.lag.seen_end) continue;
    part.known_at = status.lag.observed_at;
    const std::uint64_t blind = until - std::min(until, part.known_at);
    part.unseen = status.upstream_per_second * static_cast<double>(blind) / 1e6;
    part.messages = *status.lag.seen_end - std::min(*status.lag.seen_end, status.acked);
    if (*part.messages == 0) {
      part.micros = 0;
    } else if (status.lag.micros) {
      part.micros = status.lag.micros;
    } else if (status.caught_up_at != 0) {  // everything older is there
      part.micros = part.known_at - std::min(part.known_at, status.caught_up_at);
    }
  }
  return sum_up(parts, taken_at);
}

Loss loss_of(const std::vector<state::PartitionRow>& rows, std::uint64_t taken_at) {
  std::vector<Part> parts;
  for (const state::PartitionRow& row : rows) parts.emplace_back().key = row.key;
  return sum_up(parts, taken_at);
}

std::string in_words(const Loss& loss) {
  if (loss.partitions == 0) return "no partition was copied";
  std::string text = fmt::format("{} messages", loss.messages);
  if (loss.unknown == loss.partitions) return fmt::format("unknown for all {} partitions", loss.partitions);
  if (loss.messages > 0) {
    text += fmt::format(" (most in {}: {})", loss.worst_partition, loss.worst_messages);
    text += loss.micros ? fmt::format(", at most the newest {:.1f} s", static_cast<double>(*loss.micros) / 1e6)
                        : std::string(", of unknown age");
  }
  const std::uint64_t age = loss.taken_at - std::min(loss.taken_at, loss.known_at);
  text += fmt::format(", as of {:.1f} s before", static_cast<double>(age) / 1e6);
  if (loss.unseen > 0) text += fmt::format(", and about {} more since, at the rate before", loss.unseen);
  if (loss.unknown > 0) text += fmt::format("; unknown for {} of {} partitions", loss.unknown, loss.partitions);
  return text;
}

}  // namespace replicator
