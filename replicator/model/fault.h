// Every condition that stops one partition until a person decides, with its sentence and its exits. docs/OPERATIONS.md
// has a section per fault, and a test compares the two lists.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace replicator {

enum class FaultKind : std::uint8_t {
  kUpstreamRewound,      // upstream re-issued offsets that we have copied: lost acknowledged messages, or was purged
  kUpstreamRecreated,    // another topic of the same name
  kRetention,            // messages expired upstream before they were copied
  kUnknownGap,           // upstream offsets are missing and nothing explains it
  kUpstreamUnreadable,   // upstream says that it has messages, and does not give them
  kDownstreamRecreated,  // downstream purged, recreated, rewritten or emptied
  kDownstreamNotEmpty,   // no record of this partition, and the target holds messages
  kForeignWriter,        // somebody else writes into the target
  kUnverifiableTail,     // target ends elsewhere than recorded, upstream no longer holds what it should equal
  kInvalidRecord,        // a message that the target can never take
  kSendUnanswered,       // two sends in a row without an answer, at an unmoved end
  kPermission,           // a right is missing or was withdrawn
  kTargetFull,           // the target refuses for lack of room
  kNotDurable,           // the promised acknowledgment strength can't be kept
  kTargetMissing,        // topic or partition is not there downstream and can't be created
  kGaveUp,               // a server refuses the same again and again, or retry_max_attempts is reached
};
inline constexpr int kFaultKindCount = 16;

enum class Exit : std::uint8_t { kRetry, kAccept, kRestart, kRecopy, kAdopt, kSkip };

struct FaultInfo {
  FaultKind kind;
  std::string_view name;        // snake_case: in the state file, JSON, metrics
  std::string_view meaning;     // one sentence for a tired person
  std::span<const Exit> exits;  // what `resolve --as` takes today
};
const FaultInfo& info(FaultKind kind);
std::optional<FaultKind> fault_from_name(std::string_view name);

std::string_view to_string(Exit exit);
std::optional<Exit> exit_from_name(std::string_view name);
// What the exit of this fault will do, one sentence ("copies the new history from its first message, after what is
// there").
std::string_view meaning(FaultKind kind, Exit exit);

// What is known when a person decides; absent = not seen lately.
struct FaultCounts {
  std::optional<std::uint64_t> up_messages, down_messages;  // kept there
  std::optional<std::uint64_t> down_end;
  std::uint64_t watermark = 0, recorded_down_end = 0;
  std::uint64_t up_begin = 0, up_end = 0;  // the range that the fault concerns
};
// What it means here, in numbers ("500 messages are upstream and 20 downstream; up to 20 of them will be there
// twice"). Empty = nothing to count.
std::string consequence(FaultKind kind, Exit exit, const FaultCounts& counts);

}  // namespace replicator
