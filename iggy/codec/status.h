// Statuses of both dialects: one number space, shared by reply headers, result sections and (mapped) evictions.
// Source: core/common/src/error/iggy_error.rs of server 0.8.0 and of the released 0.11.0 packages; who raises what was
// seen on live servers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace iggy {

struct StatusEntry {
  std::uint32_t status;
  std::string_view name;  // the server's name in snake_case
  base::ErrorCode code;   // what it means to us
};

// Every status of either dialect, ascending.
std::span<const StatusEntry> status_table();

// "stream_id_not_found"; "unknown_status" when the table does not have it.
std::string_view name_of_status(std::uint32_t status);

// What a refusal with `status` means to the caller of `operation` ("create_topic"). An unknown status is kServerRefused
// of unknown outcome (Retry::kFromWatermark), and keeps its number. REQUIRES: status != 0.
base::Error error_of_status(std::uint32_t status, std::string operation);

}  // namespace iggy
