// Owns one link: both clients, the committer, one pipeline per partition, and the order in which they start and stop.
//
//   start: connect both ends ─▶ link row ─▶ marker (are we the only writer?) ─▶ reconcile ─▶ pipelines
//   stop:  pipelines stop reading ─▶ sends in flight resolved (drain_timeout) ─▶ marker released ─▶ commit ─▶ clients
//   closed
//   end:   nothing is sent any more ─▶ stop, with both records of the end instead of the release (failover/end_link.h)
//
// What each failure does: an end that can't be reached is tried again for ever (credentials, a foreign port or a newer
// dialect end the start with a sentence); the marker says somebody else writes: every pipeline stops, nothing is
// written any more, run() ends kFenced; the state file can't be written: copying stops after a bound, status says so;
// one partition's fault stops that partition. Affinity: run() on the I/O thread; Commands and request_stop() from any
// thread. Lifetime: store and board outlive it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "iggy/client.h"
#include "replicator/consumers/consumer_sync.h"
#include "replicator/link/iggy_partition.h"
#include "replicator/link/stream_watcher.h"
#include "replicator/link/surroundings.h"
#include "replicator/link/upstream_offset.h"
#include "replicator/marker/links.h"
#include "replicator/marker/marker.h"
#include "replicator/model/commands.h"
#include "replicator/model/config.h"
#include "replicator/model/status.h"
#include "replicator/partition/partition_pipeline.h"
#include "replicator/run.h"
#include "replicator/topics/reconciler.h"
#include "replicator/verify/verifier.h"

namespace replicator {

iggy::ClientOptions client_options(const Config& config);

class Supervisor final : public Commands {
 public:
  Supervisor(asio::io_context& io, base::Clock& clock, Config config, std::vector<Setting> settings,
             state::AsyncStore& store, StatusBoard& board, std::string version, Surroundings surroundings);
  ~Supervisor() override;

  // The whole life of the link. ok: stopped when asked, or everything had caught up (`until_caught_up`). Errors:
  // kCredentials, kNotIggy, kUnsupported, kConnectFailed (until_caught_up only), kWrongLink, kFenced, kInvalidArgument,
  // kStateUnavailable.
  base::Task<base::Status> run();
  // After run() has ended, on its thread.
  std::vector<PartitionReceipt> receipts() const;
  bool ended_by_itself() const { return ended_by_itself_; }
  // Set when run() ended because of end_link().
  const std::optional<EndReport>& end_report() const { return end_report_; }
  // Idempotent, any thread. run() ends within drain_timeout plus a second.
  void request_stop();

  base::Result<CommandOutcome> pause(std::string glob, std::string actor, bool dry_run) override;
  base::Result<CommandOutcome> resume(std::string glob, std::string actor, bool dry_run) override;
  base::Result<CommandOutcome> resolve(base::PartitionKey key, Exit exit, std::string actor, bool dry_run) override;
  base::Result<CommandOutcome> reset(base::PartitionKey key, std::uint64_t up_offset, std::string actor,
                                     bool dry_run) override;
  base::Result<CommandOutcome> replay(std::vector<std::int64_t> ids, std::string actor, bool dry_run) override;
  base::Result<CommandOutcome> set_throttle(std::string glob, Rate rate, std::string actor, bool dry_run) override;
  base::Result<CommandOutcome> reload(std::string actor, bool dry_run) override;
  // Any thread; says in the log what came of it.
  void request_reload(std::string actor);
  base::Result<EndReport> end_link(EndRequest request) override;
  base::Result<std::vector<state::GapRow>> gaps() override;
  base::Result<std::vector<state::EventRow>> events(std::size_t newest) override;
  base::Result<state::Translation> translate(base::PartitionKey key, state::Side from, std::uint64_t offset) override;
  base::Result<VerifyReport> verify(VerifyRequest request,
                                    std::function<bool(const VerifyProgress&)> on_progress) override;
  base::Result<std::vector<state::ConsumerRow>> consumers() override;
  base::Result<std::vector<state::ConsumerRow>> sync_consumers(std::string actor, bool dry_run) override;

