#include <iostream>

#include "cli/commands/commands.h"
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

struct ReplayFlags {
  AdminTarget target;
  OutputFlags output;
  std::vector<std::int64_t> ids;
  Consent consent;
};

void replay(Session& session, const ReplayFlags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) {
    pb::ReplayGapsRequest request;
    for (const std::int64_t id : flags.ids) request.add_gap_ids(id);
    ask_and_do(session, flags.output, flags.consent, client, std::move(request), &AdminClient::replay, "Send them?");
  });
}

void add_replay(CLI::App& gaps, Session& session) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* const verb = gaps.add_subcommand("replay", "Sends messages that were skipped, after a limit was raised");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("ID", flags->ids, "Rows of the ledger; without any, all that were skipped");
  add_consent_flags(*verb, flags->consent);
  verb->footer(
      "Each message is read from the upstream, or from its export when the upstream\n"
      "no longer holds it, and appended to its partition: it stands later there than\n"
      "upstream. Its row becomes \"replaying\" and then \"replayed\"; one that still\n"
      "can't be sent is \"skip\" again, and an event says why.\n\n"
      "Exit code: 0 noted, and carried out from now on; 1 refused; 2 no such row;\n"
      "3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate gaps replay --dry-run\n"
      "  iggy-replicate gaps replay 17 18\n");
  verb->callback([&session, flags] { replay(session, *flags); });
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
  add_replay(*verb, session);
  verb->callback([&session, flags, verb] {
    if (verb->get_subcommands().empty()) run(session, *flags);
  });
}

}  // namespace cli
