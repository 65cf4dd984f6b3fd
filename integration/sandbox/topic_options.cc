#include "integration/sandbox/topic_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "integration/sandbox/contains.h"

namespace sandbox {
namespace {

constexpr std::uint8_t kString = 2, kBool = 3, kUint32 = 11, kUint64 = 12;
constexpr std::uint64_t kMaxSegmentSize = 1024 * kMiB;

enum class Form : std::uint8_t { kCompression, kDuration, kSize, kFlag, kCount, kDurability };
struct Key {
  std::string_view name;
  Form form;
  std::string_view description;
  enum { kBoth, kEdgeOnly, kReleaseOnly } where = kBoth;
};
// In the order in which describe_options lists them.
constexpr std::array kKeys = std::to_array<Key>({
    {"compression_algorithm", Form::kCompression, "none or gzip; stored only"},
    {"message_expiry", Form::kDuration, "microseconds, or a text such as 7 days"},
    {"max_topic_size", Form::kSize, "bytes, or a text such as 1 GiB; not below the segment size"},
    {"segment_size", Form::kSize, "bytes, a multiple of 512 from 1 MiB to 1 GiB"},
    {"enforce_fsync", Form::kFlag, "fsync at every save", Key::kEdgeOnly},
    {"durability", Form::kDurability, "replicated, or persisted: on disk before the reply", Key::kReleaseOnly},
    {"consumer_offset_durability", Form::kDurability, "the same for stored consumer offsets", Key::kReleaseOnly},
    {"messages_required_to_save", Form::kCount, "save once so many messages wait; 1 to 16777216"},
    {"size_of_messages_required_to_save", Form::kSize, "save once so many bytes wait; at most 1 GiB"},
    {"preallocate_segments", Form::kFlag, "reserve the segment's bytes; ignored here"},
});

const Key* find_key(const Profile& profile, std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.name != name) continue;
    const bool there = key.where == Key::kBoth || (key.where == Key::kReleaseOnly) == profile.durability_keys;
    return there ? &key : nullptr;
  }
  return nullptr;
}

template <class T>
base::Bytes bytes_of(T value) {
  base::Bytes out;
  base::ByteWriter(out).write(value);
  return out;
}
base::Bytes text_of(std::string_view text) {
  const base::ByteView view = base::as_bytes(text);
  return {view.begin(), view.end()};
}

