// Durations and sizes as people write and read them: "100ms", "4MiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace replicator {

// A whole number and one of us, ms, s, m, h, d ("100ms"); "0" needs no unit. kInvalidArgument with the reason.
base::Result<base::Duration> parse_duration(std::string_view text);
// A whole number and B, KiB, MiB, GiB or nothing for bytes ("4MiB"). kInvalidArgument with the reason.
base::Result<std::uint64_t> parse_size(std::string_view text);

// The shortest text that reads back as the same value: 1500 ms -> "1500ms", 2 s -> "2s".
std::string format_duration(base::Duration duration);
// Likewise: 4194304 -> "4MiB", 1000 -> "1000B".
std::string format_size(std::uint64_t bytes);

}  // namespace replicator
