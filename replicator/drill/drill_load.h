// The load of a drill, over iggy::Client: one writer that notes every acknowledgment in the journal, and readers that
// remember what they have processed. The same seed gives the same messages (but for their origin time).
//
// Affinity: one io_context. Lifetime: journal and clock outlive it; the client of a call outlives that call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "iggy/client.h"
#include "replicator/drill/ack_journal.h"

namespace replicator {

struct DrillLoadOptions {
  base::TopicName topic;
  std::uint32_t partitions = 4;
  double rate = 500;         // messages per second
  std::uint32_t size = 200;  // payload bytes; at least 40
  std::uint32_t batch = 10;  // messages per send
  std::uint64_t seed = 1;
  std::uint32_t readers = 2;
};

// One message of the load; `body` holds its bytes. Pure.
base::Record drill_message(const DrillLoadOptions& options, std::uint32_t partition, std::uint64_t sequence,
                           std::uint64_t now, base::Bytes& body);
// Its sequence, from the payload; none when it is no message of a drill.
std::optional<std::uint64_t> drill_sequence(const base::Record& record);

class DrillWriter {
 public:
  DrillWriter(base::Clock& clock, AckJournal& journal, DrillLoadOptions options);
  // Writes until `stop` is set (ok) or a send fails (its error; the messages are noted as uncertain). Goes on with the
  // next sequences when called again.
  base::Task<base::Status> run(iggy::Client& client, base::Event& stop);
  // One batch into partition 0, retried for `patience`: the first write after a failover.
  base::Task<base::Status> write_one(iggy::Client& client, base::Duration patience);
  std::uint64_t next_sequence(std::uint32_t partition) const { return sequences_[partition]; }
  bool has_failed() const { return failed_; }

 private:
  base::Task<base::Status> send(iggy::Client& client, std::uint32_t partition);
  base::Clock& clock_;
  AckJournal& journal_;
  const DrillLoadOptions options_;
  std::vector<std::uint64_t> sequences_;
  std::uint64_t turn_ = 0;
  bool failed_ = false;
};

// A consumer by name. Stores how far it is in the cluster that it reads, as consumers do.
class DrillReader {
 public:
  DrillReader(base::Clock& clock, DrillLoadOptions options, std::string name);
  // Reads until `stop` is set; errors are tried again.
  base::Task<void> run(iggy::Client& client, base::Event& stop);
  // After a failover: its stored offset on this cluster decides, where there is one; else its own position, never ahead
  // of the end there. Says which: "stored" or "own".
  base::Task<base::Result<std::string>> move_to(iggy::Client& client);
  // How often each sequence was processed.
  const std::vector<std::map<std::uint64_t, std::uint32_t>>& processed() const { return processed_; }
  const std::string& name() const { return name_; }

 private:
  base::Task<base::Result<bool>> read_once(iggy::Client& client, std::uint32_t partition);
  base::Clock& clock_;
  const DrillLoadOptions options_;
  const std::string name_;
  std::vector<std::uint64_t> next_;  // offsets
  std::vector<std::map<std::uint64_t, std::uint32_t>> processed_;
};

// What one cluster holds of the load, in order.
struct DrillStored {
  std::uint64_t sequence = 0;
  base::Digest digest;
};
base::Task<base::Result<std::vector<std::vector<DrillStored>>>> read_drill(iggy::Client& client,
                                                                           DrillLoadOptions options);

}  // namespace replicator