iggy::Option default_of(const Key& key) {
  iggy::Option out{.key = std::string(key.name), .kind = kUint64, .value = {}};
  switch (key.form) {
    case Form::kCompression:
      return {out.key, kString, text_of("none")};
    case Form::kDurability:
      return {out.key, kString, text_of("replicated")};
    case Form::kFlag:
      return {out.key, kBool, bytes_of<std::uint8_t>(0)};
    case Form::kCount:
      return {out.key, kUint32, bytes_of(kDefaultMessagesToSave)};
    case Form::kDuration:
      out.value = bytes_of(iggy::kNeverExpire);
      return out;
    case Form::kSize:
      out.value = bytes_of(key.name == "segment_size"     ? kDefaultSegmentSize
                           : key.name == "max_topic_size" ? iggy::kUnlimitedSize
                                                          : kDefaultBytesToSave);
      return out;
  }
  return out;
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array kDurations = std::to_array<Unit>({{"us", 1},
                                                       {"ms", 1000},
                                                       {"s", 1'000'000},
                                                       {"m", 60'000'000},
                                                       {"min", 60'000'000},
                                                       {"h", 3'600'000'000},
                                                       {"day", 86'400'000'000},
                                                       {"days", 86'400'000'000},
                                                       {"d", 86'400'000'000},
                                                       {"week", 604'800'000'000},
                                                       {"weeks", 604'800'000'000}});
constexpr std::array kSizes = std::to_array<Unit>({{"b", 1},
                                                   {"kb", 1000},
                                                   {"mb", 1'000'000},
                                                   {"gb", 1'000'000'000},
                                                   {"kib", 1024},
                                                   {"mib", kMiB},
                                                   {"gib", 1024 * kMiB}});

// "7 days", "1 GiB", "unlimited".
std::optional<std::uint64_t> parse_amount(std::string_view text, std::span<const Unit> units) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "none" || lower == "unlimited" || lower == "never_expire") return ~0ULL;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), number);
  if (error != std::errc{}) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(lower.data() + lower.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& known : units)
    if (known.name == unit) return number * known.factor;
  return std::nullopt;
}

// The canonical form of a sent value: number for numbers, text for words. nullopt: refused.
std::optional<iggy::Option> canonical(const Key& key, const iggy::Option& sent) {
  iggy::Option out{.key = sent.key, .kind = kUint64, .value = {}};
  const std::string_view text = base::as_text(sent.value);
  switch (key.form) {
    case Form::kCompression:
      if (sent.kind != kString || (text != "none" && text != "gzip")) return std::nullopt;
      return iggy::Option{sent.key, kString, sent.value};
    case Form::kDurability: {
      std::string lower(text);
      std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (sent.kind != kString || (lower != "replicated" && lower != "persisted")) return std::nullopt;
      return iggy::Option{sent.key, kString, text_of(lower)};
    }
    case Form::kFlag:
      if (sent.kind != kBool || sent.value.size() != 1) return std::nullopt;
      return sent;
    case Form::kCount: {
      if (sent.kind != kUint32 || sent.value.size() != 4) return std::nullopt;
      const auto count = base::load<std::uint32_t>(sent.value.data());
      if (count < 1 || count > 16'777'216) return std::nullopt;
      return sent;
    }
    case Form::kDuration:
    case Form::kSize: {
      std::optional<std::uint64_t> value;
      if (sent.kind == kString) {
        value = key.form == Form::kDuration ? parse_amount(text, kDurations) : parse_amount(text, kSizes);
      } else if (sent.kind == kUint64 && sent.value.size() == 8) {
        value = base::load<std::uint64_t>(sent.value.data());
      }
      if (!value) return std::nullopt;
      if (key.name == "segment_size" && (*value < kMiB || *value > kMaxSegmentSize || *value % 512 != 0))
        return std::nullopt;
      if (key.name == "size_of_messages_required_to_save" && *value > kMaxSegmentSize) return std::nullopt;
      out.value = bytes_of(*value);
      return out;
    }
  }
  return std::nullopt;
}

std::uint64_t number(const iggy::Option& option) {
  std::uint64_t value = 0;
  std::memcpy(&value, option.value.data(), std::min<std::size_t>(option.value.size(), 8));
  return value;
}

void apply(const iggy::Option& option, iggy::TopicSettings& settings, LogSettings& log) {
  if (option.key == "compression_algorithm")
    settings.compression = base::as_text(option.value) == "gzip" ? iggy::Compression::kGzip : iggy::Compression::kNone;
  if (option.key == "message_expiry") settings.message_expiry = number(option);
  if (option.key == "max_topic_size") settings.max_topic_size = number(option);
  if (option.key == "segment_size") log.segment_size = number(option);
  if (option.key == "enforce_fsync") log.fsync = number(option) != 0;
  if (option.key == "messages_required_to_save") log.messages_to_save = static_cast<std::uint32_t>(number(option));
  if (option.key == "size_of_messages_required_to_save") log.bytes_to_save = number(option);
  if (option.key == "durability" && base::as_text(option.value) == "persisted") {
    log.fsync = true;
    log.messages_to_save = 1;
  }
}

bool stands_for_default(const Key& key, const iggy::Option& option) {
  return (key.name == "message_expiry" || key.name == "max_topic_size") && number(option) == 0;
}

}  // namespace

Outcome<ResolvedOptions> resolve_topic_options(const Profile& profile, const iggy::TopicSettings& sent) {
  ResolvedOptions out;
  for (const iggy::Option& option : sent.options) {
    const Key* key = find_key(profile, option.key);
    if (key == nullptr) return refuse(status::kOptionKey);
    std::optional<iggy::Option> value = canonical(*key, option);
    if (!value) return refuse(status::kOptionValue);
    if (!stands_for_default(*key, *value)) out.settings.options.push_back(std::move(*value));
  }
  for (const Key& key : kKeys)
    if (find_key(profile, key.name) != nullptr && !contains(out.settings.options, key.name, &iggy::Option::key))
      out.derived.push_back(default_of(key));
  std::ranges::sort(out.settings.options, {}, &iggy::Option::key);
  std::ranges::sort(out.derived, {}, &iggy::Option::key);
  for (const iggy::Option& option : out.settings.options) apply(option, out.settings, out.log);
  if (out.settings.max_topic_size < out.log.segment_size) return refuse(status::kTopicSize);
  return out;
}

Outcome<void> patch_topic_options(const Profile& profile, std::vector<iggy::Option> patch,
                                  iggy::TopicSettings& settings, std::vector<iggy::Option>& derived) {
  LogSettings unused;
  for (const iggy::Option& option : patch) {
    const Key* key = find_key(profile, option.key);
    if (key == nullptr ||
        (key->form != Form::kCompression && key->form != Form::kDuration && key->name != "max_topic_size"))
      return refuse(status::kOptionKey);
    std::optional<iggy::Option> value = canonical(*key, option);
    if (!value) return refuse(status::kOptionValue);
    std::erase_if(settings.options, [&](const iggy::Option& o) { return o.key == option.key; });
    std::erase_if(derived, [&](const iggy::Option& o) { return o.key == option.key; });
    apply(*value, settings, unused);
    settings.options.push_back(std::move(*value));
  }
  std::ranges::sort(settings.options, {}, &iggy::Option::key);
  return {};
}

std::vector<iggy::OptionDescription> describe_options(const Profile& profile, std::uint8_t scope) {
  std::vector<iggy::OptionDescription> out;
  if (scope != 1) return out;
  for (const Key& key : kKeys) {
    if (find_key(profile, key.name) == nullptr) continue;
    iggy::Option value = default_of(key);
    out.push_back({.key = std::move(value.key),
                   .kind = value.kind,
                   .default_value = std::move(value.value),
                   .description = std::string(key.description)});
  }
  return out;
}

}  // namespace sandbox
