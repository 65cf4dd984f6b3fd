// Rows for tests of the store.
#pragma once

#include <string>

#include "state/store.h"

namespace state::testing {

inline base::PartitionKey key(std::uint32_t partition = 0) { return {{"orders", "events"}, partition}; }

inline PartitionRow new_row(std::uint32_t partition = 0) {
  PartitionRow row;
  row.key = key(partition);
  row.downstream = {"dr-orders", "events"};
  row.up_created = {11, 12, 13};
  return row;
}

inline Transaction create(PartitionRow row = new_row()) {
  Transaction transaction;
  transaction.replaces.emplace_back().row = std::move(row);
  return transaction;
}

inline PartitionNote note(std::uint64_t generation = 1) {
  PartitionNote empty;
  empty.key = key();
  empty.generation = generation;
  return empty;
}

// The next `count` messages after `from`, mapped one to one.
inline PartitionCommit advance(std::uint64_t from, std::uint64_t count, std::uint64_t generation = 1,
                               std::uint32_t partition = 0) {
  PartitionCommit commit;
  commit.key = key(partition);
  commit.generation = generation;
  commit.watermark = from + count;
  commit.down_end = from + count;
  commit.anchor = Anchor{from + count - 1, from + count - 1, {from, 7}, {from + 1, ~std::uint64_t{0}}};
  commit.ranges = {{from, from, count, true}};
  commit.added.copied = count;
  return commit;
}

inline Transaction with(PartitionCommit commit) {
  Transaction transaction;
  transaction.commits.push_back(std::move(commit));
  return transaction;
}

}  // namespace state::testing
