#include "replicator/model/rules.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace replicator {
namespace {

base::Error invalid(std::string_view what, std::string_view text, std::string message) {
  return {base::ErrorCode::kInvalidArgument, std::string(what), fmt::format("\"{}\"", text), std::move(message)};
}

// The first `/` that is not escaped; npos when there is none.
std::size_t separator(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '/') {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

base::Result<Glob> Glob::compile(std::string_view pattern) {
  using enum Token::Kind;
  Glob glob;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '*') {
      glob.tokens_.push_back({kStar, 0});
    } else if (pattern[at] == '?') {
      glob.tokens_.push_back({kAny, 0});
    } else if (pattern[at] != '\\') {
      glob.tokens_.push_back({kByte, pattern[at]});
    } else if (++at < pattern.size()) {
      glob.tokens_.push_back({kByte, pattern[at]});
    } else {
      return invalid("pattern", pattern, "ends with a \\ that escapes nothing");
    }
  }
  return glob;
}

// Only the last `*` seen so far ever has to give way: an earlier one that took more would leave less for what follows.
bool Glob::matches(std::string_view name, std::vector<std::string>* captures) const {
  struct Taken {
    std::size_t token, begin, end;
  };
  std::vector<Taken> taken;
  std::size_t token = 0;
  std::size_t at = 0;
  while (at < name.size() || token < tokens_.size()) {
    if (token < tokens_.size() && tokens_[token].kind == Token::Kind::kStar) {
      taken.push_back({token++, at, at});
    } else if (token < tokens_.size() && at < name.size() &&
               (tokens_[token].kind == Token::Kind::kAny || tokens_[token].byte == name[at])) {
      ++token;
      ++at;
    } else if (!taken.empty() && taken.back().end < name.size()) {
      at = ++taken.back().end;
      token = taken.back().token + 1;
    } else {
      return false;
    }
  }
  if (captures != nullptr) {
    for (const Taken& star : taken) captures->emplace_back(name.substr(star.begin, star.end - star.begin));
  }
  return true;
}

std::optional<std::string> Glob::literal() const {
  std::string text;
  for (const Token& token : tokens_) {
    if (token.kind != Token::Kind::kByte) return std::nullopt;
    text += token.byte;
  }
  return text;
}

std::size_t Glob::stars() const {
  return static_cast<std::size_t>(std::ranges::count(tokens_, Token::Kind::kStar, &Token::kind));
}

bool Glob::has_question_mark() const {
  return std::ranges::find(tokens_, Token::Kind::kAny, &Token::kind) != tokens_.end();
}

std::string Glob::fill(std::span<const std::string> captures) const {
  std::string text;
  std::size_t next = 0;
  for (const Token& token : tokens_) {
    base::check(token.kind != Token::Kind::kAny, "a name is not made from a ?");
    if (token.kind == Token::Kind::kByte) {
      text += token.byte;
    } else {
      base::check(next < captures.size(), "a rename has as many * on both sides");
      text += captures[next++];
    }
  }
  return text;
}

base::Result<TopicPattern> TopicPattern::compile(std::string_view text) {
  const std::size_t slash = separator(text);
  if (slash == std::string_view::npos) return invalid("rule", text, "is not of the form stream/topic");
  if (slash == 0 || slash + 1 == text.size()) return invalid("rule", text, "names no stream or no topic");
  if (separator(text.substr(slash + 1)) != std::string_view::npos) {
    return invalid("rule", text, R"(has a second /; a slash inside a name is written \/)");
  }
  auto stream = Glob::compile(text.substr(0, slash));
  if (!stream) return std::move(stream).error();
  auto topic = Glob::compile(text.substr(slash + 1));
  if (!topic) return std::move(topic).error();
  return TopicPattern{std::string(text), *std::move(stream), *std::move(topic)};
}

base::Result<base::TopicName> parse_topic_name(std::string_view text) {
  auto pattern = TopicPattern::compile(text);
  if (!pattern) return std::move(pattern).error();
  auto stream = pattern->stream.literal();
  auto topic = pattern->topic.literal();
  if (!stream || !topic) return invalid("topic", text, "has a * or ?, and must name one topic");
  if (stream->size() > kNameMax || topic->size() > kNameMax) return invalid("topic", text, "has a name over 255 bytes");
  return base::TopicName{*std::move(stream), *std::move(topic)};
}

