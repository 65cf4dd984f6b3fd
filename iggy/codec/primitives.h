// The pieces that both dialects write the same way: names, identifiers, consumers, strategies, partitioning, TLV items,
// permissions. Layouts, little-endian:
//
//   Name          | length u8 1..255 | UTF-8 |
//   Ident         | kind u8 | length u8 | value |          1 number: 4 bytes; 2 name: 1..255 bytes
//   Consumer      | kind u8 | Ident |                      1 consumer, 2 group; 3 external group is written, never read
//   Partitioning  | kind u8 | length u8 | value |          1 balanced: 0; 2 partition: 4 bytes; 3 key: 1..255 bytes
//   Strategy      | kind u8 1..5 | value u64 |
//   optional part.| flag u8 | u32 |                        present only if flag is 1; always 5 bytes
//   TLV item      | kind u8, not 0 | length u32 1..255 | data |   an option or user header is two items: key, value
//
// Source: apache/iggy tag server-0.8.0, core/binary_protocol/src/primitives/; the same in the released 0.11.0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "iggy/model.h"

namespace iggy {

// Statuses that a server gives to a request whose primitives break a rule.
inline constexpr std::uint32_t kStatusInvalidCommand = 3;  // too short, or a kind that does not exist
inline constexpr std::uint32_t kStatusInvalidFormat = 4;   // a length outside its range
inline constexpr std::uint32_t kMaxOptions = 1024;         // pairs in one block
inline constexpr std::uint32_t kMaxOptionBytes = 100'000;  // of one block

inline constexpr std::size_t kMaxSendMetadata = 4 + 257 + 257 + 257 + 4;  // length, two names, a key, count

struct TlvItem {
  std::uint8_t kind = 0;
  base::ByteView data;
};

// Reads primitives from bytes that nobody trusts, and remembers which kind of rule was broken first. As in the base
// class, callers read a whole layout and then ask once: ok(), and status() if not.
class WireReader : public base::ByteReader {
 public:
  using base::ByteReader::ByteReader;

  std::string name();
  // u8 or u32 length, then UTF-8 of any length.
  std::string short_text() { return utf8(u8()); }
  std::string long_text() { return utf8(u32()); }
  Ident ident();
  Consumer consumer();
  PollStrategy strategy();
  Partitioning partitioning();
  std::optional<std::uint32_t> optional_partition();
  bool boolean() { return u8() != 0; }
  TlvItem tlv_item();
  // Pairs to the end of the next `length` bytes. Keys must be strings (kind 2) and unique.
  std::vector<Option> options(std::size_t length);
  // The permission block itself, and with its presence byte and length in front.
  Permissions permissions();
  std::optional<Permissions> optional_permissions();

  // Fails with `status`, unless it has failed before.
  void refuse(std::uint32_t status);
  // What a server answers to the request. 0 while ok().
  std::uint32_t status() const { return ok() ? 0 : status_; }

 private:
  std::string utf8(std::size_t length);

  std::uint32_t status_ = kStatusInvalidCommand;
};

// Appends primitives to bytes that it does not own. A value without an encoding makes status() an error that names it;
// what has been written is then useless.
class WireWriter : public base::ByteWriter {
 public:
  using base::ByteWriter::ByteWriter;

  // `what` names the field in the error ("stream name").
  void name(std::string_view value, std::string_view what);
  // u8 length, then 0..255 bytes: passwords and tokens.
  void short_text(std::string_view value, std::string_view what);
  void ident(const Ident& value, std::string_view what);
  void consumer(const Consumer& value);
  void strategy(const PollStrategy& value);
  void partitioning(const Partitioning& value);
  void optional_partition(const std::optional<std::uint32_t>& value);
  // What precedes the messages of a send: u32 length of the rest, stream, topic, partitioning, u32 count.
  void send_metadata(const Ident& stream, const Ident& topic, const Partitioning& partitioning, std::uint32_t count);
  void boolean(bool value) { u8(value ? 1 : 0); }
  void tlv_item(std::uint8_t kind, base::ByteView data);
  void options(const std::vector<Option>& values);
  void permissions(const Permissions& value);
  void optional_permissions(const std::optional<Permissions>& value);
  // The four zero bytes (or block) that replies use: u8 1, u32 length, block; without permissions u32 0.
  void reply_permissions(const std::optional<Permissions>& value);

  // kInvalidArgument with the first value that could not be written.
  base::Status status() const { return status_; }

 protected:
  void refuse(std::string_view what, std::string_view why);

 private:
  base::Status status_;
};

bool is_utf8(base::ByteView bytes);

// true if `block` is a sequence of whole TLV pairs: user headers of a well-behaved client. A server takes any bytes.
bool is_tlv_block(base::ByteView block);

}  // namespace iggy
