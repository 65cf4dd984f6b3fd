// Any bytes as a request of any command: decoded or refused with a status; what was decoded can be encoded, and decodes
// to the same bytes again.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "iggy/codec/legacy.h"

// Input: u32 command code, then the payload.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iggy;
  if (size < sizeof(std::uint32_t)) return 0;
  const base::ByteView bytes = std::as_bytes(std::span(data, size));
  const auto code = base::load<std::uint32_t>(bytes.data());
  const auto request = legacy::decode_request(code, bytes.subspan(sizeof(code)));
  if (!request) {
    base::check(request.error().wire_status() != 0, "a refusal has a status");
    return 0;
  }
  const auto frame = legacy::encode_request(*request);
  if (!frame) return 0;  // a partition that a server takes and we do not send
  const auto again = legacy::decode_request(legacy::read_request_header(*frame).code,
                                            base::ByteView(*frame).subspan(legacy::kHeaderSize));
  base::check(again.has_value(), "what we encode can be decoded");
  const auto twice = legacy::encode_request(*again);
  base::check(twice && *twice == *frame, "encoding is stable");
  return 0;
}
