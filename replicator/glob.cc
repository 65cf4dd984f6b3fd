#include "replicator/glob.h"

#include <algorithm>

namespace replicator {
namespace {

std::optional<std::string> problem(std::string_view glob, std::ptrdiff_t most_slashes, std::string_view shape) {
  const auto slashes = std::count(glob.begin(), glob.end(), '/');
  const bool has_empty_part =
      glob.empty() || glob.front() == '/' || glob.back() == '/' || glob.find("//") != std::string_view::npos;
  if (slashes >= 1 && slashes <= most_slashes && !has_empty_part) return std::nullopt;
  return "\"" + std::string(glob) + "\" is not of the form " + std::string(shape);
}

}  // namespace

std::optional<std::string> topic_glob_problem(std::string_view glob) {
  return problem(glob, 1, "stream/topic, such as \"orders/*\"");
}

std::optional<std::string> partition_glob_problem(std::string_view glob) {
  return problem(glob, 2, "stream/topic or stream/topic/partition, such as \"orders/*\" or \"orders/events/3\"");
}

bool glob_matches(std::string_view glob, std::string_view text) {
  // The last `*` seen, and where the text went on after it: on a mismatch that star takes one character more.
  std::size_t g = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos && text[resume] != '/') {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

bool glob_matches(std::string_view glob, const base::PartitionKey& key) {
  const bool names_partition = std::count(glob.begin(), glob.end(), '/') == 2;
  return glob_matches(glob, names_partition ? key.to_string() : key.topic.to_string());
}

}  // namespace replicator
