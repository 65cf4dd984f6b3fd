#include <iostream>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "replicator/admin/to_proto.h"
#include "replicator/model/partition_glob.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string partition;
  std::uint64_t offset = 0;
  bool yes = false;
  bool dry_run = false;
};

void run(Session& session, const Flags& flags) {
  auto key = replicator::parse_partition(flags.partition);
  if (!key) return session.fail(key.error());
  with_client(session, flags.target, [&](AdminClient& client) {
    pb::ResetRequest request;
    *request.mutable_id() = replicator::to_proto(*key);
    request.set_upstream_offset(flags.offset);
    request.set_actor(actor());
    request.set_dry_run(true);
    auto preview = client.reset(request);
    if (!preview) return session.fail(preview.error());
    if (flags.dry_run) return show_outcome(session, flags.output, *preview, true);
    if (!flags.yes) {
      session.streams.out << wrap(preview->what());
      auto agreed = confirm(session, fmt::format("Reset {} to upstream offset {}?", flags.partition, flags.offset));
      if (!agreed) return session.fail(agreed.error());
      if (!*agreed) {
        session.streams.out << "nothing was changed\n";
        session.code = ExitCode::kProblem;
        return;
      }
    }
    request.set_dry_run(false);
    auto done = client.reset(request);
    if (!done) return session.fail(done.error());
    show_outcome(session, flags.output, *done, false);
  });
}

}  // namespace

void add_reset(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("reset", "Moves the watermark of one partition");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("PARTITION", flags->partition, "stream/topic/partition")->required();
  verb->add_option("--to", flags->offset, "Next upstream offset to copy")->required();
  verb->add_flag("-y,--yes", flags->yes, "Do not ask");
  verb->add_flag("--dry-run", flags->dry_run, "Say what would be done, and do nothing");
  verb->footer(
      "Back: messages are copied again, after what is there downstream. Forward:\n"
      "messages are left out, and the ledger says which. Shows what it means, asks,\n"
      "and records who did it.\n\n"
      "Exit code: 0 done; 2 refused, not confirmed, or no such partition;\n"
      "3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate reset orders/events/3 --to 1200 --dry-run\n"
      "  iggy-replicate reset orders/events/3 --to 1200\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
