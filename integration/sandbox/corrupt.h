// Damages a stored log as no server should: what a comparison of two clusters must find.
#pragma once

#include "base/ids.h"
#include "integration/sandbox/broker.h"

namespace sandbox {

enum class Damage : std::uint8_t {
  kFlipByte,   // of the message's body
  kDrop,       // the message; later ones move up
  kDuplicate,  // the message once more, behind itself
  kSwap,       // the message with the next one
  kInsert,     // a stranger's message before it
};

// To the message at `offset`; what stands behind it is written anew. false: there is no such message (kSwap: no next).
bool corrupt(Broker& broker, PartitionState& state, const base::TopicName& topic, std::uint32_t partition,
             std::uint64_t offset, Damage damage);

}  // namespace sandbox
