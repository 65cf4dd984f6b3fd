// Keeps the stored offsets of named consumers and of groups downstream where the upstream's belong: one pass over all
// partitions looks at both sides, moves what may be moved, and records what stands then.
//
// The server lists groups and no consumers: those are named in the configuration. A group's offset can only be stored
// by a member, so a pass joins a group that nobody is in downstream, stores, and leaves; while somebody is in it, it is
// left alone. What one consumer can't have (a right, a refusal) stops no other: its row says so.
//
// Without an upstream (it is gone, the link ends) a pass goes by what was last seen of it, as the state file has it.
//
// Affinity: the clients' io_context. Lifetime: all references outlive a pass. One pass at a time.
#pragma once

#include <string>
#include <vector>

#include "iggy/client.h"
#include "replicator/consumers/decide.h"
#include "state/async_store.h"

namespace replicator {

// What a pass did, in a sentence; and what keeps it from being done, if anything does.
struct SyncSummary {
  std::string text;
  std::optional<std::string> undone;  // a server refused, or somebody is in a group
};
SyncSummary summary_of(const std::vector<state::ConsumerRow>& rows, std::uint64_t now);

// A topic and its partitions that are copied.
struct SyncedTopic {
  base::TopicName upstream, downstream;
  std::vector<std::uint32_t> partitions;
};

struct ConsumerOptions {
  std::vector<std::string> names;  // of consumers
  bool groups = true;
};

class ConsumerSync {
 public:
  // `upstream`: null when it is gone.
  ConsumerSync(iggy::Client* upstream, iggy::Client& downstream, state::AsyncStore& store, base::Clock& clock,
               ConsumerOptions options)
      : up_(upstream), down_(downstream), store_(store), clock_(clock), options_(std::move(options)) {}

  // Sorted by key, kind, name. An error is about a whole side or the state file: nothing may be concluded.
  // `dry_run`: rows say what would be stored; nothing is, on neither side nor in the file.
  base::Task<base::Result<std::vector<state::ConsumerRow>>> pass(std::vector<SyncedTopic> topics, bool dry_run);
  // Over every partition of the state file: the last pass of a link.
  base::Task<base::Result<std::vector<state::ConsumerRow>>> pass_over_all();

 private:
  struct Entry {
    state::ConsumerRow row;
    std::optional<std::uint64_t> store;
  };
  using Entries = std::vector<Entry>;
  base::Task<base::Result<Entries>> look(SyncedTopic topic, iggy::ConsumerKind kind, std::string name, bool there);
  base::Task<base::Status> move(SyncedTopic topic, iggy::ConsumerKind kind, std::string name, bool there,
                                Entries& entries);
  base::Task<base::Status> enter_group(SyncedTopic topic, std::string name, bool there, Entries& entries);
  base::Task<base::Status> store(SyncedTopic topic, iggy::Consumer consumer, Entries& entries);
  base::Task<base::Result<std::vector<std::string>>> group_names(iggy::Client& client, base::TopicName topic);
  base::Task<base::Result<std::optional<std::uint64_t>>> stored(iggy::Client& client, base::TopicName topic,
                                                                iggy::Consumer consumer, std::uint32_t partition);

  iggy::Client* const up_;
  iggy::Client& down_;
  state::AsyncStore& store_;
  base::Clock& clock_;
  const ConsumerOptions options_;
  std::vector<state::ConsumerRow> known_;
};

}  // namespace replicator
