// When a certificate ends: what alerts ask for before a connection fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <openssl/types.h>

namespace iggy {

// µs since the epoch; none when the date is not readable.
std::optional<std::uint64_t> end_of(const X509* certificate);
// Of the first certificate of a PEM file; none when there is none.
std::optional<std::uint64_t> end_of_certificate_file(const std::string& path);

}  // namespace iggy
