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
  bool open_only = false;
};

void run(Session& session, const Flags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) {
    auto gaps = client.gaps(flags.glob, flags.open_only);
    if (!gaps) return session.fail(gaps.error());
    if (flags.open_only && !gaps->gaps().empty()) session.code = ExitCode::kProblem;
    session.streams.out << (flags.output.is_json() ? to_json(*gaps) : gaps_view(gaps->gaps()));
  });
}

}  // namespace

void add_gaps(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("gaps", "The ledger: what was not copied, why, and who accepted it");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("GLOB", flags->glob, "Only partitions that match: \"orders/*\", \"orders/events/3\"");
  verb->add_flag("--open", flags->open_only, "Only those that nobody has resolved");
  verb->footer(
      "Exit code: 0; with --open 1 when there are any; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate gaps\n"
      "  iggy-replicate gaps 'orders/*' --open\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
