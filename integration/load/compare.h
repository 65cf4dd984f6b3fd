// How two logs of messages differ. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/digest.h"

namespace load {

struct Entry {
  std::uint64_t offset = 0;
  base::Digest digest;        // of the whole message
  base::Digest digest_no_id;  // of the message with id 0
  bool zero_id = false;
};

struct Difference {
  std::uint64_t equal = 0;         // in both, in the same order
  std::uint64_t missing = 0;       // only in a
  std::uint64_t extra = 0;         // only in b
  std::uint64_t duplicates = 0;    // once more in b than in a
  std::uint64_t out_of_order = 0;  // in both, but b has them elsewhere
  // Position (count of messages before it) of the first place where the logs part.
  std::optional<std::size_t> first;
  bool none() const { return missing + extra + duplicates + out_of_order == 0; }
};

// `ignore_zero_ids`: messages with id 0 in `a` are compared without their id. `prefix`: `b` may end early.
Difference compare_logs(const std::vector<Entry>& a, const std::vector<Entry>& b, bool ignore_zero_ids, bool prefix);

}  // namespace load
