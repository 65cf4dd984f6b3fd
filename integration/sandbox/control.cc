#include "integration/sandbox/control.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "iggy/codec/legacy.h"
#include "iggy/codec/send.h"
#include "iggy/codec/vsr.h"
#include "integration/sandbox/corrupt.h"
#include "integration/sandbox/stranger.h"

namespace sandbox {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& line) {
  std::istringstream in(line);
  Words out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

// Thrown inside a command, answered as `error …`.
struct Refused {
  std::string why;
};

std::uint64_t number(const Words& words, std::size_t at) {
  if (at >= words.size()) throw Refused{"a number is missing"};
  std::uint64_t value = 0;
  const char* end = words[at].data() + words[at].size();
  if (std::from_chars(words[at].data(), end, value).ptr != end || words[at].empty())
    throw Refused{"not a number: " + words[at]};
  return value;
}

const std::string& word(const Words& words, std::size_t at) {
  if (at >= words.size()) throw Refused{"a word is missing"};
  return words[at];
}

StreamState& stream_of(const ControlTarget& to, const Words& words) {
  StreamState* stream = to.broker.find_stream(word(words, 1));
  if (stream == nullptr) throw Refused{"no stream " + words[1]};
  return *stream;
}
TopicState& topic_of(const ControlTarget& to, const Words& words) {
  TopicState* topic = to.broker.find_topic(stream_of(to, words), word(words, 2));
  if (topic == nullptr) throw Refused{"no topic " + words[2]};
  return *topic;
}
PartitionState& partition_of(const ControlTarget& to, const Words& words) {
  TopicState& topic = topic_of(to, words);
  const std::uint64_t id = number(words, 3);
  if (id >= topic.partitions.size()) throw Refused{"no partition " + words[3]};
  return *topic.partitions[id];
}

// Nodes are counted from 1, as their names are.
std::size_t node_of(const ControlTarget& to, const Words& words, std::size_t at) {
  const std::uint64_t node = number(words, at);
  if (node == 0 || node > to.nodes.size()) throw Refused{"no node " + words[at]};
  return node - 1;
}
bool on_or_off(const Words& words, std::size_t at, std::string_view on, std::string_view off) {
  if (word(words, at) != on && words[at] != off) throw Refused{std::string(on) + " or " + std::string(off)};
  return words[at] == on;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string state_json(const Broker& broker) {
  std::string out = fmt::format("{{\"server\":{},\"streams\":[", json_text(broker.profile().server));
  const char* stream_comma = "";
  for (const auto& [stream_id, stream] : broker.streams()) {
    out += fmt::format("{}{{\"id\":{},\"name\":{},\"created_at\":{},\"topics\":[", stream_comma, stream.id,
                       json_text(stream.name), stream.created_at);
    stream_comma = ",";
    const char* topic_comma = "";
    for (const auto& [topic_id, topic] : stream.topics) {
      out += fmt::format("{}{{\"id\":{},\"name\":{},\"created_at\":{},\"partitions\":[", topic_comma, topic.id,
                         json_text(topic.name), topic.created_at);
      topic_comma = ",";
      for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
        const PartitionState& partition = *topic.partitions[i];
        out += fmt::format(
            "{}{{\"id\":{},\"created_at\":{},\"first_offset\":{},\"next_offset\":{},\"current_offset\":{},"
            "\"messages\":{},\"bytes\":{},\"segments\":{},\"unsaved\":{},\"stored_offsets\":{}}}",
            i == 0 ? "" : ",", i, partition.created_at, partition.log.first_offset(), partition.log.next_offset(),
            partition.log.current_offset(), partition.log.messages(), partition.log.size_bytes(),
            partition.log.segments(), partition.log.unsaved_messages(), partition.offsets.size());
      }
      out += "]}";
    }
    out += "]}";
  }
  out += "],\"clients\":[";
  const char* client_comma = "";
  for (const Caller* caller : broker.callers()) {
    out += fmt::format("{}{{\"id\":{},\"address\":{},\"user\":{}}}", client_comma, caller->client_id,
                       json_text(caller->address), caller->user ? std::to_string(*caller->user) : "null");
    client_comma = ",";
  }
  return out + "]}";
}

std::string stats_json(const Faults& faults) {
  std::string out = "{";
  const char* comma = "";
  for (const auto& [name, count] : faults.requests) {
    out += fmt::format("{}{}:{}", comma, json_text(name), count);
    comma = ",";
  }
  return out + "}";
}

std::string damage(const ControlTarget& to, const Words& words, Damage what) {
  PartitionState& partition = partition_of(to, words);
  if (!corrupt(to.broker, partition, {words[1], words[2]}, static_cast<std::uint32_t>(number(words, 3)),
               number(words, 4), what)) {
    throw Refused{"no message at offset " + words[4]};
  }
  return fmt::format("next_offset={}", partition.log.next_offset());
}

struct Command {
  std::string_view name;
  std::string_view usage;
  std::string (*run)(const ControlTarget& to, const Words& words);
};

const Command kCommands[] = {
    {"drop-reply", "N",
     [](const ControlTarget& to, const Words& w) {
       to.faults.drop_replies = number(w, 1);
       return std::string();
     }},
    {"cut-after-append", "N",
     [](const ControlTarget& to, const Words& w) {
       to.faults.cut_after = number(w, 1);
       return std::string();
     }},
    {"cut-before-append", "N",
     [](const ControlTarget& to, const Words& w) {
       to.faults.cut_before = number(w, 1);
       return std::string();
     }},
    {"delay", "MS",
     [](const ControlTarget& to, const Words& w) {
       to.faults.delay = std::chrono::milliseconds(number(w, 1));
       return std::string();
     }},
    {"refuse", "STATUS N",
     [](const ControlTarget& to, const Words& w) {
       to.faults.refuse_status = static_cast<std::uint32_t>(number(w, 1));
       to.faults.refusals = number(w, 2);
       return std::string();
     }},
    {"refuse-poll", "STATUS N",
     [](const ControlTarget& to, const Words& w) {
       to.faults.poll_refuse_status = static_cast<std::uint32_t>(number(w, 1));
       to.faults.poll_refusals = number(w, 2);
       return std::string();
     }},
    {"pause", "",
     [](const ControlTarget& to, const Words&) {
       to.faults.paused = true;
       return std::string();
     }},
    {"resume", "",
     [](const ControlTarget& to, const Words&) {
       to.faults.paused = false;
       to.resume();
       return std::string();
     }},
    {"lose-tail", "STREAM TOPIC PARTITION COUNT",
     [](const ControlTarget& to, const Words& w) {
       PartitionState& partition = partition_of(to, w);
       to.broker.lose_tail(partition, number(w, 4));
       return fmt::format("next_offset={}", partition.log.next_offset());
     }},
    {"reserve", "STREAM TOPIC PARTITION COUNT",
     [](const ControlTarget& to, const Words& w) {
       PartitionState& partition = partition_of(to, w);
       to.broker.jump(partition, number(w, 4));
       return fmt::format("next_offset={}", partition.log.next_offset());
     }},
    {"trim", "STREAM TOPIC PARTITION COUNT|before=OFFSET",
     [](const ControlTarget& to, const Words& w) {
       PartitionState& partition = partition_of(to, w);
       const std::string& what = word(w, 4);
       const bool absolute = what.starts_with("before=");
       const std::uint64_t value = number({absolute ? what.substr(7) : what}, 0);
       to.broker.trim(partition, absolute ? value : partition.log.first_offset() + value);
       return fmt::format("first_offset={}", partition.log.first_offset());
     }},
    {"expire", "STREAM TOPIC",
     [](const ControlTarget& to, const Words& w) {
       to.broker.expire(topic_of(to, w));
       return std::string();
     }},
    {"purge", "STREAM TOPIC",
     [](const ControlTarget& to, const Words& w) {
       to.broker.purge(topic_of(to, w));
       return std::string();
     }},
    {"recreate", "STREAM TOPIC",
     [](const ControlTarget& to, const Words& w) {
       if (!to.broker.recreate(stream_of(to, w), word(w, 2))) throw Refused{"no topic " + w[2]};
       return std::string();
     }},
    {"append", "STREAM TOPIC PARTITION COUNT",
     [](const ControlTarget& to, const Words& w) {
       PartitionState& partition = partition_of(to, w);
       append_as_stranger(to.broker, {word(w, 1), word(w, 2)}, static_cast<std::uint32_t>(number(w, 3)), number(w, 4));
       return fmt::format("next_offset={}", partition.log.next_offset());
     }},
    {"leader", "NODE",
     [](const ControlTarget& to, const Words& w) {
       to.nodes.lead(node_of(to, w, 1));
       return std::string();
     }},
    {"take-sends", "NODE|leader",
     [](const ControlTarget& to, const Words& w) {
       to.nodes.take_sends(word(w, 1) == "leader" ? std::nullopt : std::optional(node_of(to, w, 1)));
       return std::string();
     }},
    {"lag", "NODE on|off",
     [](const ControlTarget& to, const Words& w) {
       to.nodes.lag(node_of(to, w, 1), on_or_off(w, 2, "on", "off"));
       return std::string();
     }},
    {"node", "NODE up|down",
     [](const ControlTarget& to, const Words& w) {
       to.set_up(node_of(to, w, 1), on_or_off(w, 2, "up", "down"));
       return std::string();
     }},
    {"flip-byte", "STREAM TOPIC PARTITION OFFSET",
     [](const ControlTarget& to, const Words& w) { return damage(to, w, Damage::kFlipByte); }},
    {"drop", "STREAM TOPIC PARTITION OFFSET",
     [](const ControlTarget& to, const Words& w) { return damage(to, w, Damage::kDrop); }},
    {"duplicate", "STREAM TOPIC PARTITION OFFSET",
     [](const ControlTarget& to, const Words& w) { return damage(to, w, Damage::kDuplicate); }},
    {"swap", "STREAM TOPIC PARTITION OFFSET",
     [](const ControlTarget& to, const Words& w) { return damage(to, w, Damage::kSwap); }},
    {"insert", "STREAM TOPIC PARTITION OFFSET",
     [](const ControlTarget& to, const Words& w) { return damage(to, w, Damage::kInsert); }},
    {"disk-full", "on|off",
     [](const ControlTarget& to, const Words& w) {
       to.broker.set_disk_full(on_or_off(w, 1, "on", "off"));
       return std::string();
     }},
    {"clean", "",
     [](const ControlTarget& to, const Words&) {
       to.broker.clean();
       return std::string();
     }},
    {"save", "",
     [](const ControlTarget& to, const Words&) {
       to.broker.save_all(false);
       return std::string();
     }},
    {"cut-all", "", [](const ControlTarget& to, const Words&) { return fmt::format("connections={}", to.cut_all()); }},
    {"state", "", [](const ControlTarget& to, const Words&) { return state_json(to.broker); }},
    {"stats", "", [](const ControlTarget& to, const Words&) { return stats_json(to.faults); }},
};

}  // namespace

std::string run_control(const std::string& line, const ControlTarget& target) {
  const Words words = split(line);
  if (words.empty()) return "error empty line; try help";
  if (words[0] == "help") {
    std::string out = "ok";
    for (const Command& command : kCommands)
      out += fmt::format(" {}{}{};", command.name, command.usage.empty() ? "" : " ", command.usage);
    return out;
  }
  const auto* const command = std::ranges::find(kCommands, words[0], &Command::name);
  if (command == std::end(kCommands)) return "error unknown command " + words[0] + "; try help";
  try {
    const std::string answer = command->run(target, words);
    return answer.empty() ? "ok" : "ok " + answer;
  } catch (const Refused& refused) {
    return "error " + refused.why + "; usage: " + words[0] + " " + std::string(command->usage);
  }
}

}  // namespace sandbox
