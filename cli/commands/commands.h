// One verb per file: each adds its subcommand and what it does to the tree. A verb sets `Session::code`; a verb that
// has no word for it leaves kGood.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/admin_client.h"
#include "cli/app.h"
#include "cli/output.h"

namespace cli {

// What all verbs of one run share.
struct Session {
  explicit Session(Streams given) : streams(given) {}
  Streams streams;
  ExitCode code = ExitCode::kGood;

  // Prints the error, sets the code that belongs to it.
  void fail(const base::Error& error);
  void usage(const std::string& sentence);
};

// -o text|json
struct OutputFlags {
  std::string format = "text";
  bool is_json() const { return format == "json"; }
};
void add_output_flags(CLI::App& verb, OutputFlags& flags);

// --admin, --admin-token-file, --admin-ca, and their variables.
void add_admin_flags(CLI::App& verb, AdminTarget& target);

// Runs `use` with a client for `target`; prints what fails.
template <class Use>
void with_client(Session& session, const AdminTarget& target, Use use) {
  auto client = AdminClient::create(target);
  if (!client) return session.fail(client.error());
  use(*client);
}

// Asks "what? [y/N]" where somebody can be asked. kInvalidArgument when nobody can.
base::Result<bool> confirm(Session& session, const std::string& question);

// "user@host" of who runs this.
std::string actor();

// Prints what a command did (or would do) and to which partitions.
void show_outcome(Session& session, const OutputFlags& output, const pb::CommandResponse& response, bool dry_run);

struct Consent {
  bool yes = false;
  bool dry_run = false;
};
void add_consent_flags(CLI::App& verb, Consent& consent);

// Shows what `request` would do (after `before`, where somebody is asked), asks `question`, and does it.
template <class Request>
void ask_and_do(Session& session, const OutputFlags& output, const Consent& consent, AdminClient& client,
                Request request, base::Result<pb::CommandResponse> (AdminClient::*command)(const Request&),
                const std::string& question, const std::string& before = {}) {
  request.set_actor(actor());
  request.set_dry_run(true);
  auto preview = (client.*command)(request);
  if (!preview) return session.fail(preview.error());
  if (consent.dry_run) return show_outcome(session, output, *preview, true);
  if (!consent.yes) {
    session.streams.out << before << wrap(preview->what());
    auto agreed = confirm(session, question);
    if (!agreed) return session.fail(agreed.error());
    if (!*agreed) {
      session.streams.out << "nothing was changed\n";
      session.code = ExitCode::kProblem;
      return;
    }
  }
  request.set_dry_run(false);
  auto done = (client.*command)(request);
  if (!done) return session.fail(done.error());
  show_outcome(session, output, *done, false);
}

// confirm(), with what is said and set when the answer is no.
bool agreed(Session& session, const std::string& question);
// Prints how a link ended; exit code 1 when a part is not done.
void show_end(Session& session, const OutputFlags& output, const pb::EndReport& report);

void add_run(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_plan(CLI::App& app, Session& session);
void add_status(CLI::App& app, Session& session);
void add_health(CLI::App& app, Session& session);
void add_lag(CLI::App& app, Session& session);
void add_pause(CLI::App& app, Session& session);
void add_resume(CLI::App& app, Session& session);
void add_gaps(CLI::App& app, Session& session);
void add_events(CLI::App& app, Session& session);
void add_resolve(CLI::App& app, Session& session);
void add_reset(CLI::App& app, Session& session);
void add_throttle(CLI::App& app, Session& session);
void add_reload(CLI::App& app, Session& session);
void add_translate(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_consumers(CLI::App& app, Session& session);
void add_failover(CLI::App& app, Session& session);
void add_drill(CLI::App& app, Session& session);
void add_failback(CLI::App& app, Session& session);
void add_promote(CLI::App& app, Session& session);
void add_state(CLI::App& app, Session& session);

}  // namespace cli
