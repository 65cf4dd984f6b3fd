// Traffic of an unmodified 0.9.0-edge.5 server: each request decodes, or is refused as the server refused it; each
// reply decodes as the answer to its request.
#include <algorithm>
#include <optional>
#include <ranges>

#include <gtest/gtest.h>

#include "iggy/codec/vsr_golden.h"

namespace iggy::vsr {
namespace {

using golden::RecordedFrame;
using golden::to_hex;

struct Asked {
  RequestHeader header;
  std::optional<Request> request;  // absent when it was cut, or refused by the codec
  std::optional<std::uint32_t> refusal;
  bool answered = false;
};

struct Counts {
  std::size_t requests = 0, refused = 0, silent = 0, closed = 0, not_frames = 0, other_commands = 0;
  std::size_t replies = 0, statuses = 0, evictions = 0, cut = 0, records = 0, misplaced = 0, unanswered = 0;
};

class Replay {
 public:
  Replay(const golden::Recording& recording, Counts& counts) : recording_(recording), counts_(counts) {}

  void run() {
    for (at_ = 0; at_ < recording_.frames.size(); ++at_) {
      const RecordedFrame& frame = recording_.frames[at_];
      SCOPED_TRACE(recording_.file + " " + std::to_string(at_) + ": " + frame.note);
      if (frame.kind == RecordedFrame::Kind::kToServer) to_server(frame);
      if (frame.kind == RecordedFrame::Kind::kToClient) to_client(frame);
    }
    counts_.unanswered += static_cast<std::size_t>(
        std::ranges::count_if(asked_, [](const Asked& asked) { return asked.request && !asked.answered; }));
  }

 private:
  // What follows is an event (silence, a close), not an answer.
  void expect_event_next() {
    ASSERT_LT(at_ + 1, recording_.frames.size());
    EXPECT_EQ(recording_.frames[at_ + 1].kind, RecordedFrame::Kind::kEvent);
  }

  void to_server(const RecordedFrame& frame) {
    if (frame.bytes.size() < kHeaderSize) {
      ++counts_.not_frames;
      return expect_event_next();
    }
    const auto header = read_request_header(frame.bytes);
    if (!header) {
      ++counts_.closed;
      return expect_event_next();
    }
    if (header->command != 5) {
      ++counts_.other_commands;
      EXPECT_EQ(decode_request(*header, {}).error().wire_status(), 0U);
      return expect_event_next();
    }
    Asked& asked = asked_.emplace_back(Asked{*header, {}, {}});
    if (frame.cut) {
      ++counts_.cut;
      asked.request = golden::request_with(static_cast<Operation>(header->operation), header->code);
      return;
    }
    EXPECT_EQ(header->size, frame.bytes.size());
    const auto body = base::ByteView(frame.bytes).subspan(kHeaderSize);
    const auto request = decode_request(*header, body);
    if (!request) {
      ++counts_.refused;
      asked.refusal = request.error().wire_status();
      if (*asked.refusal == 0) {
        ++counts_.silent;
        expect_event_next();
      }
      return;
    }
    ++counts_.requests;
    const auto again = encode_body(*request);
    ASSERT_TRUE(again);
    EXPECT_EQ(to_hex(*again), to_hex(body));
    asked.request = *request;
  }

  // Requests carry numbers, but raw scripts use them again on the next connection: the newest one is meant.
  Asked* asked_for(const ReplyHeader& reply) {
    for (Asked& asked : std::views::reverse(asked_)) {
      if (asked.answered || asked.header.request != reply.request) continue;
      const auto operation = static_cast<Operation>(asked.header.operation);
      const bool rewritten = (operation == Operation::kCreateTopic && reply.operation == 64) ||
                             (operation == Operation::kCreatePartitions && reply.operation == 65) ||
                             (operation == Operation::kDeleteSegments && reply.operation == 68);
      if (asked.header.operation == reply.operation || rewritten) return &asked;
    }
    return nullptr;
  }

