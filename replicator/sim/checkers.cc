#include "replicator/sim/checkers.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "replicator/sim/world.h"

namespace replicator::sim {

namespace {

// One partition on both sides, and what the state file says of it.
struct Pair {
  World& world;
  const base::PartitionKey& key;
  const Happened& happened;
  const Log& source;
  const Log& copy;
  state::PartitionRow row;
  std::vector<state::GapRow> gaps;
  std::vector<const Message*> copies;  // what was appended downstream and not lost since, in order
  std::unordered_map<std::string_view, std::vector<std::size_t>> places;

  void fail(const char* checker, const std::string& what) const { world.fail(checker, key.to_string() + ": " + what); }
  bool is_named(std::uint64_t offset) const {
    return std::ranges::any_of(gaps, [&](const state::GapRow& gap) {
      return gap.key == key && gap.incarnation == row.incarnation && gap.cause != "hole" && gap.up_begin <= offset &&
             offset < gap.up_end;
    });
  }
  bool is_optional(const Message& message) const { return std::stoull(message.body.substr(0, 8)) <= happened.optional; }
  // What was copied and is not there any more, as far as that is the downstream's doing.
  bool may_be_gone() const {
    return happened.down_expired || happened.down_recreated || (happened.down_lost && happened.unverified);
  }
};

std::optional<Pair> pair_of(World& world, const base::PartitionKey& key) {
  const Log* source = world.up.find(key.topic, key.partition);
  const Log* copy = world.copy_of(key);
  if (source == nullptr || copy == nullptr) return std::nullopt;
  state::SqliteStore& file = world.machine().file();
  auto row = file.partition(key);
  auto gaps = file.gaps();
  if (!row || !gaps) {
    world.fail("state file", "can't be read");
    return std::nullopt;
  }
  if (!*row) return std::nullopt;
  Pair pair{world, key, world.happened[key], *source, *copy, **row, std::move(*gaps), {}, {}};
  for (const Message& message : copy->gone) pair.copies.push_back(&message);
  for (const Message& message : copy->kept) pair.copies.push_back(&message);
  for (std::size_t i = 0; i < pair.copies.size(); ++i) pair.places[pair.copies[i]->body].push_back(i);
  return pair;
}

// Everything below `end` is there, in order, and not more often than said.
void check_messages(const Pair& pair, std::uint64_t end, const char* checker, bool is_over) {
  const Happened& happened = pair.happened;
  const bool asked_for = happened.restarted || happened.unverified;
  std::size_t previous = 0;
  std::uint64_t extra = 0;
  std::string where;
  for (const Message& message : pair.source.kept) {
    if (message.offset >= end) break;
    const auto found = pair.places.find(message.body);
    if (found == pair.places.end()) {
      if (pair.is_named(message.offset) || pair.is_optional(message) || pair.may_be_gone()) continue;
      return pair.fail(checker, fmt::format("upstream offset {} ({}) is not downstream, and nothing says so",
                                            message.offset, message.body.substr(0, 8)));
    }
    const Message& first = *pair.copies[found->second.front()];
    if (first.origin != message.origin || first.payload_length != message.payload_length ||
        (first.id != message.id && !message.id.is_zero())) {
      return pair.fail("content", fmt::format("upstream offset {} was changed on its way", message.offset));
    }
    extra += found->second.size() - 1;
    if (found->second.size() > 1 && where.empty()) {
      where = fmt::format("upstream offset {} is at {} and {}", message.offset, first.offset,
                          pair.copies[found->second.back()]->offset);
    }
    if (!asked_for && found->second.front() < previous) {
      return pair.fail("order", fmt::format("upstream offset {} stands before its predecessor", message.offset));
    }
    previous = found->second.front();
  }
  // While it runs, what landed late may not have been discovered yet.
  if (!is_over || asked_for || extra == 0) return;
  if (extra > pair.row.counters.duplicates + happened.duplicates_elsewhere && !happened.new_file) {
    return pair.fail("duplicate", fmt::format("{} messages are there twice, {} are counted: {}", extra,
                                              pair.row.counters.duplicates, where));
  }
  if (!happened.late) {
    pair.fail("duplicate",
              fmt::format("{} messages are there twice, and no abandoned send can have landed: {}", extra, where));
  }
}

// What is committed is as durable downstream as was promised.
void check_ack(const Pair& pair) {
  const Happened& happened = pair.happened;
  if (pair.world.config.ack == Ack::kMemory || pair.row.durability != to_string(pair.world.config.ack)) return;
  if (happened.down_recreated || happened.down_expired) return;
  if (pair.row.anchor && pair.row.anchor->down_offset >= pair.copy.saved) {
    pair.fail("acknowledgment", fmt::format("downstream offset {} is committed, a crash leaves only {}",
                                            pair.row.anchor->down_offset, pair.copy.saved));
  }
}

void check_map(const Pair& pair) {
  const auto ranges = pair.world.machine().file().ranges(pair.key, pair.row.incarnation);
  if (!ranges) return pair.fail("state file", "can't be read");
  for (const state::RangeRow& range : *ranges) {
    for (const Message& message : pair.source.kept) {
      if (message.offset < range.up_begin || message.offset - range.up_begin >= range.length) continue;
      const std::uint64_t there = range.down_begin + (message.offset - range.up_begin);
      const auto copy = std::ranges::lower_bound(pair.copy.kept, there, {}, &Message::offset);
      if (copy != pair.copy.kept.end() && copy->offset == there) {
        if (copy->body == message.body) continue;
        return pair.fail("offset map",
                         fmt::format("{} is said to be at {}, where another message is", message.offset, there));
      }
      const bool expired = pair.copy.kept.empty() || there < pair.copy.kept.front().offset;
      if (!expired) {
        return pair.fail("offset map", fmt::format("{} is said to be at {}, where nothing is", message.offset, there));
      }
    }
  }
}

void check_bounds(World& world) {
  for (const auto& machine : world.machines) {
    if (!machine->runs()) continue;
    const auto status = machine->status();
    // A poll's reply may be larger than what was reserved for it: sizes are learned (partition_reader.cc).
    const std::uint64_t most = status->budget_bytes + status->partitions.size() * (16'384 + 8 * world.largest_message);
    if (status->budget_used_bytes > most) {
      world.fail("bounds", fmt::format("{} bytes are queued, {} are allowed", status->budget_used_bytes, most));
    }
    for (const PartitionStatus& partition : status->partitions) {
      if (partition.committed > partition.acked || partition.acked > partition.polled) {
        world.fail("bounds", partition.key.to_string() + ": positions are out of order");
      }
    }
  }
  if (world.up_weather.double_sends + world.down_weather.double_sends > 0) {
    world.fail("bounds", "two unresolved sends to one partition");
  }
}

}  // namespace

void check_running(World& world) {
  check_bounds(world);
  if (!world.machine().runs() || !world.dice.chance(30)) return;
  for (const auto& [key, happened] : world.happened) {
    const auto pair = pair_of(world, key);
    if (!pair) continue;
    check_ack(*pair);
    if (happened.down_lost || happened.down_recreated || happened.up_lost || happened.up_purged ||
        happened.up_recreated || happened.dropped) {
      continue;  // what is missing may not have been discovered yet
    }
    check_messages(*pair, pair->row.watermark, "watermark", false);
  }
}

void check_end(World& world) {
  check_bounds(world);
  for (const auto& [key, happened] : world.happened) {
    const auto pair = pair_of(world, key);
    if (!pair) {
      if (world.up.find(key.topic, key.partition) != nullptr)
        world.fail("silent loss", key.to_string() + " has no row");
      continue;
    }
    check_messages(*pair, ~0ULL, "silent loss", true);
    check_map(*pair);
    if (!world.quiet || happened.too_large) continue;
    if (pair->row.counters.duplicates > 0 || pair->row.counters.errors > 0 || pair->row.fault.active() ||
        !pair->gaps.empty()) {
      pair->fail("false alarm",
                 fmt::format("nothing was done to it, and there are {} errors, {} duplicates, {} gaps",
                             pair->row.counters.errors, pair->row.counters.duplicates, pair->gaps.size()));
    }
  }
  if (world.down.dedup_crashes > 0 && std::ranges::none_of(world.happened, [](const auto& each) {
        return each.second.restarted || each.second.late || each.second.new_file;
      })) {
    world.fail("server killed", "a send was repeated that the server had wholly");
  }
  if (const auto damage = world.machine().file().check(); !damage || !damage->empty()) {
    world.fail("state file", damage ? damage->front() : damage.error().to_string());
  }
}

}  // namespace replicator::sim
