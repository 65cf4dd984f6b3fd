#include "replicator/verify/verifier.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "replicator/model/partition_glob.h"

namespace replicator {

namespace {

constexpr int kAttempts = 3;  // a partition that is rewound under our eyes again and again has no answer

std::uint64_t messages_from(const state::OffsetMap& map, std::uint64_t up_begin) {
  std::uint64_t count = 0;
  for (const state::RangeRow& range : map.ranges()) {
    const std::uint64_t end = range.up_begin + range.length;
    count += end - std::clamp(up_begin, range.up_begin, end);
  }
  return count;
}

// What is worse for the whole run.
int weight(Verified verdict) {
  switch (verdict) {
    case Verified::kEqual:
      return 0;
    case Verified::kIncomplete:
      return 1;
    case Verified::kUnreachable:
      return 2;
    case Verified::kDifferent:
      return 3;
  }
  return 3;
}

}  // namespace

VerifyProgress Verifier::progress() const {
  VerifyProgress progress = progress_;
  progress.messages = tally_.messages;
  progress.bytes = tally_.bytes;
  const double elapsed = std::chrono::duration<double>(clock_.now() - started_).count();
  if (progress.messages > 0 && elapsed > 0) {
    const std::uint64_t left = progress.messages_total - std::min(progress.messages_total, progress.messages);
    progress.seconds_left = static_cast<double>(left) * elapsed / static_cast<double>(progress.messages);
  }
  return progress;
}

base::Task<base::Result<std::vector<base::PartitionKey>>> Verifier::select(std::string glob) {
  std::optional<PartitionGlob> filter;
  if (!glob.empty()) {
    auto compiled = PartitionGlob::compile(glob);
    CO_RETURN_IF_ERROR(compiled);
    filter = *std::move(compiled);
  }
  auto rows_call = store_.partitions();
  auto rows = co_await std::move(rows_call);
  CO_RETURN_IF_ERROR(rows);
  std::vector<base::PartitionKey> keys;
  for (const state::PartitionRow& row : *rows) {
    if (!filter || filter->matches(row.key)) keys.push_back(row.key);
  }
  if (keys.empty()) {
    co_return base::Error(base::ErrorCode::kInvalidArgument, "verify", glob, "matches no partition of this link",
                          "iggy-replicate status lists them");
  }
  co_return keys;
}

base::Task<base::Result<Verifier::Begin>> Verifier::begin(base::PartitionKey key, bool full) {
  auto map_call = store_.offset_map(key);
  auto map = co_await std::move(map_call);
  CO_RETURN_IF_ERROR(map);
  Begin begin{std::move(*map)};
  begin.up = begin.map.up_begin();
  begin.down = begin.map.down_begin();
  if (full) co_return begin;
  auto verified_call = store_.verified();
  auto verified = co_await std::move(verified_call);
  CO_RETURN_IF_ERROR(verified);
  for (const state::VerifiedRow& row : *verified) {
    if (row.key != key || row.generation != begin.map.row().generation || row.up_end < begin.up) continue;
    begin.up = row.up_end;
    begin.down = row.down_end;
  }
  co_return begin;
}

base::Task<base::Result<PartitionVerdict>> Verifier::compare(Begin begin, Pace& pace, bool full) {
  PartitionVerdict verdict;
  const base::PartitionKey key = begin.map.row().key;
  const VerifyPair pair = open_(begin.map.row());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    SideStream upstream(*pair.upstream, clock_, stop_, options_);
    SideStream downstream(*pair.downstream, clock_, stop_, options_);
    Comparison comparison(begin.map, upstream, downstream, store_, clock_, stop_, pace, options_, tally_);
    verdict = {};
    verdict.key = key;
    verdict.downstream = begin.map.row().downstream;
    verdict.up_begin = begin.up;
    verdict.down_begin = begin.down;
    auto running = comparison.run(verdict);
    auto outcome = co_await std::move(running);
    if (!outcome) {
      if (outcome.error().is_cancelled()) co_return std::move(outcome).error();
      verdict.verdict = Verified::kUnreachable;
      verdict.detail = outcome.error().to_string();
      co_return verdict;
    }
    if (*outcome == Comparison::Outcome::kEqual) co_return verdict;
    if (*outcome == Comparison::Outcome::kDifferent) {
      verdict.verdict = Verified::kDifferent;
      verdict.detail = fmt::format("{}: {}", to_string(verdict.difference->kind), verdict.difference->text);
      co_return verdict;
    }
    auto beginning = this->begin(key, full);
    auto again = co_await std::move(beginning);
    CO_RETURN_IF_ERROR(again);
    begin = std::move(*again);
  }
  verdict.verdict = Verified::kIncomplete;
  verdict.detail = fmt::format("its position was rewound while it was compared, {} times", kAttempts);
  co_return verdict;
}

base::Task<base::Status> Verifier::record(VerifyReport& report, const std::vector<state::VerifiedRow>& clean) {
  state::Transaction transaction;
  transaction.verified = clean;
  state::EventRow event;
  event.at = report.ended_at;
  event.kind = "verify";
  event.actor = "appliance";
  event.detail = fmt::format("{}: {} of {} partitions equal, {} messages compared", to_string(report.verdict),
                             clean.size(), report.partitions.size(), tally_.messages);
  transaction.events.push_back(std::move(event));
  auto applying = store_.apply(std::move(transaction));
  auto applied = co_await std::move(applying);
  CO_RETURN_IF_ERROR(applied);
  co_return base::ok();
}

base::Task<base::Result<VerifyReport>> Verifier::run(VerifyRequest request) {
  VerifyReport report;
  report.full = request.full;
  report.started_at = clock_.wall_micros();
  started_ = clock_.now();
  auto link_call = store_.link();
  auto link = co_await std::move(link_call);
  CO_RETURN_IF_ERROR(link);
  if (*link) report.link_id = (*link)->id;
  auto selecting = select(request.glob);
  auto keys = co_await std::move(selecting);
  CO_RETURN_IF_ERROR(keys);
  std::vector<Begin> begins;
  for (const base::PartitionKey& key : *keys) {
    auto beginning = begin(key, request.full);
    auto found = co_await std::move(beginning);
    CO_RETURN_IF_ERROR(found);
    progress_.messages_total += messages_from(found->map, found->up);
    begins.push_back(std::move(*found));
  }
  progress_.partitions = static_cast<std::uint32_t>(begins.size());
  Pace pace(clock_, stop_, request.bytes_per_second, options_.busy);
  std::vector<state::VerifiedRow> clean;
  for (Begin& begin : begins) {
    progress_.partition = begin.map.row().key.to_string();
    const std::uint64_t generation = begin.map.row().generation;
    auto comparing = compare(std::move(begin), pace, request.full);
    auto verdict = co_await std::move(comparing);
    CO_RETURN_IF_ERROR(verdict);
    if (weight(verdict->verdict) > weight(report.verdict)) report.verdict = verdict->verdict;
    if (verdict->verdict == Verified::kDifferent) ++progress_.different;
    if (verdict->verdict == Verified::kEqual) {
      clean.push_back({verdict->key, generation, verdict->up_end, verdict->down_end, clock_.wall_micros()});
    }
    ++progress_.done;
    report.partitions.push_back(std::move(*verdict));
  }
  report.ended_at = clock_.wall_micros();
  auto recording = record(report, clean);
  auto recorded = co_await std::move(recording);
  CO_RETURN_IF_ERROR(recorded);
  co_return report;
}

}  // namespace replicator
