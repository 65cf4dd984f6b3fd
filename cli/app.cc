#include "cli/app.h"

#include <algorithm>
#include <iostream>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "version.h"

namespace cli {
namespace {

// CLI11's own layout, with descriptions broken so that a terminal of 80 columns shows them whole.
class NarrowFormatter final : public CLI::Formatter {
 public:
  NarrowFormatter() { column_width(30); }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    return entry(verb->get_display_name(), verb->get_description());
  }

 private:
  std::string entry(const std::string& name, const std::string& description) const {
    const std::string indent(get_column_width(), ' ');
    std::string first = "  " + name;
    std::string above;
    if (first.size() + 2 > indent.size()) {
      above = first + "\n";
      first.clear();
    }
    first.resize(indent.size(), ' ');
    if (description.empty()) return "  " + name + "\n";
    return above + wrap(description, indent, first);
  }
};

}  // namespace

ExitCode run_cli(std::vector<std::string> args, Streams streams) {
  CLI::App app("Keeps a downstream Apache Iggy cluster a faithful copy of an upstream one.", "iggy-replicate");
  app.set_version_flag("--version", std::string(kVersion));
  app.formatter(std::make_shared<NarrowFormatter>());
  app.require_subcommand(1);
  app.footer(
      "Start here:\n"
      "  iggy-replicate check --upstream iggy://user:pass@a:8090 \\\n"
      "                       --downstream iggy://user:pass@b:8090\n"
      "  iggy-replicate plan  ...                      # what would be created\n"
      "  iggy-replicate run   ... --topics 'orders/*'  # copies, until told to stop\n"
      "  iggy-replicate status --watch                 # in another terminal\n"
      "  iggy-replicate resolve orders/events/3        # when a partition has a fault\n\n"
      "`iggy-replicate VERB --help` shows flags and examples of a verb.\n\n"
      "Exit code: 0 good; 1 problem found; 2 usage; 3 no answer.\n");
  Session session(streams);
  add_run(app, session);
  add_check(app, session);
  add_plan(app, session);
  add_status(app, session);
  add_health(app, session);
  add_lag(app, session);
  add_pause(app, session);
  add_resume(app, session);
  add_gaps(app, session);
  add_events(app, session);
  add_resolve(app, session);
  add_reset(app, session);
  add_throttle(app, session);
  add_reload(app, session);
  add_translate(app, session);
  add_verify(app, session);
  add_consumers(app, session);
  add_promote(app, session);
  add_failover(app, session);
  add_failback(app, session);
  add_drill(app, session);
  add_state(app, session);
  // The order in which CLI11 wants them.
  std::reverse(args.begin(), args.end());
  try {
    app.parse(std::move(args));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, streams.out, streams.err) == 0 ? ExitCode::kGood : ExitCode::kUsage;
  }
  return session.code;
}

}  // namespace cli
