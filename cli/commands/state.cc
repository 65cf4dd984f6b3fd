#include <iostream>

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/views.h"
#include "iggy/replicate/admin/v1/report.pb.h"
#include "replicator/admin/to_proto.h"
#include "replicator/model/partition_glob.h"
#include "state/sqlite_store.h"

namespace cli {
namespace {

struct Flags {
  OutputFlags output;
  std::string file = "iggy-replicate.db";
  std::string target;
};

// What a row says without a daemon: positions and decisions, no ends, no lag.
replicator::PartitionStatus to_status(const state::PartitionRow& row) {
  replicator::PartitionStatus status;
  status.key = row.key;
  status.downstream = row.downstream;
  status.phase = row.fault.active()                       ? replicator::Phase::kFault
                 : row.desired == state::Desired::kPaused ? replicator::Phase::kPaused
                                                          : replicator::Phase::kStopped;
  status.generation = row.generation;
  status.incarnation = row.incarnation;
  status.committed = status.acked = status.polled = row.watermark;
  status.downstream_end = row.down_end;
  status.fault = row.fault;
  status.counters = row.counters;
  status.desired = row.desired;
  status.caught_up_at = row.caught_up_at;
  status.durability = row.durability;
  return status;
}

std::string state_view(const pb::StateFile& file, const state::LinkRow* link) {
  std::string text;
  if (link == nullptr) {
    text += "no link has used this file yet\n";
  } else {
    text += wrap(fmt::format("{}, {}, generation {}", link->id, link->state, link->generation), "            ",
                 "link        ");
    text += wrap(link->upstream, "            ", "upstream    ");
    text += wrap(link->downstream, "            ", "downstream  ");
  }
  if (file.partitions().empty()) return text + "\nno partitions\n";
  Table table({"PARTITION", "STATE ", "WATERMARK", "DOWN END", "COPIED", "GEN", "INC"});
  std::string faults;
  for (const pb::Partition& partition : file.partitions()) {
    table.add({name_of(partition.id()), partition.phase() == pb::PHASE_STOPPED ? "-" : phase_text(partition.phase()),
               std::to_string(partition.committed()), std::to_string(partition.downstream_end()),
               format_count(partition.counters().copied()), std::to_string(partition.generation()),
               std::to_string(partition.incarnation())});
    if (partition.has_fault()) faults += "\n" + fault_view(partition, file.link().taken_at());
  }
  return text + "\n" + table.to_string() + faults;
}

void show(Session& session, const Flags& flags) {
  auto store = state::SqliteStore::open(flags.file, state::OpenMode::kReadOnly);
  if (!store) return session.fail(store.error());
  auto link = (*store)->link();
  if (!link) return session.fail(link.error());
  auto rows = (*store)->partitions();
  if (!rows) return session.fail(rows.error());

  replicator::LinkStatus status;
  status.state = "stopped";
  status.state_file = flags.file;
  status.taken_at = base::system_wall_micros();
  if (*link) {
    status.link_id = (*link)->id;
    status.state_detail = (*link)->state;
    status.generation = (*link)->generation;
    status.upstream.url = (*link)->upstream;
    status.downstream.url = (*link)->downstream;
  }
  for (const state::PartitionRow& row : *rows) status.partitions.push_back(to_status(row));
  pb::StateFile file;
  *file.mutable_link() = replicator::to_proto(status, false);
  for (const auto& partition : status.partitions) *file.add_partitions() = replicator::to_proto(partition);
  session.streams.out << (flags.output.is_json() ? to_json(file) : state_view(file, *link ? &**link : nullptr));
}

void check(Session& session, const Flags& flags) {
  auto store = state::SqliteStore::open(flags.file, state::OpenMode::kReadOnly);
  if (!store) return session.fail(store.error());
  auto problems = (*store)->check();
  if (!problems) return session.fail(problems.error());
  session.code = problems->empty() ? ExitCode::kGood : ExitCode::kProblem;
  if (flags.output.is_json()) {
    pb::StateCheck report;
    report.set_sound(problems->empty());
    for (const std::string& problem : *problems) report.add_problems(problem);
    session.streams.out << to_json(report);
    return;
  }
  for (const std::string& problem : *problems) session.streams.out << wrap(problem, "  ", "");
  session.streams.out << flags.file << (problems->empty() ? " is sound\n" : " is DAMAGED\n");
}

void backup(Session& session, const Flags& flags) {
  auto store = state::SqliteStore::open(flags.file, state::OpenMode::kReadOnly);
  if (!store) return session.fail(store.error());
  if (auto status = (*store)->backup(flags.target); !status) return session.fail(status.error());
  session.streams.out << fmt::format("{} is a copy of {}\n", flags.target, flags.file);
}

}  // namespace

void add_state(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("state", "Looks into the state file, with or without a running link");
  verb->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, void (*run)(Session&, const Flags&)) {
    CLI::App* const sub = verb->add_subcommand(name, help);
    sub->add_option("--state", flags->file, "The SQLite file [iggy-replicate.db]")
        ->envname("IGGY_REPLICATE_LINK_STATE_FILE");
    sub->callback([&session, flags, run] { run(session, *flags); });
    return sub;
  };
  add_output_flags(*add("show", "Link and partitions as last committed", show), flags->output);
  add_output_flags(*add("check", "Integrity of the file and of what its rows promise", check), flags->output);
  add("backup", "Writes a consistent copy, also while a link runs", backup)
      ->add_option("TARGET", flags->target, "File to write; an existing one is replaced")
      ->required();
  verb->footer(
      "Exit code: 0 good; 1 the file is damaged, missing or can't be read; 2 usage.\n\n"
      "Examples:\n"
      "  iggy-replicate state show --state link.db\n"
      "  iggy-replicate state check --state link.db\n"
      "  iggy-replicate state backup --state link.db /backup/link.db\n");
}

}  // namespace cli
