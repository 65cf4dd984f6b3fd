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
  std::uint32_t interval_ms = 1000;
};

void show(Session& session, const Flags& flags, const pb::ListPartitionsResponse& snapshot) {
  session.code = has_problem(snapshot.partitions()) ? ExitCode::kProblem : ExitCode::kGood;
  std::ostream& out = session.streams.out;
  if (flags.output.is_json()) {
    out << to_json(snapshot, !flags.watch) << std::flush;
    return;
  }
  if (flags.watch && session.streams.out_is_terminal) out << "\x1b[H\x1b[2J";
  out << lag_view(snapshot.partitions(), snapshot.taken_at()) << std::flush;
}

void run(Session& session, const Flags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) {
    if (flags.watch) {
      auto watched = client.watch(flags.glob, flags.interval_ms, [&](const pb::WatchPartitionsResponse& snapshot) {
        pb::ListPartitionsResponse list;
        *list.mutable_taken_at() = snapshot.link().taken_at();
        *list.mutable_partitions() = snapshot.partitions();
        show(session, flags, list);
        return session.streams.out.good();
      });
      if (!watched) session.fail(watched.error());
      return;
    }
    auto partitions = client.partitions(flags.glob);
    if (!partitions) return session.fail(partitions.error());
    if (!flags.glob.empty() && partitions->partitions().empty()) {
      return session.usage(flags.glob + " matches no partition of this link; iggy-replicate status lists them");
    }
    show(session, flags, *partitions);
  });
}

}  // namespace

void add_lag(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb =
      app.add_subcommand("lag", "Shows how far the downstream is behind, per partition and in total");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("GLOB", flags->glob, "Only partitions that match: \"orders/*\", \"orders/events/3\"");
  verb->add_flag("-w,--watch", flags->watch, "Refresh until interrupted");
  verb->add_option("--interval-ms", flags->interval_ms, "Time between refreshes [1000]")->check(CLI::Range(100, 60000));
  verb->footer(
      "MESSAGES is an upper bound, from offsets; AGE is that of the oldest message not\n"
      "yet acknowledged. What is not known is shown as unknown, never as 0.\n\n"
      "Exit code: 0 every lag is known, also a large one; 1 a lag is unknown, or a\n"
      "partition has a fault or is stuck; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate lag\n"
      "  iggy-replicate lag 'orders/*' --watch\n"
      "  iggy-replicate lag -o json | jq '.partitions[].lag'\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
