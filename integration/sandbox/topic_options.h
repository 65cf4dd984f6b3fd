// The option block of a vsr topic: which keys exist, what their values mean, and what the server reports back.
#pragma once

#include <vector>

#include "iggy/model.h"
#include "integration/sandbox/outcome.h"
#include "integration/sandbox/partition_log.h"
#include "integration/sandbox/profile.h"

namespace sandbox {

struct ResolvedOptions {
  iggy::TopicSettings settings;       // `options` = the explicit ones in their canonical kind, sorted by key
  std::vector<iggy::Option> derived;  // every other key at its default, sorted by key
  LogSettings log;
};

// 4041 for a key that the server does not have, 4042 for a value that it refuses, 1019 for a size limit below the
// segment size. A size or expiry of 0 counts as not given.
Outcome<ResolvedOptions> resolve_topic_options(const Profile& profile, const iggy::TopicSettings& sent);

// Patch of an update_topic: only compression_algorithm, message_expiry and max_topic_size may change.
Outcome<void> patch_topic_options(const Profile& profile, std::vector<iggy::Option> patch,
                                  iggy::TopicSettings& settings, std::vector<iggy::Option>& derived);

// describe_options of `scope`; only topics have any.
std::vector<iggy::OptionDescription> describe_options(const Profile& profile, std::uint8_t scope);

}  // namespace sandbox
