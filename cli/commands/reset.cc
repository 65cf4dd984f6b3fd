#include <iostream>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "replicator/admin/to_proto.h"
#include "replicator/model/partition_glob.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string partition;
  std::uint64_t offset = 0;
  Consent consent;
};

void run(Session& session, const Flags& flags) {
  auto key = replicator::parse_partition(flags.partition);
  if (!key) return session.fail(key.error());
  with_client(session, flags.target, [&](AdminClient& client) {
    pb::ResetRequest request;
    *request.mutable_id() = replicator::to_proto(*key);
    request.set_upstream_offset(flags.offset);
    ask_and_do(session, flags.output, flags.consent, client, std::move(request), &AdminClient::reset,
               fmt::format("Reset {} to upstream offset {}?", flags.partition, flags.offset));
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
  add_consent_flags(*verb, flags->consent);
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
