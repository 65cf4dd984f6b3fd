#include <cmath>
#include <iostream>

#include "cli/commands/commands.h"
#include "cli/end_view.h"
#include "cli/output.h"
#include "cli/views.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string fence;
  bool fenced_by_hand = false;
  double still_for = 5;
  bool yes = false;
  bool no_verify = false;
  bool dry_run = false;
};

// What was copied up to now is compared here, with progress and for as long as it takes; the link compares the rest.
bool compare_first(Session& session, AdminClient& client) {
  auto report = client.verify({}, [](const pb::VerifyProgress&) {});
  if (!report) {
    session.fail(report.error());
    return false;
  }
  if (report->verdict() == pb::VERDICT_EQUAL) return true;
  session.streams.err << verify_view(*report)
                      << "Nothing was changed: both sides are not equal. --no-verify ends the link all the same.\n";
  session.code = ExitCode::kProblem;
  return false;
}

void run(Session& session, const Flags& flags) {
  constexpr std::string_view kUser = "user=";
  if (flags.fence.empty() != flags.fenced_by_hand || (!flags.fence.empty() && !flags.fence.starts_with(kUser))) {
    return session.usage(
        "say how the upstream is fenced: --fence user=NAME takes the right to send from the writers' user, "
        "--fenced-by-hand says that you have stopped the writers");
  }
  with_client(session, flags.target, [&](AdminClient& client) {
    pb::PromoteRequest request;
    request.set_actor(actor());
    if (!flags.fence.empty()) request.set_fence_user(flags.fence.substr(kUser.size()));
    request.set_still_for_ms(static_cast<std::uint32_t>(std::lround(flags.still_for * 1000)));
    request.set_no_verify(flags.no_verify);
    if (flags.dry_run) {
      request.set_dry_run(true);
      auto preview = client.promote(request);
      if (!preview) return session.fail(preview.error());
      session.streams.out << (flags.output.is_json() ? to_json(*preview) : end_view(*preview));
      return;
    }
    if (!flags.yes &&
        !agreed(session, flags.fence.empty() ? "End the link for good? The writers are stopped, as you say."
                                             : "Take " + flags.fence.substr(kUser.size()) +
                                                   "'s right to send upstream, and end the link for good?")) {
      return;
    }
    if (!flags.no_verify && !compare_first(session, client)) return;
    auto done = client.promote(request);
    if (!done) return session.fail(done.error());
    show_end(session, flags.output, *done);
  });
}

}  // namespace

void add_promote(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("promote", "Planned move: ends the link when nothing is left to copy");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("--fence", flags->fence, "user=NAME: this user of the upstream may not send any more");
  verb->add_flag("--fenced-by-hand", flags->fenced_by_hand, "The writers were stopped by you");
  verb->add_option("--still-for", flags->still_for, "Seconds in which the upstream's ends must not move [5]")
      ->check(CLI::Range(0.001, 600.0));
  verb->add_flag("--no-verify", flags->no_verify, "Do not compare both sides first");
  verb->add_flag("-y,--yes", flags->yes, "Do not ask");
  verb->add_flag("--dry-run", flags->dry_run, "Look and say what would be done; takes no right");
  verb->footer(
      "Refuses while the upstream grows, a message is left to copy, or both sides\n"
      "differ (compared from where they were last found equal), so nothing is lost.\n"
      "Stored offsets of consumers are moved. A right that was taken stays taken when\n"
      "the end is refused: it was asked for. Rights to manage streams and topics imply\n"
      "sending, and go as well; they are listed, and stand in `events`.\n\n"
      "Exit code: 0 done; 1 refused, not confirmed, or something is not recorded yet;\n"
      "2 usage; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate promote --fence user=producer\n"
      "  iggy-replicate promote --fenced-by-hand --still-for 30\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
