// Text for people (at most 80 columns) and JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

namespace cli {

inline constexpr std::size_t kColumns = 80;

// Columns that a text takes on a terminal: its code points.
std::size_t width(std::string_view text);

// The first column is left-aligned and takes what the others leave, at least 12 columns: longer text is cut in its
// middle. The others are right-aligned, or left-aligned when their heading ends with a blank.
// Control bytes as \xNN: a topic's name must not move the reader's cursor or forge a line.
std::string printable(std::string_view text);

class Table {
 public:
  explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}
  // REQUIRES: as many cells as headings.
  void add(std::vector<std::string> cells);
  std::string to_string() const;

 private:
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
};

// Broken at blanks to 80 columns; every line is indented by `indent`, the first one by `first` instead when given.
// Ends with a line break. A word that is too long stands alone and sticks out.
std::string wrap(std::string_view text, std::string_view indent = {}, std::optional<std::string> first = {});

// 1234567 -> "1,234,567"; from ten million on "12.3M", "4.56G": at most nine columns.
std::string format_count(std::uint64_t count);
std::string format_rate(double per_second);
std::string format_bytes(double bytes);  // "14.2 MiB"
// Two units at most: "850ms", "8s", "2m 10s", "3h 5m", "12d 4h".
std::string format_age(double seconds);
inline constexpr std::string_view kUnknown = "unknown";

// One line of JSON (several with `pretty`), names as in the proto file; absent = unknown. 64-bit numbers are strings,
// as protobuf's JSON has them.
std::string to_json(const google::protobuf::Message& message, bool pretty = true);

}  // namespace cli
