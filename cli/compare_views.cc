// What `verify` and `consumers` print.
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include "cli/output.h"
#include "cli/views.h"

namespace cli {
namespace {

std::string verdict_text(pb::Verdict verdict) {
  switch (verdict) {
    case pb::VERDICT_EQUAL:
      return "equal";
    case pb::VERDICT_DIFFERENT:
      return "DIFFERENT";
    case pb::VERDICT_UNREACHABLE:
      return "unreachable";
    default:
      return "incomplete";
  }
}

std::string offset_text(bool is_known, std::uint64_t offset) { return is_known ? std::to_string(offset) : "-"; }

}  // namespace

std::string progress_view(const pb::VerifyProgress& progress) {
  std::string text = fmt::format("{} of {} partitions, {} of {} messages", progress.done(), progress.partitions(),
                                 format_count(progress.messages()), format_count(progress.messages_total()));
  if (progress.different() > 0) text += fmt::format(", {} DIFFERENT", progress.different());
  if (progress.has_seconds_left()) text += ", time left " + format_age(progress.seconds_left());
  text.resize(std::max(text.size(), kColumns - 1), ' ');
  return text;
}

std::string verify_view(const pb::VerifyReport& report) {
  Table table({"PARTITION", "VERDICT ", "MESSAGES", "UP END", "DOWN END", "NOT COPIED", "DIGEST "});
  std::string notes;
  std::uint64_t messages = 0;
  for (const pb::PartitionVerdict& partition : report.partitions()) {
    const pb::PartitionId& id = partition.id();
    std::uint64_t left_out = partition.strangers();
    for (const pb::Gap& gap : partition.gaps()) left_out += gap.upstream_end() - gap.upstream_begin();
    messages += partition.messages();
    table.add({name_of(id), verdict_text(partition.verdict()), format_count(partition.messages()),
               std::to_string(partition.upstream_end()), std::to_string(partition.downstream_end()),
               format_count(left_out), partition.upstream_digest().substr(0, 12)});
    if (partition.has_difference()) {
      const pb::Difference& difference = partition.difference();
      notes +=
          wrap(fmt::format("{}: {} at upstream offset {}, downstream offset {}: {}", name_of(id), difference.kind(),
                           difference.upstream_offset(), difference.downstream_offset(), difference.text()),
               "    ", "");
    } else if (!partition.detail().empty()) {
      notes += wrap(fmt::format("{}: {}", name_of(id), partition.detail()), "    ", "");
    }
    for (const pb::Removed& removed : partition.removed()) {
      notes += wrap(
          fmt::format("{}: {} no longer holds offsets {} to {}: not compared", name_of(id),
                      removed.side() == pb::SIDE_UPSTREAM ? "upstream" : "downstream", removed.begin(), removed.end()),
          "    ", "");
    }
    if (!partition.gaps().empty()) {
      notes += wrap(fmt::format("{}: {} ledger rows in the compared part, {} messages downstream that are no copies:",
                                name_of(id), partition.gaps_size(), partition.strangers()),
                    "    ", "");
      for (const pb::Gap& gap : partition.gaps()) {
        notes += wrap(fmt::format("{} [{}, {}) {}, {}{}", gap.id(), gap.upstream_begin(), gap.upstream_end(),
                                  gap.cause(), gap.resolved_as().empty() ? "open" : gap.resolved_as(),
                                  gap.resolved_by().empty() ? "" : " by " + gap.resolved_by()),
                      "    ");
      }
    }
  }
  using google::protobuf::util::TimeUtil;
  const double seconds =
      static_cast<double>(TimeUtil::DurationToMicroseconds(report.ended_at() - report.started_at())) / 1e6;
  return table.to_string() + (notes.empty() ? "" : "\n" + notes) +
         fmt::format("\n{}: {} messages compared in {}{}\n", verdict_text(report.verdict()), format_count(messages),
                     format_age(seconds), report.full() ? "" : "; --full compares from the beginning");
}

std::string consumers_view(const google::protobuf::RepeatedPtrField<pb::ConsumerOffset>& consumers) {
  if (consumers.empty())
    return "no stored offsets: name consumers in consumers.names; groups are found by themselves\n";
  Table table({"PARTITION", "KIND ", "NAME ", "UPSTREAM", "DOWNSTREAM", "STATE "});
  std::string notes;
  for (const pb::ConsumerOffset& consumer : consumers) {
    table.add({name_of(consumer.id()), consumer.kind(), consumer.name(),
               offset_text(consumer.has_upstream_offset(), consumer.upstream_offset()),
               offset_text(consumer.has_downstream_offset(), consumer.downstream_offset()), consumer.state()});
    if (consumer.detail().empty() || consumer.state() == "none") continue;
    notes +=
        wrap(fmt::format("{} {} {}: {}", name_of(consumer.id()), consumer.kind(), consumer.name(), consumer.detail()),
             "    ", "");
  }
  return table.to_string() + (notes.empty() ? "" : "\n" + notes);
}

}  // namespace cli
