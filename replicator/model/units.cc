#include "replicator/model/units.h"

#include <array>
#include <charconv>
#include <limits>

namespace replicator {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array kDurations = {Unit{"d", 86'400'000'000}, Unit{"h", 3'600'000'000}, Unit{"m", 60'000'000},
                                   Unit{"s", 1'000'000},      Unit{"ms", 1'000},        Unit{"us", 1}};
constexpr std::array kSizes = {Unit{"GiB", 1ULL << 30}, Unit{"MiB", 1ULL << 20}, Unit{"KiB", 1ULL << 10}, Unit{"B", 1}};

template <std::size_t N>
base::Result<std::uint64_t> parse(std::string_view text, const std::array<Unit, N>& units, bool bare_allowed,
                                  std::uint64_t most, std::string_view want) {
  const auto refuse = [&](std::string_view why) {
    return base::Error(base::ErrorCode::kInvalidArgument, "parse", std::string(text),
                       "\"" + std::string(text) + "\" " + std::string(why));
  };
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc::result_out_of_range) return refuse("is too large");
  if (failure != std::errc()) return refuse(want);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.empty() && (bare_allowed || number == 0)) return number;
  for (const Unit& known : units) {
    if (known.name != unit) continue;
    if (number > most / known.factor) return refuse("is too large");
    return number * known.factor;
  }
  return refuse(want);
}

template <std::size_t N>
std::string format(std::uint64_t value, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) return std::to_string(value / unit.factor) + std::string(unit.name);
  }
  return "0";
}

}  // namespace

base::Result<base::Duration> parse_duration(std::string_view text) {
  auto micros = parse(text, kDurations, false, std::numeric_limits<std::int64_t>::max(),
                      "is not a duration; write a whole number and us, ms, s, m, h or d, such as 100ms");
  if (!micros) return std::move(micros).error();
  return base::Duration(static_cast<std::int64_t>(*micros));
}

base::Result<std::uint64_t> parse_size(std::string_view text) {
  return parse(text, kSizes, true, std::numeric_limits<std::uint64_t>::max(),
               "is not a size; write a whole number and B, KiB, MiB or GiB, such as 4MiB");
}

std::string format_duration(base::Duration duration) {
  return format(static_cast<std::uint64_t>(duration.count()), kDurations);
}

std::string format_size(std::uint64_t bytes) { return format(bytes, kSizes); }

}  // namespace replicator
