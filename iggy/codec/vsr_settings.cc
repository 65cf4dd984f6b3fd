// Topic settings as options.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "iggy/codec/vsr_layout.h"

namespace iggy::vsr {
namespace {

constexpr std::string_view kCompression = "compression_algorithm";
constexpr std::string_view kExpiry = "message_expiry";
constexpr std::string_view kMaxSize = "max_topic_size";
constexpr std::uint8_t kString = 2;
constexpr std::uint8_t kUint64 = 12;

// A number as the canonical kind, or as text: digits, or one of the words for "no limit". 0 when it is neither; a
// server knows more spellings ("7 days"), we only carry them.
std::uint64_t number_of(const Option& option) {
  if (option.kind == kUint64)
    return option.value.size() == sizeof(std::uint64_t) ? base::load<std::uint64_t>(option.value.data()) : 0;
  const std::string_view text = base::as_text(option.value);
  if (option.kind != kString) return 0;
  if (text == "none" || text == "unlimited" || text == "never_expire") return ~0ULL;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

Compression compression_of(const Option& option) {
  return option.kind == kString && base::as_text(option.value) == "gzip" ? Compression::kGzip : Compression::kNone;
}

base::Bytes bytes_of(base::ByteView view) { return {view.begin(), view.end()}; }

Option option_of(std::string_view key, std::uint64_t number) {
  return {std::string(key), kUint64, bytes_of(std::as_bytes(std::span(&number, 1)))};
}

Option option_of(std::string_view key, Compression compression) {
  return {std::string(key), kString, bytes_of(base::as_bytes(compression == Compression::kGzip ? "gzip" : "none"))};
}

}  // namespace

void read_settings(TopicSettings& settings) {
  settings.compression = Compression::kNone;
  settings.message_expiry = 0;
  settings.max_topic_size = 0;
  for (const Option& option : settings.options) {
    if (option.key == kCompression) settings.compression = compression_of(option);
    if (option.key == kExpiry) settings.message_expiry = number_of(option);
    if (option.key == kMaxSize) settings.max_topic_size = number_of(option);
  }
}

std::vector<Option> settings_to_options(const TopicSettings& settings) {
  std::vector<Option> options = settings.options;
  const auto merge = [&](std::string_view key, auto field, auto unset, auto value_of) {
    const auto at = std::ranges::find(options, key, &Option::key);
    if (at != options.end()) {
      if (value_of(*at) != field) *at = option_of(key, field);
    } else if (field != unset) {
      const auto place = std::ranges::find_if(options, [&](const Option& option) { return option.key > key; });
      options.insert(place, option_of(key, field));
    }
  };
  merge(kCompression, settings.compression, Compression::kNone, compression_of);
  merge(kMaxSize, settings.max_topic_size, std::uint64_t{0}, number_of);
  merge(kExpiry, settings.message_expiry, std::uint64_t{0}, number_of);
  return options;
}

}  // namespace iggy::vsr
