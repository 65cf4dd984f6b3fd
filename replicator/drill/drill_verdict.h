// What a drill measured: the journal compared with what the new primary holds and with what the consumers processed.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replicator/drill/drill_load.h"

namespace replicator {

struct DrillConsumer {
  std::string name;
  std::string position;          // after the failover: "stored" (synced to the new primary) or "own"
  std::uint64_t duplicates = 0;  // processed more than once
  std::uint64_t skips = 0;       // on the new primary, and never processed
};

struct DrillVerdict {
  std::uint64_t acknowledged = 0;  // by the old primary, before the kill
  std::uint64_t lost = 0;          // ... and not on the new one: RPO in messages
  std::uint64_t lost_micros = 0;   // from the acknowledgment of the oldest lost message to the kill: RPO in time
  std::string worst_partition;     // with the most lost messages; empty = none
  std::uint64_t worst_lost = 0;
  std::uint64_t lost_after = 0;         // acknowledged by the new primary and not there: never expected
  std::uint64_t uncertain_arrived = 0;  // not acknowledged, and there: no error
  std::uint64_t duplicates = 0;         // on the new primary
  std::uint64_t out_of_order = 0;
  std::uint64_t damaged = 0;  // there, with other content
  std::vector<DrillConsumer> consumers;

  // Everything but the loss itself is as it must be.
  bool is_sound() const;
};

// `first_after`: by partition, the first sequence that was written to the new primary. `killed_at`: µs, our wall clock.
DrillVerdict judge_drill(const std::vector<JournalEntry>& journal, const std::vector<std::vector<DrillStored>>& stored,
                         const std::vector<std::uint64_t>& first_after, std::uint64_t killed_at,
                         const std::string& topic);
void judge_consumer(DrillConsumer& consumer, const std::vector<std::map<std::uint64_t, std::uint32_t>>& processed,
                    const std::vector<std::vector<DrillStored>>& stored);

}  // namespace replicator
