// Group commit: gathers what every partition has acked into one transaction per fsync.
//
//   pipelines --add()--> pending (one entry per partition) --every commit_interval, or at commit_max_messages--> store
//
// A failed transaction is kept and repeated as it is, with backoff: a commit is never turned into a send. While it
// fails, error() says why and pipelines stop sending after their bound of uncommitted batches. What the store refuses
// for good (it contradicts the file) is told to its partition as stale and holds up no other. Affinity: one
// io_context. Lifetime: the listeners and the store outlive it; drain() before destruction.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "state/async_store.h"

namespace replicator {

// Told after the fsync. Called on the io_context.
class CommitListener {
 public:
  virtual void on_committed(const state::PartitionCommit& commit) = 0;
  // The row has a newer generation: nothing was changed.
  virtual void on_stale(const base::PartitionKey& key) = 0;

 protected:
  ~CommitListener() = default;
};

struct CommitterOptions {
  base::Duration interval = std::chrono::milliseconds(100);
  std::uint64_t max_messages = 10'000;
  base::BackoffPolicy retry{std::chrono::milliseconds(100), std::chrono::seconds(5)};
  std::uint64_t seed = 1;
};

class Committer {
 public:
  Committer(asio::io_context& io, base::Clock& clock, state::AsyncStore& store, CommitterOptions options);

  // The loop. Ends after drain() when nothing is pending, or when drain's deadline has passed.
  base::Task<void> run();
  // Adds an acked run; merged with what is pending for the same partition and generation. REQUIRES: `listener` stays
  // until flush() returned.
  void add(state::PartitionCommit commit, CommitListener& listener);
  // Returns true when nothing of `key` is pending or in the store any more, false when `deadline` came first. Asks for
  // a commit at once.
  base::Task<bool> flush(base::PartitionKey key, base::TimePoint deadline);
  // Forgets what is pending of `key` (its pipeline ended or restarts from the store).
  void forget(const base::PartitionKey& key);
  // Everything that is pending is committed now; run() ends at the latest at `deadline`.
  void drain(base::TimePoint deadline);
  // `from` begins where `into` ends, in the same generation.
  static void merge(state::PartitionCommit& into, state::PartitionCommit&& from);
  // Empty, or why the state file can't be written now.
  const std::string& error() const { return error_; }

 private:
  struct Pending {
    state::PartitionCommit commit;
    CommitListener* listener = nullptr;
  };
  base::Task<void> commit_once();
  base::Task<base::Result<state::Applied>> commit_apart();

  base::Clock& clock_;
  state::AsyncStore& store_;
  CommitterOptions options_;
  base::Backoff backoff_;
  std::map<base::PartitionKey, Pending> pending_;
  std::map<base::PartitionKey, Pending> in_store_;  // the transaction that is under way or being repeated
  std::uint64_t pending_messages_ = 0;
  base::Event hurry_;
  base::Event progressed_;
  base::Event drain_;
  base::TimePoint drain_deadline_ = base::TimePoint::max();
  std::string error_;
};

}  // namespace replicator
