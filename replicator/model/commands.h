// What an operator can ask of a running link. Called from gRPC threads: each posts to the I/O thread and waits for the
// outcome.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "replicator/model/fault.h"
#include "replicator/model/loss.h"
#include "replicator/model/rate.h"
#include "replicator/model/verify_report.h"
#include "state/offset_map.h"
#include "state/store.h"

namespace replicator {

struct CommandOutcome {
  std::vector<std::string> affected;  // partitions, "orders/events/3"
  std::string what;                   // what was done, or would be (dry run), one paragraph
};

// How a link ends for good.
enum class Ending : std::uint8_t {
  kFailover,  // disaster: at once, whatever the upstream says
  kPromote,   // planned: only when everything is copied and the upstream has been still for `still_for`
};

struct EndRequest {
  Ending ending = Ending::kFailover;
  std::string actor;       // user@host
  bool dry_run = false;    // says what would be lost, and changes nothing
  bool verify = true;      // kPromote: both sides are compared first, from where they were last found equal
  std::string fence_user;  // kPromote: whose right to send is taken upstream; empty = nobody's
  base::Duration still_for = std::chrono::seconds(5);  // kPromote: how long the upstream's ends must not move
};

// Durable parts are told apart: a verb that was killed, or met a dead downstream or a full disk, is repeated until
// `undone` is empty.
struct EndReport {
  Ending ending = Ending::kFailover;
  bool dry_run = false;
  bool was_ended = false;  // the link had ended before this call
  std::string link_id;
  Loss loss;                          // what the downstream lacks, as far as it is known
  bool recorded_in_state = false;     // the state file says so, durably
  bool recorded_downstream = false;   // the link's record says so; always false with marker = "off"
  std::uint64_t stopped_micros = 0;   // from the call until nothing was written any more
  std::uint64_t recorded_micros = 0;  // ... until both records were durable
  std::string verified;               // kPromote: what the comparison said, one sentence
  std::string consumers;              // what became of consumer offsets, one sentence
  std::vector<state::ConsumerRow> consumer_rows;
  std::vector<std::string> undone;      // what is missing, and why
  std::vector<std::string> next_steps;  // commands and sentences for a person
};

// Thread-safe. Blocks up to 10 s, end_link() up to a minute more than still_for (kPromote: and than its comparison).
// Errors: kInvalidArgument (no such partition, exit not of this fault, glob matches nothing), kStateUnavailable
// (nothing was changed), kStopped, kTimeout.
class Commands {
 public:
  virtual ~Commands() = default;
  // `glob` over stream/topic or stream/topic/partition. Survives a restart.
  virtual base::Result<CommandOutcome> pause(std::string glob, std::string actor, bool dry_run) = 0;
  virtual base::Result<CommandOutcome> resume(std::string glob, std::string actor, bool dry_run) = 0;
  virtual base::Result<CommandOutcome> resolve(base::PartitionKey key, Exit exit, std::string actor, bool dry_run) = 0;
  // Moves the watermark of one partition. `up_offset` = next upstream offset to copy.
  virtual base::Result<CommandOutcome> reset(base::PartitionKey key, std::uint64_t up_offset, std::string actor,
                                             bool dry_run) = 0;
  // Sends messages again that were left out as invalid, after the present end of their partitions. `ids`: ledger rows;
  // empty = all that were skipped. Durable when it returns, carried out after.
  virtual base::Result<CommandOutcome> replay(std::vector<std::int64_t> ids, std::string actor, bool dry_run) = 0;
  // How fast may be read: of the link (empty glob), or of each topic that `glob` matches. Rate{} = no limit. Until the
  // next restart or reload.
  virtual base::Result<CommandOutcome> set_throttle(std::string glob, Rate rate, std::string actor, bool dry_run) = 0;
  // Reads the configuration again. `affected`: the keys that changed. kInvalidArgument: it has problems, nothing was
  // changed.
  virtual base::Result<CommandOutcome> reload(std::string actor, bool dry_run) = 0;
  // The end of the link: it never writes downstream again, and run() ends. Further errors: kFenced (kPromote: not
  // everything is copied, the upstream still moves, or both sides differ; nothing was changed).
  virtual base::Result<EndReport> end_link(EndRequest request) = 0;
  virtual base::Result<std::vector<state::GapRow>> gaps() = 0;
  virtual base::Result<std::vector<state::EventRow>> events(std::size_t newest) = 0;
  virtual base::Result<state::Translation> translate(base::PartitionKey key, state::Side from,
                                                     std::uint64_t offset) = 0;
  // Blocks as long as the comparison takes. `on_progress` is called on the caller's thread about twice a second; false
  // ends it (kStopped). One at a time: kNotAccepted while another runs. kInvalidArgument: the glob matches nothing.
  virtual base::Result<VerifyReport> verify(VerifyRequest request,
                                            std::function<bool(const VerifyProgress&)> on_progress) = 0;
  // As of the last look. Sorted by partition, kind, name.
  virtual base::Result<std::vector<state::ConsumerRow>> consumers() = 0;
  // Looks now, moves what may be moved, and answers with what stands then. `dry_run`: says what it would do.
  virtual base::Result<std::vector<state::ConsumerRow>> sync_consumers(std::string actor, bool dry_run) = 0;
};

}  // namespace replicator
