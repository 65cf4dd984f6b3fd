#include <iostream>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/views.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string glob;
  bool watch = false;
  bool settings = false;
  std::uint32_t interval_ms = 1000;
};

void show(Session& session, const Flags& flags, const pb::WatchPartitionsResponse& snapshot) {
  session.code =
      has_problem(snapshot.link()) || has_problem(snapshot.partitions()) ? ExitCode::kProblem : ExitCode::kGood;
  std::ostream& out = session.streams.out;
  if (flags.output.is_json()) {
    out << to_json(snapshot, !flags.watch) << std::flush;
    return;
  }
  if (flags.watch && session.streams.out_is_terminal) out << "\x1b[H\x1b[2J";
  out << link_view(snapshot.link()) << status_view(snapshot.link(), snapshot.partitions()) << std::flush;
}

void run(Session& session, const Flags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) {
    if (flags.watch) {
      auto watched = client.watch(flags.glob, flags.interval_ms, [&](const pb::WatchPartitionsResponse& snapshot) {
        show(session, flags, snapshot);
        return session.streams.out.good();
      });
      if (!watched) session.fail(watched.error());
      return;
    }
    auto link = client.link();
    if (!link) return session.fail(link.error());
    if (flags.settings && !flags.output.is_json()) {
      session.streams.out << settings_view(*link);
      return;
    }
    auto partitions = client.partitions(flags.glob);
    if (!partitions) return session.fail(partitions.error());
    if (!flags.glob.empty() && partitions->partitions().empty()) {
      return session.usage(flags.glob + " matches no partition of this link; iggy-replicate status lists them");
    }
    pb::WatchPartitionsResponse snapshot;
    *snapshot.mutable_link() = std::move(*link);
    if (!flags.settings) snapshot.mutable_link()->clear_settings();
    *snapshot.mutable_partitions() = std::move(*partitions->mutable_partitions());
    show(session, flags, snapshot);
  });
}

}  // namespace

void add_status(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("status", "Shows the link, its partitions and what they wait for");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("GLOB", flags->glob, "Only partitions that match: \"orders/*\", \"orders/events/3\"");
  verb->add_flag("-w,--watch", flags->watch, "Refresh until interrupted");
  verb->add_option("--interval-ms", flags->interval_ms, "Time between refreshes [1000]")->check(CLI::Range(100, 60000));
  verb->add_flag("--settings", flags->settings, "Every setting as set and as effective");
  verb->footer(
      "Exit code: 0 all is well; 1 the link does not run, an end is not connected, or\n"
      "a partition has a fault, is stuck, or its lag is unknown; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate status\n"
      "  iggy-replicate status 'orders/*' --watch\n"
      "  iggy-replicate status --settings\n"
      "  iggy-replicate status -o json | jq '.partitions[] | select(.fault)'\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
