// Sets up spdlog's default logger: standard error, text or JSON, one line per record whatever the message holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "replicator/model/config.h"

namespace cli {

// REQUIRES: format and level are valid (validate()).
void setup_logging(const replicator::Config& config);

// A net under everything else: in "scheme://user:password@" and "scheme://token@" the secret becomes ***.
std::string scrub(std::string_view text);

// {"time":"2026-01-31T12:00:00.123456Z","level":"info","message":"…"} with a line break; and as text
// "2026-01-31T12:00:00.123456Z info …". Times are µs since the epoch.
std::string log_line_json(std::uint64_t at, std::string_view level, std::string_view message);
std::string log_line_text(std::uint64_t at, std::string_view level, std::string_view message);

}  // namespace cli
