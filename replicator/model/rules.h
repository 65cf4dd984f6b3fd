// Which topics a link copies, and under which names: include and exclude globs over stream/topic, and renames.
//
// A pattern is two globs, one for the stream and one for the topic, split at the first `/`. Each is matched against its
// own name alone, so `*` never crosses from the stream into the topic, and stream "a/b" with topic "c" is never
// confused with stream "a" and topic "b/c". Inside one name a slash is a character like any other: `*` and `?` match it
// (the default `*/*` is really everything), and a pattern writes it `\/`. `\` takes the next character as it is. `*` is
// any text, also none; `?` is one byte.
//
// Excludes win over includes. The stream of the marker (and the default one, where another link may keep its own) is
// always left out. The first rename whose `from` matches gives the name; each `*` of `to` stands for the text that the
// `*` in the same place of `from` matched; with several in one name, the earlier ones match as little as they can.
//
// Immutable after compile(); any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "replicator/model/config.h"

namespace replicator {

inline constexpr std::string_view kMarkerStream = "iggy-replicate";  // of the default marker topic
inline constexpr std::size_t kNameMax = 255;  // bytes of a stream's or topic's name, both dialects

// One glob over one name.
class Glob {
 public:
  static base::Result<Glob> compile(std::string_view pattern);
  // On a match, what each `*` stood for is appended to `captures` when it is given.
  bool matches(std::string_view name, std::vector<std::string>* captures = nullptr) const;
  // The only name that it matches; none when it has `*` or `?`.
  std::optional<std::string> literal() const;
  std::size_t stars() const;
  bool has_question_mark() const;
  // The text with each `*` replaced by the next of `captures`. REQUIRES: at least stars() of them, no `?`.
  std::string fill(std::span<const std::string> captures) const;

 private:
  struct Token {
    enum class Kind : std::uint8_t { kByte, kAny, kStar } kind;
    char byte;
  };
  std::vector<Token> tokens_;
};

// A glob over stream/topic.
struct TopicPattern {
  std::string text;  // as configured
  Glob stream, topic;

  // kInvalidArgument, naming the pattern: no `/`, an empty side, a `\` at the end.
  static base::Result<TopicPattern> compile(std::string_view text);
  bool matches(const base::TopicName& name, std::vector<std::string>* captures = nullptr) const {
    return stream.matches(name.stream, captures) && topic.matches(name.topic, captures);
  }
};

// "stream/topic" without `*` and `?`, with `\/` for a slash inside a name: the marker's topic. kInvalidArgument.
base::Result<base::TopicName> parse_topic_name(std::string_view text);

class Rules {
 public:
  // `marker_topic` as configured: "stream/topic" or "off". No includes = `*/*`. kInvalidArgument names the rule: a bad
  // pattern, or a rename whose sides differ in the number of `*` or whose `to` has a `?`.
  static base::Result<Rules> compile(const std::vector<std::string>& includes, const std::vector<std::string>& excludes,
                                     const std::vector<RenameRule>& renames, const std::string& marker_topic);

  // Name downstream; none when the link does not copy it.
  std::optional<base::TopicName> target(const base::TopicName& upstream) const;

  // All sources of the link together. kInvalidArgument names both sources of one target, a target that is no valid name
  // (empty, over 255 bytes) and a target that is the marker's topic. Sources that the rules leave out are ignored.
  base::Status check_targets(const std::vector<base::TopicName>& sources) const;
  // Why this source alone can't be copied to where the rules send it; none when it can. REQUIRES: target(source).
  std::optional<std::string> invalid_target(const base::TopicName& source) const;
  // Both URLs are one cluster: why copying `source` would feed it, or what it becomes, back into the link; none when it
  // does not. REQUIRES: target(source).
  std::optional<std::string> feeds_itself(const base::TopicName& source) const;

  const std::vector<TopicPattern>& includes() const { return includes_; }
  bool is_excluded(const base::TopicName& upstream) const;
  // A stream that is left out for the sake of a marker.
  bool is_marker_stream(std::string_view stream) const;
  const std::optional<base::TopicName>& marker() const { return marker_; }  // none = "off"

 private:
  struct Rename {
    TopicPattern from, to;
  };
  std::vector<TopicPattern> includes_, excludes_;
  std::vector<Rename> renames_;
  std::optional<base::TopicName> marker_;
};

}  // namespace replicator
