#include "replicator/failover/failback.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <asio/co_spawn.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "replicator/failover/end_link.h"
#include "replicator/failover/orphan_file.h"
#include "replicator/marker/process.h"
#include "replicator/topics/upstream_topics.h"
#include "state/sqlite_store.h"
#include "state/state_file.h"

namespace replicator {
namespace {

using base::ErrorCode;

constexpr base::Duration kPatience = std::chrono::seconds(10);

base::Error refused(std::string object, std::string message, std::string hint = {}) {
  return {ErrorCode::kInvalidArgument, "failback", std::move(object), std::move(message), std::move(hint)};
}

// What one cluster says of one topic. Empty = the topic is not there.
struct TopicView {
  std::vector<state::Incarnation> created;  // by partition
  std::vector<std::uint64_t> begins, ends;  // readable
};

class Failback {
 public:
  Failback(base::Clock& clock, const Config& config, const FailbackOptions& options, state::SqliteStore& store,
           Rules rules, iggy::Client& old_primary, iggy::Client& new_primary)
      : clock_(clock),
        config_(config),
        options_(options),
        store_(store),
        rules_(std::move(rules)),
        old_(old_primary),
        new_(new_primary) {}

  base::Task<base::Result<FailbackReport>> run();
  base::Task<base::Result<FailbackReport>> run_and_close() {
    auto running = run();
    auto report = co_await std::move(running);
    for (iggy::Client* client : {&old_, &new_}) {
      auto closing = client->close();
      co_await std::move(closing);
    }
    co_return report;
  }

 private:
  base::Task<base::Status> check_record();
  base::Task<base::Status> look();
  base::Task<base::Result<TopicView>> view(iggy::Client& client, base::TopicName topic);
  base::Task<base::Result<base::RecordBatch>> poll(iggy::Client& client, base::PartitionKey place,
                                                   iggy::PollStrategy strategy, std::uint32_t count);
  base::Task<base::Result<base::RecordBatch>> read_old(base::PartitionKey key, std::uint64_t from, std::uint32_t count);
  base::Task<base::Status> must_stand_still();
  base::Task<base::Status> export_orphans();
  base::Task<base::Status> purge();
  base::Status note();
  base::Status write_reverse();
  std::vector<std::string> next_steps() const;

