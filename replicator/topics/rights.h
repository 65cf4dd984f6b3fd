// Which rights the user of one end has, and the sentence that names one that is missing.
//
// A user may read its own permissions on the servers that were looked at; where it may not, a harmless request tells:
// one that changes nothing whether it is allowed or not. What can't be tried without doing it (creating) stays unknown.
// Affinity: the client's io_context. Lifetime: the client outlives it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "iggy/client.h"
#include "iggy/rights.h"

namespace replicator {

// "upstream user `x` lacks poll_messages on orders/events". `object` empty = it is about no stream.
std::string lacks(std::string_view side, const iggy::Client& client, iggy::Access access, std::string_view object);
// The same as an error, when `error` is a missing right; any other error as it is.
base::Error name_right(base::Error error, std::string_view side, const iggy::Client& client, iggy::Access access,
                       const base::TopicName& topic);

class Rights {
 public:
  // Asks who is logged in and what that user may.
  static base::Task<Rights> look(iggy::Client& client);
  // The user's own permissions could be read.
  bool are_known() const { return permissions_.has_value(); }
  // Whether the user may do that with a topic, with a stream (no topic), or at all (neither). Unknown = none.
  base::Task<std::optional<bool>> have(iggy::Access access, base::TopicName object);

 private:
  explicit Rights(iggy::Client& client) : client_(&client) {}
  // Numbers of a stream and its topics, by which permissions are kept; none when they can't be read.
  struct Numbers {
    bool exists = false;
    std::optional<std::uint32_t> stream;
    std::map<std::string, std::uint32_t> topics;
  };
  base::Task<const Numbers*> numbers_of(std::string stream);
  base::Task<std::optional<bool>> try_it(iggy::Access access, base::TopicName object);

  iggy::Client* client_;
  std::optional<iggy::Permissions> permissions_;
  std::map<std::string, Numbers> streams_;
};

}  // namespace replicator
