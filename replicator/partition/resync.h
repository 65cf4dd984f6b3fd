// Finds where a partition really stands, on every start and after every error, by looking at both sides. The table of
// docs/GUARANTEES.md ("Resync") as code.
//
//   settle ─▶ upstream identity ─▶ watermark readable ─▶ downstream identity ─▶ downstream tail ─▶ one transaction
//
// A verdict needs positive evidence: another message where ours should be. Absence (ends early, answers empty, another
// created_at alone) counts only when it was seen again and again for `confirm_for`; until then the outcome is Behind,
// which changes nothing. Everything it decides becomes durable before it returns, so dying anywhere inside repeats the
// same look.
//
// Affinity: the pipeline's io_context, one run() at a time. Lifetime: source, sink, store, clock outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "replicator/model/config.h"
#include "replicator/model/fault.h"
#include "replicator/partition/sink.h"
#include "replicator/partition/source.h"
#include "replicator/partition/turn.h"
#include "state/async_store.h"

namespace replicator {

struct ResyncOptions {
  base::Duration confirm_for = std::chrono::seconds(5);
  StartPolicy start;                  // of a partition without a row
  std::uint32_t read_count = 500;     // messages per read while matching a tail
  std::string durability = "memory";  // recorded: what a commit outlives downstream
};

// An exit that an operator has chosen; applied only when the look finds that same fault again.
struct Decision {
  FaultKind kind;
  Exit exit;
  std::string actor;
};

struct Ready {
  bool anchored = false;  // the message before the watermark was seen upstream, as recorded: polls may start at it
};
struct Repaired {};  // the row was moved back or began anew, durably; a decision was carried out: look again
struct Behind {
  std::string why;
};
struct Finding {  // becomes the partition's fault
  FaultKind kind;
  std::string detail;
  std::uint64_t up_begin = 0, up_end = 0;
  std::vector<state::GapRow> gaps;  // open ledger rows that go with it
};
using ResyncOutcome = std::variant<Ready, Repaired, Behind, Finding>;

inline constexpr std::uint32_t kFirstReadCount = 8;  // of a run, before sizes are known

class Resync {
 public:
  Resync(base::PartitionKey key, base::TopicName downstream, Source& source, Sink& sink, state::AsyncStore& store,
         base::Clock& clock, Turn& turn, ResyncOptions options);

  // `row`: in, the durable row (none before the first time); out, the durable row afterwards; changed only while `turn`
  // is held. `after_uncertain`: something may still land, settle first. Errors: those of source, sink and store;
  // nothing was decided.
  base::Task<base::Result<ResyncOutcome>> run(std::optional<state::PartitionRow>& row, bool after_uncertain,
                                              std::optional<Decision> decision);
  // Sentence of the newest repair ("downstream_lost_tail 400"), for the log; empty when there was none.
  const std::string& repair() const { return repair_; }
  // The newest run found replays that the downstream has lost: they are wanted again.
  bool reopened_replays() const { return reopened_replays_; }

 private:
  // What is at one offset of one side.
  struct Look {
    enum class What : std::uint8_t { kHere, kAbove, kNothing, kRefused } what = What::kNothing;
    base::RecordBatch batch;  // kHere, kAbove: one record
    std::string refusal;
    const base::Record& record() const { return batch.records.front(); }
  };
  using Step = base::Task<base::Result<ResyncOutcome>>;

  Step first();
  Step check_upstream();
  Step upstream_ends_early();
  Step check_watermark();
  Step gap_before(std::uint64_t next_readable);
  Step unreadable(std::string refusal);
  Step check_downstream();
  Step step_back();
  Step match_tail();
  Step restart();
  // resync_adopt.cc: what is downstream is taken as it is.
  Step recreated(std::string detail);
  Step adopt_end();
  struct Continuation {
    std::uint64_t up_offset = 0, down_offset = 0;
  };
  base::Task<base::Result<std::optional<Continuation>>> continuation();
  Step adopt_copy(std::string detail);
  struct Found {  // where the newest downstream messages stand upstream
    std::vector<state::RangeRow> ranges;
    std::uint64_t up_floor = 0;
    std::size_t times = 0;
  };
  base::Task<base::Result<base::RecordBatch>> newest_downstream();
  base::Task<base::Result<Found>> find_upstream(const base::RecordBatch& run);
  Step accept_gap(std::uint64_t watermark, std::string cause, std::string detail);
  base::Task<base::Status> save(std::optional<state::PartitionRow>& row);
  base::Task<base::Status> report(std::uint64_t up_begin, std::uint64_t up_end, std::string cause, std::string detail);

