// One partition of a simulated server, with what is awkward about a real one (iggy-server 0.8.0 and 0.9, as observed):
// polls below the floor jump, past the end they are empty for ever, acks are in memory, a crash re-issues offsets or
// jumps over a reservation, retention takes whole sealed segments, a follower answers with an old end.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/record.h"

namespace replicator::sim {

enum class Flavour : std::uint8_t {
  kLegacy,        // 0.8: no base offset in acks, no holes, created_at moves at the first restart
  kVsr,           // 0.9.0-edge: a crash re-issues offsets
  kVsrReserving,  // 0.9: a crash jumps over what was reserved
};

struct Message {
  std::uint64_t offset = 0, timestamp = 0, origin = 0;  // times in µs
  base::MessageId id;
  std::uint32_t payload_length = 0;
  std::string body;  // payload, headers
};

struct Log {
  std::uint64_t created_at = 0;
  std::deque<Message> kept;    // offsets ascend
  std::vector<Message> gone;   // what retention took, for checkers
  std::uint64_t next = 0;      // next offset to give out
  std::uint64_t saved = 0;     // offsets below survive a crash
  bool persisted = false;      // 0.9.0, by the topic's durability: saved before it is acknowledged
  bool sealed = false;         // the last segment, until the next append
  std::uint64_t segment = 50;  // messages
  bool shifted = false;        // created_at has made its move

  struct OldEnd {
    base::TimePoint until;
    std::uint64_t end = 0;
  };
  std::optional<OldEnd> old_end;  // a follower answers
  // vsr: purge and re-creation are acknowledged before they are done.
  struct Limbo {
    base::TimePoint until;
    std::deque<Message> old;
    bool refuses = false;  // sends, status 58
  };
  std::optional<Limbo> limbo;
  struct Unreadable {
    std::uint64_t begin = 0, end = 0;
    bool refused = false;  // status 4100; otherwise empty
  };
  std::vector<Unreadable> unreadable;  // 0.8
  bool dedups = false;                 // 0.8, since the last start
  std::set<std::pair<std::uint64_t, std::uint64_t>> ids;

  std::uint64_t visible_end(base::TimePoint now) const;
  std::uint64_t visible_count(base::TimePoint now) const;
  // At most `count` messages from `from` on; `refused`: status 4100.
  std::vector<Message> read(std::uint64_t from, std::uint64_t count, base::TimePoint now, bool& refused) const;
  std::vector<Message> last(std::uint64_t count, base::TimePoint now) const;
  std::vector<Message> at_time(std::uint64_t micros, std::uint64_t count) const;

  std::uint64_t append(std::vector<Message> messages, std::uint64_t wall);  // base offset
  void crash(Flavour flavour);
  void clear(bool acked_before_done, base::TimePoint until);
  void expire(std::uint64_t floor);
  void clean(std::uint64_t expiry, std::uint64_t max_bytes, std::uint64_t wall);
};

}  // namespace replicator::sim
