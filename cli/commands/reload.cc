// reload: the daemon reads its configuration again.
#include "cli/commands/commands.h"

namespace cli {

void add_reload(CLI::App& app, Session& session) {
  struct Flags {
    AdminTarget target;
    OutputFlags output;
    bool dry_run = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb =
      app.add_subcommand("reload", "The daemon reads its configuration file again, without a restart");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_flag("--dry-run", flags->dry_run, "Say what would change, and change nothing");
  verb->footer(
      "Takes effect: log.level, link.topics, link.exclude, copy.budget_bytes and\n"
      "throttle.*. Other keys that differ are named: they need a restart. A file with\n"
      "a mistake changes nothing. SIGHUP does the same, and says so in the log.\n\n"
      "Exit code: 0 done, or nothing to do; 2 the configuration is wrong; 3 no link\n"
      "answers.\n\n"
      "Examples:\n"
      "  iggy-replicate reload --dry-run\n"
      "  iggy-replicate reload\n");
  verb->callback([&session, flags] {
    with_client(session, flags->target, [&](AdminClient& client) {
      pb::ReloadRequest request;
      request.set_actor(actor());
      request.set_dry_run(flags->dry_run);
      auto response = client.reload(request);
      if (!response) return session.fail(response.error());
      show_outcome(session, flags->output, *response, flags->dry_run);
    });
  });
}

}  // namespace cli
