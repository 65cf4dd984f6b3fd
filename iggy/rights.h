// Which of Iggy's permissions suffice for what: the rules are the same in 0.8.0 and 0.9.0-edge.5. A server looks for
// missing objects first: one that is not there is answered as missing, whatever the rights.
// Source: apache/iggy tag server-0.8.0, core/server/src/streaming/users/permissioner_rules/; recordings 24 of both.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "iggy/model.h"

namespace iggy {

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
bool allowed(const Permissions& permissions, Access access, std::optional<std::uint32_t> stream = {},
             std::optional<std::uint32_t> topic = {});

// The permission to ask an administrator for: the least that gives it ("poll_messages").
std::string_view name_of(Access access);

Permissions all_permissions();

}  // namespace iggy
