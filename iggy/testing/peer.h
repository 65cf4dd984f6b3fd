// The server's side of one connection, for scripts in tests: reads whole requests, writes whatever it is told to.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "iggy/codec/legacy.h"
#include "iggy/codec/vsr.h"
#include "iggy/transport.h"

namespace iggy::testing {

struct LegacyCall {
  std::uint32_t code = 0;
  base::Bytes payload;
};
struct VsrCall {
  vsr::RequestHeader header;
  base::Bytes body;
};

class Peer {
 public:
  explicit Peer(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  Transport& transport() { return *transport_; }

  base::Task<base::Result<base::Bytes>> read(std::size_t size) {
    base::Bytes bytes(size);
    std::size_t done = 0;
    while (done < size) {
      auto reading = transport_->read_some(std::span(bytes).subspan(done));
      auto count = co_await std::move(reading);
      CO_RETURN_IF_ERROR(count);
      if (*count == 0) co_return base::Error(base::ErrorCode::kConnectionLost, "peer", "", "ended");
      done += *count;
    }
    co_return bytes;
  }

  base::Task<base::Result<LegacyCall>> legacy_call() {
    auto reading = read(legacy::kHeaderSize);
    auto bytes = co_await std::move(reading);
    CO_RETURN_IF_ERROR(bytes);
    const legacy::RequestHeader header = legacy::read_request_header(*bytes);
    // To be answered with status 3. A 0.8 server reads nothing of a payload that is too long.
    constexpr std::uint32_t kLengthMax = 10 * 1024 * 1024;
    if (header.length < sizeof(header.code) || header.length > kLengthMax) co_return LegacyCall{};
    auto reading_payload = read(header.length - sizeof(header.code));
    auto payload = co_await std::move(reading_payload);
    CO_RETURN_IF_ERROR(payload);
    co_return LegacyCall{header.code, *std::move(payload)};
  }

  base::Task<base::Result<VsrCall>> vsr_call() {
    auto reading = read(vsr::kHeaderSize);
    auto bytes = co_await std::move(reading);
    CO_RETURN_IF_ERROR(bytes);
    auto header = vsr::read_request_header(*bytes);
    CO_RETURN_IF_ERROR(header);
    auto reading_body = read(header->size - vsr::kHeaderSize);
    auto body = co_await std::move(reading_body);
    CO_RETURN_IF_ERROR(body);
    co_return VsrCall{*header, *std::move(body)};
  }

  base::Task<base::Status> write(base::Bytes bytes) {
    const std::array pieces{base::ByteView(bytes)};
    auto writing = transport_->write(pieces);
    auto written = co_await std::move(writing);
    co_return written;
  }

 private:
  std::unique_ptr<Transport> transport_;
};

}  // namespace iggy::testing
