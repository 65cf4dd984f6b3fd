#include "replicator/topics/durability.h"

#include <algorithm>

namespace replicator {
namespace {

base::Error refuse(std::string message, std::string hint) {
  return {base::ErrorCode::kInvalidArgument, "start", "copy.ack", std::move(message), std::move(hint)};
}

bool says_persisted(const std::vector<iggy::Option>& options) {
  return std::ranges::find(options, persisted()) != options.end();
}

}  // namespace

iggy::Option persisted() {
  const base::ByteView value = base::as_bytes(std::string_view("persisted"));
  return {std::string(kDurability), 2, {value.begin(), value.end()}};
}

// Explicit, or what the server resolved at creation.
bool is_persisted(const iggy::Topic& topic) {
  return says_persisted(topic.settings.options) || says_persisted(topic.derived);
}

base::Task<base::Status> can_keep(iggy::Client& downstream, Ack ack) {
  const iggy::ServerIdentity& server = downstream.server();
  const bool legacy = server.dialect == iggy::Dialect::kLegacy;
  if (ack == Ack::kMemory) co_return base::ok();
  if (ack == Ack::kFlush) {
    if (legacy) co_return base::ok();
    co_return refuse("the downstream (server " + server.version + ") has no flush; ack = flush can be kept by 0.8 only",
                     "use ack = persisted, or memory");
  }
  if (legacy) {
    co_return refuse("the downstream (server 0.8) has no durability per topic; ack = persisted can't be kept",
                     "use ack = flush, or memory");
  }
  auto call = downstream.call(iggy::DescribeOptions{});
  auto reply = co_await std::move(call);
  CO_RETURN_IF_ERROR(reply);
  const auto* described = std::get_if<iggy::OptionDescriptions>(&*reply);
  if (described == nullptr ||
      std::ranges::find(described->options, kDurability, &iggy::OptionDescription::key) == described->options.end()) {
    co_return refuse("the downstream (server " + server.version +
                         ") knows no topic option `durability`; ack = persisted can't be kept",
                     "use ack = memory, or server 0.9.0 or newer");
  }
  co_return base::ok();
}

base::Status can_store_as(const Config& config) {
  if (config.upstream_commit == UpstreamCommit::kNever || config.upstream_commit_as == "consumer") return base::ok();
  iggy::StoreConsumerOffset probe;
  probe.consumer.kind = iggy::ConsumerKind::kExternalGroup;
  base::Status refused = iggy::refuse_external_group(probe);
  base::Error error(base::ErrorCode::kInvalidArgument, "start", "copy.upstream_commit_as",
                    "the upstream can't keep the position: " + refused.error().message(),
                    "use upstream_commit_as = consumer");
  return error;
}

}  // namespace replicator