base::Result<Rules> Rules::compile(const std::vector<std::string>& includes, const std::vector<std::string>& excludes,
                                   const std::vector<RenameRule>& renames, const std::string& marker_topic) {
  Rules rules;
  const std::vector<std::string> everything = {"*/*"};
  for (const std::string& text : includes.empty() ? everything : includes) {
    auto pattern = TopicPattern::compile(text);
    if (!pattern) return std::move(pattern).error();
    rules.includes_.push_back(*std::move(pattern));
  }
  for (const std::string& text : excludes) {
    auto pattern = TopicPattern::compile(text);
    if (!pattern) return std::move(pattern).error();
    rules.excludes_.push_back(*std::move(pattern));
  }
  for (const RenameRule& rename : renames) {
    const std::string text = fmt::format("{} -> {}", rename.from, rename.to);
    auto from = TopicPattern::compile(rename.from);
    if (!from) return std::move(from).error().with_object(fmt::format("\"{}\"", text));
    auto to = TopicPattern::compile(rename.to);
    if (!to) return std::move(to).error().with_object(fmt::format("\"{}\"", text));
    const std::size_t stars_from = from->stream.stars() + from->topic.stars();
    const std::size_t stars_to = to->stream.stars() + to->topic.stars();
    if (stars_from != stars_to) {
      return invalid("rename", text, fmt::format("has {} * on the left and {} on the right", stars_from, stars_to));
    }
    if (to->stream.has_question_mark() || to->topic.has_question_mark()) {
      return invalid("rename", text, "has a ? on the right, which stands for nothing");
    }
    rules.renames_.push_back({*std::move(from), *std::move(to)});
  }
  if (marker_topic != "off") {
    auto marker = parse_topic_name(marker_topic);
    if (!marker) return std::move(marker).error();
    rules.marker_ = *std::move(marker);
  }
  return rules;
}

bool Rules::is_marker_stream(std::string_view stream) const {
  return stream == kMarkerStream || (marker_ && marker_->stream == stream);
}

namespace {
// The stream of a drill is copied by the drill's own link alone, which names it.
bool is_of_a_drill(std::string_view stream) { return stream.starts_with("iggy-replicate-drill-"); }
}  // namespace

bool Rules::is_excluded(const base::TopicName& upstream) const {
  return is_marker_stream(upstream.stream) ||
         std::ranges::any_of(excludes_, [&](const TopicPattern& pattern) { return pattern.matches(upstream); });
}

std::optional<base::TopicName> Rules::target(const base::TopicName& upstream) const {
  if (is_excluded(upstream)) return std::nullopt;
  const bool by_name_alone = is_of_a_drill(upstream.stream);
  if (std::ranges::none_of(includes_, [&](const TopicPattern& pattern) {
        return pattern.matches(upstream) && (!by_name_alone || pattern.stream.literal());
      })) {
    return std::nullopt;
  }
  for (const Rename& rename : renames_) {
    std::vector<std::string> captures;
    if (!rename.from.matches(upstream, &captures)) continue;
    const std::span<const std::string> all = captures;
    const std::size_t in_stream = rename.to.stream.stars();
    return base::TopicName{rename.to.stream.fill(all.first(in_stream)), rename.to.topic.fill(all.subspan(in_stream))};
  }
  return upstream;
}

std::optional<std::string> Rules::invalid_target(const base::TopicName& source) const {
  const auto name = target(source);
  base::check(name.has_value(), "only a source that is copied has a target");
  for (const std::string& part : {name->stream, name->topic}) {
    if (part.empty()) return fmt::format("the rename gives \"{}\", which has an empty name", name->to_string());
    if (part.size() > kNameMax) return fmt::format("the rename gives a name of {} bytes; 255 is the most", part.size());
  }
  if (marker_ && *name == *marker_) return fmt::format("{} is the topic of the marker", name->to_string());
  return std::nullopt;
}

base::Status Rules::check_targets(const std::vector<base::TopicName>& sources) const {
  std::map<base::TopicName, base::TopicName> source_of;
  for (const base::TopicName& source : sources) {
    const auto name = target(source);
    if (!name) continue;
    if (auto reason = invalid_target(source)) {
      return base::Error(base::ErrorCode::kInvalidArgument, "rules", source.to_string(), *std::move(reason));
    }
    const auto [at, is_new] = source_of.emplace(*name, source);
    if (!is_new && at->second != source) {
      return base::Error(
          base::ErrorCode::kInvalidArgument, "rules", name->to_string(),
          fmt::format("{} and {} would both be copied into it", at->second.to_string(), source.to_string()),
          "exclude one of them or rename them apart");
    }
  }
  return base::ok();
}

std::optional<std::string> Rules::feeds_itself(const base::TopicName& source) const {
  const auto name = target(source);
  base::check(name.has_value(), "only a source that is copied has a target");
  if (*name == source) return "both URLs are one cluster, and it would be copied into itself; rename or exclude it";
  if (target(*name)) {
    return fmt::format(
        "both URLs are one cluster, and {}, where it would be copied to, is copied by the same rules; exclude it",
        name->to_string());
  }
  return std::nullopt;
}

}  // namespace replicator
