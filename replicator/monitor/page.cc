#include "replicator/monitor/page.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <vector>

#include <fmt/format.h>

namespace replicator {
namespace {

constexpr std::string_view kHead = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>iggy-replicate</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="refresh" content="5">
<style>
:root{color-scheme:light dark;--line:#8884;--soft:#888;--bad:#c62828;--warn:#b26a00;--good:#2e7d32}
@media(prefers-color-scheme:dark){:root{--bad:#ff8a80;--warn:#ffcc80;--good:#a5d6a7}}
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:.6rem}
h1{font-size:1.2rem;margin:.2rem 0}h2{font-size:1rem;margin:1.4rem 0 .3rem}
p{margin:.2rem 0}small,.soft{color:var(--soft)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--soft);white-space:nowrap}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.name,td.text{overflow-wrap:anywhere}td.text{min-width:12rem}
.bad{color:var(--bad);font-weight:600}.warn{color:var(--warn)}.good{color:var(--good)}
</style></head><body>
)html";

// Length of the well-formed UTF-8 sequence at the front; 0 = none. No overlong forms, surrogates, or beyond U+10FFFF.
std::size_t sequence(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
    return at(i) >= least && at(i) <= most;
  };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = follows(1, lead == 0xE0 ? 0xA0U : 0x80U, lead == 0xED ? 0x9FU : 0xBFU);
    return second && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = follows(1, lead == 0xF0 ? 0x90U : 0x80U, lead == 0xF4 ? 0x8FU : 0xBFU);
    return second && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string when(std::uint64_t micros) {
  if (micros == 0) return "never";
  const auto seconds = static_cast<std::time_t>(micros / 1'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc)};
}

std::string age(std::uint64_t micros) {
  const std::uint64_t seconds = micros / 1'000'000;
  if (seconds < 1) return fmt::format("{} ms", micros / 1000);
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  if (seconds < 172'800) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86'400);
}

std::string since(const LinkStatus& status, std::uint64_t micros) {
  if (micros == 0) return "never";
  return age(status.taken_at > micros ? status.taken_at - micros : 0) + " ago";
}

std::string bytes(double count) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; count >= 1024 && unit < 4; ++unit) count /= 1024;
  return fmt::format("{:.{}f} {}", count, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string count(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string_view color(Phase phase) {
  switch (phase) {
    case Phase::kFault:
    case Phase::kStuck:
      return "bad";
    case Phase::kBehind:
    case Phase::kRetrying:
    case Phase::kPaused:
      return "warn";
    case Phase::kCaughtUp:
      return "good";
    default:
      return "";
  }
}

// What a person should see first has the largest rank.
int rank(const PartitionStatus& partition) {
  const std::string_view shade = color(partition.phase);
  if (shade == "bad") return 4;
  if (!partition.lag.messages) return 3;
  if (shade == "warn") return 2;
  return shade == "good" ? 0 : 1;
}

std::string words(std::string_view snake) {
  std::string text(snake);
  std::ranges::replace(text, '_', ' ');
  return html_text(text);
}

std::string end_line(const LinkStatus& status, std::string_view name, const EndStatus& end) {
  std::string text = fmt::format("<p>{} <b>{}</b>", name, html_text(end.url));
  if (!end.version.empty()) text += fmt::format(", server {} ({})", html_text(end.version), html_text(end.dialect));
  if (end.connected) return text + ", <span class=\"good\">connected</span></p>\n";
  text += fmt::format(", <span class=\"bad\">not connected</span>, last seen {}", since(status, end.last_seen));
  if (!end.last_error.empty()) text += fmt::format(": {}", html_text(end.last_error));
  return text + "</p>\n";
}

std::string summary(const LinkStatus& status) {
  std::map<Phase, std::size_t> phases;
  std::uint64_t lag = 0;
  std::size_t unknown = 0;
  double messages = 0, rate = 0;
  for (const PartitionStatus& partition : status.partitions) {
    ++phases[partition.phase];
    lag += partition.lag.messages.value_or(0);
    unknown += partition.lag.messages ? 0 : 1;
    messages += partition.messages_per_second;
    rate += partition.bytes_per_second;
  }
  std::string text = fmt::format("<p><b>{}</b> partitions", count(status.partitions.size()));
  for (const auto& [phase, number] : phases) {
    text += fmt::format(" · <span class=\"{}\">{} {}</span>", color(phase), count(number), words(to_string(phase)));
  }
  text += fmt::format("</p>\n<p>lag <b>{}</b> messages", count(lag));
  if (unknown > 0) text += fmt::format(" <span class=\"bad\">and unknown for {} partitions</span>", count(unknown));
  text += fmt::format(" · {:.0f} messages/s · {}/s</p>\n", messages, bytes(rate));
  return text;
}

std::string partition_row(const LinkStatus& status, const PartitionStatus& partition) {
  std::string why =
      partition.fault.active() ? partition.fault.kind + ": " + partition.fault.detail : partition.waits_for;
  if (partition.fault.active()) {
    why += " Exits: iggy-replicate resolve " + partition.key.to_string();
  } else if (partition.phase == Phase::kCaughtUp) {
    why.clear();
  }
  std::string text = fmt::format("<tr><td class=\"name\">{}", html_text(partition.key.to_string()));
  if (partition.downstream != partition.key.topic) {
    text += fmt::format("<br><small>to {}</small>", html_text(partition.downstream.to_string()));
  }
  text += fmt::format("</td><td class=\"{}\">{}</td>", color(partition.phase), words(to_string(partition.phase)));
  text += partition.lag.messages ? fmt::format("<td class=\"n\">{}</td>", count(*partition.lag.messages))
                                 : std::string("<td class=\"n bad\">unknown</td>");
  text += fmt::format("<td class=\"n\">{}</td>", partition.lag.micros ? age(*partition.lag.micros) : std::string("–"));
  text += fmt::format("<td class=\"n\">{:.0f}</td><td class=\"n\">{}/s</td>", partition.messages_per_second,
                      bytes(partition.bytes_per_second));
  text += fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"text\">{}</td></tr>\n",
                      count(partition.counters.copied), since(status, partition.caught_up_at), html_text(why));
  return text;
}

std::string partitions(const LinkStatus& status) {
  std::vector<const PartitionStatus*> rows;
  for (const PartitionStatus& partition : status.partitions) rows.push_back(&partition);
  std::ranges::sort(rows, [](const PartitionStatus* a, const PartitionStatus* b) {
    if (rank(*a) != rank(*b)) return rank(*a) > rank(*b);
    const std::uint64_t left = a->lag.messages.value_or(0), right = b->lag.messages.value_or(0);
    return left != right ? left > right : a->key < b->key;
  });
  const std::size_t shown = std::min(rows.size(), kPageRowsMax);
  std::string text =
      "<h2>Partitions</h2>\n<div class=\"wide\"><table>\n<tr><th>partition<th>state<th class=\"n\">lag"
      "<th class=\"n\">age<th class=\"n\">msg/s<th class=\"n\">bytes<th class=\"n\">copied"
      "<th class=\"n\">caught up<th>waits for</tr>\n";
  for (std::size_t i = 0; i < shown; ++i) text += partition_row(status, *rows[i]);
  text += "</table></div>\n";
  if (shown < rows.size()) {
    text += fmt::format("<p class=\"soft\">{} more that need less attention: iggy-replicate status</p>\n",
                        count(rows.size() - shown));
  }
  return text;
}

std::string ledger(const LinkStatus& status) {
  std::string text = "<h2>Ledger</h2>\n";
  if (!status.ledger) return text + "<p class=\"soft\">not read yet</p>\n";
  const Ledger& ledger = *status.ledger;
  text += fmt::format("<p>{} rows, {}</p>\n", count(ledger.rows),
                      ledger.open == 0
                          ? std::string("none open")
                          : fmt::format("<span class=\"bad\">{} that nobody has accepted</span>", count(ledger.open)));
  if (ledger.newest_gaps.empty()) return text;
  text +=
      "<div class=\"wide\"><table>\n<tr><th>found<th>partition<th>upstream offsets<th>cause<th>resolved<th>detail"
      "</tr>\n";
  for (const state::GapRow& gap : ledger.newest_gaps) {
    const bool open = gap.resolved_as.empty();
    text += fmt::format(
        "<tr><td>{}</td><td class=\"name\">{}</td><td>[{}, {})</td><td>{}</td><td class=\"{}\">{}</td>"
        "<td class=\"text\">{}</td></tr>\n",
        when(gap.found_at), html_text(gap.key.to_string()), gap.up_begin, gap.up_end, words(gap.cause),
        open ? "bad" : "", open ? std::string("open") : words(gap.resolved_as) + " by " + html_text(gap.resolved_by),
        html_text(gap.detail));
  }
  return text + "</table></div>\n";
}

std::string events(const LinkStatus& status) {
  if (!status.ledger || status.ledger->newest_events.empty()) return "<h2>Events</h2>\n<p class=\"soft\">none</p>\n";
  std::string text = "<h2>Events</h2>\n<div class=\"wide\"><table>\n<tr><th>at<th>what<th>of<th>by<th>detail</tr>\n";
  for (const state::EventRow& event : status.ledger->newest_events) {
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"name\">{}</td><td>{}</td><td class=\"text\">{}</td></tr>\n",
        when(event.at), words(event.kind), html_text(event.object), html_text(event.actor), html_text(event.detail));
  }
  return text + "</table></div>\n";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
      continue;
    }
    switch (byte) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string status_page(const LinkStatus& status) {
  std::string page(kHead);
  page += fmt::format("<h1>link {} <span class=\"{}\">{}</span></h1>\n",
                      html_text(status.link_id.empty() ? "(new)" : status.link_id),
                      status.state == "running" ? "good" : "bad", words(status.state));
  if (!status.state_detail.empty()) page += fmt::format("<p>{}</p>\n", html_text(status.state_detail));
  page += end_line(status, "upstream", status.upstream);
  page += end_line(status, "downstream", status.downstream);
  if (!status.store_error.empty()) {
    page += fmt::format("<p class=\"bad\">the state file can't be written: {}</p>\n", html_text(status.store_error));
  }
  page += summary(status);
  for (const std::string& notice : status.notices) page += fmt::format("<p class=\"warn\">{}</p>\n", html_text(notice));
  page += partitions(status);
  page += ledger(status);
  page += events(status);
  page += fmt::format(
      "<p><small>taken {} UTC, version {}, up {}; times are UTC; new every 5 s</small></p>\n</body></html>\n",
      when(status.taken_at), html_text(status.version),
      age(status.taken_at > status.started_at ? status.taken_at - status.started_at : 0));
  return page;
}

}  // namespace replicator
