#include "replicator/drill/drill.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>

#include <fmt/format.h>
#include <stdlib.h>

#include "cli/commands/config_flags.h"
#include "cli/drill_link.h"
#include "cli/end_view.h"
#include "cli/output.h"
#include "iggy/replicate/admin/v1/report.pb.h"
#include "replicator/admin/to_proto.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  ConfigFlags config;
  replicator::DrillLoadOptions load;
  std::string id, cleanup, folder, kill_command, kill_container, restart_command, failback;
  int kill_pid = 0;
  double load_for = 10, after_for = 3;
  std::optional<std::uint64_t> rpo_messages_max;
  std::optional<double> rpo_seconds_max, rto_seconds_max;
  bool predict = false;
  double heartbeat = 0;
};

double seconds(std::uint64_t micros) { return static_cast<double>(micros) / 1e6; }

base::Status kill_upstream(const Flags& flags) {
  if (flags.kill_pid > 0) {
    if (::kill(flags.kill_pid, SIGKILL) == 0) return base::ok();
    return base::Error(base::ErrorCode::kInvalidArgument, "kill", std::to_string(flags.kill_pid), std::strerror(errno));
  }
  const std::string command =
      flags.kill_container.empty() ? flags.kill_command : "docker kill '" + flags.kill_container + "' >/dev/null";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): the user's own command is what is asked for
  if (status == 0) return base::ok();
  return base::Error(base::ErrorCode::kInvalidArgument, "kill", command, fmt::format("ended with {}", status));
}

base::Status restart_upstream(const Flags& flags) {
  const std::string command =
      flags.restart_command.empty() ? "docker start '" + flags.kill_container + "' >/dev/null" : flags.restart_command;
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): the user's own command is what is asked for
  if (status == 0) return base::ok();
  return base::Error(base::ErrorCode::kInvalidArgument, "restart", command, fmt::format("ended with {}", status));
}

pb::DrillReport to_proto(const replicator::DrillReport& report, const Flags& flags) {
  const replicator::DrillVerdict& verdict = report.verdict;
  pb::DrillReport out;
  out.set_id(report.id);
  out.set_seed(flags.load.seed);
  out.set_acknowledged(verdict.acknowledged);
  out.set_rpo_messages(verdict.lost);
  out.set_rpo_micros(verdict.lost_micros);
  out.set_worst_partition(verdict.worst_partition);
  out.set_worst_messages(verdict.worst_lost);
  out.set_rto_micros(report.rto_micros);
  for (const replicator::DrillPhase& phase : report.phases) {
    auto* const each = out.add_phases();
    each->set_name(phase.name);
    each->set_micros(phase.micros);
  }
  out.set_detected_by(report.detected_by);
  *out.mutable_predicted() = replicator::to_proto(report.predicted);
  *out.mutable_stated() = replicator::to_proto(report.stated);
  out.set_prediction_error(static_cast<std::int64_t>(report.stated.messages + report.stated.unseen) -
                           static_cast<std::int64_t>(verdict.lost));
  out.set_lost_after(verdict.lost_after);
  out.set_uncertain_arrived(verdict.uncertain_arrived);
  out.set_duplicates(verdict.duplicates);
  out.set_out_of_order(verdict.out_of_order);
  out.set_damaged(verdict.damaged);
  for (const replicator::DrillConsumer& consumer : verdict.consumers) {
    auto* const each = out.add_consumers();
    each->set_name(consumer.name);
    each->set_position(consumer.position);
    each->set_duplicates(consumer.duplicates);
    each->set_skips(consumer.skips);
  }
  out.set_journal(report.journal);
  for (const std::string& left : report.left) out.add_left(left);
  const auto exceeds = [&](bool does, std::string text) {
    if (does) out.add_exceeded(std::move(text));
  };
  if (flags.rpo_messages_max) {
    exceeds(verdict.lost > *flags.rpo_messages_max,
            fmt::format("RPO {} messages, allowed {}", verdict.lost, *flags.rpo_messages_max));
  }
  if (flags.rpo_seconds_max) {
    exceeds(seconds(verdict.lost_micros) > *flags.rpo_seconds_max,
            fmt::format("RPO {:.3f} s, allowed {} s", seconds(verdict.lost_micros), *flags.rpo_seconds_max));
  }
  if (flags.rto_seconds_max) {
    exceeds(seconds(report.rto_micros) > *flags.rto_seconds_max,
            fmt::format("RTO {:.3f} s, allowed {} s", seconds(report.rto_micros), *flags.rto_seconds_max));
  }
  if (report.failback) {
    const replicator::DrillFailback& back = *report.failback;
    auto* const each = out.mutable_failback();
    each->set_mode(flags.failback);
    each->set_orphans(back.orphans);
    each->set_expected(back.expected);
    each->set_missing(back.missing);
    each->set_duplicates(back.duplicates);
    each->set_micros(back.micros);
    exceeds(back.orphans != back.expected,
            fmt::format("failback listed {} orphans, there were {}", back.orphans, back.expected));
    exceeds(back.missing > 0, fmt::format("the old primary lacks {} messages after the way back", back.missing));
    exceeds(back.duplicates > 0, fmt::format("the old primary holds {} messages twice", back.duplicates));
  }
  exceeds(!verdict.is_sound(), "the new primary or a consumer is not as it must be: see the counts");
  return out;
}

