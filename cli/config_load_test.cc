// Goal: every setting can be given in every way, the strongest source wins, and whatever is wrong is said at once, with
// its key and without secrets. Method: walk the table of keys; then examples.
#include "cli/config_load.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <toml++/toml.h>

#include "cli/config_keys.h"

namespace cli {
namespace {

using replicator::Config;

constexpr const char* kUpstream = "iggy://ann:topsecret@a:8090";
constexpr const char* kDownstream = "iggy://bob:othersecret@b:8090";

class ConfigLoad : public testing::Test {
 protected:
  ConfigLoad() {
    char name[] = "/tmp/config_load_test.XXXXXX";
    folder_ = mkdtemp(name);
    sources_.flags["link.upstream_url"] = {kUpstream};
    sources_.flags["link.downstream_url"] = {kDownstream};
  }
  ~ConfigLoad() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static bool has(const LoadedConfig& loaded, const std::string& part) {
    return std::any_of(loaded.problems.begin(), loaded.problems.end(),
                       [&](const std::string& problem) { return problem.find(part) != std::string::npos; });
  }
  static std::string all(const LoadedConfig& loaded) { return fmt::format("{}", fmt::join(loaded.problems, "\n")); }
  static replicator::Setting setting(const LoadedConfig& loaded, const std::string& key) {
    for (const auto& entry : loaded.settings) {
      if (entry.key == key) return entry;
    }
    return {};
  }

