// The position of one partition, stored upstream as a consumer's offset for others to see (copy.upstream_commit). It is
// written after the local commit and never read back. Retention keeps what is above a stored offset: a pin, which is
// watched here.
//
// Affinity: the client's io_context; one update() at a time. Lifetime: client and clock outlive it.
#pragma once

#include <optional>
#include <string>

#include "iggy/client.h"
#include "replicator/model/status.h"

namespace replicator {

class UpstreamOffset {
 public:
  UpstreamOffset(base::Clock& clock, iggy::Client& upstream, base::PartitionKey key, std::string consumer,
                 base::Duration alarm_after);

  struct Seen {
    std::uint64_t committed = 0;       // next upstream offset, durable here
    std::optional<std::uint64_t> end;  // of the upstream; absent = unknown
    bool has_retention = false;
  };
  // Stores the position when it has moved. A failure is kept in pin().error and tried again by the next call. Returns
  // the sentence of an alarm that began or ended, for the audit trail.
  base::Task<std::optional<std::string>> update(Seen seen);
  // Absent until something is stored.
  std::optional<Pin> pin() const;

 private:
  base::Task<base::Status> store(std::uint64_t next);

  base::Clock& clock_;
  iggy::Client& client_;
  const base::PartitionKey key_;
  const std::string consumer_;
  const base::Duration alarm_after_;
  std::optional<std::uint64_t> stored_;  // + 1
  std::optional<std::uint64_t> above_;   // messages above it
  base::TimePoint held_since_;           // below newer messages
  bool alarm_ = false;
  std::string error_;
};

}  // namespace replicator
