// What changes while the link runs: throttles, and a configuration that is read again.
//
//   read ─▶ problems? ─▶ nothing changes       rules: bring back what we copy? ─▶ nothing changes
//        ─▶ event in the state file, durable ─▶ log level, budget, throttles at once; rules at the reconciler's next
//        turn
//
// A partition that the rules no longer want stops like one at the end of the link: what is in flight is acknowledged
// and committed. Its row stays; when the rules want it again, it goes on from there.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "replicator/link/supervisor.h"
#include "replicator/topics/upstream_topics.h"

namespace replicator {

namespace {

constexpr std::string_view kRunTime = "run time";

bool needs_no_restart(std::string_view key) {
  constexpr std::string_view kKeys[] = {"log.level",         "link.topics",   "link.exclude",
                                        "copy.budget_bytes", "throttle.link", "throttle.topics"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

std::string or_none(const std::string& value) { return value.empty() ? "none" : value; }

std::string topics_text(const ThrottleRules& rules) {
  std::vector<std::string> lines;
  for (const TopicRate& rate : rules.topics) lines.push_back(format_topic_rate(rate));
  return fmt::format("{}", fmt::join(lines, ", "));
}

}  // namespace

base::Task<base::Status> Supervisor::record(std::string kind, std::string object, std::string actor,
                                            std::string detail) {
  state::Transaction transaction;
  state::EventRow& event = transaction.events.emplace_back();
  event.at = clock_.wall_micros();
  event.kind = std::move(kind);
  event.object = std::move(object);
  event.actor = std::move(actor);
  event.detail = std::move(detail);
  auto applying = store_.apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  co_return base::ok();
}

// ---- Throttles ----

Throttle& Supervisor::throttle_of(const base::TopicName& topic) {
  auto& throttle = topic_throttles_[topic];
  if (!throttle) {
    throttle = std::make_unique<Throttle>(io_, clock_, throttle_rules_.of(topic), "topic " + topic.to_string());
  }
  return *throttle;
}

void Supervisor::apply(ThrottleRules rules) {
  throttle_rules_ = std::move(rules);
  if (link_throttle_.rate() != throttle_rules_.link) link_throttle_.set(throttle_rules_.link);
  for (auto& [topic, throttle] : topic_throttles_) {
    const Rate rate = throttle_rules_.of(topic);
    if (throttle->rate() != rate) throttle->set(rate);
  }
  show_effective("throttle.link", format_rate(throttle_rules_.link));
  show_effective("throttle.topics", topics_text(throttle_rules_));
}

// What is used differs from what is configured until the next reload or restart: status says so.
void Supervisor::show_effective(std::string_view key, std::string effective) {
  const auto shown = std::ranges::find(settings_, key, &Setting::key);
  const auto configured = std::ranges::find(configured_, key, &Setting::key);
  if (shown == settings_.end() || configured == configured_.end()) return;
  *shown = *configured;
  if (shown->effective == effective) return;
  shown->effective = std::move(effective);
  shown->source = kRunTime;
}

base::Task<base::Result<CommandOutcome>> Supervisor::do_set_throttle(std::string glob, Rate rate, std::string actor,
                                                                     bool dry_run) {
  auto taking = control_turn_.take();
  const auto held = co_await std::move(taking);
  ThrottleRules rules = throttle_rules_;
  CommandOutcome outcome;
  std::string before;
  if (glob.empty()) {
    before = format_rate(rules.link);
    rules.link = rate;
  } else {
    auto pattern = TopicPattern::compile(glob);
    CO_RETURN_IF_ERROR(pattern);
    const auto known = std::ranges::find(rules.topics, glob, &TopicRate::glob);
    if (known == rules.topics.end() && rate == Rate{}) {
      co_return base::Error(base::ErrorCode::kInvalidArgument, "throttle", glob, "there is no throttle of that glob",
                            "iggy-replicate throttle lists them");
    }
    before = known == rules.topics.end() ? "off" : format_rate(known->rate);
    if (known == rules.topics.end()) {
      rules.topics.insert(rules.topics.begin(), TopicRate{glob, rate});  // the newest word counts first
    } else if (rate == Rate{}) {
      rules.topics.erase(known);
    } else {
      known->rate = rate;
    }
    for (const auto& [topic, throttle] : topic_throttles_) {
      if (rules.of(topic) != throttle->rate()) outcome.affected.push_back(topic.to_string());
    }
  }
  const std::string what = glob.empty() ? "link" : glob;
  outcome.what = fmt::format("{}: {} -> {}, until the next restart or reload", what, before, format_rate(rate));
  if (dry_run) co_return outcome;
  auto recording = record("throttle", what, std::move(actor), fmt::format("{} -> {}", before, format_rate(rate)));
  auto recorded = co_await std::move(recording);
  CO_RETURN_IF_ERROR(recorded);
  apply(std::move(rules));
  spdlog::info("throttle of {}", outcome.what);
  publish();
  co_return outcome;
}

// ---- Reload ----

base::Result<ConfigReading> Supervisor::read_again() const {
  if (!surroundings_.read_configuration) {
    return base::Error(base::ErrorCode::kInvalidArgument, "reload", "", "there is no configuration to read again");
  }
  return surroundings_.read_configuration();
}

// Keys of `reading` that differ from what was configured, with their sentence.
std::map<std::string, std::string> Supervisor::changes(const ConfigReading& reading) const {
  std::map<std::string, std::string> changed;
  for (const Setting& next : reading.settings) {
    const auto now = std::ranges::find(configured_, next.key, &Setting::key);
    if (now == configured_.end() || now->effective == next.effective) continue;
    changed[next.key] = fmt::format("{}: {} -> {}", next.key, or_none(now->effective), or_none(next.effective));
  }
  // Only a password: both are shown alike.
  for (const auto& [key, now, next] :
       {std::tuple("link.upstream_url", &config_.upstream_url, &reading.config.upstream_url),
        std::tuple("link.downstream_url", &config_.downstream_url, &reading.config.downstream_url)}) {
    if (*now != *next && !changed.contains(key)) changed[key] = fmt::format("{}: other credentials", key);
  }
  return changed;
}

base::Task<base::Result<CommandOutcome>> Supervisor::do_reload(ConfigReading reading, std::string actor, bool dry_run) {
  auto taking = control_turn_.take();
  const auto held = co_await std::move(taking);
  if (!reading.problems.empty()) {
    const std::string why = fmt::format("{}", fmt::join(reading.problems, "; "));
    spdlog::error("reload: nothing was changed: {}", why);
    if (!dry_run) {
      auto recording = record("reload_refused", "", std::move(actor), why);
      (void)co_await std::move(recording);
    }
    co_return base::Error(base::ErrorCode::kInvalidArgument, "reload", "", why, "nothing was changed");
  }
  std::map<std::string, std::string> changed = changes(reading);
  // The running batch size counts: a new one needs a restart.
  const bool too_small = changed.contains("copy.budget_bytes") && reading.config.budget_bytes / 4 < config_.batch_bytes;
  std::vector<std::string> now, later;
  CommandOutcome outcome;
  for (const auto& [key, sentence] : changed) {
    const bool live = needs_no_restart(key) && !(too_small && key == "copy.budget_bytes");
    (live ? now : later).push_back(sentence);
    if (live) outcome.affected.push_back(key);
  }
  const bool drops_throttle = throttle_rules_ != reading.config.throttle && !changed.contains("throttle.link") &&
                              !changed.contains("throttle.topics");
  if (drops_throttle) now.emplace_back("throttles set at run time are dropped");
  std::string text = now.empty() ? "nothing to change" : fmt::format("{}", fmt::join(now, "; "));
  if (!later.empty()) text += fmt::format("; needs a restart, and stays as it is: {}", fmt::join(later, "; "));
  outcome.what = text;

  std::optional<Rules> rules;
  if (changed.contains("link.topics") || changed.contains("link.exclude")) {
    if (!reconciled_) {
      co_return base::Error(base::ErrorCode::kNotAccepted, "reload", "", "the link is still starting",
                            "nothing was changed; try again");
    }
    auto compiled = Rules::compile(reading.config.topics, reading.config.exclude, config_.rename, config_.marker);
    CO_RETURN_IF_ERROR(compiled);
    auto checking = check_new_rules(*compiled);
    auto allowed = co_await std::move(checking);
    CO_RETURN_IF_ERROR(allowed);
    rules = std::move(*compiled);
  }
  if (dry_run) co_return outcome;
  auto recording = record("reload", "", std::move(actor), text);
  auto recorded = co_await std::move(recording);
  CO_RETURN_IF_ERROR(recorded);

  // From here on nothing fails.
  for (Setting& setting : configured_) {
    if (std::ranges::find(outcome.affected, setting.key) == outcome.affected.end()) continue;
    setting = *std::ranges::find(reading.settings, setting.key, &Setting::key);
  }
  settings_ = configured_;
  config_.topics = reading.config.topics;
  config_.exclude = reading.config.exclude;
  config_.log_level = reading.config.log_level;
  spdlog::set_level(spdlog::level::from_str(config_.log_level));
  if (!too_small) {
    config_.budget_bytes = reading.config.budget_bytes;
    budget_.set_total(config_.budget_bytes);
  }
  config_.throttle = reading.config.throttle;
  apply(config_.throttle);
  if (rules) {
    new_rules_ = std::move(rules);
    reconcile_now_.set();
  }
  spdlog::info("reload: {}", text);
  publish();
  co_return outcome;
}

// Rules that another link would bring back to us are refused, as they are at the start.
base::Task<base::Status> Supervisor::check_new_rules(const Rules& rules) {
  auto listing = list_upstream_topics(*upstream_.client, rules);
  auto listed = co_await std::move(listing);
  CO_RETURN_IF_ERROR(listed);
  if (!rules.marker()) co_return base::ok();
  auto reading = read_links(*upstream_.client, *rules.marker());
  auto links = co_await std::move(reading);
  if (!links) {
    const base::ErrorCode code = links.error().code();
    if (code == base::ErrorCode::kPermission || code == base::ErrorCode::kNotFound) co_return base::ok();
    co_return std::move(links).error();
  }
  if (!links->present) co_return base::ok();
  LinkInView view = view_;
  view.rules = &rules;
  view.sources.clear();
  for (const auto& [name, topic] : listed->wanted) view.sources.push_back(name);
  const std::vector<std::string> loops = reverse_links(links->links, view, clock_.wall_micros());
  if (loops.empty()) co_return base::ok();
  co_return base::Error(base::ErrorCode::kInvalidArgument, "reload", "link.topics",
                        fmt::format("{}", fmt::join(loops, "; ")), "nothing was changed; exclude those topics");
}

// Between two runs of the reconciler, which reads the rules.
void Supervisor::take_new_rules() {
  if (!new_rules_) return;
  *rules_ = *std::move(new_rules_);
  new_rules_.reset();
  if (marker_) marker_->set_topics(config_.topics, config_.exclude);
  for (auto& [key, slot] : slots_) {
    if (slot.leaving || rules_->target(key.topic)) continue;
    slot.leaving = true;
    slot.pipeline->stop();
    background_.spawn(retire(key));
  }
}

base::Task<void> Supervisor::run_partition(Slot& slot) {
  auto running = slot.pipeline->run();
  co_await std::move(running);
  slot.ended = true;
  partition_ended_.pulse();
}

// What others still hold of the slot stays valid: it is set aside, not destroyed.
base::Task<void> Supervisor::retire(base::PartitionKey key) {
  const auto slot = slots_.find(key);
  while (!slot->second.ended) {
    auto waiting = partition_ended_.wait();
    co_await std::move(waiting);
  }
  while (!stop_.is_set()) {
    auto reading = store_.partition(key);
    auto row = co_await std::move(reading);
    if (row) {
      rows_.erase(key);
      if (*row) rows_.emplace(key, **row);
      break;
    }
    auto wait = base::wait_until(clock_, stop_, clock_.now() + std::chrono::seconds(1));
    co_await std::move(wait);
  }
  if (stop_.is_set() || state_ == "draining") co_return;  // others walk over the slots now
  spdlog::info("[{}] left out by the rules from here on; committed up to {}", key.to_string(),
               slot->second.pipeline->status().committed);
  samples_.erase(key);
  left_.push_back(slots_.extract(slot));
  reconcile_now_.set();
}

base::Task<void> Supervisor::reload_for(std::string actor) {
  auto reading = read_again();
  if (!reading) {
    spdlog::error("{}", reading.error().to_string());
    co_return;
  }
  auto reloading = do_reload(*std::move(reading), std::move(actor), false);
  auto reloaded = co_await std::move(reloading);
  if (!reloaded) spdlog::error("{}", reloaded.error().to_string());
}

void Supervisor::request_reload(std::string actor) {
  asio::post(io_, [this, actor = std::move(actor)] { commands_.spawn(reload_for(actor)); });
}

}  // namespace replicator
