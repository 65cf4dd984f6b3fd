#include "replicator/model/rate.h"

#include <charconv>

#include "replicator/model/rules.h"
#include "replicator/model/units.h"

namespace replicator {
namespace {

constexpr std::uint64_t kBytesLeast = 1024, kBytesMost = 1ULL << 40;
constexpr std::uint64_t kMessagesMost = 1'000'000'000;

base::Error refuse(std::string_view text, std::string_view why) {
  return {base::ErrorCode::kInvalidArgument, "parse", std::string(text),
          "\"" + std::string(text) + "\" " + std::string(why)};
}

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

base::Status add_word(std::string_view word, Rate& rate) {
  constexpr std::string_view kMessages = "msg/s", kPerSecond = "/s";
  if (word.ends_with(kMessages)) {
    const std::string_view number = word.substr(0, word.size() - kMessages.size());
    const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), rate.messages);
    if (number.empty() || failure != std::errc() || end != number.data() + number.size())
      return refuse(word, "is not a rate; write a whole number and msg/s, such as 500msg/s");
    if (rate.messages == 0 || rate.messages > kMessagesMost) return refuse(word, "is not in 1 to 1000000000msg/s");
    return base::ok();
  }
  if (!word.ends_with(kPerSecond)) return refuse(word, "is not a rate such as 10MiB/s or 500msg/s");
  auto bytes = parse_size(word.substr(0, word.size() - kPerSecond.size()));
  if (!bytes) return std::move(bytes).error();
  if (*bytes < kBytesLeast || *bytes > kBytesMost) return refuse(word, "is not in 1KiB/s to 1024GiB/s");
  rate.bytes = *bytes;
  return base::ok();
}

}  // namespace

base::Result<Rate> parse_rate(std::string_view text) {
  Rate rate;
  std::string_view rest = text;
  const std::string_view first = next_word(rest);
  if (first.empty()) return refuse(text, "is not a rate such as 10MiB/s, 500msg/s, both, or off");
  if (first == "off") {
    if (!next_word(rest).empty()) return refuse(text, "says off and more");
    return rate;
  }
  for (std::string_view word = first; !word.empty(); word = next_word(rest)) {
    const Rate before = rate;
    auto added = add_word(word, rate);
    if (!added) return std::move(added).error();
    const bool again = (before.bytes != 0 && rate.bytes != before.bytes) ||
                       (before.messages != 0 && rate.messages != before.messages) || before == rate;
    if (again) return refuse(text, "names one kind of rate twice");
  }
  return rate;
}

std::string format_rate(const Rate& rate) {
  std::string text;
  if (rate.bytes != 0) text = format_size(rate.bytes) + "/s";
  if (rate.messages != 0) text += (text.empty() ? "" : " ") + std::to_string(rate.messages) + "msg/s";
  return text.empty() ? "off" : text;
}

// The glob may hold spaces, a rate's words do not: it is what stands before them.
base::Result<TopicRate> parse_topic_rate(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    const std::size_t end = text.find_last_not_of(' ', begin - 1);
    if (end == std::string_view::npos) break;
    const std::size_t space = text.rfind(' ', end);
    const std::string_view word = text.substr(space == std::string_view::npos ? 0 : space + 1,
                                              end - (space == std::string_view::npos ? 0 : space + 1) + 1);
    if (space == std::string_view::npos || (!word.ends_with("/s") && word != "off")) break;
    begin = space;
  }
  TopicRate rate;
  rate.glob = std::string(text.substr(0, begin));
  rate.glob.erase(0, std::min(rate.glob.find_first_not_of(' '), rate.glob.size()));
  while (rate.glob.ends_with(' ')) rate.glob.pop_back();
  if (begin == text.size() || rate.glob.empty())
    return refuse(text, "is not of the form \"orders/* 10MiB/s 500msg/s\"");
  auto pattern = TopicPattern::compile(rate.glob);
  if (!pattern) return std::move(pattern).error();
  auto parsed = parse_rate(text.substr(begin));
  if (!parsed) return std::move(parsed).error();
  rate.rate = *parsed;
  return rate;
}

std::string format_topic_rate(const TopicRate& rate) { return rate.glob + " " + format_rate(rate.rate); }

Rate ThrottleRules::of(const base::TopicName& topic) const {
  for (const TopicRate& rule : topics) {
    if (const auto pattern = TopicPattern::compile(rule.glob); pattern && pattern->matches(topic)) return rule.rate;
  }
  return {};
}

}  // namespace replicator