  std::filesystem::path folder_;
  ConfigSources sources_;
};

TEST(ConfigKeys, EveryKeyPrintsWhatItReads) {
  std::set<std::string> names;
  std::set<std::string> flags;
  for (const ConfigKey& key : config_keys()) {
    EXPECT_TRUE(names.insert(key.key).second) << key.key;
    EXPECT_TRUE(flags.insert(key.flag).second) << key.flag;
    EXPECT_FALSE(key.help.empty()) << key.key;
    Config config;
    const auto value = key.get(config);
    EXPECT_EQ(key.set(config, value), std::nullopt) << key.key;
    EXPECT_EQ(key.get(config), value) << key.key;
  }
  EXPECT_EQ(find_config_key("copy.batch_bytes")->variable(), "IGGY_REPLICATE_COPY_BATCH_BYTES");
  EXPECT_EQ(find_config_key("copy.batch"), nullptr);
}

// A new field of Config does not compile here: give it a key, or say below why it has none.
TEST(ConfigKeys, EveryFieldHasAKey) {
  Config config;
  auto& [upstream_url, downstream_url, topics, exclude, rename, start, retention, create_topics, marker, state_file,
         poll_interval, commit_interval, commit_max_messages, batch_bytes, budget_bytes, uncommitted_batches_max, ack,
         provenance, upstream_commit, upstream_commit_consumer, upstream_commit_as, skip_invalid_records,
         invalid_records_export, policies, throttle, connect_timeout, read_timeout, drain_timeout, reconcile_interval,
         confirm_for, retry_initial_backoff, retry_max_backoff, retry_max_attempts, stuck_after, pin_alarm_after,
         fence_timeout, consumers, consumer_groups, external_groups, consumer_interval, admin_address, admin_tls_cert,
         admin_tls_key, admin_token_file, metrics_address, log_format, log_level, until_caught_up] = config;
  constexpr std::size_t kFields = 48;
  constexpr std::size_t kFlagOnly = 1;   // until_caught_up: belongs to one run
  constexpr std::size_t kFileKeys = 2;   // upstream_url_file, downstream_url_file: no fields
  constexpr std::size_t kThrottles = 2;  // one field, two keys
  constexpr std::size_t kPolicies = 10;  // one field, a key for each fault that has an exit besides retry
  EXPECT_EQ(config_keys().size(), kFields - kFlagOnly + kFileKeys + kPolicies - 1 + kThrottles - 1);
  until_caught_up = true;

  // Each key moves exactly the field that it names: after setting every key to another value, no field is at its
  // default.
  const Config defaults;
  const std::map<std::string, std::vector<std::string>> others = {
      {"link.upstream_url", {kUpstream}},
      {"link.downstream_url", {kDownstream}},
      {"link.topics", {"a/*", "b/*"}},
      {"link.exclude", {"a/x"}},
      {"link.rename", {"a/* -> c/*"}},
      {"link.start", {"timestamp:2026-01-31T12:00:00Z"}},
      {"link.retention", {"copy"}},
      {"link.create_topics", {"false"}},
      {"link.marker", {"off"}},
      {"link.state_file", {"other.db"}},
      {"copy.commit_max_messages", {"7"}},
      {"copy.batch_bytes", {"1MiB"}},
      {"copy.budget_bytes", {"64MiB"}},
      {"copy.uncommitted_batches_max", {"7"}},
      {"copy.ack", {"flush"}},
      {"copy.provenance", {"east"}},
      {"copy.upstream_commit", {"after_ack"}},
      {"copy.upstream_commit_consumer", {"watcher"}},
      {"copy.upstream_commit_as", {"external_group"}},
      {"copy.invalid_records", {"skip"}},
      {"copy.invalid_records_export", {"left-out"}},
      {"policies.upstream_rewound", {"restart"}},
      {"policies.upstream_recreated", {"restart"}},
      {"policies.retention", {"accept"}},
      {"policies.unknown_gap", {"accept"}},
      {"policies.upstream_unreadable", {"accept"}},
      {"policies.downstream_recreated", {"recopy"}},
      {"policies.downstream_not_empty", {"adopt"}},
      {"policies.foreign_writer", {"accept"}},
      {"policies.unverifiable_tail", {"adopt"}},
      {"policies.invalid_record", {"skip"}},
      {"throttle.link", {"1MiB/s 7msg/s"}},
      {"throttle.topics", {"a/* 2MiB/s", "b/* 9msg/s"}},
      {"time.retry_max_attempts", {"9"}},
      {"consumers.names", {"billing"}},
      {"consumers.groups", {"false"}},
      {"consumers.external_groups", {"audit"}},
      {"admin.address", {"127.0.0.1:1"}},
      {"admin.tls_cert", {"cert.pem"}},
      {"admin.tls_key", {"key.pem"}},
      {"admin.token_file", {"token"}},
      {"admin.metrics_address", {"off"}},
      {"log.format", {"json"}},
      {"log.level", {"debug"}},
  };
  for (const ConfigKey& key : config_keys()) {
    if (key.key.ends_with("_url_file")) continue;
    const auto other = others.find(key.key);
    const std::vector<std::string> value = other == others.end() ? std::vector<std::string>{"177ms"} : other->second;
    EXPECT_EQ(key.set(config, value), std::nullopt) << key.key;
    EXPECT_EQ(key.get(config), value) << key.key;
    EXPECT_NE(key.get(config), key.get(defaults)) << key.key;
  }
  EXPECT_EQ(replicator::validate(config), std::vector<std::string>());
}

// config/iggy-replicate.toml and the code, both ways.
TEST(ConfigFile, ListsEveryKeyAtItsDefaultWithAComment) {
  const std::string path = "config/iggy-replicate.toml";
  ConfigSources sources;
  sources.file = path;
  const LoadedConfig loaded = load_config(sources);
  for (const std::string& problem : loaded.problems) {
    EXPECT_TRUE(problem.starts_with("link.upstream_url: is missing") ||
                problem.starts_with("link.downstream_url: is missing"))
        << problem;
  }
  const Config defaults;
  std::set<std::string> in_file;
  for (const auto& setting : loaded.settings) {
    EXPECT_EQ(setting.source, "file") << setting.key << " is not in " << path;
    EXPECT_EQ(setting.effective, fmt::format("{}", fmt::join(find_config_key(setting.key)->get(defaults), ", ")))
        << setting.key;
    // Written as the program would print it, so that nobody has to compare "0.1s" with "100ms".
    EXPECT_EQ(setting.set, setting.effective) << setting.key;
  }

  std::ifstream file(path);
  std::vector<std::string> order;
  std::string section;
  std::string before;
  for (std::string line; std::getline(file, line); before = line) {
    if (line.starts_with('[')) section = line.substr(1, line.find(']') - 1);
    const std::size_t equals = line.find(" = ");
    if (line.empty() || line.starts_with('#') || line.starts_with('[') || equals == std::string::npos) continue;
    EXPECT_TRUE(before.starts_with("# ")) << line;
    order.push_back(section + "." + line.substr(0, equals));
  }
  std::vector<std::string> keys;
  for (const ConfigKey& key : config_keys()) keys.push_back(key.key);
  EXPECT_EQ(order, keys);
}

TEST_F(ConfigLoad, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  sources_.file = file("link.toml",
                       "[copy]\npoll_interval = \"1s\"\nbatch_bytes = \"1MiB\"\ncommit_interval = \"7ms\"\n"
                       "[link]\ntopics = [\"a/*\", \"b/*\"]\n");
  sources_.environment = {{"IGGY_REPLICATE_COPY_POLL_INTERVAL", "2s"},
                          {"IGGY_REPLICATE_COPY_BATCH_BYTES", "2MiB"},
                          {"IGGY_REPLICATE_LINK_EXCLUDE", "a/x, a/y"},
                          {"IGGY_REPLICATE_ADMIN", "127.0.0.1:1"},
                          {"HOME", "/root"}};
  sources_.flags["copy.poll_interval"] = {"3s"};
  const LoadedConfig loaded = load_config(sources_);
  EXPECT_TRUE(loaded.problems.empty()) << all(loaded);
  EXPECT_EQ(loaded.config.poll_interval, std::chrono::seconds(3));
  EXPECT_EQ(loaded.config.batch_bytes, 2ULL << 20);
  EXPECT_EQ(loaded.config.commit_interval, std::chrono::milliseconds(7));
  EXPECT_EQ(loaded.config.topics, (std::vector<std::string>{"a/*", "b/*"}));
  EXPECT_EQ(loaded.config.exclude, (std::vector<std::string>{"a/x", "a/y"}));
  EXPECT_EQ(setting(loaded, "copy.poll_interval").source, "flag");
  EXPECT_EQ(setting(loaded, "copy.batch_bytes").source, "environment");
  EXPECT_EQ(setting(loaded, "copy.commit_interval").source, "file");
  EXPECT_EQ(setting(loaded, "copy.budget_bytes").source, "default");
  EXPECT_EQ(setting(loaded, "copy.budget_bytes").effective, "256MiB");
}

TEST_F(ConfigLoad, SettingsShowWhatWasWrittenAndWhatIsUsed) {
  sources_.flags["copy.batch_bytes"] = {"1048576"};
  const LoadedConfig loaded = load_config(sources_);
  EXPECT_EQ(setting(loaded, "copy.batch_bytes").set, "1048576");
  EXPECT_EQ(setting(loaded, "copy.batch_bytes").effective, "1MiB");
}

TEST_F(ConfigLoad, SaysEverythingThatIsWrongAtOnce) {
  sources_.file = file("link.toml",
                       "[copy]\nbatch_bytes = \"4MB\"\nbatch_byte = 1\npoll_interval = 100\n"
                       "[link]\ntopics = \"orders/*\"\nstate_file = [\"a\"]\n[other]\nkey = 1\n");
  sources_.environment = {{"IGGY_REPLICATE_COPY_BATCH", "1"}, {"IGGY_REPLICATE_LINK_RENAME", "a/b"}};
  sources_.flags["time.read_timeout"] = {"1ms"};
  sources_.flags["link.upstream_url"] = {"http://x"};
  sources_.flags["link.exclude"] = {"orders"};
  sources_.flags["admin.address"] = {"0.0.0.0:8095"};
  sources_.flags["log.level"] = {"loud"};
  const LoadedConfig loaded = load_config(sources_);
  for (const char* part :
       {"copy.batch_bytes: \"4MB\" is not a size", "copy.batch_byte: unknown key", "link.toml:3",
        "copy.poll_interval: \"100\" is not a duration", "link.topics: is not a list of strings",
        "link.state_file: is not", "other.key: unknown key", "IGGY_REPLICATE_COPY_BATCH: unknown variable",
        "link.rename: \"a/b\" is not of the form", "time.read_timeout: 1ms is below 10ms",
        "link.upstream_url: ", "link.exclude: ", "admin.address: 0.0.0.0:8095 is open to other machines",
        "log.level: \"loud\" is not one of"}) {
    EXPECT_TRUE(has(loaded, part)) << part << "\nin\n" << all(loaded);
  }
  EXPECT_EQ(loaded.problems.size(), 13U) << all(loaded);
}

TEST_F(ConfigLoad, NeverShowsASecret) {
  const LoadedConfig loaded = load_config(sources_);
  EXPECT_EQ(loaded.config.upstream_url, kUpstream);
  for (const auto& entry : loaded.settings) {
    EXPECT_EQ((entry.set + entry.effective).find("secret"), std::string::npos) << entry.key;
  }
  EXPECT_NE(setting(loaded, "link.upstream_url").effective.find("a:8090"), std::string::npos);

  sources_.flags["link.upstream_url"] = {"iggy://ann:topsecret@"};
  sources_.flags["link.downstream_url"] = {"nonsense:topsecret"};
  const LoadedConfig broken = load_config(sources_);
  EXPECT_FALSE(broken.problems.empty());
  EXPECT_EQ(all(broken).find("topsecret"), std::string::npos) << all(broken);
  for (const auto& entry : broken.settings) {
    EXPECT_EQ((entry.set + entry.effective).find("topsecret"), std::string::npos) << entry.key;
  }
}

TEST_F(ConfigLoad, TakesUrlsFromFiles) {
  sources_.flags.erase("link.upstream_url");
  sources_.flags["link.upstream_url_file"] = {file("url", std::string(kUpstream) + "\r\nrest\n")};
  LoadedConfig loaded = load_config(sources_);
  EXPECT_TRUE(loaded.problems.empty()) << all(loaded);
  EXPECT_EQ(loaded.config.upstream_url, kUpstream);

  // The stronger source wins, whichever of the two keys it uses.
  sources_.environment["IGGY_REPLICATE_LINK_UPSTREAM_URL"] = "iggy://u:p@elsewhere:1";
  EXPECT_EQ(load_config(sources_).config.upstream_url, kUpstream);
  sources_.environment.clear();
  sources_.environment["IGGY_REPLICATE_LINK_UPSTREAM_URL_FILE"] = sources_.flags["link.upstream_url_file"].front();
  sources_.flags.erase("link.upstream_url_file");
  sources_.flags["link.upstream_url"] = {"iggy://u:p@elsewhere:1"};
  EXPECT_EQ(load_config(sources_).config.upstream_url, "iggy://u:p@elsewhere:1");

  sources_.environment.clear();
  sources_.flags["link.upstream_url_file"] = {"x"};
  EXPECT_TRUE(has(load_config(sources_), "link.upstream_url_file: is given beside link.upstream_url"));
  sources_.flags.erase("link.upstream_url");
  sources_.flags["link.upstream_url_file"] = {folder_ / "missing"};
  EXPECT_TRUE(has(load_config(sources_), "link.upstream_url_file: "));
}

TEST_F(ConfigLoad, AFileThatIsNoTomlSaysWhere) {
  sources_.file = file("link.toml", "[copy]\nbatch_bytes = \n");
  EXPECT_TRUE(has(load_config(sources_), "link.toml:2: not TOML"));
  sources_.file = folder_ / "missing.toml";
  EXPECT_TRUE(has(load_config(sources_), "missing.toml: can't be read"));
}

TEST_F(ConfigLoad, StartPoliciesReadBack) {
  const auto with = [&](const char* text) {
    sources_.flags["link.start"] = {text};
    return load_config(sources_);
  };
  EXPECT_EQ(with("latest").config.start.start, replicator::Start::kLatest);
  EXPECT_EQ(with("offset:1200").config.start.value, 1200U);
  EXPECT_EQ(with("timestamp:1970-01-01T00:00:01Z").config.start.value, 1'000'000U);
  for (const char* wrong : {"", "first", "offset:", "offset:x", "timestamp:yesterday", "timestamp:2026-01-31"}) {
    EXPECT_TRUE(has(with(wrong), "link.start: ")) << wrong;
  }
}

TEST_F(ConfigLoad, APolicyIsAnExitOfItsOwnFaultAndNeverRetry) {
  sources_.flags["policies.retention"] = {"accept"};
  sources_.flags["policies.foreign_writer"] = {"restart"};
  sources_.flags["policies.invalid_record"] = {"retry"};
  sources_.flags["policies.unknown_gap"] = {"perhaps"};
  sources_.file = file("link.toml", "[policies]\npermission = \"retry\"\n");
  const LoadedConfig loaded = load_config(sources_);
  EXPECT_EQ(loaded.problems.size(), 4U) << all(loaded);
  EXPECT_TRUE(has(loaded, "policies.foreign_writer: \"restart\" is not one of none, accept")) << all(loaded);
  EXPECT_TRUE(has(loaded, "policies.invalid_record: \"retry\" is not one of none, skip")) << all(loaded);
  EXPECT_TRUE(has(loaded, "policies.unknown_gap: \"perhaps\" is no exit")) << all(loaded);
  EXPECT_TRUE(has(loaded, "policies.permission: unknown key")) << all(loaded);
  EXPECT_EQ(setting(loaded, "policies.retention").effective, "accept");
  EXPECT_EQ(setting(loaded, "policies.upstream_rewound").effective, "none");
}

TEST(Validate, KnowsWhatDependsOnEachOther) {
  Config config;
  config.upstream_url = kUpstream;
  config.downstream_url = kDownstream;
  EXPECT_EQ(replicator::validate(config), std::vector<std::string>());

  const auto problems = [&](auto change) {
    Config changed = config;
    change(changed);
    return fmt::format("{}", fmt::join(replicator::validate(changed), "\n"));
  };
  EXPECT_EQ(problems([](Config& c) { c.batch_bytes = 1024; }), "copy.batch_bytes: 1KiB is below 64KiB");
  EXPECT_EQ(problems([](Config& c) { c.budget_bytes = 15ULL << 20; }),
            "copy.budget_bytes: 15MiB is below four batches of 4MiB");
  EXPECT_EQ(
      problems([](Config& c) { c.downstream_url = c.upstream_url; }),
      "link.downstream_url: is the same as link.upstream_url; within one cluster topics need other names: link.rename");
  EXPECT_EQ(problems([](Config& c) { c.retry_max_backoff = std::chrono::milliseconds(10); }),
            "time.retry_max_backoff: 10ms is below time.retry_initial_backoff, 1s");
  EXPECT_EQ(problems([](Config& c) { c.admin_tls_cert = "cert.pem"; }),
            "admin.tls_key: is missing; certificate and key go together");
  EXPECT_EQ(problems([](Config& c) {
              c.admin_address = "0.0.0.0:1";
              c.admin_token_file = "token";
            }),
            "");
  EXPECT_NE(problems([](Config& c) { c.rename = {{"a/*", "b/c"}}; }).find("link.rename: "), std::string::npos);
  EXPECT_NE(problems([](Config& c) { c.marker = "a/*"; }).find("link.marker: "), std::string::npos);
  EXPECT_NE(problems([](Config& c) { c.topics = {}; }).find("link.topics: "), std::string::npos);
}

}  // namespace
}  // namespace cli
