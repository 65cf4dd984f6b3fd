// Dialect `legacy`: one message, and the body of send_messages.
//
//   message  | checksum u64 | id u128 | offset u64 | timestamp u64 | origin u64 | headers u32 | payload u32 | reserved
//   u64 |
//            | payload | user headers |
//   index    | offset u32 | end u32 | timestamp u64 |             one per message of a send; end counts from the area
//   send     | metadata | index × count | message × count |
//
// Source: apache/iggy tag server-0.8.0, core/binary_protocol/src/message_layout.rs.
#pragma once

#include "base/record.h"
#include "base/result.h"
#include "iggy/codec/legacy.h"

namespace iggy::legacy {

struct MessageHeader {
  std::uint64_t checksum = 0;
  base::MessageId id;
  std::uint64_t offset = 0;
  std::uint64_t timestamp = 0;
  std::uint64_t origin_timestamp = 0;
  std::uint32_t headers_length = 0;
  std::uint32_t payload_length = 0;

  std::uint64_t size() const { return std::uint64_t{kMessageHeaderSize} + payload_length + headers_length; }
};

// REQUIRES: kMessageHeaderSize bytes at `at`. The reserved field is ignored on reading, 0 on writing.
MessageHeader read_message_header(const std::byte* at);
void write_message_header(std::byte* at, const MessageHeader& header);

// A record that views into `message`. REQUIRES: message.size() == header.size().
base::Record record_of(const MessageHeader& header, base::ByteView message);
// What a sender writes for `record`: the fields that the server sets are 0, except `offset`, which must not decrease.
MessageHeader header_to_send(const base::Record& record, std::uint64_t offset);

// The body of send_messages with every check of the server, in its order. The error's wire_status is its answer.
base::Result<SendMessages> decode_send(base::ByteView payload);

}  // namespace iggy::legacy
