// The positions that are stored upstream for others to see.
#include <spdlog/spdlog.h>

#include "replicator/link/supervisor.h"

namespace replicator {

namespace {
constexpr base::Duration kStoreEvery = std::chrono::seconds(1);
}

base::Task<void> Supervisor::store_upstream() {
  while (!publish_stop_.is_set() && !stop_.is_set()) {
    auto once = store_upstream_once();
    co_await std::move(once);
    auto wait = base::wait_until(clock_, stop_, clock_.now() + kStoreEvery);
    co_await std::move(wait);
  }
}

base::Task<void> Supervisor::store_upstream_once() {
  auto taking = upstream_turn_.take();
  const auto held = co_await std::move(taking);
  state::Transaction transaction;
  std::vector<base::PartitionKey> keys;  // a reload may take one out meanwhile
  for (const auto& [key, slot] : slots_) keys.push_back(key);
  for (const base::PartitionKey& key : keys) {
    const auto found = slots_.find(key);
    if (found == slots_.end() || !found->second.upstream_offset) continue;
    Slot& slot = found->second;
    const PartitionStatus status = slot.pipeline->status();
    const auto observed = slot.source->observed();
    UpstreamOffset::Seen seen;
    seen.committed = status.committed;
    seen.end = status.upstream_end;
    seen.has_retention = observed && observed->view.has_retention;
    auto updating = slot.upstream_offset->update(seen);
    auto told = co_await std::move(updating);
    if (!told) continue;
    spdlog::warn("[{}] {}", key.to_string(), *told);
    state::EventRow event;
    event.at = clock_.wall_micros();
    event.kind = slot.upstream_offset->pin()->alarm ? "upstream_pin" : "upstream_pin_released";
    event.object = key.to_string();
    event.actor = "appliance";
    event.detail = *told;
    transaction.events.push_back(std::move(event));
  }
  if (transaction.empty()) co_return;
  auto applying = store_.apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  if (!applied) spdlog::warn("{}", applied.error().to_string());
}

}  // namespace replicator
