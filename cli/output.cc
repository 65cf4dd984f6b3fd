#include "cli/output.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include "base/check.h"

namespace cli {
namespace {

constexpr std::size_t kFirstColumnMin = 12;

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The first `columns` code points.
std::string_view head(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  while (at < text.size() && (columns > 0 || continues(text[at]))) {
    if (!continues(text[at])) --columns;
    ++at;
  }
  return text.substr(0, at);
}

std::string cut_middle(const std::string& text, std::size_t columns) {
  const std::size_t have = width(text);
  if (have <= columns) return text;
  // The end says more than the beginning: it holds the partition.
  const std::size_t left = (columns - 1) / 2;
  const std::size_t right = columns - 1 - left;
  return fmt::format("{}…{}", head(text, left), text.substr(head(text, have - right).size()));
}

}  // namespace

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += letter;
    }
  }
  return out;
}

void Table::add(std::vector<std::string> cells) {
  base::check(cells.size() == headings_.size(), "a row has a cell per heading");
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::to_string() const {
  std::vector<std::size_t> widths;
  std::vector<bool> is_left;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    is_left.push_back(column == 0 || headings_[column].ends_with(' '));
    std::size_t widest = width(headings_[column]) - (headings_[column].ends_with(' ') ? 1 : 0);
    for (const auto& row : rows_) widest = std::max(widest, width(row[column]));
    widths.push_back(widest);
  }
  std::size_t others = 0;
  for (std::size_t column = 1; column < widths.size(); ++column) others += widths[column] + 2;
  widths[0] = std::min(widths[0], std::max(kFirstColumnMin, kColumns - std::min(kColumns, others)));

  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      std::string cell = column == 0 ? cut_middle(cells[0], widths[0]) : cells[column];
      if (cell.ends_with(' ')) cell.pop_back();
      const std::string padding(widths[column] - std::min(widths[column], width(cell)), ' ');
      if (column != 0) text += "  ";
      text += is_left[column] ? cell + padding : padding + cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line(headings_);
  for (const auto& row : rows_) text += line(row);
  return text;
}

std::string wrap(std::string_view text, std::string_view indent, std::optional<std::string> first) {
  std::string out;
  std::string line = first ? *first : std::string(indent);
  bool is_fresh = true;
  std::size_t blanks = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (const std::string_view word = text.substr(0, end); !word.empty()) {
      if (!is_fresh && width(line) + blanks + width(word) > kColumns) {
        out += line + "\n";
        line = indent;
        is_fresh = true;
      }
      if (!is_fresh) line.append(blanks, ' ');
      line += printable(word);
      is_fresh = false;
      blanks = 0;
    }
    if (end == text.size()) break;
    ++blanks;
    text.remove_prefix(end + 1);
  }
  return out + line + "\n";
}

std::string format_count(std::uint64_t count) {
  if (count >= 10'000'000) {
    double value = static_cast<double>(count);
    std::size_t unit = 0;
    constexpr std::string_view kUnits = " kMGTPE";
    while (value >= 999.5 && unit + 1 < kUnits.size()) {
      value /= 1000;
      ++unit;
    }
    return fmt::format("{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
  }
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string format_rate(double per_second) {
  if (per_second > 0 && per_second < 10) return fmt::format("{:.1f}", per_second);
  return format_count(static_cast<std::uint64_t>(std::llround(std::max(0.0, per_second))));
}

std::string format_bytes(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : 1, kUnits[unit]);
}

std::string format_age(double seconds) {
  if (seconds <= 0) return "0s";
  if (seconds < 1) return fmt::format("{}ms", std::max(1LL, std::llround(seconds * 1000)));
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m {}s", whole / 60, whole % 60);
  if (whole < 86'400) return fmt::format("{}h {}m", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d {}h", whole / 86'400, whole % 86'400 / 3600);
}

std::string to_json(const google::protobuf::Message& message, bool pretty) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = pretty;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  base::check(status.ok(), "a message of ours can be written as JSON");
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace cli
