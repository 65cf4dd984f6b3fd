// A small blocking client for load tools and tests: one connection, one request at a time, no retries. Speaks both
// dialects through the codecs and shares nothing else with the appliance, so that it can testify about it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "iggy/codec/send.h"
#include "iggy/connection_string.h"
#include "iggy/replies.h"
#include "iggy/requests.h"

namespace load {

class BlockingClient {
 public:
  // Connects to the first host that answers, finds the dialect (unless the connection string says it), logs in.
  static base::Result<BlockingClient> connect(const iggy::ConnectionString& target,
                                              std::chrono::seconds timeout = std::chrono::seconds(30));
  BlockingClient(BlockingClient&&) noexcept;
  BlockingClient& operator=(BlockingClient&&) noexcept;
  ~BlockingClient();

  iggy::Dialect dialect() const;
  // After kConnectionLost, kTimeout or kMalformed the connection is of no more use.
  base::Result<iggy::Reply> call(const iggy::Request& request);
  // kUncertain once the first byte may have left.
  base::Result<iggy::SendConfirmed> send(iggy::OutgoingSend& frame);

 private:
  class Socket;
  BlockingClient();
  base::Status log_in(const iggy::Credentials& credentials);
  base::Result<iggy::Reply> exchange(const iggy::Request& request, base::Bytes frame);
  base::Result<iggy::Reply> receive(const iggy::Request& request, std::uint64_t number);

  std::unique_ptr<Socket> socket_;
  iggy::Dialect dialect_ = iggy::Dialect::kLegacy;
  base::MessageId client_;
  std::uint64_t session_ = 0;
  std::uint64_t last_request_ = 0;
};

}  // namespace load
