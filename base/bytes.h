// Little-endian reading and writing with bounds, and the buffer that frames live in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/ids.h"

namespace base {

static_assert(std::endian::native == std::endian::little, "the codecs copy integers as they are");

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

// Unaligned little-endian load and store. REQUIRES: sizeof(T) bytes at `at`.
template <class T>
T load(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
void store(std::byte* at, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(at, &value, sizeof(T));
}

inline ByteView as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A block of uninitialised bytes of fixed size, shared by all views into it. Freed with the last owner.
class Buffer {
 public:
  explicit Buffer(std::size_t size) : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }
  ByteView view() const { return {bytes_.get(), size_}; }
  std::span<std::byte> writable() { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_;
};
using BufferPtr = std::shared_ptr<const Buffer>;

// Reads forward through bytes that nobody trusts. After a read past the end it is failed for good: every further read
// gives zero or empty, and ok() is false. Callers read a whole layout, then ask once.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : bytes_(bytes) {}

  template <class T>
  T read() {
    if (!has(sizeof(T))) return T{};
    T value = load<T>(bytes_.data() + position_);
    position_ += sizeof(T);
    return value;
  }
  std::uint8_t u8() { return read<std::uint8_t>(); }
  std::uint16_t u16() { return read<std::uint16_t>(); }
  std::uint32_t u32() { return read<std::uint32_t>(); }
  std::uint64_t u64() { return read<std::uint64_t>(); }
  float f32() { return read<float>(); }
  MessageId id() {
    MessageId value;
    value.low = u64();
    value.high = u64();
    return value;
  }
  // A view into the underlying bytes; empty when there are not `count` left.
  ByteView bytes(std::size_t count) {
    if (!has(count)) return {};
    ByteView view = bytes_.subspan(position_, count);
    position_ += count;
    return view;
  }
  std::string text(std::size_t count) { return std::string(as_text(bytes(count))); }
  std::string text8() { return text(u8()); }    // u8 length, then bytes
  std::string text32() { return text(u32()); }  // u32 length, then bytes
  void skip(std::size_t count) { bytes(count); }
  void fail() { failed_ = true; }

  bool ok() const { return !failed_; }
  bool at_end() const { return failed_ || position_ == bytes_.size(); }
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return failed_ ? 0 : bytes_.size() - position_; }
  ByteView rest() { return bytes(remaining()); }

 private:
  bool has(std::size_t count) {
    if (failed_ || count > bytes_.size() - position_) failed_ = true;
    return !failed_;
  }
  ByteView bytes_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

// Appends little-endian values to a byte vector that it does not own.
class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}

  template <class T>
  void write(T value) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof(T));
    store(out_.data() + at, value);
  }
  void u8(std::uint8_t value) { write(value); }
  void u16(std::uint16_t value) { write(value); }
  void u32(std::uint32_t value) { write(value); }
  void u64(std::uint64_t value) { write(value); }
  void f32(float value) { write(value); }
  void id(const MessageId& value) {
    u64(value.low);
    u64(value.high);
  }
  void bytes(ByteView view) { out_.insert(out_.end(), view.begin(), view.end()); }
  void text(std::string_view value) { bytes(as_bytes(value)); }
  // REQUIRES: value.size() <= 255.
  void text8(std::string_view value) {
    u8(static_cast<std::uint8_t>(value.size()));
    text(value);
  }
  void text32(std::string_view value) {
    u32(static_cast<std::uint32_t>(value.size()));
    text(value);
  }
  void zeros(std::size_t count) { out_.resize(out_.size() + count); }
  std::size_t size() const { return out_.size(); }

 private:
  Bytes& out_;
};

}  // namespace base
