#include "replicator/drill/drill_verdict.h"

#include <algorithm>

#include <fmt/format.h>

namespace replicator {

bool DrillVerdict::is_sound() const {
  const bool consumers_skip = std::ranges::any_of(consumers, [](const DrillConsumer& each) { return each.skips > 0; });
  return lost_after == 0 && duplicates == 0 && out_of_order == 0 && damaged == 0 && !consumers_skip;
}

DrillVerdict judge_drill(const std::vector<JournalEntry>& journal, const std::vector<std::vector<DrillStored>>& stored,
                         const std::vector<std::uint64_t>& first_after, std::uint64_t killed_at,
                         const std::string& topic) {
  DrillVerdict verdict;
  std::vector<std::map<std::uint64_t, base::Digest>> there(stored.size());
  for (std::size_t partition = 0; partition < stored.size(); ++partition) {
    std::optional<std::uint64_t> highest;
    for (const DrillStored& message : stored[partition]) {
      const bool is_new = there[partition].emplace(message.sequence, message.digest).second;
      if (!is_new) {
        ++verdict.duplicates;
      } else if (highest && message.sequence < *highest) {
        ++verdict.out_of_order;
      }
      highest = std::max(highest.value_or(0), message.sequence);
    }
  }
  std::vector<std::uint64_t> lost(stored.size(), 0);
  for (const JournalEntry& entry : journal) {
    const auto found = there[entry.partition].find(entry.sequence);
    const bool arrived = found != there[entry.partition].end();
    if (arrived && found->second != entry.digest) ++verdict.damaged;
    const bool after = entry.sequence >= first_after[entry.partition];
    if (!entry.certain) {
      if (arrived) ++verdict.uncertain_arrived;
    } else if (after) {
      if (!arrived) ++verdict.lost_after;
    } else {
      ++verdict.acknowledged;
      if (arrived) continue;
      ++verdict.lost;
      ++lost[entry.partition];
      verdict.lost_micros = std::max(verdict.lost_micros, killed_at - std::min(killed_at, entry.at));
    }
  }
  for (std::size_t partition = 0; partition < lost.size(); ++partition) {
    if (lost[partition] <= verdict.worst_lost) continue;
    verdict.worst_lost = lost[partition];
    verdict.worst_partition = fmt::format("{}/{}", topic, partition);
  }
  return verdict;
}

void judge_consumer(DrillConsumer& consumer, const std::vector<std::map<std::uint64_t, std::uint32_t>>& processed,
                    const std::vector<std::vector<DrillStored>>& stored) {
  for (std::size_t partition = 0; partition < stored.size(); ++partition) {
    for (const auto& [sequence, times] : processed[partition]) consumer.duplicates += times - 1;
    for (const DrillStored& message : stored[partition]) {
      if (!processed[partition].contains(message.sequence)) ++consumer.skips;
    }
  }
}

}  // namespace replicator