std::string drill_view(const pb::DrillReport& report) {
  std::string text = fmt::format("drill {}, seed {}\n\n", report.id(), report.seed());
  text += wrap(fmt::format("RPO  {} of {} acknowledged messages lost{}", format_count(report.rpo_messages()),
                           format_count(report.acknowledged()),
                           report.rpo_messages() == 0
                               ? std::string()
                               : fmt::format(", the newest {:.3f} s; worst {}: {}", seconds(report.rpo_micros()),
                                             report.worst_partition(), format_count(report.worst_messages()))),
               "     ", "");
  text += wrap(fmt::format("     the failover said {} that were seen and {} since the last look{}, {:+d} off",
                           format_count(report.stated().messages()), format_count(report.stated().unseen_messages()),
                           report.stated().unknown_partitions() > 0
                               ? fmt::format(" and {} partitions unknown", report.stated().unknown_partitions())
                               : std::string(),
                           report.prediction_error()),
               "     ", "     ");
  text += fmt::format("RTO  {:.3f} s, noticed first by the {}\n", seconds(report.rto_micros()), report.detected_by());
  for (const auto& phase : report.phases())
    text += fmt::format("     {:<14} {:>8.3f} s\n", phase.name(), seconds(phase.micros()));
  text += fmt::format("\nnew primary: {} duplicates, {} out of order, {} damaged, {} of its own lost\n",
                      report.duplicates(), report.out_of_order(), report.damaged(), report.lost_after());
  if (report.uncertain_arrived() > 0) {
    text += fmt::format("             {} messages without an acknowledgment arrived all the same\n",
                        report.uncertain_arrived());
  }
  if (report.consumers_size() > 0) {
    Table table({"CONSUMER", "POSITION ", "DUPLICATES", "SKIPPED"});
    for (const auto& consumer : report.consumers()) {
      table.add(
          {consumer.name(), consumer.position(), format_count(consumer.duplicates()), format_count(consumer.skips())});
    }
    text += "\n" + table.to_string();
  }
  if (report.has_failback()) {
    const auto& back = report.failback();
    text += fmt::format("\nway back ({}): {} orphans listed, {} were there; {} missing, {} twice after {:.3f} s\n",
                        back.mode(), back.orphans(), back.expected(), back.missing(), back.duplicates(),
                        seconds(back.micros()));
  }
  text += "\njournal of acknowledgments: " + report.journal() + "\n";
  for (const std::string& left : report.left()) text += wrap(left, "    ", "left behind: ");
  for (const std::string& exceeded : report.exceeded()) text += wrap(exceeded, "    ", "NOT HELD: ");
  return text;
}

