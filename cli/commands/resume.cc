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
    pb::ResumeRequest request;
    request.set_glob(flags.glob);
    request.set_actor(actor());
    request.set_dry_run(flags.dry_run);
    auto response = client.resume(request);
    if (!response) return session.fail(response.error());
    show_outcome(session, flags.output, *response, flags.dry_run);
  });
}

}  // namespace

void add_resume(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("resume", "Copies the partitions that match again");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("GLOB", flags->glob, "Over stream/topic or stream/topic/partition")->required();
  verb->add_flag("--dry-run", flags->dry_run, "Say what would be done, and do nothing");
  verb->footer(
      "Clears no fault: that is what `resolve` is for.\n\n"
      "Examples:\n"
      "  iggy-replicate resume 'orders/*'\n"
      "  iggy-replicate resume orders/events/3\n"
      "  iggy-replicate resume '*/*' --dry-run\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
