// throttle: how fast may be read, shown and changed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands/commands.h"
#include "replicator/model/rate.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string what;
  std::vector<std::string> rate;
  bool dry_run = false;
};

void show(Session& session, const Flags& flags, AdminClient& client) {
  auto link = client.link();
  if (!link) return session.fail(link.error());
  if (flags.output.is_json()) {
    pb::Link shown;
    for (const pb::Setting& setting : link->settings()) {
      if (setting.key().starts_with("throttle.")) *shown.add_settings() = setting;
    }
    session.streams.out << to_json(shown);
    return;
  }
  for (const pb::Setting& setting : link->settings()) {
    if (!setting.key().starts_with("throttle.")) continue;
    std::string line =
        fmt::format("{:<17} {}", setting.key(), setting.effective().empty() ? "none" : setting.effective());
    if (setting.source() == "run time") {
      line += fmt::format("  (at run time; configured: {})", setting.set().empty() ? "nothing" : setting.set());
    }
    session.streams.out << printable(line) << "\n";
  }
}

void change(Session& session, const Flags& flags, AdminClient& client) {
  auto rate = replicator::parse_rate(fmt::format("{}", fmt::join(flags.rate, " ")));
  if (!rate) return session.usage(rate.error().message());
  pb::SetThrottleRequest request;
  if (flags.what != "link") request.set_glob(flags.what);
  request.set_bytes_per_second(rate->bytes);
  request.set_messages_per_second(rate->messages);
  request.set_actor(actor());
  request.set_dry_run(flags.dry_run);
  auto response = client.set_throttle(request);
  if (!response) return session.fail(response.error());
  show_outcome(session, flags.output, *response, flags.dry_run);
}

}  // namespace

void add_throttle(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("throttle", "How fast may be read, of the link and per topic; changes it");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("WHAT", flags->what, "link, or a glob over stream/topic: each topic that matches by itself");
  verb->add_option("RATE", flags->rate, "Such as 10MiB/s, 500msg/s, both, or off");
  verb->add_flag("--dry-run", flags->dry_run, "Say what would be done, and do nothing");
  verb->footer(
      "Holds at once, until the next restart or reload; throttle.link and\n"
      "throttle.topics in the configuration last. What is near its end goes before\n"
      "what catches up.\n\n"
      "Exit code: 0 done; 2 the rate or the glob is wrong; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate throttle\n"
      "  iggy-replicate throttle link 50MiB/s\n"
      "  iggy-replicate throttle 'orders/*' 10MiB/s 5000msg/s\n"
      "  iggy-replicate throttle 'orders/*' off\n");
  verb->callback([&session, flags] {
    if (!flags->what.empty() && flags->rate.empty()) return session.usage("say how fast: 10MiB/s, 500msg/s or off");
    with_client(session, flags->target, [&](AdminClient& client) {
      if (flags->what.empty()) return show(session, *flags, client);
      change(session, *flags, client);
    });
  });
}

}  // namespace cli
