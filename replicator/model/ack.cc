// The strengths of an acknowledgment in words. Apart from config.cc, which needs the connection string.
#include "replicator/model/config.h"

namespace replicator {

std::string_view to_string(Ack ack) {
  switch (ack) {
    case Ack::kMemory:
      return "memory";
    case Ack::kFlush:
      return "flush";
    case Ack::kPersisted:
      return "persisted";
  }
  return "unknown";
}

std::optional<Ack> ack_from_name(std::string_view name) {
  for (const Ack ack : {Ack::kMemory, Ack::kFlush, Ack::kPersisted}) {
    if (to_string(ack) == name) return ack;
  }
  return std::nullopt;
}

std::string_view survives(Ack ack) {
  switch (ack) {
    case Ack::kMemory:
      return "acknowledged from the server's memory: a crash of the downstream may lose what it had not saved; such a "
             "lost tail is found and sent again";
    case Ack::kFlush:
      return "flushed by the server before it is committed: survives a kill of the downstream's process, not a power "
             "cut";
    case Ack::kPersisted:
      return "synced by the server before it acknowledges: survives a kill and, as documented, a power cut of a node";
  }
  return "unknown";
}

}  // namespace replicator