  void to_client(const RecordedFrame& frame) {
    ASSERT_GE(frame.bytes.size(), kHeaderSize);
    const auto read = read_reply_header(frame.bytes);
    ASSERT_TRUE(read) << read.error().to_string();
    if (const auto* eviction = std::get_if<Eviction>(&*read)) return evicted(frame, *eviction);
    const ReplyHeader& header = std::get<ReplyHeader>(*read);
    Asked* asked = asked_for(header);
    ASSERT_NE(asked, nullptr);
    asked->answered = true;
    if (frame.cut) {
      ++counts_.cut;
      EXPECT_LT(frame.bytes.size(), header.size);
      return;
    }
    EXPECT_EQ(header.size, frame.bytes.size());
    const auto body = base::ByteView(frame.bytes).subspan(kHeaderSize);
    if (asked->refusal) {
      if (*asked->refusal == header.status) return;
      // edge.5 answers a poll that it cannot read with an empty one.
      EXPECT_EQ(asked->header.code, 100U);
      EXPECT_EQ(to_hex(body), std::string(32, '0'));
      return;
    }
    const base::BufferPtr buffer = golden::buffer_of(frame.bytes);
    const auto reply = decode_reply(*asked->request, header, buffer->view().subspan(kHeaderSize), buffer, true);
    if (header.status != 0 || is_rejection(*asked->request, body)) {
      ++counts_.statuses;
      ASSERT_FALSE(reply);
      const std::uint32_t code = header.status != 0 ? header.status : base::load<std::uint32_t>(body.data() + 8);
      EXPECT_EQ(reply.error().wire_status(), code);
      EXPECT_NE(reply.error().message(), "unknown_status");
      EXPECT_NE(frame.note.find(std::to_string(code)), std::string::npos);
      const base::Bytes refused =
          header.status != 0 ? encode_status(asked->header, code) : encode_result(asked->header, code);
      EXPECT_EQ(to_hex(base::ByteView(refused).subspan(kHeaderSize)), to_hex(body));
      return;
    }
    if (!reply && recording_.file.starts_with("10-")) {
      // The server took frames whose deltas start at 5 or repeat; what it serves then cannot be placed.
      ++counts_.misplaced;
      EXPECT_EQ(reply.error().message(), "offset 12 follows 15");
      return;
    }
    ASSERT_TRUE(reply) << reply.error().to_string();
    ++counts_.replies;
    if (const auto* polled = std::get_if<PolledMessages>(&*reply)) counts_.records += polled->batch.records.size();
    const base::Bytes again = encode_reply(*asked->request, asked->header, *reply, header.commit);
    EXPECT_EQ(to_hex(base::ByteView(again).subspan(kHeaderSize)), to_hex(body));
    EXPECT_EQ(again[208], frame.bytes[208]);
  }

  static bool is_rejection(const Request& request, base::ByteView body) {
    return is_result_framed(operation_of(request)) && body.size() == 12 && base::load<std::uint32_t>(body.data()) == 1;
  }

  // An eviction answers the newest request.
  void evicted(const RecordedFrame& frame, const Eviction& eviction) {
    ++counts_.evictions;
    ASSERT_FALSE(asked_.empty());
    Asked& asked = asked_.back();
    EXPECT_FALSE(asked.answered);
    asked.answered = true;
    EXPECT_NE(frame.note.find("reason " + std::to_string(eviction.reason)), std::string::npos);
    EXPECT_NE(status_of_eviction(eviction.reason), 0U);
    if (!asked.refusal) return;  // the codec saw nothing wrong: credentials, no session
    EXPECT_EQ(*asked.refusal, status_of_eviction(eviction.reason));
  }

  const golden::Recording& recording_;
  Counts& counts_;
  std::vector<Asked> asked_;
  std::size_t at_ = 0;
};

TEST(VsrRecordings, EveryFrame) {
  Counts counts;
  const auto recordings = golden::load_recordings("iggy/codec/golden/vsr/recordings");
  EXPECT_EQ(recordings.size(), 36U);
  for (const golden::Recording& recording : recordings) Replay(recording, counts).run();
  EXPECT_EQ(counts.requests, 385U);
  EXPECT_EQ(counts.refused, 25U);
  EXPECT_EQ(counts.silent, 15U);
  EXPECT_EQ(counts.closed, 6U);
  EXPECT_EQ(counts.not_frames, 8U);
  EXPECT_EQ(counts.other_commands, 3U);
  EXPECT_EQ(counts.replies, 304U);
  EXPECT_EQ(counts.statuses, 57U);
  EXPECT_EQ(counts.evictions, 14U);
  EXPECT_EQ(counts.cut, 9U);
  EXPECT_EQ(counts.records, 271U);
  EXPECT_EQ(counts.misplaced, 1U);
  EXPECT_EQ(counts.unanswered, 8U) << "the connection ended";
}

}  // namespace
}  // namespace iggy::vsr
