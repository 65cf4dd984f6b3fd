// check and plan: look at both ends, change nothing.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include <asio/co_spawn.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "replicator/check_rights.h"
#include "replicator/model/fault.h"
#include "replicator/run.h"
#include "replicator/topics/durability.h"
#include "replicator/topics/reconciler.h"
#include "state/sqlite_store.h"

namespace replicator {

namespace {

// Both ends, connected for one look.
struct Ends {
  std::unique_ptr<iggy::Client> upstream, downstream;
};

iggy::ClientOptions look_options(const Config& config) {
  iggy::ClientOptions options;
  options.connect_timeout = config.connect_timeout;
  options.read_timeout = std::min<base::Duration>(config.read_timeout, std::chrono::seconds(10));
  options.send_timeout = options.read_timeout;
  return options;
}

void add(CheckReport& report, std::string side, std::string item, Verdict verdict, std::string text) {
  report.items.push_back({std::move(side), std::move(item), verdict, std::move(text)});
}

void check_state_file(const Config& config, CheckReport& report) {
  namespace fs = std::filesystem;
  const fs::path path = config.state_file;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    add(report, "state", "folder", Verdict::kFail,
        fmt::format("{} is not a folder: create it, or name another --state", folder.string()));
    return;
  }
  constexpr auto kOthersWrite = fs::perms::group_write | fs::perms::others_write;
  const fs::perms mode = fs::status(folder, error).permissions();
  if ((mode & kOthersWrite) != fs::perms::none && (mode & fs::perms::sticky_bit) == fs::perms::none) {
    add(report, "state", "folder", Verdict::kWarn,
        fmt::format("others may write in {} and could replace the state file: chmod go-w", folder.string()));
  }
  add(report, "state", "file", Verdict::kOk,
      fs::exists(path, error) ? fmt::format("{} exists; the link goes on from it", path.string())
                              : fmt::format("{} will be created", path.string()));
  const fs::space_info space = fs::space(folder, error);
  constexpr std::uintmax_t kLittle = 64ULL * 1024 * 1024;
  if (!error) {
    add(report, "state", "room", space.available < kLittle ? Verdict::kWarn : Verdict::kOk,
        fmt::format("{} MiB free in {}", space.available / (1024 * 1024), folder.string()));
  }
  // One real fsync: a disk that can't, or takes long, decides how fast positions become durable.
  const std::string probe = (folder / (path.filename().string() + ".fsync-probe")).string();
  const int file = ::open(probe.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) {
    add(report, "state", "fsync", Verdict::kFail,
        fmt::format("can't create a file in {}: {}", folder.string(), std::generic_category().message(errno)));
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool synced = ::write(file, "x", 1) == 1 && ::fsync(file) == 0;
  const auto took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  ::close(file);
  ::unlink(probe.c_str());
  add(report, "state", "fsync",
      !synced      ? Verdict::kFail
      : took > 100 ? Verdict::kWarn
                   : Verdict::kOk,
      synced ? fmt::format("{:.1f} ms", took) : std::string("fsync fails on this file system"));
}

base::Task<bool> check_end(std::string side, iggy::Client& client, CheckReport& report) {
  auto connecting = client.connect();
  auto server = co_await std::move(connecting);
  if (!server) {
    add(report, side, "reachable", Verdict::kFail, server.error().to_string());
    co_return false;
  }
  add(report, side, "reachable", Verdict::kOk, server->endpoint.to_string());
  add(report, side, "server", Verdict::kOk,
      fmt::format("{}, speaks {}", server->version.empty() ? "version unknown (needs read_servers)" : server->version,
                  iggy::to_string(server->dialect)));
  co_return true;
}

base::Task<void> close_both(Ends& ends) {
  for (iggy::Client* client : {ends.upstream.get(), ends.downstream.get()}) {
    auto closing = client->close();
    co_await std::move(closing);
  }
}

// The partitions that the state file has a row of. A file that is not there, or that run will refuse, has none.
std::set<base::PartitionKey> known_partitions(const Config& config) {
  std::set<base::PartitionKey> known;
  auto store = state::SqliteStore::open(config.state_file, state::OpenMode::kReadOnly);
  if (!store) return known;
  const auto rows = (*store)->partitions();
  if (!rows) return known;
  for (const state::PartitionRow& row : *rows) known.insert(row.key);
  return known;
}

struct Unclaimed {
  base::TopicName downstream;
  std::string text;
};

// Targets that hold messages although no row knows of them: run would stop each with downstream_not_empty.
base::Task<std::vector<Unclaimed>> find_unclaimed(iggy::Client& downstream, const Topology& topology,
                                                  std::set<base::PartitionKey> known) {
  std::map<base::TopicName, std::set<std::uint32_t>> fresh;
  for (const WantedPartition& wanted : topology.partitions) {
    if (!known.contains(wanted.key)) fresh[wanted.downstream].insert(wanted.key.partition);
  }
  std::vector<Unclaimed> found;
  for (const auto& [topic, partitions] : fresh) {
    auto getting = downstream.call(iggy::GetTopic{topic.stream, topic.topic});
    auto reply = co_await std::move(getting);
    const auto* const details = reply ? std::get_if<iggy::TopicDetails>(&*reply) : nullptr;
    if (details == nullptr) continue;  // not there yet, or no right: said elsewhere
    std::uint64_t messages = 0;
    std::size_t occupied = 0;
    for (const iggy::Partition& partition : details->partitions) {
      if (!partitions.contains(partition.id) || partition.messages_count == 0) continue;
      ++occupied;
      messages += partition.messages_count;
    }
    if (occupied == 0) continue;
    found.push_back(
        {topic, fmt::format("{} of its partitions hold {} messages, and {} has no record of copying any: "
                            "run stops them with {}",
                            occupied, messages, topic.to_string(), info(FaultKind::kDownstreamNotEmpty).name)});
  }
  co_return found;
}

base::Task<base::Result<Topology>> look_at_topics(Ends& ends, const Config& config, const Rules& rules) {
  ReconcileOptions options;
  options.dry_run = true;
  options.known = known_partitions(config);
  options.link_is_new = options.known.empty();
  auto looking = reconcile(*ends.upstream, *ends.downstream, rules, config, std::move(options));
  co_return co_await std::move(looking);
}

base::Task<void> check_both(Ends& ends, const Config& config, const Rules& rules, CheckReport& report) {
  auto upstream_call = check_end("upstream", *ends.upstream, report);
  const bool upstream = co_await std::move(upstream_call);
  auto downstream_call = check_end("downstream", *ends.downstream, report);
  const bool downstream = co_await std::move(downstream_call);
  if (downstream) {
    auto asking = can_keep(*ends.downstream, config.ack);
    auto kept = co_await std::move(asking);
    const Verdict verdict = !kept ? Verdict::kFail : config.ack == Ack::kMemory ? Verdict::kWarn : Verdict::kOk;
    add(report, "downstream", "acknowledgment", verdict,
        kept ? fmt::format("ack = {}: {}", to_string(config.ack), survives(config.ack)) : kept.error().to_string());
  }
  if (const base::Status storable = can_store_as(config); !storable) {
    add(report, "upstream", "position", Verdict::kFail, storable.error().to_string());
  }
  if (upstream && downstream) {
    auto looking = look_at_topics(ends, config, rules);
    auto topology = co_await std::move(looking);
    const Topology seen = topology ? *topology : Topology{};
    auto checking = check_rights(*ends.upstream, *ends.downstream, rules, seen, report);
    co_await std::move(checking);
    if (!topology) {
      add(report, "link", "topics", Verdict::kFail, topology.error().to_string());
    } else {
      add(report, "link", "topics", topology->partitions.empty() ? Verdict::kWarn : Verdict::kOk,
          fmt::format("{} partitions match", topology->partitions.size()));
      for (const std::string& refusal : topology->refusals) add(report, "link", "rules", Verdict::kFail, refusal);
      for (const MissingPartition& missing : topology->missing) {
        add(report, "downstream", missing.key.to_string(), Verdict::kFail, missing.reason);
      }
      for (const std::string& notice : topology->notices) add(report, "link", "notice", Verdict::kWarn, notice);
      auto finding = find_unclaimed(*ends.downstream, *topology, known_partitions(config));
      for (Unclaimed& unclaimed : co_await std::move(finding)) {
        add(report, "downstream", unclaimed.downstream.to_string(), Verdict::kFail, std::move(unclaimed.text));
      }
    }
  }
  auto closing = close_both(ends);
  co_await std::move(closing);
}

base::Task<base::Result<PlanReport>> look_and_plan(Ends& ends, const Config& config, const Rules& rules) {
  for (iggy::Client* client : {ends.upstream.get(), ends.downstream.get()}) {
    auto connecting = client->connect();
    auto server = co_await std::move(connecting);
    CO_RETURN_IF_ERROR(server);
  }
  auto looking = look_at_topics(ends, config, rules);
  auto topology = co_await std::move(looking);
  CO_RETURN_IF_ERROR(topology);
  PlanReport report;
  for (const Action& action : topology->actions) {
    const bool grows = action.kind == Action::Kind::kGrow;
    report.lines.push_back({"",
                            action.downstream.topic.empty() ? action.downstream.stream : action.downstream.to_string(),
                            grows ? "grow" : "create", action.text});
  }
  for (const WantedPartition& wanted : topology->partitions) {
    if (!report.lines.empty() && report.lines.back().action == "copy" &&
        report.lines.back().topic == wanted.key.topic.to_string())
      continue;
    const auto partitions = std::ranges::count(topology->partitions, wanted.key.topic,
                                               [](const WantedPartition& partition) { return partition.key.topic; });
    report.lines.push_back({wanted.key.topic.to_string(), wanted.downstream.to_string(), "copy",
                            fmt::format("{} partitions", partitions)});
  }
  for (const MissingPartition& missing : topology->missing) {
    report.lines.push_back({missing.key.to_string(), missing.downstream.to_string(), "refuse", missing.reason});
  }
  auto finding = find_unclaimed(*ends.downstream, *topology, known_partitions(config));
  for (Unclaimed& unclaimed : co_await std::move(finding)) {
    report.lines.push_back({"", unclaimed.downstream.to_string(), "fault", std::move(unclaimed.text)});
  }
  for (const std::string& refusal : topology->refusals) report.lines.push_back({"", "", "refuse", refusal});
  for (const std::string& notice : topology->notices) report.lines.push_back({"", "", "notice", notice});
  co_return report;
}

base::Task<base::Result<PlanReport>> plan_both(Ends& ends, const Config& config, const Rules& rules) {
  auto planning = look_and_plan(ends, config, rules);
  auto report = co_await std::move(planning);
  auto closing = close_both(ends);
  co_await std::move(closing);
  co_return report;
}

base::Result<Rules> rules_of(const Config& config) {
  return Rules::compile(config.topics, config.exclude, config.rename, config.marker);
}

base::Result<Ends> make_ends(asio::io_context& io, base::Clock& clock, const Config& config) {
  auto upstream = iggy::parse_connection_string(config.upstream_url);
  if (!upstream) return std::move(upstream).error();
  auto downstream = iggy::parse_connection_string(config.downstream_url);
  if (!downstream) return std::move(downstream).error();
  Ends ends;
  ends.upstream = iggy::make_client(io, clock, std::move(*upstream), look_options(config));
  ends.downstream = iggy::make_client(io, clock, std::move(*downstream), look_options(config));
  return ends;
}

}  // namespace

base::Result<CheckReport> check_link(const Config& config) {
  CheckReport report;
  check_state_file(config, report);
  asio::io_context io(1);
  const auto clock = base::system_clock(io);
  auto ends = make_ends(io, *clock, config);
  if (!ends) return std::move(ends).error();
  auto rules = rules_of(config);
  if (!rules) return std::move(rules).error();
  asio::co_spawn(io, check_both(*ends, config, *rules, report), [&io](std::exception_ptr escaped) {
    if (escaped) std::rethrow_exception(escaped);
    io.stop();
  });
  io.run();
  return report;
}

base::Result<PlanReport> plan_link(const Config& config) {
  asio::io_context io(1);
  const auto clock = base::system_clock(io);
  auto ends = make_ends(io, *clock, config);
  if (!ends) return std::move(ends).error();
  auto rules = rules_of(config);
  if (!rules) return std::move(rules).error();
  base::Result<PlanReport> report = PlanReport{};
  asio::co_spawn(io, plan_both(*ends, config, *rules),
                 [&](std::exception_ptr escaped, base::Result<PlanReport> result) {
                   if (escaped) std::rethrow_exception(escaped);
                   report = std::move(result);
                   io.stop();
                 });
  io.run();
  return report;
}

}  // namespace replicator
