#include <cstdio>
#include <memory>

#include <fmt/format.h>

#define XXH_STATIC_LINKING_ONLY  // the size of the hash state
#include <xxhash.h>

#include "base/digest.h"
#include "integration/load/blocking_client.h"
#include "integration/load/commands.h"
#include "integration/load/compare.h"
#include "integration/load/partition_reader.h"

namespace load {
namespace {

int fail(const base::Error& error) {
  std::fprintf(stderr, "iggy-load: %s\n", error.to_string().c_str());
  return 1;
}

base::Result<std::vector<Entry>> read_all(BlockingClient& client, const base::TopicName& topic,
                                          std::uint32_t partition) {
  std::vector<Entry> out;
  PartitionReader reader(client, topic, partition);
  while (true) {
    const auto batch = reader.next();
    if (!batch) return batch.error();
    if (batch->empty()) return out;
    for (base::Record record : batch->records) {
      Entry entry{.offset = record.offset,
                  .digest = base::digest_of(record),
                  .digest_no_id = {},
                  .zero_id = record.id.is_zero()};
      record.id = {};
      entry.digest_no_id = base::digest_of(record);
      out.push_back(entry);
    }
  }
}

}  // namespace

int run_read(const ReadOptions& options) {
  auto client = BlockingClient::connect(options.url);
  if (!client) return fail(client.error());
  const auto partitions = partitions_of(*client, options.topic);
  if (!partitions) return fail(partitions.error());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      options.out.empty() ? nullptr : std::fopen(options.out.c_str(), "w"), &std::fclose);
  if (!options.out.empty() && !file)
    return fail({base::ErrorCode::kInvalidArgument, "read", options.out, "can't be written"});
  std::FILE* const lines = file ? file.get() : stdout;

  for (std::uint32_t partition = 0; partition < *partitions; ++partition) {
    if (options.partition && *options.partition != partition) continue;
    PartitionReader reader(*client, options.topic, partition);
    std::uint64_t count = 0, first = 0, last = 0;
    XXH3_state_t all;
    XXH3_128bits_reset(&all);
    while (true) {
      const auto batch = reader.next();
      if (!batch) return fail(batch.error());
      if (batch->empty()) break;
      for (const base::Record& record : batch->records) {
        const base::Digest digest = base::digest_of(record);
        XXH3_128bits_update(&all, &digest, sizeof digest);
        if (count++ == 0) first = record.offset;
        last = record.offset;
        if (!options.quiet)
          fmt::print(lines, "{} {} {} {} {} {} {}\n", partition, record.offset, record.id.to_string(),
                     record.origin_timestamp, record.payload_length, record.body.size() - record.payload_length,
                     digest.to_string());
      }
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(&all);
    fmt::print("summary {} {} {} {} {}\n", partition, count, first, last,
               base::Digest{hash.low64, hash.high64}.to_string());
  }
  return 0;
}

int run_compare(const CompareOptions& options) {
  auto a = BlockingClient::connect(options.a);
  if (!a) return fail(a.error());
  auto b = BlockingClient::connect(options.b);
  if (!b) return fail(b.error());
  const auto partitions = partitions_of(*a, options.topic_a);
  if (!partitions) return fail(partitions.error());
  const auto partitions_b = partitions_of(*b, options.topic_b);
  if (!partitions_b) return fail(partitions_b.error());

  Difference total;
  bool same = *partitions == *partitions_b || (options.prefix && *partitions_b < *partitions);
  if (!same) fmt::print("partitions differ: a {} b {}\n", *partitions, *partitions_b);
  for (std::uint32_t partition = 0; partition < std::max(*partitions, *partitions_b); ++partition) {
    base::Result<std::vector<Entry>> left = std::vector<Entry>{}, right = std::vector<Entry>{};
    if (partition < *partitions) left = read_all(*a, options.topic_a, partition);
    if (!left) return fail(left.error());
    if (partition < *partitions_b) right = read_all(*b, options.topic_b, partition);
    if (!right) return fail(right.error());
    const Difference found = compare_logs(*left, *right, options.ignore_zero_ids, options.prefix);
    if (found.first) {
      const auto at = [&](const std::vector<Entry>& log) {
        return *found.first < log.size()
                   ? fmt::format("offset {} digest {}", log[*found.first].offset, log[*found.first].digest.to_string())
                   : std::string("nothing");
      };
      fmt::print("partition {} differs first at message {}: a {}; b {}\n", partition, *found.first, at(*left),
                 at(*right));
    }
    same = same && found.none();
    total.equal += found.equal;
    total.missing += found.missing;
    total.extra += found.extra;
    total.duplicates += found.duplicates;
    total.out_of_order += found.out_of_order;
  }
  fmt::print("equal={} missing={} extra={} duplicates={} out-of-order={}\n", total.equal, total.missing, total.extra,
             total.duplicates, total.out_of_order);
  return same ? 0 : 3;
}

}  // namespace load
