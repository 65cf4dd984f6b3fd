// Knows what one topic of one cluster holds, for all its partitions, from get_topic: its counters are current at once
// on 0.8 and 0.9, and one costs the server 1/70 to 1/300 of one poll per partition. It asks when it is told to: by
// look(), which a StreamWatcher calls when there is something to see, or by fresh().
//
// Affinity: one io_context. Lifetime: the client outlives it; stop() ends run() and every wait with kStopped.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "iggy/client.h"
#include "replicator/partition/source.h"

namespace replicator {

// What a topic's metadata says of one of its partitions.
PartitionView view_from(const iggy::Topic& topic, const iggy::Partition& partition);

class TopicWatcher {
 public:
  TopicWatcher(asio::io_context& io, base::Clock& clock, iggy::Client& client, base::TopicName topic);

  base::Task<void> run();
  void stop();
  // Asks soon, once for all that want to know.
  void look() { ask_now_.set(); }
  // Another answer says that nothing has changed since the newest get_topic.
  void unchanged() { answered_at_ = clock_.now(); }

  const base::TopicName& topic() const { return topic_; }
  // The topic's line of the newest get_topic; none before the first, and when it failed.
  const std::optional<iggy::Topic>& line() const { return line_; }
  // When an answer last differed from the one before.
  base::TimePoint changed_at() const { return changed_at_; }

  // The newest view of a partition; absent before the first answer, or when the topic has no such partition.
  std::optional<Observed> observed(std::uint32_t partition) const;
  // What a get_topic says that is sent after this call. Callers that come together share one. kNotFound: no such topic
  // or partition.
  base::Task<base::Result<PartitionView>> fresh(std::uint32_t partition);
  // Returns when the view differs from `seen`, after `at_most` or when `cancel` is set with what is known then. Errors
  // end it. A waiter is woken for its own partition only.
  base::Task<base::Result<PartitionView>> wait_for_change(std::uint32_t partition, PartitionView seen,
                                                          base::Duration at_most, base::Event& cancel);

 private:
  struct Waiter {
    std::uint32_t partition;
    PartitionView seen;
    base::Event news;
  };
  base::Result<PartitionView> view_of(std::uint32_t partition) const;
  bool has_news(const Waiter& waiter) const;

  asio::io_context& io_;
  base::Clock& clock_;
  iggy::Client& client_;
  const base::TopicName topic_;
  std::vector<PartitionView> views_;
  std::optional<iggy::Topic> line_;
  std::optional<base::Error> error_;  // of the newest answer
  base::TimePoint answered_at_{}, changed_at_{};
  std::uint64_t asked_ = 0, answered_ = 0;  // requests sent and finished
  std::list<Waiter*> waiters_;              // in the order in which they came; each lives in its coroutine
  base::Event ask_now_;
  base::Event answer_came_;
  base::Event stop_;
};

}  // namespace replicator
