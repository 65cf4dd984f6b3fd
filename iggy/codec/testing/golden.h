// Reading the golden files in tests: JSON, hex, and the numbers that JSON cannot hold.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace iggy::testing {

using Json = nlohmann::json;

// `path` is relative to the source root.
inline Json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return Json::parse(file);
}

inline base::Bytes from_hex(std::string_view hex) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw std::runtime_error("not a hex digit");
  };
  if (hex.size() % 2 != 0) throw std::runtime_error("half a byte");
  base::Bytes bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  return bytes;
}

inline std::string to_hex(base::ByteView bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    hex += kDigits[std::to_integer<std::size_t>(byte) / 16];
    hex += kDigits[std::to_integer<std::size_t>(byte) % 16];
  }
  return hex;
}

// 128-bit values are decimal strings.
inline base::MessageId wide(const Json& value) {
  __extension__ using Wide = unsigned __int128;
  if (value.is_number()) return {value.get<std::uint64_t>(), 0};
  Wide number = 0;
  for (const char c : value.get<std::string>()) number = number * 10 + static_cast<Wide>(c - '0');
  return {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(number >> 64U)};
}

// A number, or a decimal string when it is above 2^53 - 1.
inline std::uint64_t number(const Json& value) { return wide(value).low; }

}  // namespace iggy::testing
