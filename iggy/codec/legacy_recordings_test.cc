// Goal: what a live server 0.8.0 and its clients said to each other makes sense to the codec, frame by frame.
// Method: replay every recording; each request must decode, or be refused with the status that the server gave; each
// reply must decode as the answer to its request. Then cut every golden frame short at every byte.
#include <algorithm>
#include <deque>
#include <set>

#include <gtest/gtest.h>

#include "base/digest.h"
#include "iggy/codec/codes.h"
#include "iggy/codec/golden.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/primitives.h"

namespace iggy {
namespace {

using golden::RecordedFrame;
using Kind = golden::RecordedFrame::Kind;

const std::vector<golden::Recording>& recordings() {
  static const auto loaded = golden::load_recordings("iggy/codec/golden/legacy/recordings");
  return loaded;
}

constexpr std::uint32_t kControlLimit = 10U * 1024 * 1024;  // payload of everything but a send

// Statuses that come from the bytes of a request alone: if the server gave one, the codec must have seen why.
bool is_codec_status(std::uint32_t status) {
  static const std::set<std::uint32_t> statuses = {3, 4, 6, 4009, 4017, 4022, 4031, 4032, 4033, 4036, 10011};
  return statuses.contains(status);
}
// After these the rest of a send is still in the socket and is taken for frame headers.
bool leaves_stream_out_of_step(const Request* request, std::uint32_t code, std::uint32_t status) {
  return (request == nullptr || std::holds_alternative<SendMessages>(*request)) && code == code::kSendMessages &&
         (status == 3 || status == 6 || status == 40);
}

// Replays one recording.
class Replay {
 public:
  void run(const golden::Recording& recording) {
    for (std::size_t i = 0; i < recording.frames.size(); ++i) {
      const RecordedFrame& frame = recording.frames[i];
      SCOPED_TRACE(recording.file + " frame " + std::to_string(i) + ": " + frame.note);
      switch (frame.kind) {
        case Kind::kToServer:
          to_server(frame);
          break;
        case Kind::kToClient:
          to_client(frame);
          break;
        case Kind::kEvent:  // a close, a silence or a restart: nothing before it is answered any more
          waiting_.clear();
          break;
      }
    }
  }

  // Frames to the server: decoded, refused by the codec, no frame at all, cut in the recording.
  int requests = 0, refused = 0, streams = 0, cut_requests = 0;
  // Answers: decoded, refusals by the server's state, refusals as the codec said, cut, not in step, not to a request.
  int replies = 0, errors = 0, confirmed = 0, cut_replies = 0, out_of_step = 0, stray = 0;
  int polled = 0;  // messages

 private:
  struct Waiting {
    std::optional<Request> request;  // absent: refused, or not one whole frame
    std::uint32_t code = 0;
    std::optional<std::uint32_t> status;  // what the codec wants to be answered
    bool any_error = false;               // out of step: only the form of the answer is known
  };

  void to_server(const RecordedFrame& frame) {
    const base::ByteView bytes = frame.bytes;
    if (frame.cut) {
      ++cut_requests;
      Waiting& entry = waiting_.emplace_back();
      entry.code = legacy::read_request_header(bytes).code;
      if (entry.code == code::kSendMessages) entry.request = SendMessages{};
      return;
    }
    const bool whole = bytes.size() >= legacy::kHeaderSize &&
                       legacy::read_request_header(bytes).length == bytes.size() - sizeof(std::uint32_t);
    if (!whole) {
      not_a_frame(bytes);
      return;
    }
    Waiting& entry = waiting_.emplace_back();
    entry.any_error = out_of_step_;
    out_of_step_ = false;
    entry.code = legacy::read_request_header(bytes).code;
    auto request = legacy::decode_request(entry.code, bytes.subspan(legacy::kHeaderSize));
    if (!request) {
      ++refused;
      entry.status = request.error().wire_status();
      EXPECT_NE(*entry.status, 0U);
      return;
    }
    ++requests;
    auto again = legacy::encode_request(*request);
    ASSERT_TRUE(again) << again.error().to_string();
    static const std::set<std::string> not_as_we_would_write = {"ping with extra payload",
                                                                "send: last index position wrong"};
    if (!not_as_we_would_write.contains(frame.note)) EXPECT_EQ(golden::to_hex(*again), golden::to_hex(bytes));
    entry.request = std::move(*request);
  }

