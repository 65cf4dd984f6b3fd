// A request frame as a server receives it: what decodes can be encoded and decodes to the same bytes again.
#include <algorithm>

#include "base/check.h"
#include "iggy/codec/vsr.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iggy::vsr;
  const base::ByteView bytes = std::as_bytes(std::span(data, size));
  if (bytes.size() < kHeaderSize) return 0;
  const auto header = read_request_header(bytes);
  if (!header) return 0;
  const auto request = decode_request(*header, bytes.subspan(kHeaderSize));
  if (!request) {
    (void)encode_refusal(*header, request.error());
    return 0;
  }
  const auto body = encode_body(*request);
  base::check(body.has_value(), "a decoded request has an encoding");
  RequestHeader again = *header;
  again.request_checksum = {};
  const auto second = decode_request(again, *body);
  base::check(second.has_value(), "an encoded request decodes");
  base::check(second->index() == request->index(), "the same request");
  base::check(encode_body(*second).value() == *body, "the same bytes");
  return 0;
}
