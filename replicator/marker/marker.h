// The single-writer lease of a link: a record in a topic of its own downstream, written every 10 s, read every 2 s.
//
//            ┌─ promoted ──────────────────────────────────────▶ fenced, for good
//   acquire ─┼─ a newer generation than the state file's ──────▶ fenced (an old or copied state file)
//            ├─ none, released, or a dead process of our host ─▶ claim at once
//            └─ a process of another host, or a rival link ────▶ watch for 3 intervals: it writes ▶ fenced
//                                                                                      silent    ▶ claim
//   claim    = generation + 1: state file first, then the record, then read back.
//              Ours? hold.  Another's claim came first? fenced.  A former holder wrote meanwhile? wait one lease, hold.
//   hold     read every 2 s, write every 10 s;  newer generation, another holder, promoted ▶ fenced
//   fenced   ends run(); nothing is ever written again by this object.   release() ends a hold in order.
//   promote  a record in `<topic>-ended`, which never expires, then the newest record of the link: read back, both.
//
// Who holds is decided by the log alone (links.h), so two claims at once have one winner, whatever the order of
// replies.
//
// What each failure does
//   write fails, or its reply is lost   nothing is believed until the record was read back; written again 2 s later
//   read fails, or is stale             the lease is not extended; confirmed_until() passes, senders stop, run() tries
//   on records gone (expired, purged, topic deleted, tail lost in a crash)   absence is no evidence: written anew at
//   once process paused, machine suspended   confirmed_until() has passed when it wakes (both clocks are looked at):
//   senders
//                                       wait; run() reads before it writes and finds who took over
//   killed                              its own restart (same host, same state file) goes on at once; others after 3
//   intervals state file saved, record not written   the state file is ahead: our own lineage, goes on right to create,
//   send or poll missing  kPermission; the text names `marker = "off"`
//
// The lease: a newcomer claims no earlier than 3 write intervals after the last record it saw. confirmed_until() is 2.5
// intervals after the *start* of a write that was read back with us as the holder. So the holder stops sending half an
// interval before anybody else can start. What it has already handed to the network may land later; no lease can call
// that back: the reading back of the tail finds it (a foreign or an own message). A copy of the
// state file started on the same host beside the original finds the original's process running, and watches as well.
//
// Affinity: the client's io_context. Lifetime: client and clock outlive it; no call is in flight at destruction.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/task.h"
#include "iggy/client.h"
#include "replicator/marker/links.h"

namespace replicator {

struct MarkerOptions {
  base::TopicName topic;  // downstream; Rules::marker()
  std::string link_id;
  std::uint64_t stored_generation = 0;  // of the state file; 0 = this link was never held
  std::string process;                  // "<random hex>@host:pid", new at every start
  std::string stored_identity;          // the downstream's, of the state file; "" = unknown
  std::string fresh_identity;           // random hex: becomes the cluster's identity when it has none
  std::string upstream, downstream;     // redacted URLs
  std::string upstream_identity;        // "" = unknown
  std::vector<std::string> topics, exclude;
  std::vector<RenameRule> rename;
  base::Duration write_interval = std::chrono::seconds(10);
  base::Duration read_interval = std::chrono::seconds(2);
  // Another link whose holder is in our way (links.h, is_rival): watched like a former holder. May be empty.
  std::function<bool(const MarkerRecord&)> is_rival;
  // A process of our own host ("<hex>@host:pid") that is still running: watched as well. May be empty = none is.
  std::function<bool(std::string_view process)> still_runs;
};

// Where promoted links are recorded for ever: the links topic itself forgets what is older than a day.
base::TopicName ended_topic(const base::TopicName& links_topic);

class Marker {
 public:
  // Saves the generation in the state file, durably, before it is claimed.
  using Persist = std::function<base::Task<base::Status>(std::uint64_t generation)>;

  Marker(iggy::Client& downstream, base::Clock& clock, MarkerOptions options);

