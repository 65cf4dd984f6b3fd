// Copies one upstream partition to one downstream partition, in order, each message once in effect.
//
//   source ──poll from the last polled message──▶ queue (budget) ──one unresolved send──▶ sink ──ack──▶ committer ──▶
//   store
//
// Life:  resync ─Ready─▶ copy ─error─▶ back off ─▶ resync …      Finding ─▶ fault, until resolve();   pause() ─▶ paused
//
// Invariants: (1) committed <= acked <= polled. (2) A send begins where the last acked one ended; nothing is sent while
// the outcome of a send is unknown. (3) The first message of a poll is the last polled one, content and all, and is
// dropped. (4) What a sink has to flush is committed after its flush. What each failure does: poll error: what is
// queued is still sent, then back off and resync. Send certainly not accepted: the same again after a delay. Send with
// unknown outcome: settle, resync; the tail decides. Acknowledged at another end than predicted: resync. Commit fails:
// sending goes on for `uncommitted_batches_max`, then waits. Killed anywhere: the watermark is behind, resync adopts
// our own tail. One partition holds at most `read_ahead_batches` of the budget, so that one that can't send stops no
// other. Affinity: constructor, everything on one io_context. Lifetime: all references outlive run(). stop() is
// idempotent; run() then ends after the send in flight is resolved.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "replicator/model/status.h"
#include "replicator/partition/committer.h"
#include "replicator/partition/memory_budget.h"
#include "replicator/partition/positions.h"
#include "replicator/partition/resync.h"
#include "replicator/partition/throttle.h"
#include "replicator/partition/turn.h"

namespace replicator {

inline constexpr base::Duration kLookInterval =
    std::chrono::seconds(1);  // no wait of the loop is longer without a look

// What this process has copied, for the receipt of a run.
struct PipelineTally {
  std::optional<std::uint64_t> first;  // upstream offset of the first message
  std::uint64_t copied = 0, copied_bytes = 0;
  bool repaired = false;  // a look moved the position meanwhile: the digest is not that of the range
  base::Digest digest;    // chained over the digests of all messages, in order
};

// What is done with a message that the target can never take.
struct InvalidRecords {
  bool skip = false;   // leave it out by itself; otherwise it is a fault
  std::string folder;  // its bytes are kept there (state/record_file.h); empty = they are not
};

struct PipelineOptions {
  std::uint64_t batch_bytes = 4ULL * 1024 * 1024;
  std::uint32_t read_ahead_batches = 4;
  std::uint32_t uncommitted_batches_max = 64;
  base::Duration behind_interval = std::chrono::milliseconds(500);  // between two looks while evidence is missing
  base::Duration flush_interval = std::chrono::milliseconds(100);   // of sinks that flush; one flush in between
  base::Duration stuck_after = std::chrono::seconds(30);
  base::Duration unknown_after = std::chrono::seconds(3);  // a lag not observed for longer is unknown
  base::BackoffPolicy retry;
  std::uint32_t retry_max_attempts = 0;  // in a row without progress, then a fault; 0 = without end
  ResyncOptions resync;
  std::uint64_t seed = 1;
  bool tally_digest = false;  // costs a hash per message
  InvalidRecords invalid_records;
  std::map<FaultKind, Exit> policies;  // exits that are taken without a person, see kPolicyTimes
  std::vector<Throttle*> throttles;    // asked before every poll, in this order; they outlive the pipeline
};
// The same refusal so many times in a row, at one place, is no passing trouble.
inline constexpr std::uint32_t kRefusalsMax = 3;
// After so many exits by policy on one partition within an hour, a fault waits for a person.
inline constexpr std::size_t kPolicyTimes = 3;

class PartitionPipeline final : public CommitListener {
 public:
  PartitionPipeline(asio::io_context& io, base::Clock& clock, base::PartitionKey key, base::TopicName downstream,
                    Source& source, Sink& sink, state::AsyncStore& store, Committer& committer, MemoryBudget& budget,
                    PipelineOptions options, std::optional<state::PartitionRow> row);

