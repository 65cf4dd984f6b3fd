#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/views.h"
#include "replicator/admin/to_proto.h"
#include "replicator/model/partition_glob.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string partition;
  std::string exit;
  Consent consent;
};

// Without --as: what is wrong, and which ways out there are.
void show_fault(Session& session, const Flags& flags, const pb::Partition& partition,
                const google::protobuf::Timestamp& taken_at) {
  session.code = partition.has_fault() ? ExitCode::kProblem : ExitCode::kGood;
  if (flags.output.is_json()) {
    session.streams.out << to_json(partition);
  } else if (partition.has_fault()) {
    session.streams.out << fault_view(partition, taken_at);
  } else {
    session.streams.out << fmt::format("{} has no fault; it is {}\n", flags.partition, phase_text(partition.phase()));
  }
}

void run(Session& session, const Flags& flags) {
  auto key = replicator::parse_partition(flags.partition);
  if (!key) return session.fail(key.error());
  with_client(session, flags.target, [&](AdminClient& client) {
    auto found = client.partitions(replicator::to_pattern(*key));
    if (!found) return session.fail(found.error());
    if (found->partitions().empty()) return session.usage(flags.partition + " is no partition of this link");
    const pb::Partition& partition = found->partitions(0);
    if (flags.exit.empty()) return show_fault(session, flags, partition, found->taken_at());

    pb::ResolveRequest request;
    *request.mutable_id() = replicator::to_proto(*key);
    request.set_exit(flags.exit);
    ask_and_do(session, flags.output, flags.consent, client, std::move(request), &AdminClient::resolve,
               fmt::format("Resolve {} as {}?", flags.partition, flags.exit),
               fault_view(partition, found->taken_at()) + "\n");
  });
}

}  // namespace

void add_resolve(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("resolve", "Takes one way out of a partition's fault");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("PARTITION", flags->partition, "stream/topic/partition")->required();
  verb->add_option("--as", flags->exit, "The exit to take; without it, the fault and its exits are shown");
  add_consent_flags(*verb, flags->consent);
  verb->footer(
      "Shows what the exit means, asks, and records who did it. Each exit is taken\n"
      "once: the next fault of the same partition asks again.\n\n"
      "Exit code: 0 done; 1 there is a fault and nothing was done, or it was refused;\n"
      "2 no such partition or exit; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate resolve orders/events/3      # what is wrong, what can I do?\n"
      "  iggy-replicate resolve orders/events/3 --as accept --dry-run\n"
      "  iggy-replicate resolve orders/events/3 --as accept\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