  base::Clock& clock_;
  const Config& config_;
  const FailbackOptions& options_;
  state::SqliteStore& store_;
  const Rules rules_;
  iggy::Client& old_;
  iggy::Client& new_;
  state::LinkRow link_;
  FailbackReport report_;
  std::map<base::TopicName, TopicView> old_views_, new_views_;  // by the name on that side
};

base::Task<base::Result<FailbackReport>> Failback::run() {
  report_.mode = options_.mode;
  report_.dry_run = options_.dry_run;
  for (iggy::Client* client : {&old_, &new_}) {
    auto connecting = connect_for(*client, clock_, kPatience);
    auto connected = co_await std::move(connecting);
    CO_RETURN_IF_ERROR(connected);
  }
  link_ = **store_.link();
  report_.link_id = link_.id;
  auto checking = check_record();
  auto checked = co_await std::move(checking);
  CO_RETURN_IF_ERROR(checked);
  auto looking = look();
  auto looked = co_await std::move(looking);
  CO_RETURN_IF_ERROR(looked);
  if (!options_.export_folder.empty() && !options_.dry_run && report_.orphans > 0) {
    auto exporting = export_orphans();
    auto exported = co_await std::move(exporting);
    CO_RETURN_IF_ERROR(exported);
  }
  auto waiting = must_stand_still();
  auto still = co_await std::move(waiting);
  CO_RETURN_IF_ERROR(still);
  if (options_.mode != FailbackMode::kReport && !options_.dry_run) {
    auto noted = note();
    CO_RETURN_IF_ERROR(noted);
    if (options_.mode == FailbackMode::kRebuild) {
      auto purging = purge();
      auto purged = co_await std::move(purging);
      CO_RETURN_IF_ERROR(purged);
    }
    auto written = write_reverse();
    CO_RETURN_IF_ERROR(written);
    report_.reverse_file = options_.reverse_file;
  }
  report_.next_steps = next_steps();
  co_return std::move(report_);
}

// Nobody of the ended link writes to the new primary any more: its record there says so, for good.
base::Task<base::Status> Failback::check_record() {
  if (!rules_.marker()) co_return base::ok();
  for (const base::TopicName& topic : {ended_topic(*rules_.marker()), *rules_.marker()}) {
    auto reading = read_links(new_, topic);
    auto found = co_await std::move(reading);
    CO_RETURN_IF_ERROR(found);
    const std::string& identity = found->links.identity();
    if (!link_.downstream_identity.empty() && !identity.empty() &&
        !found->links.names_identity(link_.downstream_identity)) {
      co_return base::Error(ErrorCode::kWrongLink, "failback", config_.state_file,
                            fmt::format("the link wrote into cluster {}, and --downstream is cluster {}",
                                        link_.downstream_identity, identity),
                            "--upstream is the old primary and --downstream the new one, as they were for the link");
    }
    const Links::Link* link = found->links.find(link_.id);
    if (link != nullptr && link->promoted) co_return base::ok();
  }
  co_return base::Error(ErrorCode::kFenced, "failback", "link " + link_.id,
                        "its record on the new primary does not say that it has ended",
                        "repeat `iggy-replicate failover --state … --downstream …` until nothing is undone");
}

base::Task<base::Result<base::RecordBatch>> Failback::poll(iggy::Client& client, base::PartitionKey place,
                                                           iggy::PollStrategy strategy, std::uint32_t count) {
  iggy::PollMessages request;
  request.consumer.id = std::string("iggy-replicate");
  request.stream = place.topic.stream;
  request.topic = place.topic.topic;
  request.partition = place.partition;
  request.strategy = strategy;
  request.count = count;
  auto call = client.call(std::move(request), iggy::Role::kPoll, place.partition);
  auto reply = co_await std::move(call);
  CO_RETURN_IF_ERROR(reply);
  auto* polled = std::get_if<iggy::PolledMessages>(&*reply);
  if (polled == nullptr) co_return base::RecordBatch{};
  co_return std::move(polled->batch);
}

// As the link read it: a message without an id has the one that was minted for it, where the link did that.
base::Task<base::Result<base::RecordBatch>> Failback::read_old(base::PartitionKey key, std::uint64_t from,
                                                               std::uint32_t count) {
  auto polling = poll(old_, key, {iggy::PollStrategy::Kind::kOffset, from}, count);
  auto batch = co_await std::move(polling);
  const bool minted =
      old_.server().dialect != iggy::Dialect::kLegacy && new_.server().dialect == iggy::Dialect::kLegacy;
  if (batch && minted) {
    for (base::Record& record : batch->records) {
      if (record.id.is_zero()) record.id = base::mint_id(link_.id, key, record.offset);
    }
  }
  co_return batch;
}

base::Task<base::Result<TopicView>> Failback::view(iggy::Client& client, base::TopicName topic) {
  TopicView view;
  auto call = client.call(iggy::GetTopic{topic.stream, topic.topic});
  auto reply = co_await std::move(call);
  if (!reply && reply.error().code() == ErrorCode::kNotFound) co_return view;
  CO_RETURN_IF_ERROR(reply);
  const auto* details = std::get_if<iggy::TopicDetails>(&*reply);
  if (details == nullptr) co_return view;
  for (const iggy::Partition& partition : details->partitions) {
    view.created.push_back({0, details->topic.created_at, partition.created_at});
    const std::uint64_t said =
        partition.current_offset == 0 && partition.messages_count == 0 ? 0 : partition.current_offset + 1;
    std::uint64_t begin = said;
    std::uint64_t end = said;
    if (partition.messages_count > 0) {  // on vsr the end that metadata says may stand in an unused reservation
      for (const auto kind : {iggy::PollStrategy::Kind::kOffset, iggy::PollStrategy::Kind::kLast}) {
        auto polling = poll(client, {topic, partition.id}, {kind, 0}, 1);
        auto one = co_await std::move(polling);
        CO_RETURN_IF_ERROR(one);
        if (one->empty()) continue;
        if (kind == iggy::PollStrategy::Kind::kOffset) begin = one->records.front().offset;
        if (kind == iggy::PollStrategy::Kind::kLast) end = one->records.back().offset + 1;
      }
    }
    view.begins.push_back(begin);
    view.ends.push_back(end);
  }
  co_return view;
}

base::Task<base::Status> Failback::look() {
  std::map<base::PartitionKey, state::PartitionRow> rows;
  auto stored = store_.partitions();
  CO_RETURN_IF_ERROR(stored);
  for (state::PartitionRow& row : *stored) {
    row.fault = {};
    rows.emplace(row.key, row);
  }
  // Topics that appeared too late to be copied are all orphans.
  auto listing = list_upstream_topics(old_, rules_);
  auto listed = co_await std::move(listing);
  CO_RETURN_IF_ERROR(listed);
  for (const auto& [name, topic] : listed->wanted) {
    for (std::uint32_t partition = 0; partition < topic.partitions_count; ++partition) {
      state::PartitionRow fresh;
      fresh.key = {name, partition};
      fresh.downstream = *rules_.target(name);
      rows.try_emplace(fresh.key, fresh);
    }
  }
  for (const auto& [key, row] : rows) {
    for (const auto& [views, client, topic] :
         {std::tuple(&old_views_, &old_, key.topic), std::tuple(&new_views_, &new_, row.downstream)}) {
      if (views->contains(topic)) continue;
      auto viewing = view(*client, topic);
      auto viewed = co_await std::move(viewing);
      CO_RETURN_IF_ERROR(viewed);
      views->emplace(topic, std::move(*viewed));
    }
    const TopicView& old_view = old_views_.at(key.topic);
    const TopicView& new_view = new_views_.at(row.downstream);
    PartitionDivergence& partition = report_.partitions.emplace_back();
    partition.key = key;
    partition.downstream = row.downstream;
    partition.on_old = key.partition < old_view.ends.size();
    partition.on_new = key.partition < new_view.ends.size();
    LogSide old_side, new_side;
    const base::PartitionKey there{row.downstream, key.partition};
    old_side.read = [this, key](std::uint64_t from, std::uint32_t count) { return read_old(key, from, count); };
    new_side.read = [this, there](std::uint64_t from, std::uint32_t count) {
      return poll(new_, there, {iggy::PollStrategy::Kind::kOffset, from}, count);
    };
    if (partition.on_old) {
      old_side.begin = old_view.begins[key.partition];
      old_side.end = partition.old_end = old_view.ends[key.partition];
    }
    if (partition.on_new) {
      new_side.begin = new_view.begins[key.partition];
      new_side.end = partition.new_end = new_view.ends[key.partition];
    }
    auto ranges = store_.ranges(key, row.incarnation);
    CO_RETURN_IF_ERROR(ranges);
    auto finding = find_divergence(row, *ranges, std::move(old_side), std::move(new_side));
    auto found = co_await std::move(finding);
    if (!found) {
      found.error().with_object(key.to_string());
      co_return std::move(found).error();
    }
    partition.found = std::move(*found);
    partition.new_messages = partition.new_end - std::min(partition.new_end, partition.found.down_common);
    report_.orphans += partition.found.orphans.size();
  }
  co_return base::ok();
}

// Whoever still writes to the old primary makes orphans that no list has.
base::Task<base::Status> Failback::must_stand_still() {
  for (const auto& [topic, before] : old_views_) {
    auto viewing = view(old_, topic);
    auto now = co_await std::move(viewing);
    CO_RETURN_IF_ERROR(now);
    if (now->ends == before.ends) continue;
    co_return refused(topic.to_string(), "somebody still writes to it on the old primary",
                      "stop the writers there, then repeat failback");
  }
  co_return base::ok();
}

base::Task<base::Status> Failback::export_orphans() {
  auto file = OrphanFile::create(options_.export_folder, clock_.wall_micros());
  CO_RETURN_IF_ERROR(file);
  for (const PartitionDivergence& partition : report_.partitions) {
    constexpr std::uint32_t kReadCount = 100;
    const std::vector<std::uint64_t>& orphans = partition.found.orphans;
    for (std::size_t at = 0; at < orphans.size();) {
      auto reading = poll(old_, partition.key, {iggy::PollStrategy::Kind::kOffset, orphans[at]}, kReadCount);
      auto batch = co_await std::move(reading);
      CO_RETURN_IF_ERROR(batch);
      const std::size_t before = at;
      for (const base::Record& record : batch->records) {
        if (at == orphans.size() || record.offset != orphans[at]) continue;
        auto added = file->add(partition.key, record);
        CO_RETURN_IF_ERROR(added);
        ++at;
      }
      if (at == before) {
        co_return base::Error(ErrorCode::kNotFound, "export", partition.key.to_string(),
                              fmt::format("offset {} can't be read any more", orphans[at]),
                              "it expired meanwhile: repeat failback");
      }
    }
  }
  auto finished = file->finish();
  CO_RETURN_IF_ERROR(finished);
  report_.export_file = file->path();
  co_return base::ok();
}

base::Status Failback::note() {
  state::EventRow event;
  event.at = clock_.wall_micros();
  event.kind = "failback";
  event.actor = options_.actor;
  event.detail =
      fmt::format("{}: {} orphans on the old primary{}; the reverse link's state file is {}",
                  options_.mode == FailbackMode::kKeep ? "keep" : "rebuild", report_.orphans,
                  report_.export_file.empty() ? "" : ", exported to " + report_.export_file, options_.reverse_file);
  state::Transaction transaction;
  transaction.events.push_back(std::move(event));
  auto applied = store_.apply(transaction);
  if (!applied) return std::move(applied).error();
  return base::ok();
}

// 0.9 acknowledges a purge before it is done: empty counts when it was seen twice, a second apart.
base::Task<base::Status> Failback::purge() {
  for (const auto& [topic, before] : old_views_) {
    if (before.ends.empty()) continue;
    auto purging = old_.call(iggy::PurgeTopic{topic.stream, topic.topic});
    auto purged = co_await std::move(purging);
    if (!purged) {
      purged.error().with_object(topic.to_string());
      co_return std::move(purged).error();
    }
    report_.purged.push_back(topic.to_string());
  }
  const base::TimePoint give_up = clock_.now() + std::chrono::seconds(30);
  for (int seen = 0; seen < 2;) {
    std::string left;
    for (const auto& [topic, before] : old_views_) {
      auto asking = old_.call(iggy::GetTopic{topic.stream, topic.topic});
      auto reply = co_await std::move(asking);
      CO_RETURN_IF_ERROR(reply);
      const auto* details = std::get_if<iggy::TopicDetails>(&*reply);
      if (details == nullptr) continue;
      for (const iggy::Partition& partition : details->partitions) {
        if (partition.messages_count > 0) left = topic.to_string();
      }
    }
    seen = left.empty() ? seen + 1 : 0;
    if (!left.empty() && clock_.now() > give_up) {
      co_return base::Error(ErrorCode::kTimeout, "purge", left, "it was purged on the old primary and is not empty");
    }
    auto sleeping = clock_.sleep_for(std::chrono::seconds(1));
    co_await std::move(sleeping);
  }
  co_return base::ok();
}

base::Status Failback::write_reverse() {
  state::Transaction transaction;
  state::LinkRow link;
  link.id = random_hex();
  link.upstream = link_.downstream;
  link.downstream = link_.upstream;
  link.upstream_identity = link_.downstream_identity;
  link.downstream_identity = link_.upstream_identity;
  link.created_at = clock_.wall_micros();
  transaction.link = link;
  state::EventRow event;
  event.at = link.created_at;
  event.kind = "failback";
  event.actor = options_.actor;
  event.detail = fmt::format("{}: the reverse of link {}; {} orphans",
                             options_.mode == FailbackMode::kKeep ? "keep" : "rebuild", link_.id, report_.orphans);
  transaction.events.push_back(std::move(event));
  for (const PartitionDivergence& partition : report_.partitions) {
    if (options_.mode == FailbackMode::kRebuild || !partition.on_old || !partition.on_new) continue;
    const std::uint32_t number = partition.key.partition;
    state::PartitionRow row;
    row.key = {partition.downstream, number};
    row.downstream = partition.key.topic;
    row.up_created = new_views_.at(partition.downstream).created[number];
    row.down_created = old_views_.at(partition.key.topic).created[number];
    row.watermark = partition.found.down_common;
    row.down_end = partition.old_end;
    transaction.replaces.emplace_back().row = std::move(row);
  }
  const std::string unfinished = options_.reverse_file + ".part";
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) ::unlink((unfinished + suffix).c_str());
  {
    auto store = state::SqliteStore::open(unfinished, state::OpenMode::kCreate);
    if (!store) return std::move(store).error();
    auto applied = (*store)->apply(transaction);
    if (!applied) return std::move(applied).error();
  }
  RETURN_IF_ERROR(state::publish_file(unfinished, options_.reverse_file));
  ::unlink((unfinished + ".lock").c_str());
  return base::ok();
}

// A word for a shell.
std::string shell(const std::string& word) { return "'" + word + "'"; }

std::vector<std::string> Failback::next_steps() const {
  std::vector<std::string> steps;
  if (options_.mode == FailbackMode::kReport || options_.dry_run) {
    steps.push_back(
        "decide: --as keep (the new history is appended after the orphans) or --as rebuild (the old "
        "primary's topics are purged and copied anew)");
    return steps;
  }
  std::string command = fmt::format("iggy-replicate run --state {} --upstream {} --downstream {}",
                                    shell(options_.reverse_file), shell(link_.downstream), shell(link_.upstream));
  std::vector<std::string> topics = config_.topics;
  std::string renames;
  for (const RenameRule& rule : config_.rename) {
    std::ranges::replace(topics, rule.from, rule.to);
    renames += " --rename " + shell(rule.to + " -> " + rule.from);
  }
  for (const std::string& topic : topics) command += " --topics " + shell(topic);
  for (const std::string& glob : config_.exclude) command += " --exclude " + shell(glob);
  steps.push_back("start the reverse link: " + command + renames);
  steps.push_back("when it is caught up, compare both sides: iggy-replicate verify");
  steps.push_back("to move back for good: iggy-replicate promote");
  return steps;
}

}  // namespace

