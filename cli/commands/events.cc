#include <iostream>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/views.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::uint32_t newest = 100;
};

void run(Session& session, const Flags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) {
    auto events = client.events(flags.newest);
    if (!events) return session.fail(events.error());
    session.streams.out << (flags.output.is_json() ? to_json(*events) : events_view(events->events()));
  });
}

}  // namespace

void add_events(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("events", "The audit trail: what people did and what was repaired");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("-n,--newest", flags->newest, "At most so many [100]")->check(CLI::Range(1, 10000));
  verb->footer("Examples:\n  iggy-replicate events -n 20\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
