// Faults on command, and counts of what was asked. Written by the control port, read by the sessions. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace sandbox {

// What happens to one send.
enum class SendFate : std::uint8_t { kNormal, kRefused, kDropReply, kCutAfter, kCutBefore };

struct Faults {
  std::uint64_t drop_replies = 0;  // of the next sends: append, never answer
  std::uint64_t cut_after = 0;     // append, then close without an answer
  std::uint64_t cut_before = 0;    // close without appending
  std::uint64_t refusals = 0;      // refuse with `refuse_status`
  std::uint32_t refuse_status = 0;
  std::uint64_t poll_refusals = 0;
  std::uint32_t poll_refuse_status = 0;
  base::Duration delay{0};  // every answer leaves that much later
  bool paused = false;      // nothing is read

  SendFate next_send() {
    const auto take = [](std::uint64_t& left) { return left > 0 && left-- > 0; };
    if (take(cut_before)) return SendFate::kCutBefore;
    if (take(refusals)) return SendFate::kRefused;
    if (take(cut_after)) return SendFate::kCutAfter;
    if (take(drop_replies)) return SendFate::kDropReply;
    return SendFate::kNormal;
  }
  bool next_poll_is_refused() { return poll_refusals > 0 && poll_refusals-- > 0; }

  // Requests since the start, by command name.
  std::map<std::string, std::uint64_t, std::less<>> requests;
  void count(std::string_view name) {
    const auto at = requests.find(name);
    if (at != requests.end()) {
      ++at->second;
    } else {
      requests.emplace(name, 1);
    }
  }
};

}  // namespace sandbox
