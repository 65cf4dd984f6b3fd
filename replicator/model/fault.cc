#include "replicator/model/fault.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.h"

namespace replicator {
namespace {

constexpr std::array kRetryOnly = {Exit::kRetry};
constexpr std::array kRestartOnly = {Exit::kRestart};
constexpr std::array kAcceptOnly = {Exit::kAccept};
constexpr std::array kAcceptOrRetry = {Exit::kAccept, Exit::kRetry};
constexpr std::array kRecopyOrAdopt = {Exit::kRecopy, Exit::kAdopt};
constexpr std::array kAdoptOrRestart = {Exit::kAdopt, Exit::kRestart};
constexpr std::array kAdoptOnly = {Exit::kAdopt};
constexpr std::array kSkipOrRetry = {Exit::kSkip, Exit::kRetry};

// In the order of the enum; fault_test.cc walks it.
constexpr std::array<FaultInfo, kFaultKindCount> kFaults = {{
    {FaultKind::kUpstreamRewound, "upstream_rewound",
     "The upstream has given out offsets again that were already copied: it lost acknowledged messages, or was purged.",
     kRestartOnly},
    {FaultKind::kUpstreamRecreated, "upstream_recreated",
     "The upstream topic was deleted, and another one of the same name stands in its place.", kRestartOnly},
    {FaultKind::kRetention, "retention",
     "Messages expired upstream before they were copied; they are lost to the downstream.", kAcceptOrRetry},
    {FaultKind::kUnknownGap, "unknown_gap", "Upstream offsets are missing, and nothing explains why.", kAcceptOrRetry},
    {FaultKind::kUpstreamUnreadable, "upstream_unreadable",
     "The upstream says that it holds messages, and does not give them: a segment is missing or damaged.",
     kAcceptOrRetry},
    {FaultKind::kDownstreamRecreated, "downstream_recreated",
     "The downstream no longer holds what was copied: it was purged, recreated, rewritten or emptied.", kRecopyOrAdopt},
    {FaultKind::kDownstreamNotEmpty, "downstream_not_empty",
     "The downstream partition holds messages, and the state file has no record of copying any.", kAdoptOrRestart},
    {FaultKind::kForeignWriter, "foreign_writer", "Somebody else writes into the downstream partition.", kAcceptOnly},
    {FaultKind::kUnverifiableTail, "unverifiable_tail",
     "The end of the downstream is not the one that was recorded, and the upstream no longer holds what it should "
     "equal.",
     kAdoptOnly},
    {FaultKind::kInvalidRecord, "invalid_record", "The next message is one that the downstream can never take.",
     kSkipOrRetry},
    {FaultKind::kSendUnanswered, "send_unanswered",
     "Two sends in a row were not answered, and the downstream's end did not move.", kRetryOnly},
    {FaultKind::kPermission, "permission", "A right that copying needs is missing or was withdrawn.", kRetryOnly},
    {FaultKind::kTargetFull, "target_full", "The downstream refuses messages for lack of room.", kRetryOnly},
    {FaultKind::kNotDurable, "not_durable",
     "The downstream topic can't keep the acknowledgment strength that was promised.", kRetryOnly},
    {FaultKind::kTargetMissing, "target_missing",
     "The topic or partition is not there downstream and can't be created.", kRetryOnly},
    {FaultKind::kGaveUp, "gave_up", "The same step failed again and again, without any progress in between.",
     kRetryOnly},
}};

}  // namespace

const FaultInfo& info(FaultKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  base::check(index < kFaults.size(), "fault kind is in the table");
  return kFaults[index];
}

std::optional<FaultKind> fault_from_name(std::string_view name) {
  for (const FaultInfo& fault : kFaults) {
    if (fault.name == name) return fault.kind;
  }
  return std::nullopt;
}

std::string_view to_string(Exit exit) {
  switch (exit) {
    case Exit::kRetry:
      return "retry";
    case Exit::kAccept:
      return "accept";
    case Exit::kRestart:
      return "restart";
    case Exit::kRecopy:
      return "recopy";
    case Exit::kAdopt:
      return "adopt";
    case Exit::kSkip:
      return "skip";
  }
  return "unknown";
}

std::optional<Exit> exit_from_name(std::string_view name) {
  for (const Exit exit : {Exit::kRetry, Exit::kAccept, Exit::kRestart, Exit::kRecopy, Exit::kAdopt, Exit::kSkip}) {
    if (to_string(exit) == name) return exit;
  }
  return std::nullopt;
}

std::string_view meaning(FaultKind kind, Exit exit) {
  switch (exit) {
    case Exit::kRetry:
      return "looks again and goes on if the cause is gone; changes nothing else";
    case Exit::kAccept:
      if (kind == FaultKind::kForeignWriter) {
        return "the stranger's messages stay, recorded in the ledger; copying continues after them";
      }
      return "closes the ledger row of the missing range and goes on at the next readable upstream offset; what is "
             "missing stays missing";
    case Exit::kRestart:
      if (kind == FaultKind::kDownstreamNotEmpty) {
        return "appends from the start policy, after the present downstream end; what is there already stays and is "
               "not claimed";
      }
      return "copies the new history from its first message, after the old one, which stays downstream; a new "
             "incarnation of the map begins";
    case Exit::kRecopy:
      return "appends all that the upstream still holds, from its first message, after what is there downstream; a new "
             "incarnation of the map begins";
    case Exit::kAdopt:
      if (kind == FaultKind::kDownstreamNotEmpty) {
        return "looks for the newest downstream messages upstream and continues after them; what stands below is "
               "recorded as unverified; refused when they are not found, or found more than once";
      }
      if (kind == FaultKind::kUnverifiableTail) {
        return "takes the downstream's end for ours as it is, more or fewer messages than recorded, and records in the "
               "ledger what could not be compared";
      }
      return "takes the present downstream end as it is and goes on with the next message not yet copied; nothing "
             "below is claimed, and nothing is sent again";
    case Exit::kSkip:
      return "leaves the message out, with its offset, id and reason in the ledger";
  }
  return "unknown";
}

namespace {

std::string count_of(const std::optional<std::uint64_t>& messages) {
  return messages ? fmt::format("{} messages", *messages) : std::string("an unknown number of messages");
}

// At most so many of what is appended stand downstream already.
std::string twice(const FaultCounts& counts) {
  if (!counts.up_messages || !counts.down_messages) return "how many will be there twice is not known now";
  return fmt::format("up to {} of them will be there twice", std::min(*counts.up_messages, *counts.down_messages));
}

}  // namespace

std::string consequence(FaultKind kind, Exit exit, const FaultCounts& counts) {
  switch (exit) {
    case Exit::kRetry:
      return {};
    case Exit::kAccept:
      if (kind == FaultKind::kForeignWriter) {
        if (!counts.down_end || *counts.down_end < counts.recorded_down_end) return {};
        return fmt::format("{} offsets stand behind the recorded downstream end {}; those that are not ours stay",
                           *counts.down_end - counts.recorded_down_end, counts.recorded_down_end);
      }
      return fmt::format("{} upstream offsets are given up: {} to {}", counts.up_end - counts.up_begin, counts.up_begin,
                         counts.up_end);
    case Exit::kRestart:
    case Exit::kRecopy:
      return fmt::format("{} are upstream and {} downstream; {}", count_of(counts.up_messages),
                         count_of(counts.down_messages), twice(counts));
    case Exit::kAdopt:
      if (kind == FaultKind::kDownstreamNotEmpty) {
        return fmt::format("{} are downstream; the upstream's {} are read to find the newest of them",
                           count_of(counts.down_messages), count_of(counts.up_messages));
      }
      if (kind == FaultKind::kDownstreamRecreated) {
        return fmt::format(
            "copying goes on at upstream offset {}; the messages below it may be missing downstream, "
            "which holds {}",
            counts.watermark, count_of(counts.down_messages));
      }
      return fmt::format("recorded is the downstream end {}, it is {}", counts.recorded_down_end,
                         counts.down_end ? std::to_string(*counts.down_end) : std::string("not known now"));
    case Exit::kSkip:
      return fmt::format("1 message is left out: upstream offset {}; `gaps replay` can send it later", counts.up_begin);
  }
  return {};
}

}  // namespace replicator
