#include <algorithm>
#include <iostream>

#include "cli/commands/config_flags.h"
#include "cli/end_view.h"
#include "cli/output.h"
#include "replicator/admin/to_proto.h"
#include "replicator/failover/offline.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  ConfigFlags config;
  bool yes = false;
  bool dry_run = false;

  // Named on the command line: the file is meant, not the link that runs.
  bool is_offline() const {
    const auto state = config.values.find("link.state_file");
    return !config.file.empty() || (state != config.values.end() && !state->second.empty());
  }
};

using Ask = std::function<base::Result<pb::EndReport>(bool dry_run)>;

void run_with(Session& session, const Flags& flags, const Ask& ask) {
  if (flags.dry_run || !flags.yes) {
    auto preview = ask(true);
    if (!preview) return session.fail(preview.error());
    if (flags.dry_run) {
      session.streams.out << (flags.output.is_json() ? to_json(*preview) : end_view(*preview));
      return;
    }
    session.streams.out << loss_view(preview->loss());
    if (!agreed(session, "End the link for good? It never writes downstream again.")) return;
  }
  auto done = ask(false);
  if (!done) return session.fail(done.error());
  show_end(session, flags.output, *done);
}

void run(Session& session, const Flags& flags) {
  if (!flags.is_offline()) {
    return with_client(session, flags.target, [&](AdminClient& client) {
      run_with(session, flags, [&](bool dry_run) {
        pb::FailoverRequest request;
        request.set_actor(actor());
        request.set_dry_run(dry_run);
        return client.failover(request);
      });
    });
  }
  auto loaded = load(session, flags.config, {"link.upstream_url"});
  if (!loaded) return;
  run_with(session, flags, [&](bool dry_run) -> base::Result<pb::EndReport> {
    replicator::EndRequest request;
    request.actor = actor();
    request.dry_run = dry_run;
    auto report = replicator::end_link_offline(loaded->config, request);
    if (!report) return std::move(report).error();
    return replicator::to_proto(*report);
  });
}

}  // namespace

bool agreed(Session& session, const std::string& question) {
  auto answer = confirm(session, question);
  if (!answer) {
    session.fail(answer.error());
    return false;
  }
  if (*answer) return true;
  session.streams.out << "nothing was changed\n";
  session.code = ExitCode::kProblem;
  return false;
}

void show_end(Session& session, const OutputFlags& output, const pb::EndReport& report) {
  session.streams.out << (output.is_json() ? to_json(report) : end_view(report));
  if (!report.undone().empty()) session.code = ExitCode::kProblem;
}

void add_failover(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("failover", "Disaster: ends the link for good; says first what is lost");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  add_config_flags(*verb, flags->config,
                   {"link.state_file", "link.downstream_url", "link.downstream_url_file", "link.marker",
                    "time.connect_timeout", "time.read_timeout"});
  verb->add_flag("-y,--yes", flags->yes, "Do not ask");
  verb->add_flag("--dry-run", flags->dry_run, "Say what would be lost now, and change nothing");
  verb->footer(
      "Asks the running link. With --state or --config no link runs: its state file\n"
      "and the downstream are told directly. The upstream is not needed, and changes\n"
      "nothing when it comes back. Killed half way, or with a part not done: the same\n"
      "verb again does the rest. Afterwards no process of this link writes downstream,\n"
      "whatever state file it has; `failback` makes the link of the other direction.\n\n"
      "Exit code: 0 done; 1 something is not recorded yet (it says what), or not\n"
      "confirmed; 2 usage; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate failover --dry-run\n"
      "  iggy-replicate failover --yes\n"
      "  iggy-replicate failover --state link.db --downstream iggy://u:p@b:8090\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
