// A measured rehearsal of a disaster: load on the upstream, the upstream is killed, the link is failed over, clients
// move to the downstream, and a journal that the link knows nothing of says what was lost and how long it took.
//
//   load ─▶ kill ─▶ detected ─▶ predicted ─▶ failed over ─▶ consumers moved ─▶ first acknowledged write ─▶
//           first correct read ─▶ verify          RTO: from the kill to the first correct read
//
// It runs a link of its own (DrillLink), because a failover ends a link for good: the one that protects production must
// still be there afterwards. Its stream is its own as well: it refuses a stream that is there already, and deletes what
// it made on both sides; what it can't delete (a dead upstream) is named.
//
// A crash of the drill leaves its streams, named iggy-replicate-drill-<id>…: cleanup_drill() deletes those of one id.
//
// Blocking; runs its load on a thread of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replicator/drill/drill_verdict.h"
#include "replicator/model/commands.h"
#include "replicator/model/config.h"

namespace replicator {

// The link of the drill, as its operator sees it. Called from the thread of run_drill().
class DrillLink {
 public:
  virtual ~DrillLink() = default;
  // Copies `glob` with `marker` as its record's topic, and the stored offsets of `consumers`; returns when its admin
  // API answers.
  virtual base::Status start(const std::string& glob, const std::string& marker,
                             const std::vector<std::string>& consumers) = 0;
  virtual bool upstream_is_gone() = 0;  // the link says that the upstream does not answer
  virtual base::Result<Loss> predict() = 0;
  virtual base::Result<Loss> fail_over() = 0;  // ok: both records are durable; what it says is missing downstream
  // The old primary is back: makes the state file of the reverse link and runs it. How many orphans were listed.
  virtual base::Result<std::uint64_t> fail_back(bool rebuild) = 0;
  virtual void stop() = 0;  // nothing is copied any more; also when it was never started
};

struct DrillOptions {
  std::string id;                                      // of the streams; letters, digits and dashes
  std::string folder;                                  // for the journal; must exist
  DrillLoadOptions load;                               // but for its topic
  base::Duration load_for = std::chrono::seconds(10);  // before the kill; the seed adds up to a second
  base::Duration after_for = std::chrono::seconds(3);  // load on the new primary
  base::Duration give_up = std::chrono::seconds(60);   // for each phase
  std::function<base::Status()> kill;                  // ends the upstream; returns when it was asked to
  std::function<base::Status()> restart;               // brings it back, with its data; empty = no way back
  bool rebuild = false;                                // the way back: rebuild, or keep
  std::function<void(const std::string&)> say;         // progress, one line
};

struct DrillPhase {
  std::string name;  // "detect", "predict", "fail over", "move consumers", "first write", "first read"
  std::uint64_t micros = 0;
};

// The way back, as the drill itself read the old primary before and after.
struct DrillFailback {
  std::uint64_t orphans = 0;     // that failback listed
  std::uint64_t expected = 0;    // that were there
  std::uint64_t missing = 0;     // of the new primary's messages, on the old one at the end
  std::uint64_t duplicates = 0;  // there
  std::uint64_t micros = 0;
};

struct DrillReport {
  std::string id;
  DrillVerdict verdict;
  Loss predicted;                  // by the link, before the failover, which still copies what it had read
  Loss stated;                     // by the failover: of this, nothing comes any more
  std::vector<DrillPhase> phases;  // RTO is their sum
  std::uint64_t rto_micros = 0;
  std::string detected_by;  // "writer", "link"
  std::optional<DrillFailback> failback;
  std::string journal;            // path
  std::vector<std::string> left;  // what could not be cleaned up
};

// Errors end the drill early; what it made is deleted as far as possible. kAlreadyExists: a stream of that name is
// there.
base::Result<DrillReport> run_drill(const Config& config, const DrillOptions& options, DrillLink& link);

// What a link would lose, said by itself and counted by us, again and again; nothing is killed. The heartbeats are a
// load like a drill's, through a link and a stream of its own.
struct PredictionReport {
  std::uint64_t looks = 0, acknowledged = 0;
  std::uint64_t worst_error = 0, worst_predicted = 0, worst_truth = 0;  // of the look with the largest error
  std::uint64_t worst_loss = 0;
  std::vector<std::string> left;
};
base::Result<PredictionReport> check_prediction(const Config& config, const DrillOptions& options, DrillLink& link);

// Deletes the streams of a drill on both sides; one sentence for each that could not be deleted.
std::vector<std::string> cleanup_drill(const Config& config, const std::string& id);

}  // namespace replicator
