#include "cli/views.h"

#include <algorithm>
#include <ctime>
#include <map>

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include "cli/output.h"
#include "replicator/admin/to_proto.h"
#include "replicator/model/partition_glob.h"

namespace cli {
namespace {

using google::protobuf::Timestamp;

constexpr int kNotesMax = 20;

std::int64_t micros(const Timestamp& time) { return google::protobuf::util::TimeUtil::TimestampToMicroseconds(time); }

std::string ago(bool is_known, const Timestamp& time, const Timestamp& now) {
  if (!is_known) return "never";
  return format_age(static_cast<double>(micros(now) - micros(time)) / 1e6) + " ago";
}

std::string label(std::string_view name) { return fmt::format("{:<12}", name); }
std::string field(std::string_view name, std::string_view text) { return wrap(text, label(""), label(name)); }

// "LINK_STATE_RUNNING" -> "running".
std::string lower_name(std::string_view name, std::string_view prefix) {
  std::string text(name.substr(prefix.size()));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return c == '_' ? ' ' : std::tolower(c); });
  return text;
}

std::string end_text(const pb::End& end, const Timestamp& now) {
  std::string text = end.url();
  if (!end.server_version().empty()) text += ", server " + end.server_version();
  if (!end.dialect().empty()) text += fmt::format(" ({})", end.dialect());
  if (end.connected() && !end.node().empty())
    return text + ",\n            connected to " + end.node() + " at " + end.endpoint();
  if (end.connected()) return text + ", connected";
  text += ", NOT CONNECTED, last seen " + ago(end.has_last_seen(), end.last_seen(), now);
  if (!end.last_error().empty()) text += ": " + end.last_error();
  return text;
}

std::string left_text(const pb::Totals& totals) {
  if (!totals.has_lag_messages()) {
    return fmt::format("unknown: the upstream end of {} of {} partitions is not known",
                       totals.partitions_with_unknown_lag(), totals.partitions());
  }
  std::string text = totals.lag_messages() == 0 ? "nothing" : format_count(totals.lag_messages()) + " messages";
  if (totals.messages_per_second() > 0) {
    text += fmt::format(", at {} messages/s and {}/s", format_rate(totals.messages_per_second()),
                        format_bytes(totals.bytes_per_second()));
  }
  if (totals.has_seconds_left() && totals.seconds_left() > 0) {
    text += ", time left " + format_age(totals.seconds_left());
  }
  return text;
}

std::string phases_text(const pb::Totals& totals) {
  std::string text = fmt::format("{}", totals.partitions());
  const char* separator = ": ";
  for (const pb::PhaseCount& count : totals.phases()) {
    text += fmt::format("{}{} {}", separator, count.partitions(), phase_text(count.phase()));
    separator = ", ";
  }
  return text;
}

std::string time_left(const pb::Partition& partition) {
  if (partition.has_seconds_left()) return partition.seconds_left() > 0 ? format_age(partition.seconds_left()) : "-";
  return partition.lag().has_messages() && partition.lag().messages() == 0 ? "-" : std::string(kUnknown);
}

std::string pin_text(const pb::Pin& pin) {
  std::string text = fmt::format("the offset stored upstream ({}) holds back retention", pin.next());
  if (pin.has_messages()) text += fmt::format(", {} messages above it", format_count(pin.messages()));
  text += ", not moved for " + format_age(static_cast<double>(pin.held_micros()) / 1e6);
  if (!pin.error().empty()) text += ": " + pin.error();
  return text;
}

// What each strength of acknowledgment in the table means, once.
std::vector<std::string> promises(const Partitions& partitions) {
  std::map<std::string, std::string> meanings;
  for (const pb::Partition& partition : partitions) {
    if (!partition.durability_meaning().empty()) meanings[partition.durability()] = partition.durability_meaning();
  }
  std::vector<std::string> lines;
  for (const auto& [name, meaning] : meanings) lines.push_back(fmt::format("ack {}: {}", name, meaning));
  return lines;
}

}  // namespace

std::string name_of(const pb::PartitionId& id) { return replicator::to_pattern(replicator::from_proto(id)); }