  base::Task<void> run();
  void stop();

  // Operator's words; each is durable before it returns, except that an exit other than retry is carried out (and made
  // durable) by the next look, and only if it finds the same thing again. reset() waits until the partition has paused.
  base::Task<base::Status> set_desired(state::Desired desired, std::string actor);
  base::Task<base::Status> resolve(Exit exit, std::string actor);
  base::Task<base::Status> reset(std::uint64_t up_offset, std::string actor);
  // Sends left-out messages again, after the present end: `gaps` are ledger rows of this partition, cause
  // "invalid_record", resolved as "skip". The wish is durable when it returns; what became of each is in its row:
  // "replaying", then "replayed", or "skip" again with an event that says why.
  base::Task<base::Status> replay(std::vector<state::GapRow> gaps, std::string actor);

  PartitionStatus status() const;
  const base::PartitionKey& key() const { return key_; }
  bool caught_up() const;
  const PipelineTally& tally() const { return tally_; }

  void on_committed(const state::PartitionCommit& commit) override;
  void on_stale(const base::PartitionKey& key) override;

 private:
  struct Queued {
    base::RecordBatch batch;
    Permit permit;
    std::size_t taken = 0;  // records already acked
  };

  // partition_pipeline.cc: the loop.
  base::Task<void> copy(bool anchored);
  base::Task<base::Error> write();
  base::Task<std::optional<base::Error>> send_batch();
  base::Task<std::optional<base::Error>> send_out(std::size_t count);
  void acked(std::size_t count, std::uint64_t end);
  void drop_front(std::size_t count);

  // partition_flush.cc: acks become committable.
  void confirm(state::PartitionCommit commit);
  base::Task<void> flush_acked();
  base::Task<void> flush_once();

  // partition_reader.cc: the reading half.
  base::Task<void> read_ahead();
  base::Task<bool> wait_for_more(PartitionView& seen);
  Urgency urgency() const;
  std::uint64_t count_at_once() const;
  base::Task<bool> wait_for_throttles(std::uint64_t count);
  void correct_throttles(std::uint64_t count, const base::Result<Polled>& polled);
  bool take_polled(Polled polled, Permit permit);
  std::uint64_t queued_bytes() const;

  // partition_exits.cc: ways out of a fault, taken by a person or by policy; messages left out, and sent after all.
  base::Task<bool> choose_by_policy();
  base::Task<void> count_both_sides();
  FaultCounts fault_counts() const;
  base::Task<void> leave_out(Decision decision);
  base::Task<base::Status> skip_record(base::Record record, std::string reason, std::optional<Decision> decision);
  base::Task<std::optional<base::Error>> skip_first(std::string reason);
  base::Task<base::Status> replay_all();
  base::Task<base::Status> replay_one(state::GapRow gap);
  base::Task<base::Result<base::RecordBatch>> left_out_record(const state::GapRow& gap);
  base::Task<base::Status> give_up_replay(const state::GapRow& gap, std::string why);

  // partition_control.cc: what surrounds it.
  base::Task<void> wait_for_operator(Phase phase, std::string why);
  base::Task<void> recover(base::Error error);
  base::Task<void> save_acked();
  base::Task<void> reload();
  base::Task<void> raise_fault(Finding finding);
  base::Task<base::Status> record_fault(Finding finding);
  Finding send_unanswered();
  bool out_of_attempts() const {
    return options_.retry_max_attempts != 0 && backoff_.attempts() >= options_.retry_max_attempts;
  }
  std::optional<Finding> give_up(const base::Error& error);
  base::Task<base::Status> apply(state::Transaction transaction);
  std::optional<FaultKind> fault_of(const base::Error& error) const;
  void enter(Phase phase, std::string why = {});
  base::Error changed(std::string what) const;
  void count_error(std::string cause);
  void errors_counted(const state::Counters& added);
  state::EventRow event(std::string kind, std::string actor, std::string detail) const;
  Lag lag() const;
  std::uint64_t readable_end(const PartitionView& view) const;
  std::optional<std::string> downstream_ends_below();

