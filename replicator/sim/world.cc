#include "replicator/sim/world.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "iggy/codec/legacy.h"
#include "replicator/sim/checkers.h"
#include "replicator/sim/faults.h"

namespace replicator::sim {

using namespace std::chrono_literals;

namespace {
constexpr base::Duration kLagZeroWithin = 20min;  // of virtual time, after the faults have ended
}

World::World(std::uint64_t seed, bool verbose)
    : apart_(~seed),
      dice(seed),
      up(agenda_, static_cast<Flavour>(dice.below(3)), "up", dice.next()),
      down(agenda_, static_cast<Flavour>(dice.below(3)), "down", dice.next()),
      verbose_(verbose) {
  for (Cluster* cluster : {&up, &down}) {
    if (!verbose) break;
    cluster->on_note = [this, cluster](std::string_view what, std::uint64_t a, std::uint64_t b) {
      fmt::print("{:10.3f}    {}: {} {} {}\n", std::chrono::duration<double>(time()).count(), cluster->name(), what, a,
                 b);
    };
  }
  draw();
}

World::~World() = default;

void World::fail(std::string checker, std::string what) {
  if (problem.empty()) problem = checker + ": " + what;
}

void World::say(std::string what) {
  if (verbose_) fmt::print("{:10.3f}  {}\n", std::chrono::duration<double>(time()).count(), what);
}

// Topology, load, configuration. Which faults may happen is drawn in run().
void World::draw() {
  config.upstream_url = "iggy://user:secret@up:8090";
  config.downstream_url = "iggy://user:secret@down:8090";
  if (dice.chance(40)) config.topics = {"orders/*"};
  if (dice.chance(50)) config.rename = {{"orders/*", "dr-orders/*"}};
  if (dice.chance(25)) config.marker = "off";
  if (dice.chance(20)) {
    config.start.start = dice.chance(50) ? Start::kLatest : dice.chance(50) ? Start::kOffset : Start::kTimestamp;
    config.start.value =
        config.start.start == Start::kOffset ? dice.below(150) : clock_.wall_micros() + dice.below(2'000'000);
  }
  config.retention = dice.chance(50) ? RetentionCopy::kCopy : RetentionCopy::kUnlimited;
  config.batch_bytes = 300 + dice.below(5000);
  config.budget_bytes = 4 * config.batch_bytes + dice.below(100'000);
  config.uncommitted_batches_max = static_cast<std::uint32_t>(dice.between(1, 20));
  config.poll_interval = dice.micros(100'000, 800'000);
  config.commit_interval = dice.micros(5'000, 300'000);
  config.commit_max_messages = dice.between(10, 1000);
  config.reconcile_interval = dice.micros(1'000'000, 5'000'000);
  config.confirm_for = dice.micros(5'000'000, 8'000'000);
  config.retry_initial_backoff = dice.micros(100'000, 1'000'000);
  config.retry_max_backoff = dice.micros(1'000'000, 8'000'000);
  config.fence_timeout = dice.micros(1'000'000, 10'000'000);
  config.drain_timeout = dice.micros(500'000, 10'000'000);
  for (Weather* weather : {&up_weather, &down_weather}) {
    weather->latency_low = dice.between(50, 2000);
    weather->latency_high = weather->latency_low + dice.below(15'000);
    weather->lost_in_cuts = dice.below(100);
  }
  if (down.is_legacy() && apart_.chance(30)) config.ack = Ack::kFlush;
  if (down.flavour() == Flavour::kVsrReserving && apart_.chance(30)) config.ack = Ack::kPersisted;
  config.skip_invalid_records = apart_.chance(50);
  if (apart_.chance(15)) {
    for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) {
      const auto exits = info(static_cast<FaultKind>(kind)).exits;
      const Exit exit = exits[apart_.below(exits.size())];
      if (exit != Exit::kRetry && apart_.chance(50)) config.policies.emplace(static_cast<FaultKind>(kind), exit);
    }
  }
  auto rules = Rules::compile(config.topics, config.exclude, config.rename, config.marker);
  base::check(rules.has_value(), "the rules compile");
  rules_ = std::move(*rules);
  down.dedup_by_id = down.is_legacy() && dice.chance(20);
  if (down.is_legacy() && dice.chance(10)) down_weather.leaks = true;
  if (!up.is_legacy() && dice.chance(15)) zero_ids_ = 20;
  if (down.is_legacy() && !up.is_legacy() && apart_.chance(20)) too_large_ = 1;
  if (dice.chance(15)) down.denied.insert(Right::kReadServers);

  everybody_.late = down.denied.contains(Right::kReadServers) || down_weather.leaks;
  for (const char* name : {"events", "bills"}) {
    if (up.topics.size() == 1 && dice.chance(60)) break;
    iggy::TopicSettings settings;
    if (dice.chance(30)) settings.message_expiry = dice.between(5'000'000, 60'000'000);
    if (dice.chance(10)) settings.max_topic_size = dice.between(5'000, 50'000);
    const base::TopicName topic{"orders", name};
    up.create(topic, static_cast<std::uint32_t>(dice.between(1, 3)), settings);
    for (std::uint32_t p = 0; p < up.topics.at(topic).partitions.size(); ++p) {
      happened[{topic, p}] = everybody_;
      produce({topic, p}, dice.below(200), 200);
    }
  }
  outside_ = std::make_unique<Outside>(agenda_, up, down, up_weather, down_weather, vfs_, config);
  for (std::size_t i = 0; i < machines.size(); ++i) {
    machines[i] = std::make_unique<Machine>(*outside_, i == 0 ? "alpha" : "beta", dice.next());
  }
}

base::PartitionKey World::any_partition() {
  auto at = happened.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(dice.below(happened.size())));
  return at->first;
}

void World::touch_all(const std::function<void(Happened&, const base::PartitionKey&)>& what) {
  for (auto& [key, each] : happened) what(each, key);
}

void World::touch_everybody(const std::function<void(Happened&)>& what) {
  for (auto& [key, each] : happened) what(each);
  what(everybody_);
}

void World::appear(const base::PartitionKey& key) {
  const auto [at, is_new] = happened.try_emplace(key, everybody_);
  at->second.grown = true;
}

void World::produce(const base::PartitionKey& key, std::uint64_t count, std::uint64_t bytes_max) {
  if (up.find(key.topic, key.partition) == nullptr) return;
  std::vector<Message> messages;
  for (std::uint64_t i = 0; i < count; ++i) {
    Message message;
    const std::uint64_t number = ++produced_;
    if (!dice.chance(zero_ids_)) message.id = {number, dice.next()};
    message.origin = clock_.wall_micros() - dice.below(1'000'000);
    message.body = fmt::format("{:08} {}", number, key.to_string());
    message.payload_length = static_cast<std::uint32_t>(message.body.size());
    std::uint64_t rest = dice.below(bytes_max);  // headers, never parsed
    if (too_large_ > 0 && apart_.chance(too_large_)) {
      rest += iggy::legacy::kMaxHeaders + 1;
      happened[key].too_large = true;
    }
    message.body.resize(message.body.size() + rest, '.');
    largest_message = std::max(largest_message, message.body.size());
    messages.push_back(std::move(message));
  }
  up.append(key.topic, key.partition, std::move(messages));
}

// Everything that is due until then, in one order: the agenda, then the machines by number.
void World::pass(base::Duration duration) {
  const base::TimePoint until = clock_.now() + duration;
  for (;;) {
    for (auto& machine : machines) machine->run_ready();
    std::optional<base::TimePoint> next = agenda_.next();
    for (auto& machine : machines) {
      const auto due = machine->next();
      if (due && (!next || *due < *next)) next = due;
    }
    if (!next || *next > until) break;
    clock_.move_to(*next);
    for (auto& machine : machines) machine->move_to(clock_.now());
    agenda_.run_due();
    for (auto& machine : machines) machine->advance();
  }
  clock_.move_to(until);
  for (auto& machine : machines) machine->move_to(until);
}

bool World::pass_until(base::Duration at_most, const std::function<bool()>& is_so) {
  for (const base::TimePoint deadline = now() + at_most; !is_so(); pass(500ms)) {
    if (now() >= deadline) return false;
  }
  return true;
}

// Until the start policy is durable, whatever was produced before may be left out by it.
void World::set_optional_marks() {
  if (!machine().runs()) return;
  for (auto& [key, each] : happened) {
    if (each.fixed || each.grown || config.start.start == Start::kEarliest) continue;
    const auto row = machine().file().partition(key);
    each.fixed = row && *row && (*row)->fault.kind != info(FaultKind::kDownstreamNotEmpty).name;
    each.optional = produced_;
  }
}

std::string World::run() {
  quiet = dice.chance(8);
  std::vector<Blow> enabled;
  for (int blow = 0; blow < kBlows; ++blow) {
    if (dice.chance(25)) enabled.push_back(static_cast<Blow>(blow));
  }
  if (quiet) enabled.clear();
  if (const std::string why = machine().start(); !why.empty()) fail("start", why);
  const base::Duration cleaning = up.is_legacy() ? 1s : 5s;
  std::function<void()> clean = [&, this] {
    if (is_over) return;  // an expiry that is shorter than a look takes more and more
    up.clean();
    down.clean();
    for (auto& [key, each] : happened) {
      const Log* source = up.find(key.topic, key.partition);
      const Log* copy = copy_of(key);
      each.up_expired = each.up_expired || (source != nullptr && !source->gone.empty());
      each.down_expired = each.down_expired || (copy != nullptr && !copy->gone.empty());
      const auto topic = down.topics.find(target(key.topic));
      each.down_expires = each.down_expires || (topic != down.topics.end() &&
                                                (topic->second.settings.message_expiry != iggy::kNeverExpire ||
                                                 topic->second.settings.max_topic_size != iggy::kUnlimitedSize));
    }
    agenda_.in(cleaning, clean);
  };
  agenda_.in(cleaning, clean);

  const std::uint64_t steps = 15 + dice.below(50);
  for (std::uint64_t step = 0; step < steps && problem.empty(); ++step) {
    pass(dice.chance(10) ? dice.micros(0, 12'000'000) : dice.micros(0, dice.chance(50) ? 20'000 : 1'500'000));
    set_optional_marks();
    if (dice.chance(60)) produce(any_partition(), 1 + dice.below(30), 200);
    for (Cluster* cluster : {&up, &down}) {
      if (!dice.chance(30)) continue;
      for (auto& [name, topic] : cluster->topics) {
        for (Log& log : topic.partitions) {
          if (dice.chance(50)) log.saved = log.next;
        }
      }
    }
    if (!enabled.empty() && dice.chance(60)) strike(*this, dice.of(enabled));
    restart_what_ended();
    resolve_faults();
    check_running(*this);
  }
  end_faults();
  converge();
  if (problem.empty()) check_end(*this);
  if (verbose_) print_state_file();
  for (auto& each : machines) {
    if (each->runs()) each->supervisor().request_stop();
  }
  (void)pass_until(30s, [this] { return !machines[0]->runs() && !machines[1]->runs(); });
  for (auto& each : machines) {
    if (problem.empty() && each->runs()) fail("stop", "the process does not end within its time");
  }
  return problem;
}

// What systemd does, and the person who looks why.
void World::restart_what_ended() {
  Machine& own = machine();
  if (own.runs()) return;
  if (own.end() && own.end()->code() == base::ErrorCode::kFenced && machines[1 - active]->runs()) {
    say("fenced: " + own.end()->to_string());
    touch_everybody([](Happened& each) { each.new_file = true; });
    active = 1 - active;  // the other one has taken over, with its own state file
    return;
  }
  if (own.end()) say(own.host() + " ended: " + own.end()->to_string());
  if (const std::string why = own.start(); !why.empty()) fail("start", why);
}

// What an exit leaves behind downstream, for the checkers.
void World::note_exit(const base::PartitionKey& key, FaultKind kind, Exit exit) {
  Happened& then = happened[key];
  if (exit == Exit::kRestart || exit == Exit::kRecopy || exit == Exit::kAdopt) then.restarted = true;
  if (kind == FaultKind::kUnverifiableTail || kind == FaultKind::kForeignWriter) then.unverified = true;
}

// Exits that were taken without a person stand in the events.
void World::note_policies() {
  if (config.policies.empty() || !machine().runs()) return;
  const auto events = machine().file().events(500);
  if (!events) return;
  for (const state::EventRow& event : *events) {
    if (event.kind != "resolve" || event.actor != "policy") continue;
    const auto kind = fault_from_name(event.detail.substr(0, event.detail.find(' ')));
    if (!kind || !config.policies.contains(*kind)) continue;
    for (const auto& [key, each] : happened) {
      if (key.to_string() == event.object) note_exit(key, *kind, config.policies.at(*kind));
    }
  }
}

void World::resolve_faults() {
  if (!machine().runs()) return;
  note_policies();
  const auto status = machine().status();
  for (const PartitionStatus& partition : status->partitions) {
    const auto kind = partition.fault.active() ? fault_from_name(partition.fault.kind) : std::nullopt;
    if (!kind || *kind == FaultKind::kTargetMissing) continue;
    const Happened& what = happened[partition.key];
    if (!explains(*this, what, *kind)) {
      return fail("false cause", fmt::format("{} has fault {}, and nothing of the kind was done to it: {}",
                                             partition.key.to_string(), partition.fault.kind, partition.fault.detail));
    }
    if (dice.chance(50) && !is_over) continue;
    if (++resolved_ > 500) return fail("convergence", "faults without end: " + partition.fault.detail);
    const auto exits = info(*kind).exits;
    const Exit exit = exits[dice.below(exits.size())];
    say(fmt::format("{}: {} ({}), resolved as {}", partition.key.to_string(), partition.fault.kind,
                    partition.fault.detail, replicator::to_string(exit)));
    if (!machine().runs()) return;
    auto resolved = call(machine(), machine().supervisor().do_resolve(partition.key, exit, "sim", false));
    if (!resolved || !*resolved) continue;
    note_exit(partition.key, *kind, exit);
  }
}

void World::end_faults() {
  is_over = true;
  say("faults end");
  for (Weather* weather : {&up_weather, &down_weather}) {
    weather->sends.clear();
    weather->reads.clear();
    weather->writes.clear();
  }
  for (Cluster* cluster : {&up, &down}) {
    cluster->be_down_until({});
    std::erase_if(cluster->denied, [](Right right) { return right != Right::kReadServers; });
    for (auto& [name, topic] : cluster->topics) {
      for (Log& log : topic.partitions) {
        log.unreadable.clear();
        log.old_end.reset();
        log.limbo.reset();
        log.saved = log.next;
      }
    }
  }
  for (auto& each : machines) each->stop_for(0s), each->spare();
  // Whatever lands late has landed.
  pass(std::max({up_weather.lands_until, down_weather.lands_until, now()}) - now() + 2s);
  take_one_machine();
  for (auto& [key, each] : happened) produce(key, 3, 100);
}

// One process is left, on the machine that may write.
void World::take_one_machine() {
  if (Machine& other = *machines[1 - active]; other.runs()) {
    other.supervisor().request_stop();
    (void)pass_until(30s, [&other] { return !other.runs(); });
  }
  for (int attempt = 0; attempt < 20 && problem.empty(); ++attempt) {
    if (!machine().runs()) {
      if (machine().end()) say(machine().host() + " ended: " + machine().end()->to_string());
      const bool fenced = machine().end() && machine().end()->code() == base::ErrorCode::kFenced;
      if (fenced && std::filesystem::exists(machines[1 - active]->path())) {
        touch_everybody([](Happened& each) { each.new_file = true; });
        active = 1 - active;
      }
      if (fenced && attempt > 4) {  // no file is new enough: begin with none
        say("a new state file");
        machine().kill();
        touch_everybody([](Happened& each) { each.fixed = each.grown = false; });
        for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(machine().path() + suffix);
      }
      if (const std::string why = machine().start(); !why.empty()) return fail("start", why);
    }
    machine().faulty().fail(0, state::testing::Failing::kOnce);
    const auto is_running = [this] { return machine().runs() && machine().status()->state == "running"; };
    if (pass_until(45s, [&] { return is_running() || !machine().runs(); })) pass(5s);
    if (is_running()) break;
  }
  if (!machine().runs()) return fail("convergence", "nobody may write any more");
  set_optional_marks();
  (void)call(machine(), machine().supervisor().set_desired("*/*/*", state::Desired::kRunning, "sim", false));
}

void World::print_state_file() {
  if (!machine().runs()) return;
  for (const state::EventRow& event : *machine().file().events(1000)) {
    fmt::print("event {:10.3f} {} {} {}: {}\n", static_cast<double>(event.at % 1'000'000'000'000) / 1e6, event.kind,
               event.object, event.actor, event.detail);
  }
  for (const state::GapRow& gap : *machine().file().gaps()) {
    fmt::print("gap {} [{}, {}) {} {}: {}\n", gap.key.to_string(), gap.up_begin, gap.up_end, gap.cause, gap.resolved_as,
               gap.detail);
  }
  for (const state::PartitionRow& row : *machine().file().partitions()) {
    fmt::print("row {} generation {} watermark {} down_end {} copied {} duplicates {}\n", row.key.to_string(),
               row.generation, row.watermark, row.down_end, row.counters.copied, row.counters.duplicates);
  }
}

bool World::has_caught_up(const PartitionStatus& status) {
  const Log* source = up.find(status.key.topic, status.key.partition);
  if (source == nullptr) return true;  // deleted upstream
  const std::uint64_t end = source->kept.empty() ? 0 : source->kept.back().offset + 1;
  return status.phase == Phase::kCaughtUp && status.acked >= end && status.committed == status.acked &&
         status.lag.messages == 0U;
}

void World::converge() {
  const base::TimePoint deadline = clock_.now() + kLagZeroWithin;
  std::string waiting;
  while (problem.empty()) {
    if (!machine().runs())
      return fail("convergence",
                  "the process ended: " + (machine().end() ? machine().end()->to_string() : std::string("killed")));
    const auto status = machine().status();
    waiting.clear();
    std::size_t wanted = 0;
    for (const auto& [key, each] : happened) wanted += up.find(key.topic, key.partition) != nullptr ? 1 : 0;
    std::size_t there = 0;
    for (const PartitionStatus& partition : status->partitions) {
      there += up.find(partition.key.topic, partition.key.partition) != nullptr ? 1 : 0;
      if (has_caught_up(partition)) continue;
      waiting = fmt::format("{} is {} ({}), acked {}, fault {}", partition.key.to_string(),
                            replicator::to_string(partition.phase), partition.waits_for, partition.acked,
                            partition.fault.kind);
      // An upstream that lost its history shows it by what it gives out next.
      if (dice.chance(50)) produce(partition.key, 1, 50);
    }
    if (there < wanted) waiting = fmt::format("{} of {} partitions are copied", there, wanted);
    if (waiting.empty()) break;
    if (clock_.now() >= deadline) return fail("convergence", waiting + " after " + status->state_detail);
    pass(500ms);
    resolve_faults();
  }
}

}  // namespace replicator::sim
