#include <iostream>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/views.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string glob;
  bool dry_run = false;
};

void show(Session& session, const Flags& flags, const base::Result<pb::ListConsumersResponse>& answer) {
  if (!answer) return session.fail(answer.error());
  for (const pb::ConsumerOffset& consumer : answer->consumers()) {
    if (consumer.state() == "failed" || consumer.state() == "waiting") session.code = ExitCode::kProblem;
  }
  session.streams.out << (flags.output.is_json() ? to_json(*answer) : consumers_view(answer->consumers()));
}

void list(Session& session, const Flags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) { show(session, flags, client.consumers(flags.glob)); });
}

void sync(Session& session, const Flags& flags) {
  pb::SyncConsumersRequest request;
  request.set_actor(actor());
  request.set_dry_run(flags.dry_run);
  with_client(session, flags.target,
              [&](AdminClient& client) { show(session, flags, client.sync_consumers(request)); });
}

}  // namespace

void add_consumers(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("consumers", "Stored offsets of consumers and groups on both sides");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("GLOB", flags->glob, "Only partitions that match: \"orders/*\", \"orders/events/3\"");
  verb->require_subcommand(0, 1);
  CLI::App* const syncing = verb->add_subcommand("sync", "Looks now, and moves what may be moved downstream");
  syncing->fallthrough();
  syncing->add_flag("--dry-run", flags->dry_run, "Say what would be stored, and store nothing");
  verb->callback([&session, flags, syncing] { syncing->parsed() ? sync(session, *flags) : list(session, *flags); });
  verb->footer(
      "Consumers are those of consumers.names; groups are found. Offsets move forwards\n"
      "only, a group's only while nobody is in it downstream.\n\n"
      "Exit code: 0; 1 when one could not be moved; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate consumers\n"
      "  iggy-replicate consumers sync --dry-run\n");
}

}  // namespace cli