  asio::io_context& io_;
  base::Clock& clock_;
  const base::PartitionKey key_;
  const base::TopicName downstream_;
  Source& source_;
  Sink& sink_;
  state::AsyncStore& store_;
  Committer& committer_;
  MemoryBudget& budget_;
  const PipelineOptions options_;
  Turn turn_;  // who changes row_
  Resync resync_;
  base::Backoff backoff_;

  std::optional<state::PartitionRow> row_;  // what is durable, as far as this process knows
  Positions positions_;
  std::uint64_t down_end_ = 0;  // downstream end that belongs to acked
  base::TimePoint acked_at_{};  // of the newest ack of this process
  std::pair<std::uint64_t, std::uint64_t>
      looked_below_;                   // downstream's end and ours of the newest look because of that
  std::optional<state::Anchor> tail_;  // last polled message; down_offset unused
  std::deque<Queued> queue_;
  std::vector<base::Record> outgoing_;  // reused
  std::optional<base::Error> read_error_;
  std::optional<Decision> decision_;
  std::uint64_t policy_tried_ = 0;                    // `since` of the fault that a policy was last tried on
  std::string policy_note_;                           // why no policy is tried any more
  std::optional<PartitionView> up_seen_, down_seen_;  // while a fault stands
  std::uint64_t single_until_ = 0;                    // a batch was refused: one by one up to this upstream offset
  std::optional<std::pair<std::uint64_t, std::string>> refused_;  // upstream offset that the target refused, and why
  bool replays_ = true;                                           // the ledger may hold messages to be sent after all
  bool uncertain_ = false;                           // a send's outcome is unknown: settle before the next look
  std::uint32_t unanswered_ = 0;                     // sends in a row that nobody answered ...
  std::uint64_t unanswered_end_ = 0;                 // ... while the downstream's end stood here
  std::uint32_t refusals_ = 0;                       // in a row ...
  std::pair<std::uint32_t, std::uint64_t> refusal_;  // ... with this status, at this upstream offset
  std::optional<std::uint64_t> looked_again_at_;     // acked when a noticed change last led to a look at once
  std::uint32_t uncommitted_batches_ = 0;
  std::optional<state::PartitionCommit> unflushed_;  // acked, and not yet flushed by a sink that flushes
  std::optional<base::Error> flush_error_;           // ends the copy: what was acked is looked at again
  // Messages to ask for: a poll has no byte limit on the wire, so sizes are learned from small ones.
  static constexpr std::uint64_t kFirstCount = 8;
  std::uint64_t next_count_ = kFirstCount;
  std::uint64_t average_bytes_ = 1024;                 // of a message, as the newest poll had it
  std::uint64_t hollow_end_ = 0;                       // the end that metadata said when a poll up to it gave nothing
  bool idle_ = false;                                  // the reader has seen the end
  std::string held_by_;                                // the throttle that the reader waits for; empty = none
  std::optional<base::TimePoint> contradicted_since_;  // since when views are behind what was polled
  bool stale_ = false;                                 // the store holds another generation than row_

  base::Event stop_;
  // Set by who changes something, reset by who waits before it looks: no change between the look and the wait is
  // missed.
  base::Event wake_;  // run(): a command came, or stop
  base::Event stop_reading_;
  base::Event queue_changed_;
  base::Event room_;
  base::Event committed_;
  base::Event to_flush_;
  base::Event phase_changed_;

  Phase phase_ = Phase::kStarting;
  std::string why_;
  base::TimePoint progress_at_;  // last ack, or last time without work
  state::Counters live_;         // acked and not yet committed; errors: since the last commit
  state::Counters uncounted_;    // errors that no commit carries yet
  std::uint64_t caught_up_at_ = 0;
  PipelineTally tally_;
  std::string logged_;  // last line that was logged, so that repeats are not
};

}  // namespace replicator