  // Takes the lease; the generation that is now ours. kFenced says who holds it and what to do; kPermission; what
  // `persist` returned; else the connection's errors: call again. REQUIRES: the client connected once.
  base::Task<base::Result<std::uint64_t>> acquire(Persist persist);
  // Keeps the lease until `stop` is set (ok) or it is lost (kFenced). Other errors are kept in last_error() and tried
  // again for ever. A request in flight delays the end: close the client to cut it short.
  base::Task<base::Status> run(base::Event& stop);
  // Of the rules, as others see them: written at the next turn.
  void set_topics(std::vector<std::string> topics, std::vector<std::string> exclude);
  // Reads now. kFenced, or the reason why it can't be known.
  base::Task<base::Status> check();
  // Orderly stop, after run() ended and the last send was answered: a newcomer need not wait. Does nothing when fenced
  // or never acquired.
  base::Task<base::Status> release();
  // The downstream becomes a primary: no process of this link ever writes again, a running one stops at its next read,
  // one that starts years later finds it in ended_topic(). Allowed without acquire(), and of a link that somebody else
  // holds. Twice is allowed: what is there already is not written again. kWrongLink: this is another cluster than the
  // link's downstream.
  base::Task<base::Status> promote();

  // Whether both URLs are one cluster: our record, or this cluster's identity, is seen through the upstream's URL.
  // Errors mean unknown. REQUIRES: acquire() succeeded.
  base::Task<base::Result<bool>> visible_through(iggy::Client& upstream);

  // Until when the lease is proven; the past when it is not. Senders ask may_send() before every send.
  base::TimePoint confirmed_until() const { return confirmed_until_; }
  bool may_send() const;
  // Why not any more; none while held.
  const std::optional<base::Error>& fence() const { return fence_; }
  const std::optional<base::Error>& last_error() const { return last_error_; }
  std::uint64_t generation() const { return generation_; }   // 0 = not acquired
  const std::string& identity() const { return identity_; }  // of the downstream cluster; known after acquire()

 private:
  struct Attempt {
    std::uint64_t written_at;
    base::TimePoint started;
  };

  base::Duration lease() const { return options_.write_interval * 5 / 2; }
  base::Task<base::Status> ensure_topic();
  base::Task<base::Status> ensure_topic(base::TopicName topic, std::uint64_t expiry);
  base::Task<base::Status> read_ended();
  base::Task<base::Status> write_ended(std::uint64_t generation);
  base::Task<base::Result<iggy::PolledMessages>> poll(iggy::PollStrategy strategy);
  base::Task<base::Status> read_newest();
  base::Task<base::Status> read_on();
  base::Task<base::Status> write(base::TopicName topic, LinkState state, std::uint64_t generation);
  base::Task<base::Status> write_until_seen(LinkState state, std::uint64_t generation);
  base::Task<base::Status> watch();
  base::Task<base::Status> wait_out_former_holder();
  base::Status judge();
  base::Status fence_off(std::string message, std::string hint);
  void absorb(const iggy::PolledMessages& polled);
  void confirm();
  bool is_seen(std::uint64_t written_at) const;
  std::vector<std::string> in_our_way() const;
  std::uint64_t signs_of_life(const std::vector<std::string>& links) const;
  base::Error explain(base::Error error) const;

  iggy::Client& client_;
  base::Clock& clock_;
  MarkerOptions options_;
  Links links_;
  std::string identity_;
  std::uint64_t generation_ = 0;
  std::uint64_t next_ = 0;                           // offset to read on from
  std::uint64_t written_at_ = 0;                     // of our newest write
  std::uint64_t writes_ = 0;                         // mints message ids
  bool write_at_once_ = false;                       // our record is not where it was
  bool ended_ = false;                               // released or promoted by us
  bool ended_for_good_ = false;                      // our record is in ended_topic()
  std::optional<std::uint64_t> signs_before_claim_;  // of others, at our first claim
  std::deque<Attempt> attempts_;                     // newest last; bounded
  base::TimePoint confirmed_until_{};
  std::uint64_t confirmed_wall_ = 0;  // µs; wall clock at the start of the confirmed write
  std::optional<base::Error> fence_, last_error_;
};

}  // namespace replicator
