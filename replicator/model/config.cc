#include "replicator/model/config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "replicator/model/listen_address.h"
#include "replicator/model/rules.h"
#include "replicator/model/units.h"

namespace replicator {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class Problems {
 public:
  void add(std::string_view key, std::string_view sentence) { list_.push_back(fmt::format("{}: {}", key, sentence)); }

  void duration(std::string_view key, base::Duration value, base::Duration least, base::Duration most) {
    if (value < least) add(key, fmt::format("{} is below {}", format_duration(value), format_duration(least)));
    if (value > most) add(key, fmt::format("{} is above {}", format_duration(value), format_duration(most)));
  }
  void size(std::string_view key, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (value < least) add(key, fmt::format("{} is below {}", format_size(value), format_size(least)));
    if (value > most) add(key, fmt::format("{} is above {}", format_size(value), format_size(most)));
  }
  void number(std::string_view key, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (value < least || value > most) add(key, fmt::format("{} is not in {} to {}", value, least, most));
  }
  void one_of(std::string_view key, std::string_view value, std::initializer_list<std::string_view> allowed) {
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
    add(key, fmt::format("\"{}\" is not one of {}", value, fmt::join(allowed, ", ")));
  }
  template <class T>
  void failure(std::string_view key, const base::Result<T>& result) {
    if (!result) add(key, fmt::format("{} {}", result.error().object(), result.error().message()));
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

void check_url(Problems& problems, std::string_view side, const std::string& url) {
  const std::string key = fmt::format("link.{}_url", side);
  if (url.empty()) {
    problems.add(key, fmt::format("is missing; give --{} iggy://user:password@host:port, {}_url or {}_url_file", side,
                                  side, side));
  } else if (auto parsed = iggy::parse_connection_string(url); !parsed) {
    problems.add(key, parsed.error().message());
  }
}

void check_topology(Problems& problems, const Config& config) {
  if (config.topics.empty()) problems.add("link.topics", "is empty: nothing would be copied");
  for (const auto& glob : config.topics) problems.failure("link.topics", TopicPattern::compile(glob));
  for (const auto& glob : config.exclude) problems.failure("link.exclude", TopicPattern::compile(glob));
  for (const auto& rule : config.rename) problems.failure("link.rename", Rules::compile({}, {}, {rule}, "off"));
  problems.failure("link.marker", Rules::compile({}, {}, {}, config.marker));
  if (config.state_file.empty()) problems.add("link.state_file", "is empty");
}

void check_policies(Problems& problems, const Config& config) {
  for (const auto& [kind, exit] : config.policies) {
    const FaultInfo& fault = info(kind);
    std::vector<std::string_view> allowed = {"none"};
    for (const Exit possible : fault.exits) {
      if (possible != Exit::kRetry) allowed.push_back(to_string(possible));
    }
    if (std::ranges::find(allowed, to_string(exit)) == allowed.end()) {
      problems.add(fmt::format("policies.{}", fault.name),
                   fmt::format("\"{}\" is not one of {}", to_string(exit), fmt::join(allowed, ", ")));
    }
  }
}

void check_admin(Problems& problems, const Config& config) {
  const bool has_tls = !config.admin_tls_cert.empty() && !config.admin_tls_key.empty();
  if (config.admin_tls_cert.empty() != config.admin_tls_key.empty()) {
    problems.add(config.admin_tls_cert.empty() ? "admin.tls_cert" : "admin.tls_key",
                 "is missing; certificate and key go together");
  }
  if (auto address = parse_listen_address(config.admin_address); !address) {
    problems.add("admin.address", address.error().message());
  } else if (!address->is_loopback && !has_tls && config.admin_token_file.empty()) {
    problems.add("admin.address", fmt::format("{} is open to other machines; give admin.tls_cert and admin.tls_key, or "
                                              "admin.token_file, or listen on 127.0.0.1",
                                              config.admin_address));
  }
  if (config.metrics_address != "off") {
    if (auto address = parse_listen_address(config.metrics_address); !address) {
      problems.add("admin.metrics_address", address.error().message() + ", nor off");
    }
  }
}

}  // namespace

std::vector<std::string> validate(const Config& config) {
  constexpr std::uint64_t kKiB = 1024;
  constexpr std::uint64_t kMiB = 1024 * kKiB;
  constexpr std::uint64_t kTiB = 1024 * 1024 * kMiB;
  Problems problems;
  check_url(problems, "upstream", config.upstream_url);
  check_url(problems, "downstream", config.downstream_url);
  if (!config.upstream_url.empty() && config.upstream_url == config.downstream_url && config.rename.empty()) {
    problems.add("link.downstream_url",
                 "is the same as link.upstream_url; within one cluster topics need other names: link.rename");
  }
  check_topology(problems, config);

  problems.duration("copy.poll_interval", config.poll_interval, milliseconds(1), minutes(1));
  problems.duration("copy.commit_interval", config.commit_interval, milliseconds(1), seconds(10));
  problems.number("copy.commit_max_messages", config.commit_max_messages, 1, 10'000'000);
  problems.size("copy.batch_bytes", config.batch_bytes, 64 * kKiB, 32 * kMiB);
  if (config.budget_bytes / 4 < config.batch_bytes) {
    problems.add("copy.budget_bytes", fmt::format("{} is below four batches of {}", format_size(config.budget_bytes),
                                                  format_size(config.batch_bytes)));
  }
  problems.size("copy.budget_bytes", config.budget_bytes, 0, kTiB);
  problems.number("copy.uncommitted_batches_max", config.uncommitted_batches_max, 1, 10'000);

  if (config.provenance.size() > 255) problems.add("copy.provenance", "has more than 255 bytes");
  if (config.upstream_commit == UpstreamCommit::kAfterAck && config.upstream_commit_consumer.empty()) {
    problems.add("copy.upstream_commit_consumer", "is missing; name the consumer whose offset shows the position");
  }
  problems.one_of("copy.upstream_commit_as", config.upstream_commit_as, {"consumer", "external_group"});

  problems.duration("time.connect_timeout", config.connect_timeout, milliseconds(10), minutes(10));
  problems.duration("time.read_timeout", config.read_timeout, milliseconds(10), minutes(10));
  problems.duration("time.drain_timeout", config.drain_timeout, milliseconds(0), minutes(10));
  problems.duration("time.reconcile_interval", config.reconcile_interval, milliseconds(10), hours(1));
  problems.duration("time.confirm_for", config.confirm_for, milliseconds(10), minutes(10));
  problems.duration("time.retry_initial_backoff", config.retry_initial_backoff, milliseconds(1), minutes(10));
  problems.duration("time.retry_max_backoff", config.retry_max_backoff, milliseconds(1), hours(1));
  if (config.retry_max_backoff < config.retry_initial_backoff) {
    problems.add("time.retry_max_backoff",
                 fmt::format("{} is below time.retry_initial_backoff, {}", format_duration(config.retry_max_backoff),
                             format_duration(config.retry_initial_backoff)));
  }
  problems.number("time.retry_max_attempts", config.retry_max_attempts, 0, 1'000'000);
  problems.duration("time.stuck_after", config.stuck_after, milliseconds(100), hours(1));
  problems.duration("time.pin_alarm_after", config.pin_alarm_after, milliseconds(100), hours(24 * 365));
  problems.duration("time.fence_timeout", config.fence_timeout, milliseconds(100), minutes(10));

  for (const TopicRate& rate : config.throttle.topics) {
    problems.failure("throttle.topics", TopicPattern::compile(rate.glob));
  }
  check_policies(problems, config);
  for (const std::string& name : config.consumers) {
    if (name.empty() || name.size() > 255) problems.add("consumers.names", "a name has 1 to 255 bytes");
  }
  problems.duration("consumers.interval", config.consumer_interval, milliseconds(0), hours(1));

  check_admin(problems, config);
  problems.one_of("log.format", config.log_format, {"text", "json"});
  problems.one_of("log.level", config.log_level, {"trace", "debug", "info", "warn", "error"});
  return problems.take();
}

}  // namespace replicator
