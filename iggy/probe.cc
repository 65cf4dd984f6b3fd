#include "iggy/probe.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "iggy/codec/codes.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/vsr.h"
#include "iggy/codec/vsr_layout.h"
#include "iggy/with_deadline.h"

namespace iggy {
namespace {

constexpr std::uint32_t kInvalidCommand = 3;             // what a 0.8 server makes of the zeros in a vsr header
constexpr std::uint8_t kIncompatibleProtocol = 14;       // eviction reason
constexpr base::MessageId kProbeClient{0x7065'6269, 1};  // any but zero; never logged in
constexpr std::string_view kName = "probe";

base::Error error(base::ErrorCode code, const HostPort& host, std::string message, std::string hint) {
  return {code, "probe", host.to_string(), std::move(message), std::move(hint)};
}

base::Bytes vsr_frame(vsr::Operation operation, std::uint32_t read_code, base::ByteView body) {
  base::Bytes frame(vsr::kHeaderSize);
  vsr::write_request_header(frame.data(), {.size = static_cast<std::uint32_t>(vsr::kHeaderSize + body.size()),
                                           .command = std::to_underlying(vsr::Command::kRequest),
                                           .client = kProbeClient,
                                           .request_checksum = {},
                                           .request = 0,
                                           .operation = std::to_underlying(operation),
                                           .session = 0,
                                           .code = read_code});
  frame.insert(frame.end(), body.begin(), body.end());
  return frame;
}

base::Bytes window_request() {
  base::Bytes prefix;
  base::ByteWriter writer(prefix);
  writer.u32(0);  // no server accepts it
  writer.text8(kName);
  writer.text8(kName);
  return vsr_frame(vsr::Operation::kRegister, 0, prefix);
}

std::string text_of_word(std::uint32_t word) {
  return fmt::format("{}.{}.{}", word >> 20, (word >> 10) & 0x3FF, word & 0x3FF);
}

// A server's answer so far. Never more than one header is looked at.
struct Answer {
  std::array<std::byte, vsr::kHeaderSize> bytes{};
  std::size_t size = 0;
  bool ended = false;
  bool starts_with(std::string_view text) const {
    return size >= text.size() && base::as_text(base::ByteView(bytes).first(text.size())) == text;
  }
};

// Reads until `enough` bytes or the end. `answer` must outlive the task.
base::Task<base::Status> read(Transport& transport, Answer& answer, std::size_t enough) {
  while (answer.size < enough && !answer.ended) {
    auto reading = transport.read_some(std::span(answer.bytes).subspan(answer.size));
    auto size = co_await std::move(reading);
    CO_RETURN_IF_ERROR(size);
    answer.ended = *size == 0;
    answer.size += *size;
  }
  co_return base::ok();
}

base::Task<base::Result<bool>> exchange(Transport& transport, base::ByteView frame, Answer& answer,
                                        std::size_t enough) {
  const std::array pieces{frame};
  auto writing = transport.write(pieces);
  auto written = co_await std::move(writing);
  CO_RETURN_IF_ERROR(written);
  auto reading = read(transport, answer, enough);
  auto status = co_await std::move(reading);
  CO_RETURN_IF_ERROR(status);
  co_return true;
}

base::Error foreign(const Answer& answer, const HostPort& host, bool tls) {
  using enum base::ErrorCode;
  if (answer.size == 0) {
    if (tls) return error(kNotIggy, host, "the port closed the TLS connection without an answer", "check the port");
    return error(kNotIggy, host,
                 "the port closed the connection at once, without an answer: most likely it expects TLS",
                 "add tls=true to the connection string, or check the port");
  }
  if (answer.starts_with("HTTP/")) {
    return error(kNotIggy, host, "the port answers as an HTTP server", "use the server's TCP port, usually 8090");
  }
  if (answer.starts_with("\x15\x03")) {
    return error(kNotIggy, host, "the port expects TLS", "add tls=true to the connection string");
  }
  return error(kNotIggy, host, "the port answers, but not as an Iggy server", "check host and port");
}

// The answer to the window request, when it is one.
base::Result<Dialect> judge_window(const vsr::Eviction& window, const HostPort& host) {
  constexpr std::uint32_t kOurs = vsr::kProtocolWord >> 10;  // major and minor
  const std::uint32_t oldest = window.protocol_min >> 10;
  const std::uint32_t newest = window.protocol_max >> 10;
  if (oldest <= kOurs && kOurs <= newest) return Dialect::kVsr11;
  const std::string range =
      window.protocol_min == window.protocol_max
          ? text_of_word(window.protocol_max)
          : fmt::format("{} to {}", text_of_word(window.protocol_min), text_of_word(window.protocol_max));
  constexpr std::uint32_t kVsr12Word = 12;
  if (oldest <= kVsr12Word && kVsr12Word <= newest) {
    return error(base::ErrorCode::kUnsupported, host,
                 fmt::format("the server is 0.10.x (protocol {}), which is not supported yet", range),
                 "supported are servers 0.8.x and 0.9.x (protocol 0.11)");
  }
  return error(
      base::ErrorCode::kUnsupported, host,
      fmt::format("the server accepts protocol {}, this program speaks {}", range, text_of_word(vsr::kProtocolWord)),
      newest > kOurs ? "a newer version of this program is needed" : "supported are servers 0.8.x and 0.9.x");
}

base::Error silent(const HostPort& host) {
  return error(base::ErrorCode::kTimeout, host, "the port accepts connections but does not answer",
               "is it an Iggy TCP port, and is the server healthy?");
}

}  // namespace

base::Task<base::Result<Dialect>> probe(base::Clock& clock, Transport& transport, HostPort host, bool tls,
                                        base::TimePoint deadline) {
  Answer answer;
  const base::Bytes ping = vsr_frame(vsr::Operation::kRead, code::kPing, {});
  auto pinging = with_deadline(clock, deadline, exchange(transport, ping, answer, legacy::kHeaderSize), silent(host));
  auto pinged = co_await std::move(pinging);
  if (!pinged && pinged.error().code() != base::ErrorCode::kTimeout) {
    // A reset after some bytes is judged by the bytes.
    if (answer.size == 0) co_return std::move(pinged).error().with_object(host.to_string());
    answer.ended = true;
  } else if (!pinged && answer.size == 0) {
    co_return std::move(pinged).error();
  } else if (!pinged) {
    co_return foreign(answer, host, tls);
  }
  if (answer.size >= legacy::kHeaderSize) {
    const legacy::ReplyHeader header = legacy::read_reply_header(answer.bytes);
    if (header.status == kInvalidCommand && header.length == 0) co_return Dialect::kLegacy;
  }
  if (answer.ended || answer.starts_with("HTTP/") || answer.starts_with("\x15\x03"))
    co_return foreign(answer, host, tls);

  auto completing =
      with_deadline(clock, deadline, exchange(transport, {}, answer, vsr::kHeaderSize), foreign(answer, host, tls));
  auto completed = co_await std::move(completing);
  if (!completed && completed.error().code() == base::ErrorCode::kNotIggy) co_return std::move(completed).error();
  if (!completed || answer.size < vsr::kHeaderSize) co_return foreign(answer, host, tls);
  const auto pong = vsr::read_reply_header(answer.bytes);
  if (!pong || !std::holds_alternative<vsr::ReplyHeader>(*pong)) co_return foreign(answer, host, tls);

  // It is vsr. A server that leaves this question open may still take our login, so half of what remains is enough.
  Answer window;
  const base::Bytes question = window_request();
  const base::TimePoint patience = clock.now() + (deadline - clock.now()) / 2;
  auto asking = with_deadline(clock, patience, exchange(transport, question, window, vsr::kHeaderSize), silent(host));
  auto asked = co_await std::move(asking);
  if (!asked || window.size < vsr::kHeaderSize) co_return Dialect::kVsr11;
  const auto reply = vsr::read_reply_header(window.bytes);
  if (reply) {
    const auto* eviction = std::get_if<vsr::Eviction>(&*reply);
    if (eviction != nullptr && eviction->reason == kIncompatibleProtocol) co_return judge_window(*eviction, host);
  }
  co_return Dialect::kVsr11;
}

}  // namespace iggy
