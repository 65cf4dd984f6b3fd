#include <iostream>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/views.h"
#include "replicator/model/units.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string glob;
  bool full = false;
  std::string rate;
  bool quiet = false;
};

ExitCode code_of(pb::Verdict verdict) {
  switch (verdict) {
    case pb::VERDICT_EQUAL:
      return ExitCode::kGood;
    case pb::VERDICT_UNREACHABLE:
      return ExitCode::kUnreachable;
    default:
      return ExitCode::kProblem;
  }
}

void run(Session& session, const Flags& flags) {
  pb::VerifyRequest request;
  request.set_glob(flags.glob);
  request.set_full(flags.full);
  if (!flags.rate.empty()) {
    auto rate = replicator::parse_size(flags.rate);
    if (!rate) return session.usage(fmt::format("--rate: {}", rate.error().message()));
    request.set_bytes_per_second(*rate);
  }
  with_client(session, flags.target, [&](AdminClient& client) {
    const bool shows = session.streams.in_is_terminal && !flags.quiet;
    auto report = client.verify(request, [&](const pb::VerifyProgress& progress) {
      if (shows) session.streams.err << "\r" << progress_view(progress) << std::flush;
    });
    if (shows) session.streams.err << "\r" << std::string(kColumns - 1, ' ') << "\r";
    if (!report) return session.fail(report.error());
    session.code = code_of(report->verdict());
    session.streams.out << (flags.output.is_json() ? to_json(*report) : verify_view(*report));
  });
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("verify", "Compares both sides by content");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("GLOB", flags->glob, "Only partitions that match: \"orders/*\", \"orders/events/3\"");
  verb->add_flag("--full", flags->full, "From the beginning, not from where the last clean run ended");
  verb->add_option("--rate", flags->rate, "At most so much per second from both sides together: 20MiB");
  verb->add_flag("-q,--quiet", flags->quiet, "No progress on a terminal");
  verb->footer(
      "Reads both sides through the offset map, up to what is committed now, and names\n"
      "the first difference of each partition with the offsets of both sides. What the\n"
      "ledger accepts and what retention took is listed, not compared. -o json is the\n"
      "receipt, with digests.\n\n"
      "Exit code: 0 equal; 1 a difference, or a partition that can't be judged;\n"
      "2 usage; 3 no link answers, or a side can't be read.\n\n"
      "Examples:\n"
      "  iggy-replicate verify\n"
      "  iggy-replicate verify 'orders/*' --full --rate 20MiB\n"
      "  iggy-replicate verify -o json > receipt.json\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
