#include "cli/config_keys.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include "replicator/model/fault.h"
#include "replicator/model/units.h"

namespace cli {
namespace {

using replicator::Config;
using Problem = std::optional<std::string>;
using Values = std::vector<std::string>;

template <class T>
Problem parse_number(const std::string& text, T& out) {
  const char* const end = text.data() + text.size();
  const auto [parsed, failure] = std::from_chars(text.data(), end, out);
  if (text.empty() || failure != std::errc() || parsed != end) {
    return fmt::format("\"{}\" is not a whole number in range", text);
  }
  return std::nullopt;
}

ConfigKey text(std::string key, std::string flag, std::string Config::* member, std::string help) {
  return {.key = std::move(key),
          .flag = std::move(flag),
          .help = std::move(help),
          .set = [member](Config& config, const Values& values) -> Problem {
            config.*member = values.front();
            return std::nullopt;
          },
          .get = [member](const Config& config) { return Values{config.*member}; }};
}

ConfigKey secret(std::string key, std::string flag, std::string Config::* member, std::string help) {
  ConfigKey made = text(std::move(key), std::move(flag), member, std::move(help));
  made.is_secret = true;
  return made;
}

// Takes the value of another key from a file; what it holds is never a value of its own.
ConfigKey file_of(std::string key, std::string flag, std::string help) {
  return {.key = std::move(key),
          .flag = std::move(flag),
          .help = std::move(help),
          .set = [](Config&, const Values&) -> Problem { return std::nullopt; },
          .get = [](const Config&) { return Values{""}; }};
}

ConfigKey list(std::string key, std::string flag, std::vector<std::string> Config::* member, std::string help) {
  return {.key = std::move(key),
          .flag = std::move(flag),
          .help = std::move(help),
          .is_list = true,
          .set = [member](Config& config, const Values& values) -> Problem {
            config.*member = values;
            return std::nullopt;
          },
          .get = [member](const Config& config) { return config.*member; }};
}

ConfigKey duration(std::string key, std::string flag, base::Duration Config::* member, std::string help) {
  return {.key = std::move(key),
          .flag = std::move(flag),
          .help = std::move(help),
          .set = [member](Config& config, const Values& values) -> Problem {
            auto parsed = replicator::parse_duration(values.front());
            if (!parsed) return parsed.error().message();
            config.*member = *parsed;
            return std::nullopt;
          },
          .get = [member](const Config& config) { return Values{replicator::format_duration(config.*member)}; }};
}

ConfigKey size(std::string key, std::string flag, std::uint64_t Config::* member, std::string help) {
  return {.key = std::move(key),
          .flag = std::move(flag),
          .help = std::move(help),
          .set = [member](Config& config, const Values& values) -> Problem {
            auto parsed = replicator::parse_size(values.front());
            if (!parsed) return parsed.error().message();
            config.*member = *parsed;
            return std::nullopt;
          },
          .get = [member](const Config& config) { return Values{replicator::format_size(config.*member)}; }};
}

template <class T>
ConfigKey number(std::string key, std::string flag, T Config::* member, std::string help) {
  return {
      .key = std::move(key),
      .flag = std::move(flag),
      .help = std::move(help),
      .set = [member](Config& config, const Values& values) { return parse_number(values.front(), config.*member); },
      .get = [member](const Config& config) { return Values{std::to_string(config.*member)}; }};
}

// "earliest", "latest", "timestamp:2026-01-31T12:00:00Z", "offset:1200".
Problem set_start(Config& config, const Values& values) {
  const std::string& text = values.front();
  replicator::StartPolicy start;
  if (text == "earliest") {
    start.start = replicator::Start::kEarliest;
  } else if (text == "latest") {
    start.start = replicator::Start::kLatest;
  } else if (text.starts_with("offset:")) {
    start.start = replicator::Start::kOffset;
    if (auto problem = parse_number(text.substr(7), start.value)) return problem;
  } else if (text.starts_with("timestamp:")) {
    start.start = replicator::Start::kTimestamp;
    std::tm utc{};
    const char* const end = strptime(text.c_str() + 10, "%Y-%m-%dT%H:%M:%SZ", &utc);
    const std::time_t seconds = end != nullptr && *end == '\0' ? timegm(&utc) : -1;
    if (seconds < 0) return fmt::format("\"{}\" is not a time such as 2026-01-31T12:00:00Z", text.substr(10));
    start.value = static_cast<std::uint64_t>(seconds) * 1'000'000;
  } else {
    return fmt::format("\"{}\" is not one of earliest, latest, timestamp:TIME, offset:NUMBER", text);
  }
  config.start = start;
  return std::nullopt;
}

Values get_start(const Config& config) {
  switch (config.start.start) {
    case replicator::Start::kEarliest:
      return {"earliest"};
    case replicator::Start::kLatest:
      return {"latest"};
    case replicator::Start::kOffset:
      return {fmt::format("offset:{}", config.start.value)};
    case replicator::Start::kTimestamp: {
      const auto seconds = static_cast<std::time_t>(config.start.value / 1'000'000);
      std::tm utc{};
      gmtime_r(&seconds, &utc);
      char text[32];
      const std::size_t length = std::strftime(text, sizeof(text), "timestamp:%Y-%m-%dT%H:%M:%SZ", &utc);
      return {std::string(text, length)};
    }
  }
  return {};
}

Problem set_rename(Config& config, const Values& values) {
  std::vector<replicator::RenameRule> rules;
  for (const std::string& text : values) {
    const std::size_t arrow = text.find("->");
    if (arrow == std::string::npos) return fmt::format("\"{}\" is not of the form \"orders/* -> dr-orders/*\"", text);
    std::string from = text.substr(0, arrow);
    std::string to = text.substr(arrow + 2);
    while (from.ends_with(' ')) from.pop_back();
    to.erase(0, std::min(to.find_first_not_of(' '), to.size()));
    rules.push_back({std::move(from), std::move(to)});
  }
  config.rename = std::move(rules);
  return std::nullopt;
}

Values get_rename(const Config& config) {
  Values values;
  for (const auto& rule : config.rename) values.push_back(fmt::format("{} -> {}", rule.from, rule.to));
  return values;
}

Problem set_retention(Config& config, const Values& values) {
  if (values.front() == "unlimited") {
    config.retention = replicator::RetentionCopy::kUnlimited;
  } else if (values.front() == "copy") {
    config.retention = replicator::RetentionCopy::kCopy;
  } else {
    return fmt::format("\"{}\" is not one of unlimited, copy", values.front());
  }
  return std::nullopt;
}

Problem set_ack(Config& config, const Values& values) {
  const auto ack = replicator::ack_from_name(values.front());
  if (!ack) return fmt::format("\"{}\" is not one of memory, flush, persisted", values.front());
  config.ack = *ack;
  return std::nullopt;
}

Problem set_upstream_commit(Config& config, const Values& values) {
  if (values.front() != "never" && values.front() != "after_ack") {
    return fmt::format("\"{}\" is not one of never, after_ack", values.front());
  }
  const bool never = values.front() == "never";
  config.upstream_commit = never ? replicator::UpstreamCommit::kNever : replicator::UpstreamCommit::kAfterAck;
  return std::nullopt;
}

ConfigKey boolean(std::string key, std::string flag, bool Config::* member, std::string help) {
  return {.key = std::move(key),
          .flag = std::move(flag),
          .help = std::move(help),
          .set = [member](Config& config, const Values& values) -> Problem {
            if (values.front() != "true" && values.front() != "false") {
              return fmt::format("\"{}\" is not one of true, false", values.front());
            }
            config.*member = values.front() == "true";
            return std::nullopt;
          },
          .get = [member](const Config& config) { return Values{config.*member ? "true" : "false"}; }};
}

// "none", or one of the fault's exits (validate() says which).
ConfigKey policy(replicator::FaultKind kind) {
  const std::string name(replicator::info(kind).name);
  std::string flag = "--policy-" + name;
  std::ranges::replace(flag, '_', '-');
  std::string exits;
  for (const replicator::Exit exit : replicator::info(kind).exits) {
    if (exit != replicator::Exit::kRetry) exits += fmt::format(", {}", to_string(exit));
  }
  return {.key = "policies." + name,
          .flag = std::move(flag),
          .help = "Exit of that fault without asking: none" + exits,
          .set = [kind](Config& config, const Values& values) -> Problem {
            config.policies.erase(kind);
            if (values.front() == "none") return std::nullopt;
            const auto exit = replicator::exit_from_name(values.front());
            if (!exit) return fmt::format("\"{}\" is no exit of any fault, nor none", values.front());
            config.policies[kind] = *exit;
            return std::nullopt;
          },
          .get =
              [kind](const Config& config) {
                const auto found = config.policies.find(kind);
                return Values{std::string(found == config.policies.end() ? "none" : to_string(found->second))};
              }};
}

Problem set_link_throttle(Config& config, const Values& values) {
  auto rate = replicator::parse_rate(values.front());
  if (!rate) return rate.error().message();
  config.throttle.link = *rate;
  return std::nullopt;
}

Problem set_topic_throttles(Config& config, const Values& values) {
  config.throttle.topics.clear();
  for (const std::string& text : values) {
    auto rate = replicator::parse_topic_rate(text);
    if (!rate) return rate.error().message();
    config.throttle.topics.push_back(*std::move(rate));
  }
  return std::nullopt;
}

Values get_topic_throttles(const Config& config) {
  Values values;
  for (const replicator::TopicRate& rate : config.throttle.topics) values.push_back(format_topic_rate(rate));
  return values;
}

Problem set_invalid_records(Config& config, const Values& values) {
  if (values.front() != "stop" && values.front() != "skip") {
    return fmt::format("\"{}\" is not one of stop, skip", values.front());
  }
  config.skip_invalid_records = values.front() == "skip";
  return std::nullopt;
}

std::vector<ConfigKey> make_keys() {
  std::vector<ConfigKey> keys = {
      secret("link.upstream_url", "--upstream", &Config::upstream_url,
             "Cluster to copy from: iggy://user:password@host:port[,host:port]"),
      file_of("link.upstream_url_file", "--upstream-file", "File whose first line is that URL"),
      secret("link.downstream_url", "--downstream", &Config::downstream_url, "Cluster to copy to"),
      file_of("link.downstream_url_file", "--downstream-file", "File whose first line is that URL"),
      list("link.topics", "--topics", &Config::topics, "Globs over stream/topic: what to copy"),
      list("link.exclude", "--exclude", &Config::exclude, "Globs over stream/topic: what to leave out of that"),
      {.key = "link.rename",
       .flag = "--rename",
       .help = "\"orders/* -> dr-orders/*\": names downstream",
       .is_list = true,
       .set = set_rename,
       .get = get_rename},
      {.key = "link.start",
       .flag = "--start",
       .help = "Where new partitions begin: earliest, latest, timestamp:TIME, offset:N",
       .set = set_start,
       .get = get_start},
      {.key = "link.retention",
       .flag = "--retention",
       .help = "Of topics that are created: unlimited, or copy the upstream's",
       .set = set_retention,
       .get =
           [](const Config& config) {
             return Values{config.retention == replicator::RetentionCopy::kCopy ? "copy" : "unlimited"};
           }},
      boolean("link.create_topics", "--create-topics", &Config::create_topics,
              "true or false: create what is missing downstream"),
      text("link.marker", "--marker", &Config::marker, "stream/topic of the link's record downstream, or off"),
      text("link.state_file", "--state", &Config::state_file, "SQLite file that holds the positions"),

      duration("copy.poll_interval", "--poll-interval", &Config::poll_interval,
               "How often a caught-up topic is looked at, 1ms to 1m"),
      duration("copy.commit_interval", "--commit-interval", &Config::commit_interval,
               "Longest time between ack and commit, 1ms to 10s"),
      number("copy.commit_max_messages", "--commit-max-messages", &Config::commit_max_messages,
             "... and most messages between them, 1 to 10000000"),
      size("copy.batch_bytes", "--batch-bytes", &Config::batch_bytes, "Target of one send, 64KiB to 32MiB"),
      size("copy.budget_bytes", "--budget-bytes", &Config::budget_bytes,
           "Memory for polled and not yet acked messages, 4 batches to 1024GiB"),
      number("copy.uncommitted_batches_max", "--uncommitted-batches-max", &Config::uncommitted_batches_max,
             "Sends per partition while the state file can't be written, 1 to 10000"),
      {.key = "copy.ack",
       .flag = "--ack",
       .help = "What a committed message outlives downstream: memory, flush (0.8), persisted (0.9)",
       .set = set_ack,
       .get = [](const Config& config) { return Values{std::string(to_string(config.ack))}; }},
      text("copy.provenance", "--provenance", &Config::provenance,
           "Name of the upstream cluster, stamped with stream, topic, partition and offset on each message"),
      {.key = "copy.upstream_commit",
       .flag = "--upstream-commit",
       .help = "never or after_ack: store the position upstream too, for others to see",
       .set = set_upstream_commit,
       .get =
           [](const Config& config) {
             return Values{config.upstream_commit == replicator::UpstreamCommit::kNever ? "never" : "after_ack"};
           }},
      text("copy.upstream_commit_consumer", "--upstream-commit-consumer", &Config::upstream_commit_consumer,
           "Name of the consumer under which it is stored"),
      text("copy.upstream_commit_as", "--upstream-commit-as", &Config::upstream_commit_as,
           "consumer, or external_group where the upstream has them (0.10 on)"),
      {.key = "copy.invalid_records",
       .flag = "--invalid-records",
       .help = "What the target can never take: stop the partition, or skip the message",
       .set = set_invalid_records,
       .get = [](const Config& config) { return Values{config.skip_invalid_records ? "skip" : "stop"}; }},
      text("copy.invalid_records_export", "--invalid-records-export", &Config::invalid_records_export,
           "Folder that keeps the bytes of skipped messages"),

      {.key = "throttle.link",
       .flag = "--throttle-link",
       .help = "How fast all topics together may be read: 50MiB/s, 5000msg/s, both, or off",
       .set = set_link_throttle,
       .get = [](const Config& config) { return Values{format_rate(config.throttle.link)}; }},
      {.key = "throttle.topics",
       .flag = "--throttle-topics",
       .help = "\"orders/* 10MiB/s 500msg/s\": each topic that matches, by itself; the first match counts",
       .is_list = true,
       .set = set_topic_throttles,
       .get = get_topic_throttles},

      duration("time.connect_timeout", "--connect-timeout", &Config::connect_timeout, "10ms to 10m"),
      duration("time.read_timeout", "--read-timeout", &Config::read_timeout, "10ms to 10m"),
      duration("time.drain_timeout", "--drain-timeout", &Config::drain_timeout,
               "How long a stop waits for acknowledgments, 0 to 10m"),
      duration("time.reconcile_interval", "--reconcile-interval", &Config::reconcile_interval,
               "How often topics are compared, 10ms to 1h"),
      duration("time.confirm_for", "--confirm-for", &Config::confirm_for,
               "How long something must be absent to be believed gone, 10ms to 10m"),
      duration("time.retry_initial_backoff", "--retry-initial-backoff", &Config::retry_initial_backoff,
               "First wait after an error, 1ms to 10m"),
      duration("time.retry_max_backoff", "--retry-max-backoff", &Config::retry_max_backoff, "Longest wait, 1ms to 1h"),
      number("time.retry_max_attempts", "--retry-max-attempts", &Config::retry_max_attempts,
             "Retries in a row without progress, then the partition is a fault; 0 = without end"),
      duration("time.stuck_after", "--stuck-after", &Config::stuck_after,
               "Work and no progress for so long is shown as stuck, 100ms to 1h"),
      duration("time.pin_alarm_after", "--pin-alarm-after", &Config::pin_alarm_after,
               "A stored upstream offset that stands so long below new messages is an alarm, 100ms to 365d"),
      duration("time.fence_timeout", "--fence-timeout", &Config::fence_timeout,
               "How long a dead connection may stay in the server's list, 100ms to 10m"),

      list("consumers.names", "--consumers", &Config::consumers,
           "Consumers whose stored offsets go along; the server lists none"),
      boolean("consumers.groups", "--consumer-groups", &Config::consumer_groups,
              "true or false: stored offsets of all groups go along"),
      list("consumers.external_groups", "--external-groups", &Config::external_groups,
           "External groups; refused below server 0.10"),
      duration("consumers.interval", "--consumer-interval", &Config::consumer_interval,
               "How often stored offsets are moved, 0s to 1h; 0s = only when asked"),

      text("admin.address", "--admin-address", &Config::admin_address,
           "gRPC, host:port, port 0 = any; beyond loopback only with TLS or a token"),
      text("admin.tls_cert", "--admin-tls-cert", &Config::admin_tls_cert, "PEM file"),
      text("admin.tls_key", "--admin-tls-key", &Config::admin_tls_key, "PEM file"),
      text("admin.token_file", "--admin-token-file", &Config::admin_token_file,
           "File whose first line callers must present as bearer token"),
      text("admin.metrics_address", "--metrics-address", &Config::metrics_address,
           "The status page, /metrics, /healthz and /readyz, host:port or off"),

      text("log.format", "--log-format", &Config::log_format, "text or json"),
      text("log.level", "--log-level", &Config::log_level, "trace, debug, info, warn, error"),
  };
  const auto time = std::ranges::find_if(keys, [](const ConfigKey& key) { return key.key.starts_with("time."); });
  std::vector<ConfigKey> policies;
  for (int i = 0; i < replicator::kFaultKindCount; ++i) {
    const auto kind = static_cast<replicator::FaultKind>(i);
    const auto exits = replicator::info(kind).exits;
    if (std::ranges::any_of(exits, [](replicator::Exit exit) { return exit != replicator::Exit::kRetry; })) {
      policies.push_back(policy(kind));
    }
  }
  keys.insert(time, std::make_move_iterator(policies.begin()), std::make_move_iterator(policies.end()));
  return keys;
}

}  // namespace

std::string ConfigKey::variable() const {
  std::string name = "IGGY_REPLICATE_" + key;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '.' ? '_' : static_cast<char>(std::toupper(c)); });
  return name;
}

std::span<const ConfigKey> config_keys() {
  static const std::vector<ConfigKey> keys = make_keys();
  return keys;
}

const ConfigKey* find_config_key(std::string_view key) {
  const auto keys = config_keys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const ConfigKey& known) { return known.key == key; });
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace cli
