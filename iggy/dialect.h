// The wire dialects. A link end speaks exactly one; which one is found by iggy/probe.h, or configured.
//
//   kLegacy  server 0.8.x      length + code frames, answers strictly in order
//   kVsr11   server 0.9.x      256-byte headers, protocol word 0.11.x; answers matched by request number
//   kVsr12   server 0.10.x     recognised by the probe, not spoken: its release's bytes are not public yet
#pragma once

#include <cstdint>
#include <string_view>

namespace iggy {

enum class Dialect : std::uint8_t { kLegacy, kVsr11, kVsr12 };

constexpr std::string_view to_string(Dialect dialect) {
  switch (dialect) {
    case Dialect::kLegacy:
      return "legacy";
    case Dialect::kVsr11:
      return "vsr-0.11";
    case Dialect::kVsr12:
      return "vsr-0.12";
  }
  return "unknown";
}

}  // namespace iggy
