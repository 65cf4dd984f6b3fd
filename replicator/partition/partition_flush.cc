// What was acked becomes committable: at once, or after the sink has flushed it. Sends never wait for a flush; one
// flush covers all that was acked since the last one.
#include <utility>

#include "replicator/partition/partition_pipeline.h"

namespace replicator {

void PartitionPipeline::confirm(state::PartitionCommit commit) {
  if (!sink_.flushes()) {
    committer_.add(std::move(commit), *this);
  } else if (flush_error_) {
    return;  // the copy is ending: the next look finds it downstream
  } else if (unflushed_) {
    Committer::merge(*unflushed_, std::move(commit));
  } else {
    unflushed_ = std::move(commit);
    to_flush_.set();
  }
}

base::Task<void> PartitionPipeline::flush_acked() {
  while (!stop_reading_.is_set() && !flush_error_) {
    to_flush_.reset();
    if (!unflushed_) {
      auto waiting = to_flush_.wait();
      co_await std::move(waiting);
      continue;
    }
    auto pause = base::wait_until(clock_, stop_reading_, clock_.now() + options_.flush_interval);
    co_await std::move(pause);
    auto flushing = flush_once();
    co_await std::move(flushing);
  }
}

base::Task<void> PartitionPipeline::flush_once() {
  if (flush_error_) unflushed_.reset();
  if (!unflushed_) co_return;
  state::PartitionCommit commit = *std::exchange(unflushed_, std::nullopt);
  auto flushing = sink_.flush();
  auto flushed = co_await std::move(flushing);
  if (flushed) {
    committer_.add(std::move(commit), *this);
    co_return;
  }
  flush_error_ = flushed.error();
  unflushed_.reset();
  queue_changed_.set();
  committed_.set();
}

}  // namespace replicator
