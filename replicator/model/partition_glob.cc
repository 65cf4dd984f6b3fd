#include "replicator/model/partition_glob.h"

#include <charconv>

namespace replicator {
namespace {

struct Split {
  std::string_view topic;      // "stream/topic"
  std::string_view partition;  // empty when there is none
};

// At the second `/` that is not escaped.
Split split(std::string_view text) {
  int slashes = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '/' && ++slashes == 2) {
      return {text.substr(0, i), text.substr(i + 1)};
    }
  }
  return {text, {}};
}

base::Error invalid(std::string_view text, std::string message) {
  return {base::ErrorCode::kInvalidArgument, "parse", "\"" + std::string(text) + "\"", std::move(message)};
}

std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '/' || c == '\\' || c == '*' || c == '?') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

base::Result<PartitionGlob> PartitionGlob::compile(std::string_view text) {
  const Split parts = split(text);
  const bool has_partition = parts.topic.size() != text.size();
  auto topic = has_partition && parts.partition.empty()
                   ? base::Result<TopicPattern>(invalid(text, "ends with a /; a partition number is missing"))
                   : TopicPattern::compile(parts.topic);
  if (!topic) return std::move(topic).error();
  if (!has_partition) return PartitionGlob(*std::move(topic), std::nullopt);
  if (parts.partition.find_first_not_of("0123456789*?") != std::string_view::npos) {
    return invalid(text, "does not end with a partition number");
  }
  auto partition = Glob::compile(parts.partition);
  if (!partition) return std::move(partition).error();
  return PartitionGlob(*std::move(topic), *std::move(partition));
}

bool PartitionGlob::matches(const base::PartitionKey& key) const {
  return topic_.matches(key.topic) && (!partition_ || partition_->matches(std::to_string(key.partition)));
}

base::Result<base::PartitionKey> parse_partition(std::string_view text) {
  const Split parts = split(text);
  base::PartitionKey key;
  const char* const begin = parts.partition.data();
  const char* const end = begin + parts.partition.size();
  const auto [parsed, failure] = std::from_chars(begin, end, key.partition);
  if (parts.partition.empty() || failure != std::errc() || parsed != end) {
    return invalid(text, "is not of the form stream/topic/partition, such as orders/events/3");
  }
  auto topic = parse_topic_name(parts.topic);
  if (!topic) return std::move(topic).error();
  key.topic = *std::move(topic);
  return key;
}

std::string to_pattern(const base::PartitionKey& key) {
  return escaped(key.topic.stream) + "/" + escaped(key.topic.topic) + "/" + std::to_string(key.partition);
}

}  // namespace replicator