std::string phase_text(pb::Phase phase) { return lower_name(pb::Phase_Name(phase), "PHASE_"); }

std::string time_text(const Timestamp& time) {
  if (time.seconds() == 0) return "never";
  const std::time_t seconds = time.seconds();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc)};
}

std::string link_view(const pb::Link& link) {
  std::string state = fmt::format("{} {}", link.id().empty() ? "new" : link.id(),
                                  lower_name(pb::LinkState_Name(link.state()), "LINK_STATE_"));
  if (link.generation() != 0) state += fmt::format(", generation {}", link.generation());
  if (link.has_started_at()) {
    state += ", up " + format_age(static_cast<double>(micros(link.taken_at()) - micros(link.started_at())) / 1e6);
  }
  if (!link.version().empty()) state += ", version " + link.version();
  std::string text = field("link", state);
  if (!link.state_detail().empty()) text += field("", link.state_detail());
  text += field("upstream", end_text(link.upstream(), link.taken_at()));
  text += field("downstream", end_text(link.downstream(), link.taken_at()));
  text += field("state file", link.state_file());
  if (!link.store_error().empty()) text += field("", "CAN'T BE WRITTEN: " + link.store_error());
  text += field("partitions", phases_text(link.totals()));
  const pb::Counters& counters = link.totals().counters();
  std::string done =
      format_count(counters.copied()) + " messages, " + format_bytes(static_cast<double>(counters.copied_bytes()));
  if (counters.skipped() != 0) done += fmt::format(", {} skipped", format_count(counters.skipped()));
  if (counters.duplicates() != 0) done += fmt::format(", {} duplicates", format_count(counters.duplicates()));
  text += field("done", done);
  text += field("left", left_text(link.totals()));
  for (const std::string& notice : link.notices()) text += field("notice", notice);
  return text;
}

std::string fault_view(const pb::Partition& partition, const Timestamp& taken_at) {
  const pb::Fault& fault = partition.fault();
  std::string text = wrap(fmt::format("{}: fault {}, {}", name_of(partition.id()), fault.kind(),
                                      ago(fault.has_since(), fault.since(), taken_at)));
  if (!fault.meaning().empty()) text += wrap(fault.meaning(), "  ");
  if (!fault.detail().empty()) text += wrap("Seen: " + fault.detail(), "  ");
  for (const pb::Exit& exit : fault.exits()) {
    text += wrap(fmt::format("iggy-replicate resolve {} --as {}", name_of(partition.id()), exit.name()), "    ");
    text += wrap(exit.meaning(), "      ");
    if (!exit.consequence().empty()) text += wrap("Here: " + exit.consequence(), "      ");
  }
  return text;
}

std::string status_view(const pb::Link& link, const Partitions& partitions) {
  Table table({"PARTITION", "STATE ", "DONE", "LEFT", "MSG/S", "TIME LEFT", "ACK"});
  std::string notes;
  int noted = 0;
  for (const pb::Partition& partition : partitions) {
    table.add({name_of(partition.id()), phase_text(partition.phase()), format_count(partition.counters().copied()),
               partition.lag().has_messages() ? format_count(partition.lag().messages()) : std::string(kUnknown),
               format_rate(partition.messages_per_second()), time_left(partition), partition.durability()});
    std::string note;
    if (partition.has_fault()) {
      note = fault_view(partition, link.taken_at());
    } else if (!partition.waits_for().empty()) {
      note = wrap(fmt::format("{}: {}", name_of(partition.id()), partition.waits_for()), "  ", "");
    }
    if (partition.duplicates_possible()) {
      note +=
          wrap(fmt::format("{}: duplicates are possible, the downstream can't be read back", name_of(partition.id())),
               "  ", "");
    }
    if (partition.has_pin() && (partition.pin().alarm() || !partition.pin().error().empty())) {
      note += wrap(fmt::format("{}: {}", name_of(partition.id()), pin_text(partition.pin())), "  ", "");
    }
    if (note.empty()) continue;
    if (++noted <= kNotesMax) notes += "\n" + note;
  }
  for (const std::string& line : promises(partitions)) notes += "\n" + wrap(line, "  ", "");
  if (noted > kNotesMax) notes += fmt::format("\n... and {} more; `-o json` has them all\n", noted - kNotesMax);
  if (partitions.empty()) return "\nno partitions\n";
  return "\n" + table.to_string() + notes;
}