void predict(Session& session, const Flags& flags) {
  with_client(session, flags.target, [&](AdminClient& client) {
    pb::FailoverRequest request;
    request.set_actor(actor());
    request.set_dry_run(true);
    auto report = client.failover(request);
    if (!report) return session.fail(report.error());
    session.streams.out << (flags.output.is_json() ? to_json(report->loss()) : loss_view(report->loss()));
    if (report->loss().unknown_partitions() > 0) session.code = ExitCode::kProblem;
    const std::uint64_t messages = report->loss().messages() + report->loss().unseen_messages();
    if (flags.rpo_messages_max && messages > *flags.rpo_messages_max) session.code = ExitCode::kProblem;
  });
}

std::optional<replicator::DrillOptions> options_of(Session& session, const Flags& flags) {
  std::string folder = flags.folder;
  if (folder.empty()) {
    std::string name = (std::filesystem::temp_directory_path() / "iggy-replicate-drill-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      session.fail({base::ErrorCode::kStateUnavailable, "drill", name, std::strerror(errno)});
      return std::nullopt;
    }
    folder = name;
  }
  replicator::DrillOptions options;
  options.id = flags.id;
  if (options.id.empty()) options.id = fmt::format("{:08x}", std::random_device()());
  options.folder = folder;
  options.load = flags.load;
  options.load_for = base::Duration(static_cast<std::int64_t>(flags.load_for * 1e6));
  options.after_for = base::Duration(static_cast<std::int64_t>(flags.after_for * 1e6));
  options.say = [&session, &flags](const std::string& line) {
    if (!flags.output.is_json()) session.streams.out << line << std::endl;
  };
  return options;
}

// The link's own word, held against heartbeats that went through a link beside it.
void check(Session& session, const Flags& flags, const replicator::Config& config) {
  auto options = options_of(session, flags);
  if (!options) return;
  options->load_for = base::Duration(static_cast<std::int64_t>(flags.heartbeat * 1e6));
  options->load.readers = 0;
  DrillLinkProcess link(config, options->folder);
  auto checked = replicator::check_prediction(config, *options, link);
  if (!checked) return session.fail(checked.error());
  pb::PredictionReport out;
  out.set_looks(checked->looks);
  out.set_acknowledged(checked->acknowledged);
  out.set_worst_error(checked->worst_error);
  out.set_worst_predicted(checked->worst_predicted);
  out.set_worst_truth(checked->worst_truth);
  out.set_worst_loss(checked->worst_loss);
  for (const std::string& left : checked->left) out.add_left(left);
  if (flags.output.is_json()) {
    session.streams.out << to_json(out);
  } else {
    session.streams.out << wrap(fmt::format(
        "{} looks at {} heartbeats: at worst {} messages off ({} predicted, {} missing); the most that would have been "
        "lost: {}",
        out.looks(), format_count(out.acknowledged()), out.worst_error(), out.worst_predicted(), out.worst_truth(),
        out.worst_loss()));
  }
  if (out.worst_error() > flags.load.batch) session.code = ExitCode::kProblem;
}

void run(Session& session, const Flags& flags) {
  if (flags.predict && flags.heartbeat <= 0) return predict(session, flags);
  auto loaded = load(session, flags.config);
  if (!loaded) return;
  if (flags.predict) return check(session, flags, loaded->config);
  if (!flags.cleanup.empty()) {
    for (const std::string& left : replicator::cleanup_drill(loaded->config, flags.cleanup)) {
      session.streams.err << wrap(left, "    ", "left behind: ");
      session.code = ExitCode::kProblem;
    }
    return;
  }
  if ((flags.kill_pid > 0) + !flags.kill_container.empty() + !flags.kill_command.empty() != 1) {
    return session.usage("say how the upstream is killed: --kill-pid, --kill-container or --kill-command, one of them");
  }
  if (!flags.failback.empty() && flags.restart_command.empty() && flags.kill_container.empty()) {
    return session.usage("say how the upstream comes back: --restart-command");
  }
  auto made = options_of(session, flags);
  if (!made) return;
  replicator::DrillOptions& options = *made;
  options.kill = [&flags] { return kill_upstream(flags); };
  if (!flags.failback.empty()) options.restart = [&flags] { return restart_upstream(flags); };
  options.rebuild = flags.failback == "rebuild";
  DrillLinkProcess link(loaded->config, options.folder);
  auto report = replicator::run_drill(loaded->config, options, link);
  if (!report) return session.fail(report.error());
  const pb::DrillReport out = to_proto(*report, flags);
  session.streams.out << (flags.output.is_json() ? to_json(out) : "\n" + drill_view(out));
  if (out.exceeded_size() > 0) session.code = ExitCode::kProblem;
}

}  // namespace

