// One side of a comparison over iggy::Client: its own connections, so that it shares none with the copy.
//
// Affinity: the client's io_context. Lifetime: the client outlives it.
#pragma once

#include <string>

#include "iggy/client.h"
#include "replicator/verify/side_stream.h"

namespace replicator {

class IggyVerifySide final : public VerifySide {
 public:
  // `key`: upstream names. `mint_ids_for`: as for IggySource, upstream only; else empty.
  IggyVerifySide(iggy::Client& client, base::TopicName topic, base::PartitionKey key, std::string mint_ids_for)
      : client_(client), topic_(std::move(topic)), key_(std::move(key)), mint_ids_for_(std::move(mint_ids_for)) {}
  base::Task<base::Result<Polled>> read(std::uint64_t from, std::uint32_t count) override;
  base::Task<base::Result<PartitionView>> view() override;

 private:
  iggy::Client& client_;
  const base::TopicName topic_;
  const base::PartitionKey key_;
  const std::string mint_ids_for_;
};

}  // namespace replicator
