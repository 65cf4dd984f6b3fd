// Test helper: loads golden vectors and recordings (iggy/codec/golden/NOTICE.md describes the files) and turns their
// plain values into ours. Throws on a damaged file: that is a failed test.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/record.h"
#include "iggy/model.h"

namespace iggy::golden {

struct Vector {
  std::string name;
  std::string direction;  // request, reply, batch, header
  std::string layer;      // frame, body, payload, batch, block
  std::uint32_t code = 0;
  std::uint32_t operation = 0;  // vsr only
  nlohmann::json inputs;
  std::string notes;
  std::size_t length = 0;
  std::optional<base::Bytes> bytes;  // absent for large entries: head, tail and hash instead
  base::Bytes head, tail;
  std::uint64_t xxh3 = 0;

  // true when `actual` is this entry, byte for byte or, for a large one, by length, head, tail and hash.
  bool matches(base::ByteView actual) const;
  // First components of the name: "send_messages/balanced/one" starts with "send_messages".
  bool is(std::string_view prefix) const { return name.starts_with(prefix); }
};
std::vector<Vector> load_vectors(const std::string& path);

struct RecordedFrame {
  enum class Kind : std::uint8_t { kToServer, kToClient, kEvent };
  Kind kind = Kind::kEvent;
  base::Bytes bytes;
  bool cut = false;  // `bytes` is only the beginning
  std::string note;
};
struct Recording {
  std::string file;  // without folder
  std::vector<RecordedFrame> frames;
};
// In the order of their names.
std::vector<Recording> load_recordings(const std::string& folder);

base::Bytes from_hex(std::string_view hex);
std::string to_hex(base::ByteView bytes);
base::BufferPtr buffer_of(base::ByteView bytes);

// Plain values. Integers above 2^53 are decimal strings in the files.
std::uint64_t number(const nlohmann::json& value);
base::MessageId wide_number(const std::string& decimal);
Ident ident(const nlohmann::json& value);
Consumer consumer(const nlohmann::json& value);
PollStrategy strategy(const nlohmann::json& value);
Partitioning partitioning(const nlohmann::json& value);
std::optional<std::uint32_t> optional_partition(const nlohmann::json& value);

// The messages of a send, whether listed or given by a rule. The records view into `bodies`.
struct Messages {
  std::vector<base::Bytes> bodies;
  std::vector<base::Record> records;
};
Messages messages(const nlohmann::json& inputs);

}  // namespace iggy::golden
