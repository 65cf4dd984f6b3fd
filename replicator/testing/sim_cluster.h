// One side of a link in memory: a log per partition that behaves like a real server, also where that is awkward (polls
// below the floor jump, past the end they are empty for ever, acks are in memory, a crash re-issues offsets), and
// Source and Sink over it on virtual time, with latency and one-shot faults.
//
// Everything that a server does is done at one instant of virtual time, whether or not the client that asked still
// lives: a request that was written is carried out. Affinity: one io_context.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/sim_clock.h"
#include "replicator/partition/sink.h"
#include "replicator/partition/source.h"

namespace replicator::testing {

enum class Flavour : std::uint8_t {
  kLegacy,        // 0.8: no base offset in acks, no holes, created_at moves at the first restart
  kVsr,           // 0.9.0-edge: a crash re-issues offsets
  kVsrReserving,  // 0.9: a crash jumps over what was reserved
};

struct SimMessage {
  std::uint64_t offset = 0;
  base::MessageId id;
  std::uint64_t timestamp = 0, origin_timestamp = 0;
  std::string body;
  friend bool operator==(const SimMessage& a, const SimMessage& b) {  // the same message, wherever it stands
    return a.id == b.id && a.origin_timestamp == b.origin_timestamp && a.body == b.body;
  }
};

struct SimPartition {
  state::Incarnation created;
  std::vector<SimMessage> log;      // kept messages, offsets ascend
  std::vector<SimMessage> expired;  // what retention took, for checkers
  std::uint64_t next = 0;           // next offset to give out
  std::uint64_t saved = 0;          // offsets below survive a crash
  bool has_retention = false;
  std::uint64_t expiry_micros = 0;
  struct Unreadable {
    std::uint64_t begin = 0, end = 0;
    bool refused = false;  // status 4100; otherwise empty
  };
  std::vector<Unreadable> unreadable;                                // legacy: counted and not given
  std::optional<std::pair<base::TimePoint, std::uint64_t>> old_end;  // a follower answers: until when, and its end
  std::uint64_t end() const { return log.empty() ? next : log.back().offset + 1; }
};

class SimCluster {
 public:
  SimCluster(base::testing::SimClock& clock, Flavour flavour, std::string name, std::size_t partitions);

  Flavour flavour() const { return flavour_; }
  bool is_legacy() const { return flavour_ == Flavour::kLegacy; }
  SimPartition& at(std::size_t partition) { return partitions_.at(partition); }
  std::size_t size() const { return partitions_.size(); }

  // A producer's messages, each unlike any other.
  void produce(std::size_t partition, std::size_t count, std::size_t bytes = 40);
  std::uint64_t append(std::size_t partition, std::vector<SimMessage> messages);  // returns the base offset
  void save(std::size_t partition) { at(partition).saved = at(partition).next; }
  // The unsaved tail of every partition is gone, connections are cut, offsets go on as the flavour has it.
  void crash();
  // The same without the end of any connection: a leader that moved to a node which did not have it.
  void lose_tail();
  void cut() { ++epoch_; }  // connections only
  void refuse_connections_until(base::TimePoint until) { down_until_ = until; }
  void purge(std::size_t partition);
  void recreate(std::size_t partition);
  void expire(std::size_t partition, std::uint64_t floor);  // needs has_retention to be explained
  void answer_old_end(std::size_t partition, std::uint64_t end, base::Duration how_long);

  // What an abandoned request does: it is carried out at `due`, unless the server crashes before.
  void append_later(std::size_t partition, std::vector<SimMessage> messages, base::TimePoint due);
  bool has_late(std::size_t partition) const;
  void settle(std::size_t partition);  // carries out what is late now
  void tick();                         // carries out what is due

  PartitionView view(std::size_t partition);
  // Up to `count` messages; empty when refused is set.
  std::vector<SimMessage> read(std::size_t partition, std::uint64_t from, std::uint32_t count, bool& refused);
  std::vector<SimMessage> last(std::size_t partition);

  std::uint64_t epoch() const { return epoch_; }  // another one: every connection is dead
  bool down() const { return clock_.now() < down_until_; }
  base::testing::SimClock& clock() { return clock_; }
  // Everything that happened, as a hash: same seed, same trace.
  std::uint64_t trace() const { return trace_; }
  void note(std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0);

