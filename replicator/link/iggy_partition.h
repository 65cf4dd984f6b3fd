// Source and Sink over iggy::Client: the only files of the data path that know the wire.
//
// Affinity: the client's io_context. Lifetime: client and watcher outlive them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/provenance.h"
#include "iggy/client.h"
#include "iggy/rights.h"
#include "replicator/link/topic_watcher.h"
#include "replicator/model/config.h"
#include "replicator/partition/sink.h"
#include "replicator/partition/source.h"

namespace replicator {

// Reads one partition of one cluster at explicit offsets.
class IggyReader {
 public:
  // `side`: "upstream" or "downstream", for the sentence that names a missing right. `room_bytes`: what an answer to a
  // poll may hold, beside one message of any size.
  IggyReader(std::string_view side, iggy::Client& client, TopicWatcher& watcher, base::TopicName topic,
             std::uint32_t partition, std::size_t room_bytes);
  base::Task<base::Result<PartitionView>> view();
  // At most `count`; fewer when more would not have room.
  base::Task<base::Result<Polled>> poll(iggy::PollStrategy strategy, std::uint32_t count);
  bool is_legacy() const { return client_.server().dialect == iggy::Dialect::kLegacy; }
  TopicWatcher& watcher() const { return watcher_; }
  std::uint32_t partition() const { return partition_; }
  // An error of a call that needed `access`: names it when it is missing.
  base::Error named(base::Error error, iggy::Access access) const;

 private:
  base::Task<base::Result<PartitionView>> view_at_node();
  base::Task<base::Result<Polled>> ask(iggy::PollStrategy strategy, std::uint32_t count, std::uint64_t room_bytes);

  const std::string_view side_;
  iggy::Client& client_;
  TopicWatcher& watcher_;
  const base::TopicName topic_;
  const std::uint32_t partition_;
  const std::size_t room_bytes_;
  bool narrowed_ = false;            // the newest poll had to ask for less
  std::uint64_t newest_offset_ = 0;  // of the newest answer's last message ...
  std::size_t newest_size_ = 0;      // ... and its size: polls begin with it
};

class IggySource final : public Source {
 public:
  // `mint_ids_for`: link id when the target would give random ids to messages without one (0.8 does); empty = ids stay
  // as they are.
  IggySource(iggy::Client& client, TopicWatcher& watcher, base::PartitionKey key, std::size_t batch_bytes,
             std::string mint_ids_for);
  bool is_legacy() const override { return reader_.is_legacy(); }
  base::Task<base::Result<PartitionView>> view() override;
  base::Task<base::Result<Polled>> poll(std::uint64_t from, std::uint32_t count) override;
  base::Task<base::Result<Polled>> last() override;
  base::Task<base::Result<Polled>> at_time(std::uint64_t micros) override;
  std::optional<Observed> observed() const override;
  base::Task<base::Result<PartitionView>> wait_for_change(PartitionView seen, base::Duration at_most,
                                                          base::Event& cancel) override;

 private:
  base::Task<base::Result<Polled>> read(iggy::PollStrategy strategy, std::uint32_t count);
  IggyReader reader_;
  const base::PartitionKey key_;
  const std::string mint_ids_for_;
};

class IggySink final : public Sink {
 public:
  // `provenance`: stamped on what is sent. `may_send`: asked before every send; kNotAccepted while the link's lease is
  // not proven (marker.h). Empty = always.
  IggySink(base::Clock& clock, iggy::Client& client, TopicWatcher& watcher, base::TopicName topic,
           std::uint32_t partition, std::size_t batch_bytes, base::Duration fence_timeout, Ack ack,
           base::Provenance provenance, std::function<base::Status()> may_send);
  bool is_legacy() const override { return reader_.is_legacy(); }
  base::Task<base::Result<PartitionView>> view() override;
  std::optional<Observed> observed() const override;
  base::Task<base::Result<Polled>> read(std::uint64_t from, std::uint32_t count) override;
  base::Task<base::Result<Polled>> last() override;
  base::Result<std::size_t> fit(std::span<const base::Record> records) const override;
  base::Task<base::Result<Acked>> send(std::span<const base::Record> records) override;
  base::Task<base::Status> open() override;
  bool is_open() const override { return client_.is_open(trace_); }
  bool flushes() const override { return ack_ == Ack::kFlush; }
  base::Task<base::Status> flush() override;
  base::Task<base::Status> settle() override;

 private:
  base::Task<base::Result<std::uint64_t>> tail_end();
  base::Clock& clock_;
  iggy::Client& client_;
  IggyReader reader_;
  const base::TopicName topic_;
  const std::uint32_t partition_;
  const std::size_t batch_bytes_;
  const base::Duration fence_timeout_;
  const Ack ack_;
  mutable base::Provenance provenance_;  // what it has stamped last is no state of ours
  const std::function<base::Status()> may_send_;
  iggy::SendTrace trace_;  // the connection that sends go to, since open()
};

}  // namespace replicator
