// Test helper: requests and replies made from the `inputs` of vsr vectors alone, and batches written out field by
// field, so that a codec that swaps two fields in both directions is noticed.
#pragma once

#include <optional>
#include <vector>

#include "iggy/codec/golden.h"
#include "iggy/codec/vsr.h"

namespace iggy::golden {

struct Message {
  base::MessageId id;
  std::uint64_t origin = 0;
  base::Bytes payload;
  base::Bytes headers;
};
// Deltas count from 0; the origin of the batch is the smallest one.
base::Bytes build_batch(const std::vector<Message>& messages, std::uint64_t partition = 0,
                        std::uint64_t base_offset = 0, std::uint64_t base_timestamp = 0);

// Numbers, or decimal strings.
base::MessageId wide(const nlohmann::json& value);
Permissions permissions_of(const nlohmann::json& value);

struct Built {
  std::optional<Request> request;
  base::Bytes storage;  // the batch of a send
};
// The request of a vector of layer `body`, from its command code and inputs.
Built request_of(const Vector& vector);
// The reply of a vector of layer `payload`. Nothing for polls with records: those are made of batches.
std::optional<Reply> reply_of(const Vector& vector);

// A request with nothing in it that has this operation and, for reads, code. Ping when there is none.
Request request_with(vsr::Operation operation, std::uint32_t code);

}  // namespace iggy::golden
