#include "integration/load/message_source.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace load {
namespace {

std::uint64_t next(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

std::uint64_t between(std::uint64_t& state, std::uint64_t low, std::uint64_t high) {
  return low + next(state) % (high - low + 1);
}

std::uint32_t size_of(const MessageOptions& options, std::uint64_t& state) {
  if (!options.mixed) return static_cast<std::uint32_t>(between(state, options.min_size, options.max_size));
  const std::uint64_t lot = next(state) % 1000;
  if (lot < 900) return static_cast<std::uint32_t>(between(state, 1, 2'000));
  if (lot < 999) return static_cast<std::uint32_t>(between(state, 2'001, 64'000));
  return static_cast<std::uint32_t>(between(state, 900'000, 1'000'000));
}

// One user header of every kind: | key kind 2 | length | key | value kind | length | value |.
base::Bytes headers_of_all_kinds(std::uint64_t& state) {
  static constexpr std::uint8_t kSizes[] = {5, 7, 1, 1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 4, 8};
  base::Bytes out;
  base::ByteWriter writer(out);
  for (std::uint8_t kind = 1; kind <= 15; ++kind) {
    const std::string key = "kind-" + std::to_string(kind);
    writer.u8(2);
    writer.text32(key);
    writer.u8(kind);
    if (kind == 2) {
      writer.text32("h\xC3\xA4llo!");
      continue;
    }
    const std::uint8_t size = kSizes[kind - 1];
    writer.u32(size);
    for (std::uint8_t i = 0; i < size; ++i)
      writer.u8(static_cast<std::uint8_t>(kind == 3 ? next(state) % 2 : next(state)));
  }
  return out;
}

bool number(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

base::Error bad(const char* flag, const std::string& text) {
  return {base::ErrorCode::kInvalidArgument, "parse", flag, "can't use " + text};
}

bool percent(const std::string& text, std::string_view prefix, std::uint32_t& out) {
  std::uint64_t value = 0;
  if (!text.starts_with(prefix) || !number(std::string_view(text).substr(prefix.size()), value) || value > 100)
    return false;
  out = static_cast<std::uint32_t>(value);
  return true;
}

}  // namespace

base::Status parse_size(const std::string& text, MessageOptions& options) {
  if (text == "profile:mixed") {
    options.mixed = true;
    return base::ok();
  }
  const std::size_t dash = text.find('-');
  std::uint64_t low = 0, high = 0;
  if (!number(text.substr(0, dash), low)) return bad("--size", text);
  high = low;
  if (dash != std::string::npos && !number(text.substr(dash + 1), high)) return bad("--size", text);
  if (low > high || high > 100'000'000) return bad("--size", text);
  options.min_size = static_cast<std::uint32_t>(low);
  options.max_size = static_cast<std::uint32_t>(high);
  return base::ok();
}

base::Status parse_ids(const std::string& text, MessageOptions& options) {
  if (text == "seq") {
    options.ids = MessageOptions::Ids::kSequence;
  } else if (text == "random") {
    options.ids = MessageOptions::Ids::kRandom;
  } else if (percent(text, "zero:", options.zero_percent)) {
    options.ids = MessageOptions::Ids::kZero;
  } else {
    return bad("--ids", text);
  }
  return base::ok();
}

base::Status parse_headers(const std::string& text, MessageOptions& options) {
  if (text == "none") {
    options.headers = MessageOptions::Headers::kNone;
  } else if (text == "kinds") {
    options.headers = MessageOptions::Headers::kKinds;
  } else if (percent(text, "garbage:", options.garbage_percent)) {
    options.headers = MessageOptions::Headers::kGarbage;
  } else {
    return bad("--headers", text);
  }
  return base::ok();
}

base::Status parse_origin(const std::string& text, MessageOptions& options) {
  if (text == "now") return base::ok();
  const std::size_t plus = text.find('+');
  if (!number(text.substr(0, plus), options.origin_start)) return bad("--origin", text);
  if (plus != std::string::npos && !number(text.substr(plus + 1), options.origin_step)) return bad("--origin", text);
  return base::ok();
}

void MessageBatch::add(const MessageOptions& options, std::uint32_t partition, std::uint64_t sequence,
                       std::uint64_t now) {
  std::uint64_t state = options.seed * 0x2545F4914F6CDD1DULL + partition * 0x9E3779B97F4A7C15ULL + sequence;
  next(state);
  const std::string head = std::to_string(partition) + " " + std::to_string(sequence) + " ";
  const std::uint32_t size = std::max(size_of(options, state), static_cast<std::uint32_t>(head.size()));
  base::Bytes& body = bodies_.emplace_back(size);
  std::memcpy(body.data(), head.data(), head.size());
  for (std::size_t at = head.size(); at < body.size(); at += 8) {
    const std::uint64_t filler = next(state);
    std::memcpy(body.data() + at, &filler, std::min<std::size_t>(8, body.size() - at));
  }
  base::Record record{
      .id = {next(state), next(state)},
      .origin_timestamp = options.origin_start == 0 ? now : options.origin_start + sequence * options.origin_step,
      .payload_length = size,
      .body = {},
      .raw = {},
      .envelope = {}};
  if (options.ids == MessageOptions::Ids::kSequence) record.id = {sequence + 1, partition + 1ULL};
  if (options.ids == MessageOptions::Ids::kZero && next(state) % 100 < options.zero_percent) record.id = {};
  base::Bytes headers;
  if (options.headers != MessageOptions::Headers::kNone) headers = headers_of_all_kinds(state);
  if (options.headers == MessageOptions::Headers::kGarbage && next(state) % 100 < options.garbage_percent) {
    headers.resize(1 + next(state) % 200);
    for (std::byte& byte : headers) byte = static_cast<std::byte>(next(state));
  }
  body.insert(body.end(), headers.begin(), headers.end());
  record.body = body;
  records_.push_back(record);
  sequences_.push_back(sequence);
}

}  // namespace load
