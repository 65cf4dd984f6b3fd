// Watches one topic of one cluster with one get_topic per interval, for all its partitions: its counters are current at
// once on 0.8 and 0.9, and it costs the server 1/70 to 1/300 of one poll per partition.
//
// Affinity: one io_context. Lifetime: the client outlives it; stop() ends run() and every wait with kStopped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "iggy/client.h"
#include "replicator/partition/source.h"

namespace replicator {

// What a topic's metadata says of one of its partitions.
PartitionView view_from(const iggy::Topic& topic, const iggy::Partition& partition);

class TopicWatcher {
 public:
  TopicWatcher(asio::io_context& io, base::Clock& clock, iggy::Client& client, base::TopicName topic,
               base::Duration interval);

  base::Task<void> run();
  void stop();

  // The newest view of a partition; absent before the first answer, or when the topic has no such partition.
  std::optional<Observed> observed(std::uint32_t partition) const;
  // Why the newest answer is none.
  const std::optional<base::Error>& error() const { return error_; }
  // What a get_topic says that is sent after this call. Callers that come together share one. kNotFound: no such topic
  // or partition.
  base::Task<base::Result<PartitionView>> fresh(std::uint32_t partition);
  // Returns when the view differs from `seen`, after `at_most` with what is known then. Errors end it.
  base::Task<base::Result<PartitionView>> wait_for_change(std::uint32_t partition, PartitionView seen,
                                                          base::Duration at_most);

 private:
  base::Result<PartitionView> view_of(std::uint32_t partition) const;

  base::Clock& clock_;
  iggy::Client& client_;
  const base::TopicName topic_;
  const base::Duration interval_;
  std::vector<PartitionView> views_;
  std::optional<base::Error> error_;  // of the newest answer
  base::TimePoint answered_at_{};
  std::uint64_t asked_ = 0, answered_ = 0;  // requests sent and finished
  base::Event ask_now_;
  base::Event news_;
  base::Event stop_;
};

}  // namespace replicator
