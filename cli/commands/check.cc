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

using replicator::Verdict;

struct Flags {
  ConfigFlags config;
  OutputFlags output;
};

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "unknown";
}

pb::CheckReport to_proto(const replicator::CheckReport& report, bool go) {
  pb::CheckReport out;
  out.set_go(go);
  for (const replicator::CheckItem& item : report.items) {
    pb::CheckReport::Item* const copy = out.add_items();
    copy->set_side(item.side);
    copy->set_item(item.item);
    copy->set_verdict(std::string(name_of(item.verdict)));
    copy->set_text(item.text);
  }
  return out;
}

std::string check_view(const replicator::CheckReport& report, bool go) {
  std::string text;
  std::string_view side;
  for (const replicator::CheckItem& item : report.items) {
    if (item.side != side) text += fmt::format("{}\n", item.side);
    side = item.side;
    const std::string name = item.item.empty() ? std::string() : item.item + ": ";
    text += wrap(name + item.text, "        ",
                 item.verdict == Verdict::kFail ? "  FAIL  " : fmt::format("  {:<4}  ", name_of(item.verdict)));
  }
  return text + (go ? "go\n" : "NO GO\n");
}

void run(Session& session, const Flags& flags) {
  auto loaded = load(session, flags.config);
  if (!loaded) return;
  setup_logging(loaded->config);
  auto report = replicator::check_link(loaded->config);
  if (!report) return session.fail(report.error());
  const bool go = std::none_of(report->items.begin(), report->items.end(),
                               [](const replicator::CheckItem& item) { return item.verdict == Verdict::kFail; });
  session.code = go ? ExitCode::kGood : ExitCode::kProblem;
  session.streams.out << (flags.output.is_json() ? to_json(to_proto(*report, go)) : check_view(*report, go));
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb =
      app.add_subcommand("check", "Looks at both ends, rights, durability and the state file: go or no go");
  add_config_flags(*verb, flags->config);
  add_output_flags(*verb, flags->output);
  verb->footer(
      "Changes nothing. Takes the same flags, variables and file as run.\n\n"
      "Exit code: 0 go; 1 no go: something failed; 2 the configuration is wrong.\n\n"
      "Examples:\n"
      "  iggy-replicate check --config link.toml\n"
      "  iggy-replicate check --upstream iggy://user:pass@a:8090 \\\n"
      "                       --downstream iggy://user:pass@b:8090\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
