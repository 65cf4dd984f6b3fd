// What can happen to a world: to connections, to either cluster, to the state file, to the appliance and its machine.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "replicator/model/fault.h"

namespace replicator::sim {

class World;
struct Happened;

enum class Blow : std::uint8_t {
  kCut,
  kOutage,
  kSendTrouble,
  kLate,
  kSilence,
  kRefuseSend,
  kReadTrouble,
  kWriteTrouble,
  kCrashUp,
  kCrashDown,
  kExpireUp,
  kExpireDown,
  kPurgeUp,
  kPurgeDown,
  kRecreateUp,
  kRecreateDown,
  kStranger,
  kUnreadable,
  kOldEndUp,
  kOldEndDown,
  kGrow,
  kNewTopic,
  kDropTopic,
  kRights,
  kStoreFails,
  kPowerCut,
  kKill,
  kRestart,
  kFreeze,
  kClockStep,
  kSecondAppliance,
  kOldStateFile,
  kLostStateFile,
  kPause,
};
inline constexpr int kBlows = 34;
std::string_view to_string(Blow blow);

// Does it, or nothing where it does not apply.
void strike(World& world, Blow blow);
// Whether what was done to a partition explains this fault.
bool explains(const World& world, const Happened& happened, FaultKind kind);

}  // namespace replicator::sim
