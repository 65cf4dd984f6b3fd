#include "replicator/sim/faults.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "iggy/codec/status.h"
#include "replicator/sim/world.h"

namespace replicator::sim {

using namespace std::chrono_literals;

std::string_view to_string(Blow blow) {
  static constexpr std::array<std::string_view, kBlows> kNames = {"cut",
                                                                  "outage",
                                                                  "send trouble",
                                                                  "late landing",
                                                                  "silence",
                                                                  "send refused",
                                                                  "read trouble",
                                                                  "write trouble",
                                                                  "upstream crash",
                                                                  "downstream crash",
                                                                  "upstream expiry",
                                                                  "downstream expiry",
                                                                  "upstream purge",
                                                                  "downstream purge",
                                                                  "upstream recreated",
                                                                  "downstream recreated",
                                                                  "stranger",
                                                                  "unreadable range",
                                                                  "upstream follower",
                                                                  "downstream follower",
                                                                  "partitions added",
                                                                  "topic added",
                                                                  "topic deleted",
                                                                  "right withdrawn",
                                                                  "store fails",
                                                                  "power cut",
                                                                  "kill",
                                                                  "orderly restart",
                                                                  "process frozen",
                                                                  "clock step",
                                                                  "second appliance",
                                                                  "old state file",
                                                                  "lost state file",
                                                                  "operator's pause"};
  return kNames.at(static_cast<std::size_t>(blow));
}

namespace {

base::Duration up_to(World& world, base::Duration most) {
  return world.dice.micros(0, static_cast<std::uint64_t>(most.count()));
}

void trouble_sends(World& world, Trouble trouble, base::Duration delay = {}, std::uint32_t status = 0) {
  world.down_weather.sends.push_back({trouble, delay, status});
}

// Every status that a server has, as an answer to a send or a read.
std::uint32_t any_status(World& world) { return world.dice.of(iggy::status_table()).status; }

void strike_sends(World& world) {
  static constexpr std::array kKinds = {Trouble::kLose, Trouble::kAckLost, Trouble::kNoOffset, Trouble::kSlow,
                                        Trouble::kRefuse};
  for (std::uint64_t i = 0, n = 1 + world.dice.below(4); i < n; ++i) {
    const Trouble trouble = world.dice.of(kKinds);
    trouble_sends(world, trouble, trouble == Trouble::kSlow ? up_to(world, 3s) : 0s, world.dice.chance(50) ? 58 : 57);
  }
}

void strike_reads(World& world, Weather& weather, bool legacy) {
  static constexpr std::array kKinds = {Trouble::kLose,  Trouble::kAckLost, Trouble::kSlow,  Trouble::kSilence,
                                        Trouble::kEmpty, Trouble::kShort,   Trouble::kRefuse};
  const Trouble trouble = world.dice.of(kKinds);
  if (trouble == Trouble::kEmpty && legacy) return;  // 0.8 gives what it has
  const std::uint32_t status = trouble == Trouble::kRefuse ? any_status(world) : 0;
  if (trouble == Trouble::kRefuse) {
    world.touch_everybody([](Happened& happened) { happened.refused = true; });
  }
  weather.reads.push_back({trouble, trouble == Trouble::kSlow ? up_to(world, 40s) : 0s, status});
}

void strike_rights(World& world) {
  static constexpr std::array kRights = {Right::kSend, Right::kPoll, Right::kReadTopics, Right::kManage,
                                         Right::kReadServers};
  Cluster& cluster = world.dice.chance(50) ? world.up : world.down;
  const Right right = world.dice.of(kRights);
  cluster.denied.insert(right);
  // Without read_servers two equal tail reads must do.
  world.touch_everybody([&](Happened& happened) {
    happened.refused = true;
    if (right == Right::kReadServers) happened.late = true;
  });
  cluster.agenda().in(up_to(world, 20s), [&cluster, right] { cluster.denied.erase(right); });
}

void crash(World& world, bool upstream) {
  Cluster& cluster = upstream ? world.up : world.down;
  const bool flushed = world.dice.chance(25);
  world.touch_all([&](Happened& happened, const base::PartitionKey& key) {
    const Log* log = upstream ? world.up.find(key.topic, key.partition) : world.copy_of(key);
    if (log == nullptr) return;
    if (upstream) {
      happened.up_lost =
          happened.up_lost || (!flushed && log->saved < log->next) || (log->kept.empty() && log->next > 0);
    } else {
      happened.down_lost = true;
    }
  });
  cluster.crash(flushed);
  if (world.dice.chance(50)) cluster.be_down_until(world.now() + up_to(world, 8s));
}

void expire(World& world, bool upstream) {
  const base::PartitionKey key = world.any_partition();
  Cluster& cluster = upstream ? world.up : world.down;
  const base::TopicName name = upstream ? key.topic : world.target(key.topic);
  const auto topic = cluster.topics.find(name);
  if (topic == cluster.topics.end() || topic->second.settings.message_expiry == iggy::kNeverExpire) return;
  // Time alone does it; here whole segments are sealed at once.
  for (Log& log : topic->second.partitions) log.sealed = world.dice.chance(50);
}

void recreate(World& world, bool upstream, bool purge) {
  const base::PartitionKey key = world.any_partition();
  if (!world.up.topics.contains(key.topic)) return;
  Cluster& cluster = upstream ? world.up : world.down;
  const base::TopicName name = upstream ? key.topic : world.target(key.topic);
  if (!cluster.topics.contains(name)) return;
  world.touch_all([&](Happened& happened, const base::PartitionKey& each) {
    if (each.topic != key.topic) return;
    if (!upstream) happened.down_recreated = true;
    if (upstream && purge) happened.up_purged = true;
    if (upstream && !purge) happened.up_recreated = true;
  });
  const base::Duration done_after = world.dice.chance(30) ? up_to(world, 4s) : 0s;
  purge ? cluster.purge(name, done_after) : cluster.recreate(name, done_after);
}

void old_end(World& world, bool upstream) {
  const base::PartitionKey key = world.any_partition();
  Cluster& cluster = upstream ? world.up : world.down;
  Log* log = upstream ? world.up.find(key.topic, key.partition) : world.copy_of(key);
  if (cluster.is_legacy() || log == nullptr) return;
  Happened& happened = world.happened[key];
  happened.old_ends = true;
  // The sink reads where sends are accepted; should it not, a tail that hides behind an old end is sent twice.
  if (!upstream) happened.late = true;
  log->old_end = Log::OldEnd{world.now() + up_to(world, 4s), log->next - std::min(log->next, world.dice.below(20))};
}

void grow(World& world, bool new_topic) {
  if (new_topic) {
    const base::TopicName name{"orders", fmt::format("late{}", world.up.topics.size())};
    if (world.up.topics.size() > 3) return;
    const bool again = world.up.topics.contains(name);  // deleted and made anew at once
    world.up.create(name, 1 + static_cast<std::uint32_t>(world.dice.below(2)));
    for (std::uint32_t i = 0; i < world.up.topics.at(name).partitions.size(); ++i) world.appear({name, i});
    if (again) {
      world.touch_all([&](Happened& happened, const base::PartitionKey& each) {
        if (each.topic == name) happened.up_recreated = true;
      });
    }
    return;
  }
  const base::PartitionKey key = world.any_partition();
  const auto topic = world.up.topics.find(key.topic);
  if (topic == world.up.topics.end() || topic->second.partitions.size() > 3) return;
  world.up.grow(key.topic, 1);
  world.appear({key.topic, static_cast<std::uint32_t>(topic->second.partitions.size() - 1)});
}

void second_appliance(World& world) {
  const std::size_t other = 1 - world.active;
  if (world.config.marker == "off" || world.machines[other] == nullptr || world.machines[other]->runs()) return;
  Machine& machine = *world.machines[other];
  machine.kill();  // a process that has ended still has its file open
  // A copy of the state file, as a person makes it who wants to be safe.
  for (const char* suffix : {"", "-wal"}) {
    std::error_code ignored;
    std::filesystem::copy_file(world.machine().path() + suffix, machine.path() + suffix,
                               std::filesystem::copy_options::overwrite_existing, ignored);
    if (ignored) std::filesystem::remove(machine.path() + suffix, ignored);
  }
  // What one of them has under way when the other takes over lands when it lands.
  world.touch_everybody([](Happened& happened) { happened.late = happened.new_file = true; });
  world.say("second appliance: " + machine.start());
}

void freeze(World& world) {
  world.machine().stop_for(up_to(world, world.dice.chance(20) ? 90s : 10s));
  world.touch_everybody([](Happened& happened) { happened.silence = true; });
}

void state_file(World& world, bool lost) {
  Machine& machine = world.machine();
  const std::string kept = machine.folder() + "/kept/";
  std::error_code ignored;
  if (lost) {
    machine.kill();
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(machine.path() + suffix, ignored);
    // The link begins anew, with its start policy for all that is there.
    world.touch_everybody([](Happened& happened) {
      happened.new_file = true;
      happened.fixed = happened.grown = false;
    });
  } else if (std::filesystem::exists(kept + "state.db")) {  // an older copy comes back
    machine.kill();
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(machine.path() + suffix, ignored);
      std::filesystem::rename(kept + "state.db" + suffix, machine.path() + suffix, ignored);
    }
    world.touch_everybody([](Happened& happened) {
      happened.late = happened.new_file = true;
      happened.fixed = false;
    });
  } else {
    std::filesystem::create_directory(kept, ignored);
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::copy_file(machine.path() + suffix, kept + "state.db" + suffix, ignored);
    }
  }
}

}  // namespace