  base::Task<base::Result<Look>> look(Source& side, std::uint64_t offset);
  base::Task<base::Result<Look>> look(Sink& side, std::uint64_t offset);
  static base::Result<Look> judge(base::Result<Polled> polled, std::uint64_t offset);
  template <class Side>
  base::Task<base::Result<std::optional<std::uint64_t>>> readable_end(Side& side, PartitionView view, std::string name);
  base::Task<base::Result<std::optional<std::uint64_t>>> floor();
  base::Task<base::Result<Look>> last_kept(std::uint64_t begin, std::uint64_t end);
  void record_stranger(const base::Record& message, const std::string& cause, std::string_view resolved_as);
  base::Task<base::Result<bool>> is_own_duplicate(base::Digest digest);
  base::Task<base::Result<bool>> is_replay(const base::Record& message, base::Digest digest);
  base::Task<base::Status> reopen_replays(std::uint64_t down_end);
  void learn(const base::RecordBatch& batch);
  using Read = std::function<base::Task<base::Result<Polled>>(std::uint64_t, std::uint32_t)>;
  base::Task<base::Result<bool>> read_recent(Read read, std::uint64_t end);

  bool decided(FaultKind kind, Exit exit) const {
    return decision_ && decision_->kind == kind && decision_->exit == exit;
  }
  // Absences that this run has not seen are forgotten; a verdict ends the evidence for all.
  void keep_evidence(bool verdict);
  // true when this same absence has been seen in every run for confirm_for.
  bool persists(const std::string& absence);
  bool retention_possible() const;
  bool moved(const state::Incarnation& now, const state::Incarnation& recorded, bool legacy) const;
  ResyncOutcome finding(FaultKind kind, std::string detail, std::uint64_t up_begin = 0, std::uint64_t up_end = 0);
  state::GapRow gap(std::uint64_t up_begin, std::uint64_t up_end, std::string cause, std::string detail) const;
  void close(state::GapRow& row, std::string_view resolved_as) const;
  // The one event of a decision that is carried out: "foreign_writer as accept by ada@host: …".
  void carried_out(const std::string& detail);
  void event(std::string kind, std::string detail);

  const base::PartitionKey key_;
  const base::TopicName downstream_;
  Source& source_;
  Sink& sink_;
  state::AsyncStore& store_;
  base::Clock& clock_;
  Turn& turn_;
  const ResyncOptions options_;

  // Of the present run.
  std::uint32_t read_count_ = kFirstReadCount;
  std::optional<Decision> decision_;
  state::PartitionRow durable_;  // as stored
  state::PartitionRow next_;     // as it will be
  bool fresh_ = false;           // no row yet
  bool rewinds_ = false;         // next_ replaces the row (new generation) instead of moving it forward
  bool carried_out_ = false;     // the decision is part of what this run saves
  PartitionView up_, down_;      // vsr: `end` is the next readable offset
  enum class Content : std::uint8_t { kNone, kSame, kOther, kGone, kEndsEarly } anchor_upstream_ = Content::kNone;
  std::vector<state::GapRow> gaps_;
  std::vector<state::RangeRow> ranges_;
  std::vector<state::EventRow> events_;
  std::vector<std::int64_t> close_gaps_;
  std::vector<state::GapChange> gap_changes_;
  std::optional<std::vector<state::GapRow>> replaying_;  // sends under way or wanted, read lazily
  bool reopened_replays_ = false;
  state::Counters added_;
  std::vector<base::Digest> recent_;  // digests of what was copied last, read back lazily
  bool recent_read_ = false;
  std::uint64_t stranger_begin_ = 0, stranger_end_ = 0;  // downstream run of the newest ledger row

  // Across runs.
  std::map<std::string, base::TimePoint> absent_since_;  // by what is absent; only what every run since has seen
  std::set<std::string> absences_;                       // seen by the present run
  std::optional<std::uint64_t> lowest_up_end_;
  bool lost_reported_ = false;
  std::string repair_;
};

}  // namespace replicator
