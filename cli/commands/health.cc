#include "cli/commands/commands.h"
#include "cli/output.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  bool ready = false;
};

void run(Session& session, const Flags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) {
    auto link = client.link();
    if (!link) return session.fail(link.error());
    std::string missing;
    if (flags.ready) {
      if (link->state() != pb::LINK_STATE_RUNNING) {
        missing = "the link does not run" + (link->state_detail().empty() ? "" : ": " + link->state_detail());
      } else if (!link->upstream().connected()) {
        missing = "the upstream is not connected";
      } else if (!link->downstream().connected()) {
        missing = "the downstream is not connected";
      }
    }
    session.code = missing.empty() ? ExitCode::kGood : ExitCode::kProblem;
    if (flags.output.is_json()) {
      session.streams.out << (missing.empty() ? "{\"healthy\": true}\n" : "{\"healthy\": false}\n");
    } else {
      session.streams.out << (missing.empty() ? "ok" : missing) << "\n";
    }
  });
}

}  // namespace

void add_health(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb =
      app.add_subcommand("health", "Says whether the process answers: for supervisors and containers");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_flag("--ready", flags->ready, "Also ask that the link runs and both ends are connected");
  verb->footer(
      "A fault or a lag is no reason to restart a process: that is what `status` tells.\n\n"
      "Exit code: 0 it answers (--ready: and copies); 1 it answers and is not ready;\n"
      "3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate health\n"
      "  iggy-replicate health --ready --admin 10.0.0.5:8095 --admin-ca ca.pem\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
