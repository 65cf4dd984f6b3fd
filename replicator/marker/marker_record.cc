#include "replicator/marker/marker_record.h"

#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace replicator {
namespace {

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

class ObjectWriter {
 public:
  void text(std::string_view key, std::string_view value) {
    begin(key);
    append_string(out_, value);
  }
  void number(std::string_view key, std::uint64_t value) {
    begin(key);
    out_ += std::to_string(value);
  }
  void list(std::string_view key, const std::vector<std::string>& values) {
    begin(key);
    out_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ',';
      append_string(out_, values[i]);
    }
    out_ += ']';
  }
  std::string finish() && { return std::move(out_) + "}"; }

 private:
  void begin(std::string_view key) {
    out_ += out_.empty() ? '{' : ',';
    append_string(out_, key);
    out_ += ':';
  }
  std::string out_;
};

// Reads one JSON object of strings, unsigned numbers and lists of strings; anything else is skipped. Bounded depth: the
// bytes are a stranger's.
class ObjectReader {
 public:
  explicit ObjectReader(std::string_view text) : text_(text) {}

  // Calls on_text(key, value), on_number(key, value), on_list(key, values). false when it is not an object.
  template <class OnText, class OnNumber, class OnList>
  bool read(OnText on_text, OnNumber on_number, OnList on_list) {
    if (!take('{')) return false;
    if (take('}')) return at_end();
    do {
      const auto key = string();
      if (!key || !take(':')) return false;
      space();
      if (peek() == '"') {
        auto value = string();
        if (!value) return false;
        on_text(*key, *std::move(value));
      } else if (auto number = unsigned_number()) {
        on_number(*key, *number);
      } else if (auto values = strings()) {
        on_list(*key, *std::move(values));
      } else if (!skip(0)) {
        return false;
      }
    } while (take(','));
    return take('}') && at_end();
  }

 private:
  static constexpr int kDepthMax = 8;

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").contains(text_[at_])) ++at_;
  }
  bool take(char c) {
    space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    space();
    return at_ == text_.size();
  }
  std::optional<std::uint64_t> unsigned_number() {
    std::uint64_t value = 0;
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    const auto parsed = std::from_chars(begin, end, value);
    if (parsed.ec != std::errc()) return std::nullopt;
    if (parsed.ptr != end && std::string_view(".eE").contains(*parsed.ptr)) return std::nullopt;
    at_ += static_cast<std::size_t>(parsed.ptr - begin);
    return value;
  }
  std::optional<std::string> string() {
    if (!take('"')) return std::nullopt;
    std::string value;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return value;
      if (c != '\\') {
        value += c;
      } else if (!escape(value)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }
  bool escape(std::string& value) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char c = peek();
    ++at_;
    if (const auto known = kNames.find(c); known != std::string_view::npos) {
      value += kMeanings[known];
      return true;
    }
    if (c != 'u' || at_ + 4 > text_.size()) return false;
    std::uint32_t code = 0;
    const char* begin = text_.data() + at_;
    if (std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4) return false;
    at_ += 4;
    if (code < 0x80) {
      value += static_cast<char>(code);
    } else if (code < 0x800) {
      value += static_cast<char>(0xC0 | (code >> 6));
      value += static_cast<char>(0x80 | (code & 0x3F));
    } else {  // halves of a pair stay apart: we never write them
      value += static_cast<char>(0xE0 | (code >> 12));
      value += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
      value += static_cast<char>(0x80 | (code & 0x3F));
    }
    return true;
  }
  // A list of strings; otherwise nothing is consumed.
  std::optional<std::vector<std::string>> strings() {
    const std::size_t before = at_;
    std::vector<std::string> values;
    if (!take('[')) return std::nullopt;
    if (take(']')) return values;
    do {
      auto value = string();
      if (!value) break;
      values.push_back(*std::move(value));
      if (take(']')) return values;
    } while (take(','));
    at_ = before;
    return std::nullopt;
  }
  // Any value.
  bool skip(int depth) {
    if (depth > kDepthMax) return false;
    space();
    const char c = peek();
    if (c == '"') return string().has_value();
    if (c == '{' || c == '[') {
      const char close = c == '{' ? '}' : ']';
      ++at_;
      if (take(close)) return true;
      do {
        if (c == '{' && (!string() || !take(':'))) return false;
        if (!skip(depth + 1)) return false;
      } while (take(','));
      return take(close);
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && !std::string_view(",]} \t\r\n").contains(text_[at_])) ++at_;
    return at_ > begin;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<LinkState> state_from(std::string_view text) {
  for (const LinkState state : {LinkState::kActive, LinkState::kPromoted, LinkState::kReleased}) {
    if (to_string(state) == text) return state;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(LinkState state) {
  switch (state) {
    case LinkState::kActive:
      return "active";
    case LinkState::kPromoted:
      return "promoted";
    case LinkState::kReleased:
      return "released";
  }
  return "unknown";
}

std::string encode(const MarkerRecord& record) {
  ObjectWriter writer;
  writer.number("v", 1);
  writer.text("cluster", record.cluster);
  writer.text("link", record.link);
  writer.number("generation", record.generation);
  writer.text("process", record.process);
  writer.text("state", to_string(record.state));
  writer.number("written_at", record.written_at);
  writer.text("upstream", record.upstream);
  writer.text("upstream_identity", record.upstream_identity);
  writer.text("downstream", record.downstream);
  writer.list("topics", record.topics);
  writer.list("exclude", record.exclude);
  std::vector<std::string> renames;
  for (const RenameRule& rule : record.rename) {
    renames.push_back(rule.from);
    renames.push_back(rule.to);
  }
  writer.list("rename", renames);
  return std::move(writer).finish();
}

base::Result<MarkerRecord> decode_marker_record(std::string_view text) {
  MarkerRecord record;
  std::optional<LinkState> state;
  const auto on_text = [&](const std::string& key, std::string value) {
    if (key == "cluster")
      record.cluster = std::move(value);
    else if (key == "link")
      record.link = std::move(value);
    else if (key == "process")
      record.process = std::move(value);
    else if (key == "state")
      state = state_from(value);
    else if (key == "upstream")
      record.upstream = std::move(value);
    else if (key == "upstream_identity")
      record.upstream_identity = std::move(value);
    else if (key == "downstream")
      record.downstream = std::move(value);
  };
  const auto on_number = [&](const std::string& key, std::uint64_t value) {
    if (key == "generation")
      record.generation = value;
    else if (key == "written_at")
      record.written_at = value;
  };
  const auto on_list = [&](const std::string& key, std::vector<std::string> values) {
    if (key == "topics") {
      record.topics = std::move(values);
    } else if (key == "exclude") {
      record.exclude = std::move(values);
    } else if (key == "rename") {
      for (std::size_t i = 0; i + 1 < values.size(); i += 2) record.rename.push_back({values[i], values[i + 1]});
    }
  };
  const bool parsed = ObjectReader(text).read(on_text, on_number, on_list);
  if (!parsed || record.link.empty() || record.generation == 0 || record.process.empty() || !state) {
    return base::Error(base::ErrorCode::kMalformed, "read marker", "", "the message is no link record");
  }
  record.state = *state;
  return record;
}

std::string_view host_of(std::string_view process) {
  const std::size_t at = process.find('@');
  if (at == std::string_view::npos) return {};
  process.remove_prefix(at + 1);
  return process.substr(0, process.rfind(':'));
}

}  // namespace replicator
