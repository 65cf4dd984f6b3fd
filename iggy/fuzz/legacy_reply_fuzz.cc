// Any bytes as the reply to any request: decoded or malformed; what was decoded can be encoded and decodes again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "iggy/codec/legacy.h"

namespace {

template <std::size_t... Index>
iggy::Request request_number(std::size_t number, std::index_sequence<Index...>) {
  iggy::Request request;
  ((Index == number ? void(request.emplace<Index>()) : void()), ...);
  return request;
}

base::BufferPtr buffer_of(base::ByteView bytes) {
  auto buffer = std::make_shared<base::Buffer>(bytes.size());
  std::ranges::copy(bytes, buffer->data());
  return buffer;
}

}  // namespace

// Input: u8 index of the request type, then the payload.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iggy;
  if (size == 0) return 0;
  constexpr std::size_t kTypes = std::variant_size_v<Request>;
  const Request request = request_number(data[0] % kTypes, std::make_index_sequence<kTypes>());
  const base::BufferPtr payload = buffer_of(std::as_bytes(std::span(data, size)).subspan(1));
  const auto reply = legacy::decode_reply(request, payload->view(), payload);
  if (!reply) return 0;
  const base::BufferPtr frame = buffer_of(legacy::encode_reply(*reply));
  const auto again = legacy::decode_reply(request, frame->view().subspan(legacy::kHeaderSize), frame);
  base::check(again.has_value(), "what we encode can be decoded");
  base::check(std::ranges::equal(legacy::encode_reply(*again), frame->view()), "encoding is stable");
  return 0;
}
