#include "cli/end_view.h"

#include <algorithm>

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include "cli/output.h"
#include "cli/views.h"

namespace cli {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kTopicsShown = 20;

double seconds_between(const google::protobuf::Timestamp& from, const google::protobuf::Timestamp& to) {
  return static_cast<double>(TimeUtil::DurationToMicroseconds(to - from)) / 1e6;
}

template <class Sum>
std::string messages_text(const Sum& sum) {
  if (sum.unknown_partitions() == sum.partitions()) return std::string(kUnknown);
  return (sum.unknown_partitions() > 0 ? ">= " : "") + format_count(sum.messages());
}

template <class Sum>
std::string age_text(const Sum& sum) {
  return sum.has_age_micros() ? format_age(static_cast<double>(sum.age_micros()) / 1e6) : std::string(kUnknown);
}

std::string milliseconds(std::uint64_t micros) { return fmt::format("{:.0f} ms", static_cast<double>(micros) / 1e3); }

}  // namespace

std::string loss_view(const pb::Loss& loss) {
  if (loss.partitions() == 0) return "nothing was copied yet\n";
  std::string text;
  if (loss.messages() == 0 && loss.unknown_partitions() == 0) {
    text = "Nothing that was seen upstream is missing downstream.";
  } else {
    text = fmt::format("Missing downstream: {} messages, {}.", messages_text(loss),
                       loss.has_age_micros() ? "of the newest " + age_text(loss) + " at most" : "of unknown age");
    if (!loss.worst_partition().empty()) {
      text += fmt::format(" Most in {}: {}.", loss.worst_partition(), format_count(loss.worst_messages()));
    }
  }
  if (!loss.has_known_at()) {
    text += " The upstream was not seen at all.";
  } else {
    text += fmt::format(" The upstream was last seen {} ago",
                        format_age(seconds_between(loss.known_at(), loss.taken_at())));
    text += loss.unseen_messages() > 0 ? fmt::format("; at its rate before, it took about {} more since.",
                                                     format_count(loss.unseen_messages()))
                                       : ".";
  }
  if (loss.unknown_partitions() > 0) {
    text += fmt::format(" Unknown: {} of {} partitions.", loss.unknown_partitions(), loss.partitions());
  }
  text = wrap(text);
  Table table({"TOPIC", "PARTITIONS", "MESSAGES", "NEWEST", "SEEN"});
  int shown = 0, left_out = 0;
  for (const pb::TopicLoss& topic : loss.topics()) {
    if (topic.messages() == 0 && topic.unknown_partitions() == 0) continue;
    if (++shown > kTopicsShown) {
      ++left_out;
      continue;
    }
    table.add(
        {printable(topic.stream() + "/" + topic.topic()), format_count(topic.partitions()), messages_text(topic),
         age_text(topic),
         topic.has_known_at() ? format_age(seconds_between(topic.known_at(), loss.taken_at())) + " ago" : "never"});
  }
  if (shown > 0) text += "\n" + table.to_string();
  if (left_out > 0) text += fmt::format("... and {} topics more; -o json lists all\n", left_out);
  return text;
}

std::string end_view(const pb::EndReport& report) {
  std::string text = loss_view(report.loss());
  if (report.dry_run()) {
    text += "\n";
    if (report.was_ended()) text += "The link has ended before.\n";
    for (const std::string& step : report.next_steps()) text += wrap(step, "    ", "  - ");
    return text + "Nothing was changed.\n";
  }
  text += "\n";
  text += wrap(report.was_ended() ? fmt::format("Link {} had ended before.", report.link_id())
                                  : fmt::format("Link {} has ended: nothing is written downstream since {} after the "
                                                "call, recorded after {}.",
                                                report.link_id(), milliseconds(report.stopped_micros()),
                                                milliseconds(report.recorded_micros())));
  text += fmt::format("  in the state file      {}\n", report.recorded_in_state() ? "recorded" : "NOT RECORDED");
  text += fmt::format("  in the link's record   {}\n", report.recorded_downstream() ? "recorded" : "NOT RECORDED");
  if (!report.verified().empty())
    text += wrap(report.verified(), "                         ", "  compared               ");
  text += wrap(report.consumers(), "                         ", "  consumers              ");
  for (const std::string& undone : report.undone()) text += wrap(undone, "    ", "  NOT DONE: ");
  if (report.consumer_offsets_size() > 0) text += "\n" + consumers_view(report.consumer_offsets());
  text += "\nNext\n";
  for (const std::string& step : report.next_steps()) text += wrap(step, "    ", "  - ");
  return text;
}

}  // namespace cli