 private:
  struct Late {
    std::size_t partition = 0;
    std::vector<SimMessage> messages;
    base::TimePoint due;
  };
  std::uint64_t visible_end(const SimPartition& partition) const;

  base::testing::SimClock& clock_;
  const Flavour flavour_;
  const std::string name_;
  std::vector<SimPartition> partitions_;
  std::vector<Late> late_;
  std::uint64_t produced_ = 0;
  std::uint64_t epoch_ = 1;
  bool restarted_ = false;
  base::TimePoint down_until_{};
  std::uint64_t trace_ = 0;
};

// What both ends share: latency, death of the client, connection, one-shot errors.
struct SimLine {
  base::Duration latency = std::chrono::microseconds(500);  // one way
  bool dead = false;                                        // the client was killed: nothing it does has an effect
  std::deque<base::Error> errors;                           // the next calls fail with these, nothing was done
  std::uint64_t empty_reads = 0;                            // the next reads answer empty
  bool permission = true;
  std::uint64_t calls = 0;
};

class SimSource final : public Source {
 public:
  SimSource(SimCluster& cluster, std::uint32_t partition) : cluster_(cluster), partition_(partition) {}
  SimLine line;
  base::Duration poll_interval = std::chrono::milliseconds(100);
  std::uint64_t polls = 0;

  bool is_legacy() const override { return cluster_.is_legacy(); }
  base::Task<base::Result<PartitionView>> view() override;
  base::Task<base::Result<Polled>> poll(std::uint64_t from, std::uint32_t count) override;
  base::Task<base::Result<Polled>> last() override;
  base::Task<base::Result<Polled>> at_time(std::uint64_t micros) override;
  std::optional<Observed> observed() const override { return observed_; }
  base::Task<base::Result<PartitionView>> wait_for_change(PartitionView seen, base::Duration at_most,
                                                          base::Event& cancel) override;

 private:
  SimCluster& cluster_;
  const std::uint32_t partition_;
  std::uint64_t epoch_ = 0;
  std::optional<Observed> observed_;
};

// What becomes of one send.
enum class SendFault : std::uint8_t {
  kNone,
  kNotAccepted,       // status 58: certainly not done
  kRefused,           // certainly refused, status 3009
  kSilence,           // time-out, nothing was done
  kCutBefore,         // connection lost, nothing was done
  kAckLost,           // done, connection lost
  kAckSilent,         // done, time-out
  kLandsLate,         // connection lost, done later
  kAckWithoutOffset,  // done, the ack does not say where
  kForeignBefore,     // a stranger's message slips in before it: the ack has another base
};

class SimSink final : public Sink {
 public:
  SimSink(SimCluster& cluster, std::uint32_t partition) : cluster_(cluster), partition_(partition) {}
  SimLine line;
  std::deque<SendFault> faults;                                 // of the next sends
  std::pair<std::size_t, std::optional<base::Error>> refusals;  // so many of the next sends, with this
  base::Duration late_by = std::chrono::seconds(3);
  bool settles = true;  // false: settle() gives up, what is late lands after the next look
  std::string invalid;  // a body that the target never takes, and whose size says so
  std::string refused;  // a body that the server refuses with its whole batch
  std::uint64_t sends = 0;
  std::size_t batch_max = 1000;
  bool flushes_acks = false;
  std::uint64_t flush_count = 0;
  std::optional<base::Error> flush_fault;  // of the next flush
  // Runs before a flush is answered.
  std::function<void()> on_flush;

  bool flushes() const override { return flushes_acks; }
  base::Task<base::Status> flush() override;
  bool is_open() const override { return epoch_ == cluster_.epoch(); }
  std::optional<Observed> observed() const override;
  bool is_legacy() const override { return cluster_.is_legacy(); }
  base::Task<base::Result<PartitionView>> view() override;
  base::Task<base::Result<Polled>> read(std::uint64_t from, std::uint32_t count) override;
  base::Task<base::Result<Polled>> last() override;
  base::Result<std::size_t> fit(std::span<const base::Record> records) const override;
  base::Task<base::Result<Acked>> send(std::span<const base::Record> records) override;
  base::Task<base::Status> settle() override;

 private:
  SimCluster& cluster_;
  const std::uint32_t partition_;
  std::uint64_t epoch_ = 0;
};

}  // namespace replicator::testing
