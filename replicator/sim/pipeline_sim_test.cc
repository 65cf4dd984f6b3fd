// Whole runs of the real pipelines, committer and SQLite store on virtual time, between two clusters in memory, with
// load and faults drawn from one 64-bit seed. The checkers know only the two logs, the ledger and the rows:
//   no silent loss   a message that the upstream still holds, and that no ledger row names, is downstream
//   no silent copy   downstream copies beyond the first are counted as duplicates
//   order            first copies stand in the upstream's order
//   map              what the offset map says is equal on both sides is equal
//   honest faults    a fault names only what was really done to that partition
//   lag 0            soon after the faults end
// SIM_SEED=n replays one seed (with its log), SIM_SEEDS=n widens. A seed that failed once is kept below.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "replicator/testing/sim_appliance.h"

namespace replicator {
namespace {

using namespace std::chrono_literals;
using testing::Flavour;
using testing::SendFault;
using testing::SimAppliance;
using testing::SimCluster;
using testing::SimMessage;

// What was done to one partition so far.
struct Happened {
  bool up_lost = false, up_purged = false, up_recreated = false, up_expired = false, up_unreadable = false;
  bool down_lost = false, down_recreated = false, down_expired = false, foreign = false, late = false;
  bool silence = false, refused = false;
  bool restarted = false;  // an operator began anew: old copies stay
  bool unverified = false;
};

class Run {
 public:
  explicit Run(std::uint64_t seed)
      : random_(seed),
        up_(clock_, static_cast<Flavour>(below(3)), "up", 1 + below(3)),
        down_(clock_, static_cast<Flavour>(below(3)), "down", up_.size()),
        happened_(up_.size()) {
    in_a_file_ = chance(6);
    open();
    for (int action = 0; action < kActions; ++action) {
      if (chance(35)) enabled_.push_back(action);
    }
    options_.batch_bytes = 300 + below(5000);
    options_.uncommitted_batches_max = static_cast<std::uint32_t>(1 + below(20));
    options_.seed = seed;
    options_.resync.read_count = static_cast<std::uint32_t>(3 + below(100));
    settles_ = !chance(20);
    budget_ = 2000 + below(100'000);
    retention_up_ = chance(30);
    retention_down_ = chance(20);
    for (std::size_t p = 0; p < up_.size(); ++p) {
      up_.at(p).has_retention = retention_up_;
      down_.at(p).has_retention = retention_down_;
      up_.produce(p, below(200), 20 + below(200));
    }
  }

  // Empty, or what went wrong.
  std::string run() {
    start();
    const std::uint64_t steps = 20 + below(80);
    for (std::uint64_t step = 0; step < steps && problem_.empty(); ++step) {
      pass(std::chrono::microseconds(chance(10) ? below(12'000'000) : below(chance(50) ? 20'000 : 1'500'000)));
      if (chance(60)) up_.produce(below(up_.size()), 1 + below(30), 20 + below(200));
      if (chance(30)) save();
      if (!enabled_.empty() && chance(70)) act(enabled_[below(enabled_.size())]);
      resolve_faults();
      check_rows();
    }
    end_faults();
    converge();
    if (problem_.empty()) check();
    call(appliance_->stop());
    appliance_.reset();
    if (problem_.empty() && !store_->check()->empty()) fail("the state file is damaged: " + store_->check()->front());
    return problem_;
  }

  std::uint64_t trace() const { return up_.trace() * 31 + down_.trace(); }

 private:
  enum Action {
    kCutUp,
    kCutDown,
    kOutageUp,
    kOutageDown,
    kSendFault,
    kSilence,
    kLate,
    kRefuse,
    kReadError,
    kEmptyRead,
    kCrashUp,
    kCrashDown,
    kExpireUp,
    kExpireDown,
    kPurgeUp,
    kRecreateUp,
    kRecreateDown,
    kForeign,
    kUnreadable,
    kOldEndUp,
    kOldEndDown,
    kStoreFails,
    kKill,
    kKillAgain,
    kPause,
    kActions
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  template <class T>
  T call(base::Task<T> task) {
    return base::testing::run_until_done(io_, clock_, std::move(task));
  }
  void pass(base::Duration duration) { call(clock_.sleep_for(duration)); }
  void fail(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }

  void open() {
    faulty_.reset();
    store_.reset();
    auto opened = in_a_file_ ? state::SqliteStore::open(folder_.file("state.db"), state::OpenMode::kCreate)
                             : state::SqliteStore::open_in_memory();
    base::check(opened.has_value(), "the state file opens");
    store_ = std::move(*opened);
    faulty_ = std::make_unique<state::testing::FaultyStore>(*store_);
  }
  void start() {
    appliance_ = std::make_unique<SimAppliance>(io_, clock_, up_, down_, *faulty_, options_, budget_);
    appliance_->store.latency = std::chrono::microseconds(100 + below(5000));
    for (std::size_t p = 0; p < up_.size(); ++p) {
      appliance_->lane(p).sink.settles = settles_;
      appliance_->lane(p).sink.batch_max = 1 + below(60);
      appliance_->lane(p).sink.line.latency = std::chrono::microseconds(100 + below(20'000));
      appliance_->lane(p).source.line.latency = std::chrono::microseconds(100 + below(20'000));
    }
    appliance_->start();
  }
  void kill() {
    call(appliance_->kill());
    appliance_.reset();
    faulty_->fail(0, state::testing::Failing::kOnce);
    if (in_a_file_) open();
    start();
  }
  void save() {
    const std::size_t p = below(up_.size());
    if (chance(50)) up_.save(p);
    if (chance(50)) down_.save(p);
  }

  void act(int action) {
    const std::size_t p = below(up_.size());
    auto& source = appliance_->lane(p).source;
    auto& sink = appliance_->lane(p).sink;
    Happened& happened = happened_[p];
    switch (action) {
      case kCutUp:
        return up_.cut();
      case kCutDown:
        return down_.cut();
      case kOutageUp:
        up_.cut();
        return up_.refuse_connections_until(clock_.now() + std::chrono::microseconds(below(20'000'000)));
      case kOutageDown:
        down_.cut();
        return down_.refuse_connections_until(clock_.now() + std::chrono::microseconds(below(20'000'000)));
      case kSendFault: {
        static constexpr std::array kKinds = {SendFault::kNotAccepted, SendFault::kCutBefore, SendFault::kAckLost,
                                              SendFault::kAckWithoutOffset};
        for (std::uint64_t i = 0, n = 1 + below(4); i < n; ++i) sink.faults.push_back(kKinds[below(kKinds.size())]);
        return;
      }
      case kSilence:
        happened.silence = true;
        return sink.faults.push_back(chance(50) ? SendFault::kSilence : SendFault::kAckSilent);
      case kLate:
        happened.late = true;
        sink.late_by = std::chrono::microseconds(below(8'000'000));
        return sink.faults.push_back(SendFault::kLandsLate);
      case kRefuse:
        happened.refused = true;
        return sink.faults.push_back(SendFault::kRefused);
      case kReadError: {
        static constexpr std::array kCodes = {base::ErrorCode::kTimeout, base::ErrorCode::kConnectionLost,
                                              base::ErrorCode::kConnectFailed};
        auto& line = chance(50) ? source.line : sink.line;
        line.errors.emplace_back(kCodes[below(kCodes.size())], "injected", "", "injected");
        return;
      }
      case kEmptyRead:
        if (!up_.is_legacy()) source.line.empty_reads += below(3);
        if (!down_.is_legacy()) sink.line.empty_reads += below(3);
        return;
      case kCrashUp:
        for (std::size_t i = 0; i < up_.size(); ++i) {
          if (up_.at(i).saved < up_.at(i).next) happened_[i].up_lost = true;
        }
        return up_.crash();
      case kCrashDown:
        for (std::size_t i = 0; i < up_.size(); ++i) happened_[i].down_lost = true;
        return down_.crash();
      case kExpireUp:
        if (!retention_up_) return;
        happened.up_expired = true;
        return up_.expire(p, below(up_.at(p).next + 1));
      case kExpireDown:
        if (!retention_down_) return;
        happened.down_expired = true;
        return down_.expire(p, below(down_.at(p).next + 1));
      case kPurgeUp:
        if (!chance(30)) return;
        happened.up_purged = true;
        return up_.purge(p);
      case kRecreateUp:
        if (!chance(30)) return;
        happened.up_recreated = true;
        return up_.recreate(p);
      case kRecreateDown:
        if (!chance(30)) return;
        happened.down_recreated = true;
        return chance(50) ? down_.recreate(p) : down_.purge(p);
      case kForeign: {
        happened.foreign = true;
        SimMessage stranger;
        stranger.id = {0xF0F0, ++strangers_};
        stranger.body = "stranger";
        down_.append(p, {stranger});
        return;
      }
      case kUnreadable:
        if (!up_.is_legacy() || happened.up_unreadable || up_.at(p).log.empty()) return;
        happened.up_unreadable = true;
        {
          const std::uint64_t begin = up_.at(p).log.front().offset + below(up_.at(p).log.size());
          up_.at(p).unreadable.push_back({begin, begin + 1 + below(20), chance(50)});
        }
        return;
      case kOldEndUp:
      case kOldEndDown: {
        auto& cluster = action == kOldEndUp ? up_ : down_;
        if (cluster.is_legacy()) return;
        // The sink reads where sends are accepted; should it not, a tail that hides behind an old end is sent twice.
        if (action == kOldEndDown) happened.late = true;
        const std::uint64_t end = cluster.at(p).end();
        return cluster.answer_old_end(p, end - std::min(end, below(20)), std::chrono::microseconds(below(4'000'000)));
      }
      case kStoreFails:
        return faulty_->fail(1 + below(5),
                             chance(50) ? state::testing::Failing::kOnce : state::testing::Failing::kFromThenOn);
      case kKill:
      case kKillAgain:
        return kill();
      case kPause: {
        auto& pipeline = appliance_->pipeline(p);
        (void)call(pipeline.set_desired(chance(50) ? state::Desired::kPaused : state::Desired::kRunning, "sim"));
        return;
      }
      default:
        return;
    }
  }

  bool justified(FaultKind kind, const Happened& h) const {
    const bool up_changed = h.up_lost || h.up_purged || h.up_recreated;
    switch (kind) {
      case FaultKind::kUpstreamRewound:
        return up_changed;
      case FaultKind::kUpstreamRecreated:
        return h.up_recreated;
      case FaultKind::kRetention:
        // A reservation that was jumped over looks the same where nothing older is kept.
        return h.up_expired || (h.up_lost && retention_up_ && up_.flavour() == Flavour::kVsrReserving);
      case FaultKind::kUpstreamUnreadable:
        return h.up_unreadable;
      case FaultKind::kDownstreamRecreated:
        return h.down_recreated || (h.down_lost && (up_changed || retention_down_ || h.down_expired || h.foreign));
      case FaultKind::kDownstreamNotEmpty:
        return h.foreign;
      case FaultKind::kForeignWriter:
        return h.foreign || up_changed || h.down_recreated;
      case FaultKind::kUnverifiableTail:
        return h.foreign || up_changed || h.up_expired || h.down_expired || h.down_recreated ||
               (h.down_lost && retention_down_);
      case FaultKind::kSendUnanswered:
        return h.silence;
      case FaultKind::kTargetFull:
        return h.refused;
      default:
        return false;
    }
  }

  void resolve_faults() {
    for (std::size_t p = 0; p < up_.size(); ++p) {
      auto& pipeline = appliance_->pipeline(p);
      const PartitionStatus status = pipeline.status();
      if (status.phase != Phase::kFault) continue;
      const auto kind = fault_from_name(status.fault.kind);
      if (!kind || !justified(*kind, happened_[p])) {
        return fail(
            fmt::format("fault {} of partition {} names a wrong cause: {}", status.fault.kind, p, status.fault.detail));
      }
      if (++faults_ > 300) return fail("faults without end: " + status.fault.kind + ": " + status.fault.detail);
      const auto exits = info(*kind).exits;
      const Exit exit = exits[below(exits.size())];
      if (exit == Exit::kRestart || exit == Exit::kRecopy) happened_[p].restarted = true;
      if (*kind == FaultKind::kUnverifiableTail || *kind == FaultKind::kForeignWriter) happened_[p].unverified = true;
      (void)call(pipeline.resolve(exit, "sim"));
    }
  }

  // While it runs: what is durable downstream is what the row claims, unless the downstream lost something.
  void check_rows() {
    for (std::uint32_t p = 0; p < up_.size(); ++p) {
      const auto row = store_->partition(testing::sim_key(p));
      if (!row || !*row || happened_[p].down_lost || happened_[p].down_recreated) continue;
      if ((*row)->down_end > down_.at(p).next) {
        fail(fmt::format("partition {}: the row claims the downstream up to {}, it ends at {}", p, (*row)->down_end,
                         down_.at(p).next));
      }
    }
  }

  void end_faults() {
    faulty_->fail(0, state::testing::Failing::kOnce);
    for (std::size_t p = 0; p < up_.size(); ++p) {
      auto& lane = appliance_->lane(p);
      lane.source.line.errors.clear();
      lane.source.line.empty_reads = 0;
      lane.sink.line.errors.clear();
      lane.sink.line.empty_reads = 0;
      lane.sink.faults.clear();
      up_.at(p).unreadable.clear();
      up_.at(p).old_end.reset();
      down_.at(p).old_end.reset();
      up_.save(p);
      down_.save(p);
    }
    up_.refuse_connections_until({});
    down_.refuse_connections_until({});
    pass(10s);  // whatever lands late has landed
    for (std::size_t p = 0; p < up_.size(); ++p) {
      up_.produce(p, 3);
      const auto resumed = call(appliance_->pipeline(p).set_desired(state::Desired::kRunning, "sim"));
      (void)resumed;
    }
  }

  bool done(std::size_t p) {
    const auto& pipeline = appliance_->pipeline(p);
    return pipeline.caught_up() && pipeline.status().acked >= up_.at(p).end();
  }
  void converge() {
    const base::TimePoint deadline = clock_.now() + 15min;
    while (problem_.empty()) {
      bool all = true;
      for (std::size_t p = 0; p < up_.size(); ++p) all = all && done(p);
      if (all) break;
      if (clock_.now() >= deadline) {
        for (std::size_t p = 0; p < up_.size(); ++p) {
          const PartitionStatus status = appliance_->pipeline(p).status();
          if (done(p)) continue;
          fail(fmt::format("partition {} does not catch up: {} ({}), acked {} of {}, fault {}", p,
                           to_string(status.phase), status.waits_for, status.acked, up_.at(p).end(),
                           status.fault.kind));
        }
        break;
      }
      pass(200ms);
      resolve_faults();
      // An upstream that lost its history shows it by what it gives out next.
      for (std::size_t p = 0; p < up_.size(); ++p) {
        if (!done(p) && chance(50)) up_.produce(p, 1);
      }
    }
    pass(1s);  // what is acked is committed
  }

  void check() {
    for (std::uint32_t p = 0; p < up_.size() && problem_.empty(); ++p) {
      const auto row = *store_->partition(testing::sim_key(p));
      if (!row) return fail("no row");
      if (row->watermark != appliance_->pipeline(p).status().acked) return fail("what is acked is not committed");
      if (appliance_->pipeline(p).status().lag.messages != 0U) return fail("lag is not 0");
      check_partition(p, *row);
    }
  }

  void check_partition(std::uint32_t p, const state::PartitionRow& row) {
    const Happened& happened = happened_[p];
    std::vector<SimMessage> copies = down_.at(p).expired;
    copies.insert(copies.end(), down_.at(p).log.begin(), down_.at(p).log.end());
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < copies.size(); ++i) places[{copies[i].id.high, copies[i].id.low}].push_back(i);
    const auto gaps = *store_->gaps();
    const auto named = [&](std::uint64_t offset) {
      return std::ranges::any_of(gaps, [&](const state::GapRow& gap) {
        return gap.key == row.key && gap.incarnation == row.incarnation && gap.cause != "hole" &&
               gap.up_begin <= offset && offset < gap.up_end;
      });
    };
    std::size_t previous = 0;
    std::uint64_t extra = 0;
    for (const SimMessage& message : up_.at(p).log) {
      const auto found = places.find({message.id.high, message.id.low});
      if (found == places.end()) {
        if (named(message.offset)) continue;
        if (happened.down_expired || happened.down_recreated) continue;  // it may have been there
        if (happened.down_lost && happened.unverified) continue;         // and was accepted as it is
        return fail(fmt::format("partition {}: upstream offset {} ({}) was lost silently", p, message.offset,
                                message.body.substr(0, 20)));
      }
      if (copies[found->second.front()].body != message.body) return fail("a body was changed");
      extra += found->second.size() - 1;
      if (!happened.restarted && !happened.unverified) {
        if (found->second.front() < previous) {
          return fail(fmt::format("partition {}: upstream offset {} stands out of order", p, message.offset));
        }
        previous = found->second.front();
      }
    }
    if (!happened.restarted && !happened.unverified && extra > row.counters.duplicates) {
      return fail(
          fmt::format("partition {}: {} messages are there twice, {} are counted", p, extra, row.counters.duplicates));
    }
    if (extra > 0 && !happened.late && !happened.restarted && !happened.unverified) {
      return fail(fmt::format("partition {}: {} messages are there twice, and no send landed late", p, extra));
    }
    check_map(p, row);
  }

  void check_map(std::uint32_t p, const state::PartitionRow& row) {
    const auto ranges = *store_->ranges(row.key, row.incarnation);
    const auto& up = up_.at(p).log;
    const auto& down = down_.at(p).log;
    for (const state::RangeRow& range : ranges) {
      for (const SimMessage& message : up) {
        if (message.offset < range.up_begin || message.offset - range.up_begin >= range.length) continue;
        const std::uint64_t there = range.down_begin + (message.offset - range.up_begin);
        const auto copy = std::ranges::find_if(down, [there](const SimMessage& m) { return m.offset == there; });
        if (copy == down.end()) {
          if (!down.empty() && there < down.front().offset) continue;  // expired
          if (down.empty()) continue;
          return fail(fmt::format("partition {}: the map says downstream offset {}, which holds nothing", p, there));
        }
        if (!(*copy == message)) {
          return fail(fmt::format("partition {}: the map says that {} is at {}, and another message is", p,
                                  message.offset, there));
        }
      }
    }
  }

  std::mt19937_64 random_;
  asio::io_context io_{1};
  base::testing::SimClock clock_{io_};
  SimCluster up_, down_;
  state::testing::TempFolder folder_;
  std::unique_ptr<state::SqliteStore> store_;
  std::unique_ptr<state::testing::FaultyStore> faulty_;
  std::unique_ptr<SimAppliance> appliance_;
  std::vector<Happened> happened_;
  std::vector<int> enabled_;
  PipelineOptions options_;
  std::size_t budget_ = 0;
  bool settles_ = true, in_a_file_ = false, retention_up_ = false, retention_down_ = false;
  std::uint64_t strangers_ = 0;
  int faults_ = 0;
  std::string problem_;
};

std::optional<std::uint64_t> from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 0);
}

std::string run_seed(std::uint64_t seed, std::uint64_t* trace = nullptr) {
  Run run(seed);
  std::string problem = run.run();
  if (trace != nullptr) *trace = run.trace();
  return problem;
}

class Quiet {
 public:
  Quiet() : level_(spdlog::get_level()) {
    if (!from_environment("SIM_SEED")) spdlog::set_level(spdlog::level::off);
  }
  ~Quiet() { spdlog::set_level(level_); }

 private:
  spdlog::level::level_enum level_;
};

TEST(PipelineSim, RandomRunsLoseNothingAndSayWhatHappened) {
  const Quiet quiet;
  if (const auto seed = from_environment("SIM_SEED")) {
    EXPECT_EQ(run_seed(*seed), "") << "SIM_SEED=" << *seed;
    return;
  }
  const std::uint64_t seeds = from_environment("SIM_SEEDS").value_or(300);
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= seeds && failures < 10; ++seed) {
    const std::string problem = run_seed(seed);
    if (!problem.empty()) ++failures;
    EXPECT_EQ(problem, "") << "SIM_SEED=" << seed;
  }
}

// Each failed once: 282 an upstream that began again below a hole, 881 a late duplicate whose twin had expired, 2560 a
// first send whose beginning had expired, 1066 a send that met a purge, 1224 a send that expired in part, 3 a
// reservation taken for retention, 65 a purge that nothing could be compared with.
TEST(PipelineSim, SeedsThatFailedOnce) {
  const Quiet quiet;
  for (const std::uint64_t seed : {3U, 20U, 65U, 213U, 282U, 881U, 1066U, 1224U, 2560U})
    EXPECT_EQ(run_seed(seed), "") << "SIM_SEED=" << seed;
}

TEST(PipelineSim, TheSameSeedIsTheSameRun) {
  const Quiet quiet;
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint64_t first = 0, second = 1;
    EXPECT_EQ(run_seed(seed, &first), run_seed(seed, &second));
    EXPECT_EQ(first, second) << "SIM_SEED=" << seed;
    traces.insert(first);
  }
  EXPECT_EQ(traces.size(), 20U);
}

}  // namespace
}  // namespace replicator
