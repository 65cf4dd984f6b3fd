// One side of one partition, read from one end to the other in chunks: at most one chunk is in memory.
//
// An empty answer is no evidence that nothing is there: it is asked again for `confirm_for`. A lost connection is tried
// again with back-off, until nothing was read for `unreachable_after`. Affinity: one io_context.
#pragma once

#include <functional>
#include <optional>

#include "base/backoff.h"
#include "base/clock.h"
#include "replicator/partition/source.h"

namespace replicator {

// What is compared: one partition of one cluster, on connections of its own.
// Errors: those of Source.
class VerifySide {
 public:
  virtual ~VerifySide() = default;
  virtual base::Task<base::Result<Polled>> read(std::uint64_t from, std::uint32_t count) = 0;
  virtual base::Task<base::Result<PartitionView>> view() = 0;
};

struct VerifyOptions {
  std::size_t chunk_bytes = 4U * 1024 * 1024;  // per side, in memory; one message may exceed it
  base::Duration confirm_for = std::chrono::seconds(5);
  base::BackoffPolicy retry;
  base::Duration unreachable_after = std::chrono::seconds(60);
  std::function<bool()> busy = [] { return false; };  // copying has work: leave it half of the time
};

class SideStream {
 public:
  // `stop`: ends every wait with kStopped. All references outlive it.
  SideStream(VerifySide& side, base::Clock& clock, base::Event& stop, const VerifyOptions& options)
      : side_(side), clock_(clock), stop_(stop), options_(options), backoff_(options.retry, 7) {}

  // What comes next is the first message in [from, end). Forwards only.
  void seek(std::uint64_t from, std::uint64_t end);
  // Whether front() knows without reading.
  bool is_ready() const { return at_ < batch_.records.size() || next_ >= end_; }
  // Reads until is_ready(). Nothing left in [from, end): front() is null.
  base::Task<base::Status> fill();
  // The first message not yet taken, or null. REQUIRES: is_ready().
  const base::Record* front() const { return at_ < batch_.records.size() ? &batch_.records[at_] : nullptr; }
  void pop() { ++at_; }

  // Up to `count` messages from `from` on, beside the stream.
  base::Task<base::Result<base::RecordBatch>> look(std::uint64_t from, std::uint32_t count);
  base::Task<base::Result<PartitionView>> view();
  // The oldest message that is still there; absent when there is none.
  base::Task<base::Result<std::optional<std::uint64_t>>> floor();
  // Messages of a chunk, as far as sizes are known.
  std::uint32_t chunk_count() const { return count_; }
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  template <class T>
  base::Task<base::Result<T>> insist(std::function<base::Task<base::Result<T>>()> call);
  void learn(const base::RecordBatch& batch);

  VerifySide& side_;
  base::Clock& clock_;
  base::Event& stop_;
  const VerifyOptions& options_;
  base::Backoff backoff_;
  base::RecordBatch batch_;
  std::size_t at_ = 0;
  std::uint64_t next_ = 0, end_ = 0;  // what is still to be read
  std::uint32_t count_ = 100;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace replicator
