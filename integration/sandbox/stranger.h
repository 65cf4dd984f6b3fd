// Writes messages into a partition as some other producer would.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/record.h"
#include "integration/sandbox/broker.h"

namespace sandbox {

// `count` messages with random ids and recognisable payloads, in sends of at most 1,000.
void append_as_stranger(Broker& broker, const base::TopicName& topic, std::uint32_t partition, std::uint64_t count);

// These messages, as one send. REQUIRES: not empty; origin times do not decrease and span less than an hour (vsr).
void append_records(Broker& broker, const base::TopicName& topic, std::uint32_t partition,
                    const std::vector<base::Record>& records);

}  // namespace sandbox