void strike(World& world, Blow blow) {
  const base::PartitionKey key = world.any_partition();
  Happened& happened = world.happened[key];
  Cluster& side = world.dice.chance(50) ? world.up : world.down;
  const auto everywhere = [&world](bool Happened::* what) {
    world.touch_everybody([what](Happened& each) { each.*what = true; });
  };
  world.count(std::string(to_string(blow)));
  world.say(fmt::format("{} ({})", to_string(blow), key.to_string()));
  switch (blow) {
    case Blow::kCut:
      return side.cut();
    case Blow::kOutage:
      side.cut();
      return side.be_down_until(world.now() + up_to(world, 20s));
    case Blow::kSendTrouble:
      return strike_sends(world);
    case Blow::kLate:
      // Past fence_timeout, or where the list tells nothing, it can land after the look.
      everywhere(&Happened::late);
      return trouble_sends(world, world.dice.chance(30) ? Trouble::kPartial : Trouble::kLate, up_to(world, 15s));
    case Blow::kSilence:
      everywhere(&Happened::silence);
      everywhere(&Happened::late);
      return trouble_sends(world, world.dice.chance(50) ? Trouble::kSilence : Trouble::kSlow, up_to(world, 60s));
    case Blow::kRefuseSend:
      everywhere(&Happened::refused);
      return trouble_sends(world, Trouble::kRefuse, 0s, world.dice.chance(30) ? 3009 : any_status(world));
    case Blow::kReadTrouble:
      return world.dice.chance(50) ? strike_reads(world, world.up_weather, world.up.is_legacy())
                                   : strike_reads(world, world.down_weather, world.down.is_legacy());
    case Blow::kWriteTrouble:
      return world.down_weather.writes.push_back({world.dice.chance(50) ? Trouble::kAckLost : Trouble::kLose, {}, 0});
    case Blow::kCrashUp:
      return crash(world, true);
    case Blow::kCrashDown:
      return crash(world, false);
    case Blow::kExpireUp:
      return expire(world, true);
    case Blow::kExpireDown:
      return expire(world, false);
    case Blow::kPurgeUp:
      return recreate(world, true, true);
    case Blow::kPurgeDown:
      return recreate(world, false, true);
    case Blow::kRecreateUp:
      return recreate(world, true, false);
    case Blow::kRecreateDown:
      return recreate(world, false, false);
    case Blow::kStranger: {
      if (world.copy_of(key) == nullptr) return;
      happened.foreign = true;
      Message stranger;
      stranger.id = {0xF0F0, world.dice.next()};
      stranger.body = fmt::format("stranger {}", world.dice.next());
      stranger.payload_length = static_cast<std::uint32_t>(stranger.body.size());
      world.down.append(world.target(key.topic), key.partition, {stranger});
      return;
    }
    case Blow::kUnreadable: {
      Log* log = world.up.find(key.topic, key.partition);
      if (!world.up.is_legacy() || happened.up_unreadable || log == nullptr || log->kept.empty()) return;
      happened.up_unreadable = true;
      const std::uint64_t begin = log->kept.front().offset + world.dice.below(log->kept.size());
      return log->unreadable.push_back({begin, begin + 1 + world.dice.below(20), world.dice.chance(50)});
    }
    case Blow::kOldEndUp:
      return old_end(world, true);
    case Blow::kOldEndDown:
      return old_end(world, false);
    case Blow::kGrow:
      return grow(world, false);
    case Blow::kNewTopic:
      return grow(world, true);
    case Blow::kDropTopic:
      if (world.up.topics.size() < 2 || !world.up.topics.contains(key.topic)) return;
      world.touch_all([&](Happened& each, const base::PartitionKey& of) {
        if (of.topic == key.topic) each.dropped = true;
      });
      return world.up.drop(key.topic);
    case Blow::kRights:
      return strike_rights(world);
    case Blow::kStoreFails:
      if (!world.machine().runs()) return;
      return world.machine().faulty().fail(1 + world.dice.below(5), world.dice.chance(50)
                                                                        ? state::testing::Failing::kOnce
                                                                        : state::testing::Failing::kFromThenOn);
    case Blow::kPowerCut:
      return world.machine().lose_power_after(1 + world.dice.below(12));
    case Blow::kKill:
      return world.machine().kill_after(world.dice.below(400));
    case Blow::kRestart:
      if (world.machine().runs()) world.machine().supervisor().request_stop();
      return;
    case Blow::kFreeze:
      return freeze(world);
    case Blow::kClockStep:
      return world.machine().step_clock(
          base::Duration(static_cast<std::int64_t>(world.dice.below(7'200'000'000)) - 3'600'000'000));
    case Blow::kSecondAppliance:
      return second_appliance(world);
    case Blow::kOldStateFile:
      return state_file(world, false);
    case Blow::kLostStateFile:
      if (!world.dice.chance(30)) return;
      return state_file(world, true);
    case Blow::kPause:
      if (!world.machine().runs()) return;
      (void)world.call(
          world.machine(),
          world.machine().supervisor().set_desired(
              "*/*/*", world.dice.chance(50) ? state::Desired::kPaused : state::Desired::kRunning, "sim", false));
      return;
  }
}

bool explains(const World& world, const Happened& h, FaultKind kind) {
  const bool up_changed = h.up_lost || h.up_purged || h.up_recreated || h.dropped;
  const bool retention_up = h.up_expired;
  switch (kind) {
    case FaultKind::kUpstreamRewound:
      return up_changed || h.new_file;
    case FaultKind::kUpstreamRecreated:
      return h.up_recreated || h.dropped;
    case FaultKind::kRetention:
      // A reservation that was jumped over looks the same where nothing older is kept.
      return retention_up || (h.up_lost && world.up.flavour() == Flavour::kVsrReserving);
    case FaultKind::kUnknownGap:
      return false;
    case FaultKind::kUpstreamUnreadable:
      return h.up_unreadable;
    case FaultKind::kDownstreamRecreated:
      return h.down_recreated || (h.down_lost && (up_changed || h.down_expires || h.foreign || h.new_file));
    case FaultKind::kDownstreamNotEmpty:
      return h.foreign || h.new_file;
    case FaultKind::kForeignWriter:
      return h.foreign || up_changed || h.down_recreated || h.new_file;
    case FaultKind::kUnverifiableTail:
      return h.foreign || up_changed || h.up_expired || h.down_expired || h.down_recreated || h.new_file;
    case FaultKind::kSendUnanswered:
      return h.silence;
    case FaultKind::kTargetFull:
    case FaultKind::kPermission:
      return h.refused;
    case FaultKind::kInvalidRecord:
      return h.refused || h.too_large;
    default:
      return false;
  }
}

}  // namespace replicator::sim
