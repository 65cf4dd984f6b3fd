// What the supervisor lets the outside know.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "replicator/link/supervisor.h"

namespace replicator {

namespace {
constexpr base::Duration kPublishEvery = std::chrono::milliseconds(250);
constexpr base::Duration kPublishAtLeastEvery = std::chrono::seconds(1);
constexpr int kShare = 100;  // with many partitions snapshots are made less often: they take 1/100 of the time
constexpr base::Duration kRateWindow = std::chrono::seconds(10);
constexpr base::Duration kUnansweredFor = std::chrono::seconds(3);  // three pings
constexpr base::Duration kLogProgressEvery = std::chrono::seconds(10);
}  // namespace

base::Task<void> Supervisor::publish_loop() {
  while (!publish_stop_.is_set()) {
    const base::TimePoint begin = clock_.now();
    publish();
    const base::Duration took = clock_.now() - begin;
    auto wait = base::wait_until(
        clock_, publish_stop_, begin + std::clamp<base::Duration>(took * kShare, kPublishEvery, kPublishAtLeastEvery));
    co_await std::move(wait);
  }
}

void Supervisor::publish() {
  auto status = std::make_shared<LinkStatus>();
  status->link_id = link_.id;
  status->state = state_;
  status->state_detail = state_detail_;
  status->generation = link_.generation;
  status->version = version_;
  status->started_at = started_at_;
  status->taken_at = clock_.wall_micros();
  for (End* end : {&upstream_, &downstream_}) {
    if (!end->status.dialect.empty()) {  // connected once; the leader may have moved since
      const iggy::ServerIdentity& server = end->client->server();
      end->status.endpoint = server.endpoint.to_string();
      end->status.node = server.nodes > 1 ? fmt::format("{} of {}", server.node, server.nodes) : "";
    }
    if (end->answered_at == base::TimePoint{} || state_ == "stopped") continue;  // not yet connected
    const base::Duration age = clock_.now() - end->answered_at;                  // steady: the wall clock may step
    end->status.last_seen = status->taken_at - static_cast<std::uint64_t>(age.count());
    end->status.connected = age < kUnansweredFor;
  }
  status->upstream = upstream_.status;
  status->downstream = downstream_.status;
  status->state_file = std::filesystem::absolute(config_.state_file).string();  // a status is read elsewhere
  status->store_error = committer_->error();
  if (status->store_error != logged_store_error_) {
    if (status->store_error.empty()) {
      spdlog::info("the state file can be written again");
    } else {
      spdlog::error("the state file: {}; what is acknowledged is committed as soon as it can be", status->store_error);
    }
    logged_store_error_ = status->store_error;
  }
  std::error_code unreadable;
  const auto space = std::filesystem::space(std::filesystem::path(status->state_file).parent_path(), unreadable);
  if (!unreadable) status->state_free_bytes = space.available;
  status->ledger = ledger_;
  for (const End* end : {&upstream_, &downstream_}) {
    if (end->answered_at == base::TimePoint{}) continue;
    if (const auto ends = end->client->server().certificate_ends) status->certificates[std::string(end->name)] = *ends;
  }
  if (admin_certificate_ends_) status->certificates["admin"] = *admin_certificate_ends_;
  status->budget_bytes = budget_.total();
  status->budget_used_bytes = budget_.used();
  status->notices = topology_.notices;
  status->settings = settings_;
  status->partitions.reserve(slots_.size());
  for (auto& [key, slot] : slots_) {
    PartitionStatus partition = slot.pipeline->status();
    add_rates(partition);
    if (slot.upstream_offset) partition.pin = slot.upstream_offset->pin();
    status->partitions.push_back(std::move(partition));
  }
  for (const MissingPartition& missing : topology_.missing) {
    if (slots_.contains(missing.key)) continue;
    PartitionStatus partition;
    partition.key = missing.key;
    partition.downstream = missing.downstream;
    partition.phase = Phase::kFault;
    partition.fault.kind = info(missing.fault).name;
    partition.fault.detail = missing.reason;
    partition.waits_for = missing.reason;
    partition.consequences[Exit::kRetry] = "looked at again by itself, too, every reconcile_interval";
    status->partitions.push_back(std::move(partition));
  }
  if (!topology_.missing.empty()) std::ranges::sort(status->partitions, {}, &PartitionStatus::key);
  log_progress(*status);
  board_.publish(std::move(status));
}

void Supervisor::add_rates(PartitionStatus& status) {
  std::deque<Sample>& samples = samples_[status.key];
  samples.push_back({clock_.now(), status.counters.copied, status.counters.copied_bytes, status.lag.seen_end,
                     status.lag.observed_at});
  const base::TimePoint oldest = clock_.now() - kRateWindow;
  while (samples.front().at < oldest) samples.pop_front();
  const Sample& first = samples.front();
  const Sample& last = samples.back();
  // Without news the rate stays what it was: it says what an upstream that is gone took meanwhile.
  const bool news = samples.size() > 1 && last.upstream_at > samples[samples.size() - 2].upstream_at;
  if (news && first.upstream_end && last.upstream_end && last.upstream_at >= first.upstream_at + 200'000) {
    const std::uint64_t grown = *last.upstream_end - std::min(*last.upstream_end, *first.upstream_end);
    upstream_rates_[status.key] =
        static_cast<double>(grown) * 1e6 / static_cast<double>(last.upstream_at - first.upstream_at);
  }
  status.upstream_per_second = upstream_rates_[status.key];
  const double seconds = std::chrono::duration<double>(samples.back().at - first.at).count();
  if (seconds < 0.2 || samples.back().messages < first.messages) return;
  status.messages_per_second = static_cast<double>(samples.back().messages - first.messages) / seconds;
  status.bytes_per_second = static_cast<double>(samples.back().bytes - first.bytes) / seconds;
  if (status.lag.messages && *status.lag.messages > 0 && status.messages_per_second > 0) {
    status.seconds_left = static_cast<double>(*status.lag.messages) / status.messages_per_second;
  }
}

void Supervisor::log_progress(const LinkStatus& status) {
  if (clock_.now() - progress_logged_at_ < kLogProgressEvery) return;
  progress_logged_at_ = clock_.now();
  std::uint64_t left = 0;
  std::uint64_t done = 0;
  double rate = 0;
  double bytes = 0;
  for (const PartitionStatus& partition : status.partitions) {
    if (!partition.fault.active() && partition.desired == state::Desired::kRunning) {
      left += partition.lag.messages.value_or(0);
    }
    done += partition.counters.copied;
    rate += partition.messages_per_second;
    bytes += partition.bytes_per_second;
  }
  if (left == 0 || rate <= 0) return;
  spdlog::info("copying: {} messages done, {} left, {:.0f} messages/s, {:.1f} MB/s, {:.0f} s left", done, left, rate,
               bytes / 1e6, static_cast<double>(left) / rate);
}

// Every partition has committed what the upstream held when it was first seen. One that a person must resolve counts as
// done: the receipt names it, and the run ends with a problem.
bool Supervisor::reached(const Slot& slot, const PartitionStatus& status) const {
  if (!slot.target) return false;
  // An end in an unused reservation is never reached: who has seen all that can be read is done as well.
  // Only who has looked at both sides and found them as recorded may say so.
  const bool seen_all = status.phase == Phase::kCaughtUp && status.committed == status.polled;
  return seen_all || (status.phase == Phase::kCopying && status.committed >= *slot.target && *slot.target > 0);
}

bool Supervisor::everything_caught_up() {
  bool all = true;
  for (auto& [key, slot] : slots_) {
    const PartitionStatus status = slot.pipeline->status();
    if (!slot.target && status.upstream_end) slot.target = status.upstream_end;
    const bool stopped =
        status.fault.active() || status.desired == state::Desired::kPaused || status.phase == Phase::kStuck;
    slot.reached = reached(slot, status);
    all = all && (stopped || slot.reached);
  }
  return all;
}

std::vector<PartitionReceipt> Supervisor::receipts() const {
  std::vector<PartitionReceipt> receipts;
  for (const auto& [key, slot] : slots_) {
    const PartitionStatus status = slot.pipeline->status();
    const PipelineTally& tally = slot.pipeline->tally();
    PartitionReceipt receipt;
    receipt.key = key;
    receipt.downstream = status.downstream;
    receipt.up_begin = tally.first.value_or(status.committed);
    receipt.up_end = status.committed;
    receipt.copied = tally.copied;
    receipt.copied_bytes = tally.copied_bytes;
    receipt.skipped = status.counters.skipped;
    if (config_.until_caught_up && tally.copied > 0 && !tally.repaired) receipt.digest = tally.digest.to_string();
    const bool all =
        config_.until_caught_up ? slot.reached : status.upstream_end && status.committed >= *status.upstream_end;
    receipt.complete = all && !status.fault.active();
    if (!receipt.complete)
      receipt.detail = status.fault.active() ? status.fault.kind + ": " + status.fault.detail : status.waits_for;
    receipts.push_back(std::move(receipt));
  }
  for (const MissingPartition& missing : topology_.missing) {
    if (slots_.contains(missing.key)) continue;
    PartitionReceipt receipt;
    receipt.key = missing.key;
    receipt.downstream = missing.downstream;
    receipt.detail = missing.reason;
    receipts.push_back(std::move(receipt));
  }
  std::ranges::sort(receipts, {}, &PartitionReceipt::key);
  return receipts;
}

}  // namespace replicator