  // The same for who is on the I/O thread already.
  base::Task<base::Result<CommandOutcome>> set_desired(std::string glob, state::Desired desired, std::string actor,
                                                       bool dry_run);
  base::Task<base::Result<CommandOutcome>> do_resolve(base::PartitionKey key, Exit exit, std::string actor,
                                                      bool dry_run);

 private:
  struct End {
    std::string_view name;  // "upstream", "downstream"
    std::unique_ptr<iggy::Client> client;
    EndStatus status;
    std::map<base::TopicName, std::unique_ptr<TopicWatcher>> watchers;
    std::map<std::string, std::unique_ptr<StreamWatcher>> streams;
    base::TimePoint answered_at{};  // by watch_end()
  };
  struct Slot {
    std::unique_ptr<IggySource> source;
    std::unique_ptr<IggySink> sink;
    std::unique_ptr<PartitionPipeline> pipeline;
    std::optional<UpstreamOffset> upstream_offset;  // copy.upstream_commit
    std::optional<std::uint64_t> target;            // until_caught_up: upstream end when first seen
    bool reached = false;                           // ... and it was there when the run decided to end
    bool leaving = false, ended = false;            // the rules want it no more; its pipeline has ended
  };
  struct Sample {
    base::TimePoint at;
    std::uint64_t messages = 0, bytes = 0;
    std::optional<std::uint64_t> upstream_end;  // as seen at upstream_at, µs
    std::uint64_t upstream_at = 0;
  };

  // supervisor.cc
  base::Task<base::Status> start();
  base::Task<base::Status> connect(End& end);
  base::Task<void> watch_end(End& end);
  base::Task<base::Status> load_link();
  base::Task<base::Status> take_lease();
  base::Task<base::Status> refuse_start();
  base::Task<base::Status> refuse_loops();
  base::Task<base::Status> save_generation(std::uint64_t generation);
  base::Task<void> hold_lease();
  base::Task<void> watch_state_file();
  base::Task<base::Status> reconcile_loop();
  base::Task<base::Status> reconcile_once();
  base::Task<void> stop_in_order();
  base::Task<void> store_upstream();
  base::Task<void> store_upstream_once();
  void start_partition(const WantedPartition& wanted);
  base::Status may_send() const;
  TopicWatcher& watcher(End& end, const base::TopicName& topic);

  // supervisor_reload.cc
  base::Task<base::Status> record(std::string kind, std::string object, std::string actor, std::string detail);
  Throttle& throttle_of(const base::TopicName& topic);
  void apply(ThrottleRules rules);
  void show_effective(std::string_view key, std::string effective);
  base::Task<base::Result<CommandOutcome>> do_set_throttle(std::string glob, Rate rate, std::string actor,
                                                           bool dry_run);
  base::Result<ConfigReading> read_again() const;
  std::map<std::string, std::string> changes(const ConfigReading& reading) const;
  base::Task<base::Result<CommandOutcome>> do_reload(ConfigReading reading, std::string actor, bool dry_run);
  base::Task<void> reload_for(std::string actor);
  base::Task<base::Status> check_new_rules(const Rules& rules);
  void take_new_rules();
  base::Task<void> run_partition(Slot& slot);
  base::Task<void> retire(base::PartitionKey key);

  // supervisor_ledger.cc
  base::Task<void> watch_ledger();

  // supervisor_status.cc
  base::Task<void> publish_loop();
  void publish();
  void add_rates(PartitionStatus& status);
  void log_progress(const LinkStatus& status);
  bool reached(const Slot& slot, const PartitionStatus& status) const;
  bool everything_caught_up();

  // supervisor_ending.cc
  using EndPromise = std::promise<base::Result<EndReport>>;
  base::Task<void> begin_ending(EndRequest request, std::shared_ptr<EndPromise> promise);
  base::Task<base::Result<EndReport>> prepare_ending(const EndRequest& request);
  base::Task<base::Result<Loss>> present_loss(Ending ending);
  base::Task<base::Status> ready_to_promote(const EndRequest& request, EndReport& report);
  base::Task<base::Result<std::string>> equal_sides();
  base::Task<void> finish_ending(bool drained);