  // Bytes that do not form one frame: what a server's reader makes of them, header by header.
  void not_a_frame(base::ByteView bytes) {
    ++streams;
    while (bytes.size() >= legacy::kHeaderSize) {
      const legacy::RequestHeader header = legacy::read_request_header(bytes);
      bytes = bytes.subspan(legacy::kHeaderSize);
      if (header.length >= sizeof(std::uint32_t) && header.length - sizeof(std::uint32_t) <= kControlLimit) {
        const std::size_t payload = header.length - sizeof(std::uint32_t);
        if (payload > bytes.size()) return;  // the server waits for the rest
        EXPECT_FALSE(legacy::decode_request(header.code, bytes.first(payload)));
        bytes = bytes.subspan(payload);
      }
      waiting_.emplace_back().status = kStatusInvalidCommand;
    }
  }

  void to_client(const RecordedFrame& frame) {
    const base::ByteView bytes = frame.bytes;
    if (bytes.size() > legacy::kHeaderSize && legacy::read_reply_header(bytes).status != 0) {
      // Several refusals in one piece.
      ASSERT_EQ(bytes.size() % legacy::kHeaderSize, 0U);
      for (std::size_t at = 0; at < bytes.size(); at += legacy::kHeaderSize)
        one_reply(bytes.subspan(at, legacy::kHeaderSize), false);
      return;
    }
    one_reply(bytes, frame.cut);
  }

  void one_reply(base::ByteView bytes, bool is_cut) {
    const legacy::ReplyHeader header = legacy::read_reply_header(bytes);
    if (header.status != 0) {
      EXPECT_EQ(golden::to_hex(legacy::encode_error(header.status)), golden::to_hex(bytes));
    }
    if (waiting_.empty()) {
      ++stray;  // bytes of a send taken for headers, or "server stops"
      EXPECT_TRUE(header.status == 3 || header.status == 8 || header.status == 40) << header.status;
      return;
    }
    const Waiting entry = std::move(waiting_.front());
    waiting_.pop_front();
    out_of_step_ = leaves_stream_out_of_step(entry.request ? &*entry.request : nullptr, entry.code, header.status);
    if (entry.any_error) {
      ++out_of_step;
      return;
    }
    if (entry.status) {
      ++confirmed;
      EXPECT_EQ(header.status, *entry.status);
      return;
    }
    if (is_cut || !entry.request) {
      ++cut_replies;
      return;
    }
    if (header.status != 0) {
      ++errors;
      const bool seen_whole = !std::holds_alternative<SendMessages>(*entry.request) ||
                              !std::get<SendMessages>(*entry.request).records.empty();
      EXPECT_FALSE(seen_whole && is_codec_status(header.status))
          << "the codec accepted it, the server: " << header.status;
      return;
    }
    ++replies;
    ASSERT_EQ(header.length, bytes.size() - legacy::kHeaderSize);
    const base::BufferPtr buffer = golden::buffer_of(bytes);
    auto reply = legacy::decode_reply(*entry.request, buffer->view().subspan(legacy::kHeaderSize), buffer);
    ASSERT_TRUE(reply) << reply.error().to_string();
    bool plain = true;
    if (const auto* messages = std::get_if<PolledMessages>(&*reply)) {
      for (const base::Record& record : messages->batch.records) {
        ++polled;
        EXPECT_EQ(base::load<std::uint64_t>(record.raw.data()), base::xxh3_64(record.raw.subspan(8)));
        plain = plain && base::load<std::uint64_t>(record.raw.data() + 56) == 0;  // a reserved field we do not carry
      }
    }
    if (plain) EXPECT_EQ(golden::to_hex(legacy::encode_reply(*reply)), golden::to_hex(bytes));
  }