std::string lag_view(const Partitions& partitions, const Timestamp& taken_at) {
  Table table({"PARTITION", "MESSAGES", "AGE", "UPSTREAM SEEN", "CAUGHT UP"});
  std::uint64_t messages = 0;
  std::uint64_t age = 0;
  int unknown = 0;
  bool is_age_known = true;
  for (const pb::Partition& partition : partitions) {
    const pb::Lag& lag = partition.lag();
    messages += lag.messages();
    age = std::max<std::uint64_t>(age, lag.age_micros());
    if (!lag.has_messages()) ++unknown;
    if (!lag.has_age_micros()) is_age_known = false;
    table.add({name_of(partition.id()), lag.has_messages() ? format_count(lag.messages()) : std::string(kUnknown),
               lag.has_age_micros() ? format_age(static_cast<double>(lag.age_micros()) / 1e6) : std::string(kUnknown),
               ago(lag.has_observed_at(), lag.observed_at(), taken_at),
               ago(partition.has_caught_up_at(), partition.caught_up_at(), taken_at)});
  }
  if (partitions.empty()) return "no partitions\n";
  table.add({"total", unknown == 0 ? format_count(messages) : std::string(kUnknown),
             is_age_known ? format_age(static_cast<double>(age) / 1e6) : std::string(kUnknown), "", ""});
  std::string text = table.to_string();
  if (unknown != 0) {
    text += fmt::format("\n{} of {} partitions unknown; the others add up to {} messages\n", unknown, partitions.size(),
                        format_count(messages));
  }
  return text;
}

std::string settings_view(const pb::Link& link) {
  std::string text;
  for (const pb::Setting& setting : link.settings()) {
    std::string value = fmt::format("{} = {}", setting.key(), setting.effective().empty() ? "-" : setting.effective());
    if (setting.source() != "default") value += fmt::format("   ({})", setting.source());
    if (!setting.set().empty() && setting.set() != setting.effective())
      value += fmt::format(" set as {}", setting.set());
    text += wrap(value, "    ", "");
  }
  return text;
}

std::string gaps_view(const google::protobuf::RepeatedPtrField<pb::Gap>& gaps) {
  if (gaps.empty()) return "no gaps\n";
  std::string text;
  for (const pb::Gap& gap : gaps) {
    text += wrap(fmt::format("{}  {}  [{}, {})  {}, {}", gap.id(), name_of(gap.partition()), gap.upstream_begin(),
                             gap.upstream_end(), gap.cause(), time_text(gap.found_at())),
                 "    ", "");
    if (!gap.detail().empty()) text += wrap(gap.detail(), "    ");
    text += wrap(gap.resolved_as().empty() ? std::string("open")
                                           : fmt::format("resolved as {} by {}, {}", gap.resolved_as(),
                                                         gap.resolved_by(), time_text(gap.resolved_at())),
                 "    ");
  }
  return text;
}

std::string events_view(const google::protobuf::RepeatedPtrField<pb::Event>& events) {
  if (events.empty()) return "no events\n";
  std::string text;
  for (const pb::Event& event : events) {
    text += wrap(fmt::format("{}  {}  {}  by {}", time_text(event.at()), event.kind(),
                             event.object().empty() ? "link" : event.object(), event.actor()),
                 "    ", "");
    if (!event.detail().empty()) text += wrap(event.detail(), "    ");
  }
  return text;
}

bool has_problem(const pb::Link& link) {
  return link.state() != pb::LINK_STATE_RUNNING || !link.upstream().connected() || !link.downstream().connected() ||
         !link.store_error().empty();
}

bool has_problem(const Partitions& partitions) {
  return std::any_of(partitions.begin(), partitions.end(), [](const pb::Partition& partition) {
    return partition.has_fault() || partition.phase() == pb::PHASE_STUCK || !partition.lag().has_messages();
  });
}

}  // namespace cli
