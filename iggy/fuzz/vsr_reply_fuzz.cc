// First byte: which request; then a reply frame as a client receives it.
#include <memory>
#include <utility>

#include "base/check.h"
#include "iggy/codec/vsr.h"

namespace {

template <std::size_t... I>
iggy::Request request_at(std::size_t index, std::index_sequence<I...>) {
  iggy::Request request;
  ((I == index ? void(request.emplace<I>()) : void()), ...);
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iggy::vsr;
  constexpr std::size_t kRequests = std::variant_size_v<iggy::Request>;
  if (size < 1 + kHeaderSize) return 0;
  const iggy::Request request = request_at(data[0] % kRequests, std::make_index_sequence<kRequests>{});
  const base::ByteView bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const auto header = read_reply_header(bytes);
  if (!header) return 0;
  const auto* reply_header = std::get_if<ReplyHeader>(&*header);
  if (reply_header == nullptr) {
    (void)status_of_eviction(std::get<Eviction>(*header).reason);
    return 0;
  }
  ReplyHeader matching = *reply_header;
  matching.operation = std::to_underlying(operation_of(request));
  for (const bool verify : {false, true}) {
    const auto reply = decode_reply(request, matching, bytes.subspan(kHeaderSize), nullptr, verify);
    if (reply) (void)encode_payload(*reply);
  }
  return 0;
}
