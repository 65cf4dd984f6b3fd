// Who may do what: the rules are the same in 0.8.0 and 0.9.0-edge.5. Missing objects are looked for before this.
#pragma once

#include <cstdint>
#include <optional>

#include "iggy/model.h"

namespace sandbox {

enum class Access : std::uint8_t {
  kReadServers,
  kReadUsers,
  kManageUsers,
  kListStreams,
  kReadStream,
  kManageStreams,  // create
  kManageStream,   // update, delete, purge
  kListTopics,
  kReadTopic,
  kManageTopics,  // create
  kManageTopic,   // update, delete, purge, partitions, segments
  kPoll,          // also consumer offsets
  kSend,          // also flush
};

// `stream` and `topic` are the numbers that the access is about, where it is about one.
bool allowed(const iggy::Permissions& permissions, Access access, std::optional<std::uint32_t> stream = {},
             std::optional<std::uint32_t> topic = {});

iggy::Permissions all_permissions();

}  // namespace sandbox