  // supervisor_commands.cc
  template <class T>
  base::Task<void> carry_out(std::function<base::Task<base::Result<T>>()> question,
                             std::shared_ptr<std::promise<base::Result<T>>> promise);
  template <class T>
  base::Result<T> ask(std::function<base::Task<base::Result<T>>()> question);
  base::Task<base::Result<CommandOutcome>> retry_missing(const MissingPartition& missing, Exit exit, std::string actor,
                                                         bool dry_run);
  base::Task<base::Result<CommandOutcome>> do_replay(std::vector<std::int64_t> ids, std::string actor, bool dry_run);
  base::Task<base::Result<CommandOutcome>> do_reset(base::PartitionKey key, std::uint64_t up_offset, std::string actor,
                                                    bool dry_run);

  // supervisor_compare.cc
  struct VerifyRun;
  base::Task<void> do_verify(VerifyRequest request, std::shared_ptr<VerifyRun> run);
  base::Task<base::Result<VerifyReport>> compare(VerifyRequest request, std::shared_ptr<VerifyRun> run);
  base::Task<void> close_verify_clients();
  base::Task<base::Result<state::Translation>> do_translate(base::PartitionKey key, state::Side from,
                                                            std::uint64_t offset);
  base::Status refuse_external_groups() const;
  base::Task<void> consumer_loop();
  base::Task<base::Result<std::vector<state::ConsumerRow>>> do_sync_consumers(std::string actor, bool dry_run);

  asio::io_context& io_;
  base::Clock& clock_;
  Config config_;                    // a reload changes what needs no restart
  std::vector<Setting> settings_;    // as shown
  std::vector<Setting> configured_;  // as read; throttles may be others at run time
  state::AsyncStore& store_;
  StatusBoard& board_;
  const std::string version_;
  const Surroundings surroundings_;

  std::optional<Rules> rules_;
  std::optional<Rules> new_rules_;  // of a reload, for the reconciler's next turn
  Turn control_turn_;               // who changes them, or the throttles
  ThrottleRules throttle_rules_;
  Throttle link_throttle_;
  std::map<base::TopicName, std::unique_ptr<Throttle>> topic_throttles_;
  End upstream_, downstream_;
  state::LinkRow link_;
  LinkInView view_;  // what other links are compared with
  bool link_is_new_ = false;
  std::map<base::PartitionKey, state::PartitionRow> rows_;  // as loaded at start, for pipelines not yet started
  std::unique_ptr<Marker> marker_;                          // none when marker = "off"
  bool same_cluster_ = false;
  std::unique_ptr<Committer> committer_;
  MemoryBudget budget_;
  Turn upstream_turn_;  // who stores positions upstream
  std::map<base::PartitionKey, Slot> slots_;
  std::vector<std::map<base::PartitionKey, Slot>::node_type> left_;  // what the rules have left out since the start
  base::Event partition_ended_;
  std::shared_ptr<const Ledger> ledger_;  // as last read
  Topology topology_;
  bool reconciled_ = false;
  std::map<base::PartitionKey, std::deque<Sample>> samples_;
  std::map<base::PartitionKey, double> upstream_rates_;
  base::TimePoint progress_logged_at_{};
  std::string logged_store_error_;

  std::unique_ptr<iggy::Client> verify_up_, verify_down_;  // of the comparison under way
  base::Event verify_stop_;
  bool verifying_ = false;
  Turn consumer_turn_;

  base::TaskGroup pipelines_;
  base::TaskGroup commands_;
  base::TaskGroup background_;
  base::Event stop_;
  base::Event reconcile_now_;
  base::Event publish_stop_;
  base::Event lease_stop_;
  base::Event lease_ended_;
  base::Event ending_begun_;
  std::atomic<bool> stopped_ = false;
  std::string state_ = "starting", state_detail_;
  std::uint64_t started_at_ = 0;
  std::optional<std::uint64_t> admin_certificate_ends_;  // by watch_ledger()
  bool ended_by_itself_ = false;
  std::optional<base::Error> ended_;  // why run() ends, when not asked to
  std::optional<EndRequest> ending_;  // set: nothing is sent any more, and this link ends for good
  std::string ending_verified_;
  base::TimePoint ending_since_{};
  std::vector<std::shared_ptr<EndPromise>> end_waiters_;
  std::optional<EndReport> end_report_;
};

}  // namespace replicator
