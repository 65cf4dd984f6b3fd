// What a pipeline needs from the upstream: one partition, read at explicit offsets. Real: iggy_source.h. In memory:
// sim/.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/record.h"
#include "base/result.h"
#include "base/task.h"
#include "state/store.h"

namespace replicator {

// What topic metadata says of one partition, read on the control connection.
struct PartitionView {
  state::Incarnation created;
  std::uint64_t end = 0;             // next offset: current_offset + 1, or 0 when it never held a message
  std::uint64_t messages_count = 0;  // kept messages
  bool has_retention = false;        // an expiry or size limit is set
  std::uint64_t expiry_micros = 0;   // 0 = none
  std::uint64_t max_bytes = 0;       // 0 = none
};

struct Observed {
  PartitionView view;
  base::TimePoint at;
};

struct Polled {
  base::RecordBatch batch;           // offsets ascend; the first may be above what was asked (retention, holes)
  std::uint64_t current_offset = 0;  // as the server said; 0 also when empty
};

// Errors: kConnectionLost, kTimeout, kConnectFailed (retry), kNotFound (topic or partition gone), kPermission,
// kCredentials, kMalformed. Affinity: the pipeline's io_context. Only one call at a time.
class Source {
 public:
  virtual ~Source() = default;
  // true: created_at is no evidence of re-creation (it moves at a 0.8 server's first restart), and offsets have no
  // holes.
  virtual bool is_legacy() const = 0;
  virtual base::Task<base::Result<PartitionView>> view() = 0;
  // At most `count` messages from `from` on. Below the oldest kept message the server jumps to it; past the end it is
  // empty.
  virtual base::Task<base::Result<Polled>> poll(std::uint64_t from, std::uint32_t count) = 0;
  // The newest readable message, empty when there is none.
  virtual base::Task<base::Result<Polled>> last() = 0;
  // The first message appended at or after `micros` (server clock), empty when there is none. For the start policy
  // only: a run of equal timestamps may be entered in its middle.
  virtual base::Task<base::Result<Polled>> at_time(std::uint64_t micros) = 0;
  // The newest view that the topic's watcher has seen, and when; absent before the first. Never waits.
  virtual std::optional<Observed> observed() const = 0;
  // Returns when the partition's metadata differs from `seen` (new messages, another created_at, a smaller end), or
  // after `at_most`, or when `cancel` is set. One look per poll interval serves all partitions of the topic, so what it
  // returns can be older than the newest poll.
  virtual base::Task<base::Result<PartitionView>> wait_for_change(PartitionView seen, base::Duration at_most,
                                                                  base::Event& cancel) = 0;
};

}  // namespace replicator
