// Inside the vsr codec: where header fields are, and the two archives that let each body layout be written once.
// `layout(io, value)` reads into `value` when Io is In, and writes it when Io is Out.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "iggy/codec/codes.h"
#include "iggy/codec/primitives.h"
#include "iggy/codec/vsr.h"

namespace iggy::vsr {

// Offsets in the 256-byte header. The first half is common, the second depends on the command.
namespace at {
inline constexpr std::size_t kSize = 48, kCommand = 60;
inline constexpr std::size_t kRequestClient = 128, kRequestChecksum = 144, kRequestNumber = 168,
                             kRequestOperation = 176, kRequestSession = 184, kRequestCode = 196;
inline constexpr std::size_t kReplyChecksum = 128, kReplyClient = 160, kReplyOp = 176, kReplyCommit = 184,
                             kReplyRequest = 200, kReplyOperation = 208, kReplyStatus = 216;
inline constexpr std::size_t kEvictionClient = 128, kEvictionMax = 144, kEvictionMin = 148, kEvictionReason = 255;
}  // namespace at

void write_request_header(std::byte* to, const RequestHeader& header);
base::Bytes reply_frame(const RequestHeader& header, Operation operation, std::uint32_t status, std::uint64_t commit,
                        base::ByteView body);
// What byte 208 of a committed reply holds: three operations are rewritten by the server.
Operation reply_operation(Operation operation);
// Records as a poll reply carries them. Neighbours with the same envelope are one batch, sliced as needed; a record
// without an envelope is a batch of its own.
void append_records(const std::vector<base::Record>& records, std::uint32_t partition, base::Bytes& out);
// Read codes of the 0.8 logins: answered with an eviction.
inline bool is_old_login(std::uint32_t read_code) {
  return read_code == code::kLoginUser || read_code == code::kLoginToken;
}

// Topic settings as options: every key that was sent or reported is in `settings.options`; the three typed fields
// repeat theirs, and win when they differ. Read: fills the fields, an absent key is 0 or kNone.
void read_settings(TopicSettings& settings);
// Write: the options to send. A key that the list does not have is added when its field is not 0 or kNone.
std::vector<Option> settings_to_options(const TopicSettings& settings);

// `template <class Io, Is<Stream> T> void layout(Io& io, T& value)`: T is const when Io is Out.
template <class T, class... Types>
concept Is = (std::same_as<std::remove_const_t<T>, Types> || ...);

class In {
 public:
  static constexpr bool kReading = true;
  explicit In(WireReader& from) : from_(from) {}

  template <class T>
  void number(T& value) {
    value = from_.read<T>();
  }
  void boolean(bool& value) { value = from_.boolean(); }
  void id(base::MessageId& value) { value = from_.id(); }
  void name(std::string& value, std::string_view) { value = from_.name(); }
  void text8(std::string& value, std::string_view) { value = from_.short_text(); }
  void text32(std::string& value) { value = from_.long_text(); }
  void bytes32(base::Bytes& value) {
    const base::ByteView view = from_.bytes(from_.u32());
    value.assign(view.begin(), view.end());
  }
  void ident(Ident& value, std::string_view) { value = from_.ident(); }
  void consumer(Consumer& value) { value = from_.consumer(); }
  void strategy(PollStrategy& value) { value = from_.strategy(); }
  void partition(std::optional<std::uint32_t>& value) { value = from_.optional_partition(); }
  void options(std::vector<Option>& value) { value = from_.options(from_.remaining()); }
  void options32(std::vector<Option>& value) { value = from_.options(from_.u32()); }
  void permissions(std::optional<Permissions>& value) { value = from_.optional_permissions(); }
  // Items of at least `least` bytes each; `count` may come from the wire.
  template <class T, class Each>
  void items(std::vector<T>& values, std::size_t count, std::size_t least, Each each) {
    if (count > from_.remaining() / least) from_.fail();
    if (!from_.ok()) return;
    values.reserve(count);
    while (count-- > 0 && from_.ok()) each(*this, values.emplace_back());
  }
  template <class T, class Each>
  void items_to_end(std::vector<T>& values, Each each) {
    while (from_.ok() && !from_.at_end()) each(*this, values.emplace_back());
  }
  template <class Count, class T, class Each>
  void counted(std::vector<T>& values, std::size_t least, Each each) {
    items(values, from_.read<Count>(), least, each);
  }
  template <class T, class Each>
  void optional(std::optional<T>& value, Each each) {
    value.reset();
    if (from_.boolean()) each(*this, value.emplace());
  }
  WireReader& wire() { return from_; }

 private:
  WireReader& from_;
};

class Out {
 public:
  static constexpr bool kReading = false;
  explicit Out(WireWriter& to) : to_(to) {}

  template <class T>
  void number(const T& value) {
    to_.write(value);
  }
  void boolean(bool value) { to_.boolean(value); }
  void id(const base::MessageId& value) { to_.id(value); }
  void name(const std::string& value, std::string_view what) { to_.name(value, what); }
  void text8(const std::string& value, std::string_view what) { to_.short_text(value, what); }
  void text32(const std::string& value) { to_.text32(value); }
  void bytes32(const base::Bytes& value) { to_.text32(base::as_text(value)); }
  void ident(const Ident& value, std::string_view what) { to_.ident(value, what); }
  void consumer(const Consumer& value) { to_.consumer(value); }
  void strategy(const PollStrategy& value) { to_.strategy(value); }
  void partition(const std::optional<std::uint32_t>& value) { to_.optional_partition(value); }
  void options(const std::vector<Option>& value) { to_.options(value); }
  void options32(const std::vector<Option>& value) {
    base::Bytes block;
    WireWriter(block).options(value);
    to_.text32(base::as_text(block));
  }
  void permissions(const std::optional<Permissions>& value) { to_.optional_permissions(value); }
  template <class T, class Each>
  void items(const std::vector<T>& values, std::size_t, std::size_t, Each each) {
    items_to_end(values, each);
  }
  template <class T, class Each>
  void items_to_end(const std::vector<T>& values, Each each) {
    for (const T& value : values) each(*this, value);
  }
  template <class Count, class T, class Each>
  void counted(const std::vector<T>& values, std::size_t, Each each) {
    to_.write(static_cast<Count>(values.size()));
    items_to_end(values, each);
  }
  template <class T, class Each>
  void optional(const std::optional<T>& value, Each each) {
    to_.boolean(value.has_value());
    if (value) each(*this, *value);
  }
  WireWriter& wire() { return to_; }

 private:
  WireWriter& to_;
};

}  // namespace iggy::vsr
