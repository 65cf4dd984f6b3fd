// What the upstream has of what the rules want, with as few rights as the rules allow: streams and topics that the
// rules name are asked for by name, only patterns need a list. Never changes anything. Affinity: the client's
// io_context.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "iggy/client.h"
#include "replicator/model/rules.h"

namespace replicator {

struct UpstreamTopics {
  std::map<base::TopicName, iggy::Topic> wanted;
  std::set<base::TopicName> unwanted;  // seen on the way, left out by the rules
  std::vector<std::string> notices;    // rights that are missing, rules that match nothing

  // What the right to look at is missing; there may be more topics than `wanted` says.
  bool streams_hidden = false;
  std::set<std::string> hidden_streams;
  std::set<base::TopicName> hidden_topics;
  // Not seen because it is not there, as opposed to hidden. REQUIRES: the rules want it.
  bool is_gone(const base::TopicName& name) const;
};

// An error is about the whole side (see concerns_whole_side). Both references outlive the call.
base::Task<base::Result<UpstreamTopics>> list_upstream_topics(iggy::Client& upstream, const Rules& rules);

// A topic by name; none when it, or its stream, is not there.
base::Task<base::Result<std::optional<iggy::Topic>>> find_topic(iggy::Client& client, base::TopicName name);

// The side can't be asked at all (connection, time-out, credentials, stopped), as opposed to a refusal that concerns
// one object.
bool concerns_whole_side(const base::Error& error);

// "<what>: the user lacks the right <right> …", or the error as it is when it is no missing right.
std::string refusal_in_words(std::string_view what, const base::Error& error, std::string_view right);

}  // namespace replicator
