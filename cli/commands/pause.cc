#include "cli/commands/commands.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string glob;
  bool dry_run = false;
};

void run(Session& session, Flags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) {
    pb::PauseRequest request;
    request.set_glob(flags.glob);
    request.set_actor(actor());
    request.set_dry_run(flags.dry_run);
    auto response = client.pause(request);
    if (!response) return session.fail(response.error());
    show_outcome(session, flags.output, *response, flags.dry_run);
  });
}

}  // namespace

void add_pause(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("pause", "Stops copying the partitions that match; survives a restart");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("GLOB", flags->glob, "Over stream/topic or stream/topic/partition")->required();
  verb->add_flag("--dry-run", flags->dry_run, "Say what would be done, and do nothing");
  verb->footer(
      "What is in flight is acknowledged and committed first. Nothing is lost: copying\n"
      "goes on where it stopped, as long as the upstream keeps the messages.\n\n"
      "Examples:\n"
      "  iggy-replicate pause 'orders/*'\n"
      "  iggy-replicate pause orders/events/3\n"
      "  iggy-replicate pause '*/*' --dry-run\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
