// A simulated cluster: topics, sessions, rights, and what it answers, at one instant of virtual time. A request that
// was written to it is carried out whether or not its client still lives, unless the server crashes before.
//
// Affinity: one thread. Lifetime: the agenda outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "iggy/client.h"
#include "replicator/sim/agenda.h"
#include "replicator/sim/log.h"

namespace replicator::sim {

// One connection as the server sees it.
struct Session {
  std::uint64_t number = 0;
  std::string address;
  bool open = true;
  bool leaked = false;           // stays in the client list (0.8 with several shards)
  std::uint32_t unfinished = 0;  // requests that were written and are not carried out yet
  std::function<void()> on_end;  // of the client; may be empty
};
using SessionPtr = std::shared_ptr<Session>;

struct Topic {
  std::uint32_t id = 0;
  std::uint64_t created_at = 0;
  iggy::TopicSettings settings;
  std::vector<Log> partitions;
};

enum class Right : std::uint8_t { kSend, kPoll, kReadTopics, kManage, kReadServers };

class Cluster {
 public:
  Cluster(Agenda& agenda, Flavour flavour, std::string name, std::uint64_t seed);

  Flavour flavour() const { return flavour_; }
  bool is_legacy() const { return flavour_ == Flavour::kLegacy; }
  const std::string& name() const { return name_; }
  iggy::Dialect dialect() const { return is_legacy() ? iggy::Dialect::kLegacy : iggy::Dialect::kVsr11; }

  // --- what happens to it
  Topic& create(const base::TopicName& name, std::uint32_t partitions, iggy::TopicSettings settings = {});
  void grow(const base::TopicName& name, std::uint32_t count);
  void drop(const base::TopicName& name);
  void recreate(const base::TopicName& name, base::Duration done_after);
  void purge(const base::TopicName& name, base::Duration done_after);
  std::uint64_t append(const base::TopicName& name, std::uint32_t partition, std::vector<Message> messages);
  void crash(bool flushed);  // unsaved tails are gone unless flushed; every session ends
  void cut();                // every session ends
  void be_down_until(base::TimePoint when) { down_until_ = when; }
  void clean();  // retention
  std::map<base::TopicName, Topic> topics;
  std::set<std::string> streams;
  std::set<Right> denied;
  bool dedup_by_id = false;  // 0.8: from the next start on
  std::uint64_t dedup_crashes = 0;

  // --- sessions
  bool is_down() const;
  SessionPtr connect(std::function<void()> on_end);
  void end(const SessionPtr& session, bool leaks = false);
  bool is_listed(const std::string& address) const;
  std::uint64_t boot() const { return boot_; }  // another one: it crashed in between

  // --- requests, carried out now
  base::Result<iggy::Reply> execute(const iggy::Request& request);
  base::Result<iggy::SendAck> send(const base::TopicName& topic, std::uint32_t partition,
                                   std::vector<Message> messages);
  base::Error refusal(std::uint32_t status, std::string operation) const;

  Log* find(const base::TopicName& name, std::uint32_t partition);
  std::uint64_t wall() const { return agenda_.clock().wall_micros(); }
  base::TimePoint now() const { return agenda_.clock().now(); }
  Agenda& agenda() { return agenda_; }

  // Everything that happened, as a hash: same seed, same trace.
  std::uint64_t trace() const { return trace_; }
  void note(std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0);
  std::function<void(std::string_view, std::uint64_t, std::uint64_t)> on_note;  // for a readable trace; may be empty

 private:
  base::Result<iggy::Reply> poll(const iggy::PollMessages& request);
  iggy::Topic describe(const std::string& name, const Topic& topic) const;
  iggy::TopicDetails details(const std::string& name, const Topic& topic) const;
  Topic* topic_of(const iggy::Ident& stream, const iggy::Ident& topic);

  Agenda& agenda_;
  const Flavour flavour_;
  const std::string name_;
  Dice dice_;
  std::map<std::uint64_t, SessionPtr> sessions_;
  std::uint64_t sessions_made_ = 0;
  std::uint64_t boot_ = 1;
  std::set<std::uint32_t> free_ids_;
  std::uint32_t next_id_ = 1;
  base::TimePoint down_until_{};
  std::uint64_t trace_ = 0;
};

}  // namespace replicator::sim