void add_drill(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb =
      app.add_subcommand("drill", "Measured rehearsal: kills the upstream, fails over, reports RPO and RTO");
  add_output_flags(*verb, flags->output);
  add_admin_flags(*verb, flags->target);
  add_config_flags(*verb, flags->config,
                   {"link.upstream_url", "link.upstream_url_file", "link.downstream_url", "link.downstream_url_file",
                    "copy.poll_interval", "copy.commit_interval", "consumers.interval", "time.connect_timeout",
                    "time.read_timeout"});
  verb->add_flag("--predict", flags->predict, "What the running link would lose now; nothing is killed");
  verb->add_option("--kill-pid", flags->kill_pid, "Process of the upstream, killed with SIGKILL");
  verb->add_option("--kill-container", flags->kill_container, "Container of the upstream, killed with docker kill");
  verb->add_option("--kill-command", flags->kill_command, "Command that ends the upstream");
  verb->add_option("--failback", flags->failback, "Afterwards the way back: keep or rebuild")
      ->check(CLI::IsMember({"keep", "rebuild"}));
  verb->add_option("--restart-command", flags->restart_command,
                   "Command that brings the upstream back [docker start, of --kill-container]");
  verb->add_option("--heartbeat", flags->heartbeat,
                   "With --predict: holds the prediction against a load of its own for so many seconds")
      ->check(CLI::Range(0.5, 86400.0));
  verb->add_option("--rate", flags->load.rate, "Messages per second [500]")->check(CLI::Range(1.0, 1e6));
  verb->add_option("--size", flags->load.size, "Payload bytes [200]")->check(CLI::Range(40U, 1'000'000U));
  verb->add_option("--batch", flags->load.batch, "Messages per send [10]")->check(CLI::Range(1U, 1000U));
  verb->add_option("--partitions", flags->load.partitions, "Of the drill's topic [4]")->check(CLI::Range(1U, 1000U));
  verb->add_option("--readers", flags->load.readers, "Consumers [2]")->check(CLI::Range(0U, 100U));
  verb->add_option("--seed", flags->load.seed, "Of load and moment of the kill [1]");
  verb->add_option("--load-for", flags->load_for, "Seconds of load before the kill [10]");
  verb->add_option("--after-for", flags->after_for, "Seconds of load on the new primary [3]");
  verb->add_option("--max-rpo-messages", flags->rpo_messages_max, "More lost messages: exit code 1");
  verb->add_option("--max-rpo-seconds", flags->rpo_seconds_max, "More lost time: exit code 1");
  verb->add_option("--max-rto-seconds", flags->rto_seconds_max, "Slower: exit code 1");
  verb->add_option("--id", flags->id, "Names the drill's streams [random]");
  verb->add_option("--folder", flags->folder, "For journal, log and state file [a new one in /tmp]")
      ->check(CLI::ExistingDirectory);
  verb->add_option("--cleanup", flags->cleanup, "Delete the streams that the drill of this id left, and end");
  verb->footer(
      "THE UPSTREAM IS REALLY KILLED, with everything on it: rehearse on a copy of\n"
      "production, or in a window. The drill's load, link and streams are its own\n"
      "(iggy-replicate-drill-ID); a stream of that name that is there already is\n"
      "refused. A failover ends a link for good, so the link that protects production\n"
      "is not used, nor touched.\n\n"
      "Exit code: 0 all thresholds held; 1 one did not, or something was damaged,\n"
      "duplicated, disordered or skipped; 2 usage; 3 a cluster can't be reached.\n\n"
      "Examples:\n"
      "  iggy-replicate drill --upstream iggy://u:p@a:8090 \\\n"
      "                       --downstream iggy://u:p@b:8090 \\\n"
      "                       --kill-container iggy-a --max-rpo-seconds 1\n"
      "  iggy-replicate drill --predict\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
