#include "replicator/failover/failback.h"

#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands/config_flags.h"
#include "cli/output.h"
#include "iggy/replicate/admin/v1/report.pb.h"
#include "replicator/admin/to_proto.h"

namespace cli {
namespace {

using replicator::FailbackMode;

struct Flags {
  OutputFlags output;
  ConfigFlags config;
  std::string as;
  std::string export_folder;
  std::string reverse_file;
  bool yes = false;
  bool dry_run = false;
};

pb::FailbackReport to_proto(const replicator::FailbackReport& report) {
  pb::FailbackReport out;
  out.set_link_id(report.link_id);
  out.set_mode(report.mode == FailbackMode::kKeep      ? "keep"
               : report.mode == FailbackMode::kRebuild ? "rebuild"
                                                       : "report");
  out.set_dry_run(report.dry_run);
  out.set_orphans(report.orphans);
  out.set_export_file(report.export_file);
  out.set_reverse_file(report.reverse_file);
  for (const std::string& topic : report.purged) out.add_purged(topic);
  for (const std::string& step : report.next_steps) out.add_next_steps(step);
  for (const replicator::PartitionDivergence& each : report.partitions) {
    pb::FailbackReport::Partition* const partition = out.add_partitions();
    *partition->mutable_id() = replicator::to_proto(each.key);
    partition->set_downstream_stream(each.downstream.stream);
    partition->set_downstream_topic(each.downstream.topic);
    partition->set_on_old_primary(each.on_old);
    partition->set_on_new_primary(each.on_new);
    partition->set_old_end(each.old_end);
    partition->set_new_end(each.new_end);
    partition->set_old_common(each.found.up_common);
    partition->set_new_common(each.found.down_common);
    partition->set_new_messages(each.new_messages);
    partition->set_lost(each.found.lost_upstream);
    partition->set_landed_late(each.found.landed_late);
    for (const std::uint64_t offset : each.found.orphans) partition->add_orphans(offset);
  }
  return out;
}

// "1200-1336, 1340" of ascending offsets; the first five runs.
std::string runs_of(const google::protobuf::RepeatedField<std::uint64_t>& offsets) {
  constexpr int kRunsShown = 5;
  std::string text;
  int runs = 0;
  for (int at = 0; at < offsets.size();) {
    int last = at;
    while (last + 1 < offsets.size() && offsets[last + 1] == offsets[last] + 1) ++last;
    if (++runs > kRunsShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") +
            (last == at ? std::to_string(offsets[at]) : fmt::format("{}-{}", offsets[at], offsets[last]));
    at = last + 1;
  }
  return text;
}

std::string failback_view(const pb::FailbackReport& report) {
  std::string text;
  text += wrap(report.orphans() == 0
                   ? std::string("No orphans: whatever the old primary acknowledged and still holds is on the new one.")
                   : fmt::format("{} messages were acknowledged on the old primary and never got across (orphans).",
                                 format_count(report.orphans())));
  Table table({"PARTITION", "ORPHANS", "LOST", "LATE", "NEW"});
  std::string offsets;
  for (const auto& partition : report.partitions()) {
    const std::string name =
        printable(fmt::format("{}/{}/{}", partition.id().stream(), partition.id().topic(), partition.id().partition()));
    table.add({name, format_count(static_cast<std::uint64_t>(partition.orphans_size())), format_count(partition.lost()),
               format_count(partition.landed_late()), format_count(partition.new_messages())});
    if (partition.orphans_size() > 0) offsets += wrap(runs_of(partition.orphans()), "    ", "  " + name + "  ");
    if (!partition.on_old_primary()) offsets += wrap("is not on the old primary", "    ", "  " + name + "  ");
    if (!partition.on_new_primary()) offsets += wrap("is not on the new primary", "    ", "  " + name + "  ");
  }
  text += "\n" + table.to_string();
  if (!offsets.empty()) text += "\nOFFSETS ON THE OLD PRIMARY\n" + offsets;
  text += "\n";
  if (!report.export_file().empty()) text += wrap("Exported to " + report.export_file());
  if (report.purged_size() > 0)
    text += wrap(fmt::format("Purged on the old primary: {}", fmt::join(report.purged(), ", ")));
  if (!report.reverse_file().empty()) text += wrap("State file of the reverse link: " + report.reverse_file());
  if (report.reverse_file().empty()) text += "Nothing was changed.\n";
  if (report.next_steps_size() > 0) text += "\nNext\n";
  for (const std::string& step : report.next_steps()) text += wrap(step, "    ", "  - ");
  return text;
}

void run(Session& session, const Flags& flags) {
  auto loaded = load(session, flags.config);
  if (!loaded) return;
  replicator::FailbackOptions options;
  options.actor = actor();
  options.dry_run = flags.dry_run;
  options.mode = flags.as == "keep"      ? FailbackMode::kKeep
                 : flags.as == "rebuild" ? FailbackMode::kRebuild
                                         : FailbackMode::kReport;
  const bool changes = options.mode != FailbackMode::kReport && !flags.dry_run;
  options.export_folder = flags.export_folder;
  if (options.export_folder.empty() && changes) options.export_folder = loaded->config.state_file + ".orphans";
  options.reverse_file = flags.reverse_file.empty() ? loaded->config.state_file + ".reverse" : flags.reverse_file;
  if (changes && !flags.yes) {
    replicator::FailbackOptions look = options;
    look.dry_run = true;
    auto preview = replicator::failback(loaded->config, look);
    if (!preview) return session.fail(preview.error());
    preview->next_steps.clear();
    session.streams.out << failback_view(to_proto(*preview));
    if (!agreed(session, options.mode == FailbackMode::kRebuild
                             ? "PURGE these topics on the old primary, and copy them anew?"
                             : "Keep the orphans there, and append the new history after them?")) {
      return;
    }
  }
  auto report = replicator::failback(loaded->config, options);
  if (!report) return session.fail(report.error());
  const pb::FailbackReport out = to_proto(*report);
  session.streams.out << (flags.output.is_json() ? to_json(out) : failback_view(out));
  if (!changes && out.orphans() > 0) session.code = ExitCode::kProblem;
}

}  // namespace

void add_failback(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb =
      app.add_subcommand("failback", "After a failover: what never got across, and the link in the other direction");
  add_output_flags(*verb, flags->output);
  add_config_flags(*verb, flags->config,
                   {"link.state_file", "link.upstream_url", "link.upstream_url_file", "link.downstream_url",
                    "link.downstream_url_file", "link.topics", "link.exclude", "link.rename", "link.marker",
                    "time.connect_timeout", "time.read_timeout"});
  verb->add_option("--as", flags->as, "keep or rebuild; without it: the report alone")
      ->check(CLI::IsMember({"keep", "rebuild"}));
  verb->add_option("--export", flags->export_folder, "Folder for the orphans, as JSON lines [STATE.orphans]");
  verb->add_option("--reverse-state", flags->reverse_file, "State file to make for the reverse link [STATE.reverse]");
  verb->add_flag("-y,--yes", flags->yes, "Do not ask");
  verb->add_flag("--dry-run", flags->dry_run, "The report alone, whatever --as says");
  verb->footer(
      "Flags and file are those of the ended link: --upstream is the old primary.\n"
      "keep: the orphans stay on the old primary, the new history is appended after\n"
      "them. rebuild: the old primary's topics are purged and copied anew. Both export\n"
      "the orphans first. Nobody may write to the old primary meanwhile.\n\n"
      "ORPHANS never got across; LOST was copied and is no longer the same on both\n"
      "sides; LATE was never recorded as copied and is there; NEW is the new history.\n\n"
      "Exit code: 0 done, or no orphans; 1 orphans found, or refused; 2 usage;\n"
      "3 a cluster can't be reached.\n\n"
      "Examples:\n"
      "  iggy-replicate failback --config link.toml\n"
      "  iggy-replicate failback --config link.toml --as keep --export /safe/orphans\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