  std::deque<Waiting> waiting_;
  bool out_of_step_ = false;
};

TEST(LegacyRecordings, EveryFrameIsUnderstood) {
  Replay total;
  for (const golden::Recording& recording : recordings()) {
    Replay replay;
    replay.run(recording);
    for (auto counter : {&Replay::requests, &Replay::refused, &Replay::streams, &Replay::cut_requests, &Replay::replies,
                         &Replay::errors, &Replay::confirmed, &Replay::cut_replies, &Replay::out_of_step,
                         &Replay::stray, &Replay::polled})
      total.*counter += replay.*counter;
  }
  // Nothing was left over, and the files are those that the handlers above were written for.
  EXPECT_EQ(recordings().size(), 34U);
  int to_server = 0;
  int to_client = 0;
  for (const golden::Recording& recording : recordings())
    for (const RecordedFrame& frame : recording.frames) {
      to_server += frame.kind == Kind::kToServer ? 1 : 0;
      to_client += frame.kind == Kind::kToClient ? 1 : 0;
    }
  EXPECT_EQ(total.requests + total.refused + total.streams + total.cut_requests, to_server);
  EXPECT_EQ(total.replies + total.errors + total.confirmed + total.cut_replies + total.out_of_step + total.stray,
            to_client + 13);  // one piece holds 14 refusals
  EXPECT_EQ(total.requests, 462);
  EXPECT_EQ(total.refused, 16);
  EXPECT_EQ(total.streams, 13);
  EXPECT_EQ(total.cut_requests, 3);
  EXPECT_EQ(total.replies, 385);
  EXPECT_EQ(total.errors, 62);
  EXPECT_EQ(total.confirmed, 51);
  EXPECT_EQ(total.cut_replies, 8);
  EXPECT_EQ(total.out_of_step, 3);
  EXPECT_EQ(total.stray, 8);
  EXPECT_EQ(total.polled, 362);
}

// A frame cut short: refused, or read as what it then is (fewer records of a list without a count), never read beyond.
// Each prefix has its own block of memory, so that AddressSanitizer sees a read past the end.
void cut_request(std::uint32_t code, base::ByteView payload) {
  const std::size_t step = payload.size() > 4096 ? 997 : 1;
  for (std::size_t size = 0; size < payload.size(); size += step) {
    const base::BufferPtr prefix = golden::buffer_of(payload.first(size));
    const auto request = legacy::decode_request(code, prefix->view());
    ASSERT_FALSE(request) << "command " << code << " cut at " << size;
    EXPECT_NE(request.error().wire_status(), 0U);
  }
}

void cut_reply(const Request& request, base::ByteView payload) {
  for (std::size_t size = 0; size < payload.size(); ++size) {
    const base::BufferPtr prefix = golden::buffer_of(payload.first(size));
    const auto reply = legacy::decode_reply(request, prefix->view(), prefix);
    if (!reply) continue;
    const base::Bytes again = legacy::encode_reply(*reply);
    EXPECT_EQ(golden::to_hex(base::ByteView(again).subspan(legacy::kHeaderSize)), golden::to_hex(prefix->view()))
        << name_of(request) << " cut at " << size;
  }
}

TEST(LegacyGolden, CutFramesAreRefusedAtEveryByte) {
  for (const golden::Vector& vector : golden::load_vectors("iggy/codec/golden/legacy/vectors.json"))
    if (vector.layer == "frame" && vector.direction == "request" && vector.bytes) {
      SCOPED_TRACE(vector.name);
      cut_request(vector.code, base::ByteView(*vector.bytes).subspan(legacy::kHeaderSize));
    }
}

TEST(LegacyRecordings, CutFramesAreRefusedAtEveryByte) {
  std::set<base::Bytes> done;  // recordings repeat themselves
  for (const golden::Recording& recording : recordings()) {
    std::optional<Request> request;
    for (const RecordedFrame& frame : recording.frames) {
      SCOPED_TRACE(recording.file + ": " + frame.note);
      if (frame.cut || frame.bytes.size() < legacy::kHeaderSize || frame.kind == Kind::kEvent) continue;
      const base::ByteView payload = base::ByteView(frame.bytes).subspan(legacy::kHeaderSize);
      if (frame.kind == Kind::kToServer) {
        request.reset();
        const legacy::RequestHeader header = legacy::read_request_header(frame.bytes);
        if (header.length != payload.size() + sizeof(std::uint32_t)) continue;
        auto decoded = legacy::decode_request(header.code, payload);
        if (!decoded) continue;
        const auto again = legacy::encode_request(*decoded);
        request = std::move(*decoded);
        if (again && *again == frame.bytes && done.insert(frame.bytes).second) cut_request(header.code, payload);
      } else if (request && legacy::read_reply_header(frame.bytes).status == 0 && done.insert(frame.bytes).second) {
        cut_reply(*request, payload);
      }
    }
  }
}

}  // namespace
}  // namespace iggy
