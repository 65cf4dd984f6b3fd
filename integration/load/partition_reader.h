// Reads one partition from its first message to its present end, in order.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/record.h"
#include "base/result.h"
#include "integration/load/blocking_client.h"

namespace load {

class PartitionReader {
 public:
  // `client` must outlive it.
  PartitionReader(BlockingClient& client, base::TopicName topic, std::uint32_t partition)
      : client_(client), topic_(std::move(topic)), partition_(partition) {}

  // The next messages; empty at the end. Offsets may have holes, also between two calls. A run of messages that is not
  // ascending is kMalformed.
  base::Result<base::RecordBatch> next();

 private:
  BlockingClient& client_;
  base::TopicName topic_;
  std::uint32_t partition_;
  std::uint64_t next_offset_ = 0;
  std::uint32_t count_ = 1000;  // follows the size of the messages
};

// Number of partitions of `topic`.
base::Result<std::uint32_t> partitions_of(BlockingClient& client, const base::TopicName& topic);

}  // namespace load
