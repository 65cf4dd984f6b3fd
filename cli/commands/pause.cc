// pause and resume: one wish, two values.
#include "cli/commands/commands.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string glob;
  bool dry_run = false;
};

template <class Request>
using Call = base::Result<pb::CommandResponse> (AdminClient::*)(const Request&);

template <class Request>
CLI::App* add_wish(CLI::App& app, Session& session, const std::string& name, const std::string& description,
                   Call<Request> call) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand(name, description);
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("GLOB", flags->glob, "Over stream/topic or stream/topic/partition")->required();
  verb->add_flag("--dry-run", flags->dry_run, "Say what would be done, and do nothing");
  verb->callback([&session, flags, call] {
    with_client(session, flags->target, [&](AdminClient& client) {
      Request request;
      request.set_glob(flags->glob);
      request.set_actor(actor());
      request.set_dry_run(flags->dry_run);
      auto response = (client.*call)(request);
      if (!response) return session.fail(response.error());
      show_outcome(session, flags->output, *response, flags->dry_run);
    });
  });
  return verb;
}

}  // namespace

void add_pause(CLI::App& app, Session& session) {
  add_wish<pb::PauseRequest>(app, session, "pause", "Stops copying the partitions that match; survives a restart",
                             &AdminClient::pause)
      ->footer(
          "What is in flight is acknowledged and committed first. Nothing is lost: copying\n"
          "goes on where it stopped, as long as the upstream keeps the messages.\n\n"
          "Exit code: 0 done; 2 no such partition; 3 no link answers.\n\n"
          "Examples:\n"
          "  iggy-replicate pause 'orders/*'\n"
          "  iggy-replicate pause orders/events/3\n"
          "  iggy-replicate pause '*/*' --dry-run\n");
}

void add_resume(CLI::App& app, Session& session) {
  add_wish<pb::ResumeRequest>(app, session, "resume", "Copies the partitions that match again", &AdminClient::resume)
      ->footer(
          "Clears no fault: that is what `resolve` is for.\n\n"
          "Exit code: 0 done; 2 no such partition; 3 no link answers.\n\n"
          "Examples:\n"
          "  iggy-replicate resume 'orders/*'\n"
          "  iggy-replicate resume orders/events/3\n"
          "  iggy-replicate resume '*/*' --dry-run\n");
}

}  // namespace cli
