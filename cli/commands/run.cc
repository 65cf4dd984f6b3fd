#include "replicator/run.h"

#include <iostream>

#include <fmt/format.h>

#include "cli/commands/config_flags.h"
#include "cli/logging.h"
#include "cli/output.h"
#include "iggy/replicate/admin/v1/report.pb.h"
#include "replicator/admin/to_proto.h"
#include "replicator/model/partition_glob.h"

namespace cli {
namespace {

struct Flags {
  ConfigFlags config;
  OutputFlags output;
  bool until_caught_up = false;
};

pb::RunReport to_proto(const replicator::RunReport& report) {
  pb::RunReport out;
  out.set_outcome(report.outcome);
  out.set_detail(report.detail);
  for (const replicator::PartitionReceipt& receipt : report.partitions) {
    pb::RunReport::Partition* const partition = out.add_partitions();
    *partition->mutable_id() = replicator::to_proto(receipt.key);
    partition->set_downstream_stream(receipt.downstream.stream);
    partition->set_downstream_topic(receipt.downstream.topic);
    partition->set_upstream_begin(receipt.up_begin);
    partition->set_upstream_end(receipt.up_end);
    partition->set_copied(receipt.copied);
    partition->set_copied_bytes(receipt.copied_bytes);
    partition->set_skipped(receipt.skipped);
    partition->set_digest(receipt.digest);
    partition->set_complete(receipt.complete);
    partition->set_detail(receipt.detail);
  }
  return out;
}

// The receipt: counts in a table, digests (32 digits each) below it.
std::string receipt_view(const replicator::RunReport& report) {
  Table table({"PARTITION", "UPSTREAM OFFSETS", "COPIED", "SIZE", "SKIPPED", "COMPLETE "});
  std::string digests;
  std::string notes;
  for (const replicator::PartitionReceipt& receipt : report.partitions) {
    const std::string name = replicator::to_pattern(receipt.key);
    table.add({name, fmt::format("[{}, {})", receipt.up_begin, receipt.up_end), format_count(receipt.copied),
               format_bytes(static_cast<double>(receipt.copied_bytes)), format_count(receipt.skipped),
               receipt.complete ? "yes" : "NO"});
    if (!receipt.digest.empty()) digests += fmt::format("  {}  {}\n", receipt.digest, name);
    if (!receipt.detail.empty()) notes += wrap(fmt::format("{}: {}", name, receipt.detail), "  ", "");
  }
  std::string text =
      wrap(report.detail.empty() ? report.outcome : fmt::format("{}: {}", report.outcome, report.detail));
  if (!report.partitions.empty()) text += "\n" + table.to_string();
  if (!digests.empty()) text += "\nDIGEST OF THE COPIED MESSAGES\n" + digests;
  if (!notes.empty()) text += "\n" + notes;
  return text;
}

void run(Session& session, const Flags& flags) {
  auto loaded = load(session, flags.config);
  if (!loaded) return;
  loaded->config.until_caught_up = flags.until_caught_up;
  setup_logging(loaded->config);
  const auto read_again = [&flags] {
    LoadedConfig again = load_config(sources_of(flags.config));
    again.config.until_caught_up = flags.until_caught_up;
    return again;
  };
  auto report = replicator::run_link(loaded->config, loaded->settings, read_again);
  if (!report) return session.fail(report.error());
  const bool is_good = report->outcome == "caught_up" || report->outcome == "stopped" || report->outcome == "ended";
  session.code = is_good ? ExitCode::kGood : ExitCode::kProblem;
  if (flags.output.is_json()) {
    session.streams.out << to_json(to_proto(*report));
  } else {
    session.streams.out << receipt_view(*report);
  }
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("run", "Copies, until it is told to stop: the daemon");
  add_config_flags(*verb, flags->config);
  add_output_flags(*verb, flags->output);
  verb->add_flag("--until-caught-up", flags->until_caught_up,
                 "End when every partition has reached the upstream end seen at the start, with a receipt");
  verb->footer(
      "A flag wins over IGGY_REPLICATE_<SECTION>_<KEY> (such as\n"
      "IGGY_REPLICATE_COPY_BATCH_BYTES), that over the file, that over the default.\n"
      "Secrets can come from files: --upstream-file, --downstream-file.\n\n"
      "Exit code: 0 stopped as asked, or caught up; 1 something did not get through,\n"
      "or the link is fenced; 2 the configuration is wrong; 3 an end can't be reached.\n\n"
      "Examples:\n"
      "  iggy-replicate run --upstream iggy://iggy:secret@a:8090 \\\n"
      "                     --downstream iggy://iggy:secret@b:8090 --topics 'orders/*'\n"
      "  iggy-replicate run --config /etc/iggy-replicate.toml\n"
      "  iggy-replicate run --config link.toml --until-caught-up   # a migration, cron\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