base::Result<FailbackReport> failback(const Config& config, const FailbackOptions& options) {
  const bool writes = options.mode != FailbackMode::kReport && !options.dry_run;
  std::error_code error;
  if (writes && std::filesystem::exists(options.reverse_file, error)) {
    return refused(options.reverse_file, "the reverse link's state file is there already",
                   "start `run` with it; remove it only when no reverse link has ever run with it");
  }
  auto opened =
      state::SqliteStore::open(config.state_file, writes ? state::OpenMode::kReadWrite : state::OpenMode::kReadOnly);
  if (!opened) return std::move(opened).error();
  auto link = (*opened)->link();
  if (!link) return std::move(link).error();
  if (!*link || (*link)->state != "promoted") {
    return refused(config.state_file, "its link has not ended: there is no way back yet",
                   "`failover` or `promote` ends it");
  }
  auto rules = Rules::compile(config.topics, config.exclude, config.rename, config.marker);
  if (!rules) return std::move(rules).error();
  auto old_url = iggy::parse_connection_string(config.upstream_url);
  if (!old_url) return std::move(old_url).error();
  auto new_url = iggy::parse_connection_string(config.downstream_url);
  if (!new_url) return std::move(new_url).error();

  asio::io_context io(1);
  const auto clock = base::system_clock(io);
  iggy::ClientOptions client_options;
  client_options.connect_timeout = config.connect_timeout;
  client_options.read_timeout = config.read_timeout;
  const auto old_primary = iggy::make_client(io, *clock, std::move(*old_url), client_options);
  const auto new_primary = iggy::make_client(io, *clock, std::move(*new_url), client_options);
  Failback work(*clock, config, options, **opened, std::move(*rules), *old_primary, *new_primary);
  base::Result<FailbackReport> report = FailbackReport{};
  asio::co_spawn(io, work.run_and_close(), [&](std::exception_ptr escaped, base::Result<FailbackReport> result) {
    if (escaped) std::rethrow_exception(escaped);
    report = std::move(result);
    io.stop();
  });
  io.run();
  return report;
}

}  // namespace replicator
