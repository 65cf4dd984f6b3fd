#include <iostream>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "replicator/admin/to_proto.h"
#include "replicator/model/partition_glob.h"
#include "state/sqlite_store.h"

namespace cli {
namespace {

struct Flags {
  AdminTarget target;
  OutputFlags output;
  std::string partition;
  std::uint64_t offset = 0;
  std::string from = "upstream";
  std::string file;
  bool is_upstream() const { return from == "upstream"; }
};

base::Result<pb::TranslateResponse> ask_file(const Flags& flags, const base::PartitionKey& key) {
  auto store = state::SqliteStore::open(flags.file, state::OpenMode::kReadOnly);
  if (!store) return std::move(store).error();
  auto map = state::load_offset_map(**store, key);
  if (!map) return std::move(map).error();
  const state::Side side = flags.is_upstream() ? state::Side::kUpstream : state::Side::kDownstream;
  return replicator::to_proto(key, map->translate(side, flags.offset));
}

base::Result<pb::TranslateResponse> ask_link(const Flags& flags, const base::PartitionKey& key) {
  auto client = AdminClient::create(flags.target);
  if (!client) return std::move(client).error();
  pb::TranslateRequest request;
  *request.mutable_id() = replicator::to_proto(key);
  request.set_from(flags.is_upstream() ? pb::SIDE_UPSTREAM : pb::SIDE_DOWNSTREAM);
  request.set_offset(flags.offset);
  return client->translate(request);
}

std::string view(const Flags& flags, const pb::TranslateResponse& answer) {
  const char* const other = flags.is_upstream() ? "downstream" : "upstream";
  const std::string asked = fmt::format("{} {} offset {}", flags.partition, flags.from, flags.offset);
  std::string text;
  if (answer.has_counterpart()) {
    text = wrap(fmt::format("{} is {} offset {}: {}", asked, other, answer.counterpart(), answer.text()));
  } else {
    text = wrap(fmt::format("{} has no counterpart: {}", asked, answer.text()));
  }
  if (answer.mapping() == pb::MAPPING_CONFIRMED) return text;
  return text + (answer.has_next() ? fmt::format("a reader goes on at {} offset {}\n", other, answer.next())
                                   : fmt::format("where a reader goes on {} is not confirmed\n", other));
}

void run(Session& session, const Flags& flags) {
  auto key = replicator::parse_partition(flags.partition);
  if (!key) return session.fail(key.error());
  auto answer = flags.file.empty() ? ask_link(flags, *key) : ask_file(flags, *key);
  if (!answer) return session.fail(answer.error());
  if (answer->mapping() != pb::MAPPING_CONFIRMED) session.code = ExitCode::kProblem;
  session.streams.out << (flags.output.is_json() ? to_json(*answer) : view(flags, *answer));
}

}  // namespace

void add_translate(CLI::App& app, Session& session) {
  auto flags = std::make_shared<Flags>();
  CLI::App* const verb = app.add_subcommand("translate", "Upstream offset to downstream offset, or back");
  add_admin_flags(*verb, flags->target);
  add_output_flags(*verb, flags->output);
  verb->add_option("PARTITION", flags->partition, "stream/topic/partition")->required();
  verb->add_option("OFFSET", flags->offset, "Offset on the side that --from names")->required();
  verb->add_option("--from", flags->from, "upstream or downstream [upstream]")
      ->check(CLI::IsMember({"upstream", "downstream"}));
  verb->add_option("--state", flags->file, "Ask this state file, not the running link");
  verb->footer(
      "Exact where the downstream has confirmed the place. Says so where it is only\n"
      "assumed, a gap (and which), below where copying began, not yet copied, or\n"
      "not known; and where a reader whose next message this is goes on.\n\n"
      "Exit code: 0 the exact counterpart; 1 any other answer, or no such partition;\n"
      "2 usage; 3 no link answers.\n\n"
      "Examples:\n"
      "  iggy-replicate translate orders/events/3 1200\n"
      "  iggy-replicate translate orders/events/3 1187 --from downstream\n"
      "  iggy-replicate translate orders/events/3 1200 --state link.db\n");
  verb->callback([&session, flags] { run(session, *flags); });
}

}  // namespace cli
