#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "cli/commands/config_flags.h"
#include "cli/logging.h"
#include "cli/output.h"
#include "iggy/replicate/admin/v1/report.pb.h"
#include "replicator/run.h"

namespace cli {
namespace {

struct Flags {
  ConfigFlags config;
  OutputFlags output;
};

pb::PlanReport to_proto(const replicator::PlanReport& report) {
  pb::PlanReport out;
  for (const replicator::PlanLine& line : report.lines) {
    pb::PlanReport::Line* const copy = out.add_lines();
    copy->set_topic(line.topic);
    copy->set_downstream(line.downstream);
    copy->set_action(line.action);
    copy->set_text(line.text);
  }
  return out;
}

std::string plan_view(const replicator::PlanReport& report) {
  if (report.lines.empty()) return "nothing to do: no topic matches\n";
  std::string text;
  for (const replicator::PlanLine& line : report.lines) {
    const bool is_renamed = !line.downstream.empty() && line.downstream != line.topic;
    text += wrap(fmt::format("{:<9} {}", line.action, line.topic) + (is_renamed ? " -> " + line.downstream : ""));
    if (!line.text.empty()) text += wrap(line.text, "          ");
  }
  return text;
}

void run(Session& session, const Flags& flags) {
  auto loaded = load(session, flags.config);
  if (!loaded) return;
  setup_logging(loaded->config);
  auto report = replicator::plan_link(loaded->config);
  if (!report) return session.fail(report.error());
  const bool is_refused = std::any_of(report->lines.begin(), report->lines.end(), [](const replicator::PlanLine& line) {
    return line.action == "refuse" || line.action == "fault";
  });
  session.code = is_refused ? ExitCode::kProblem : ExitCode::kGood;
  session.streams.out << (flags.output.is_json() ? to_json(to_proto(*report)) : plan_view(*report));
}

}  // namespace

void add_plan(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("plan", "Says what run would create, change and copy, without doing it");
  add_config_flags(*verb, flags->config);
  add_output_flags(*verb, flags->output);
  verb->footer(
      "Exit code: 0 all of it can be done; 1 a topic is refused, or would stop;\n"
      "2 the configuration is wrong; 3 an end can't be reached.\n\n"
      "Examples:\n"
      "  iggy-replicate plan --config link.toml\n"
      "  iggy-replicate plan --config link.toml --rename 'orders/* -> dr-orders/*'\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
