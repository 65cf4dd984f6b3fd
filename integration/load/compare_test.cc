// Goal: every way in which two logs can differ is counted under its own name. Method: small logs by hand.
#include "integration/load/compare.h"

#include <gtest/gtest.h>

namespace load {
namespace {

// Message `n`; its digest without id is the same for `n` and `n + 100`.
Entry entry(std::uint64_t n, bool zero_id = false) {
  return {.offset = n, .digest = {n, 1}, .digest_no_id = {n % 100, 2}, .zero_id = zero_id};
}
std::vector<Entry> log_of(const std::vector<std::uint64_t>& numbers) {
  std::vector<Entry> out;
  for (std::uint64_t n : numbers) out.push_back(entry(n));
  return out;
}
std::vector<std::uint64_t> counts(const Difference& d) {
  return {d.equal, d.missing, d.extra, d.duplicates, d.out_of_order};
}
Difference compare(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b, bool prefix = false) {
  return compare_logs(log_of(a), log_of(b), false, prefix);
}

TEST(Compare, EqualLogs) {
  EXPECT_TRUE(compare({}, {}).none());
  const Difference same = compare({1, 2, 3}, {1, 2, 3});
  EXPECT_TRUE(same.none());
  EXPECT_FALSE(same.first.has_value());
  EXPECT_EQ(counts(same), (std::vector<std::uint64_t>{3, 0, 0, 0, 0}));
}

TEST(Compare, NamesEachDifference) {
  EXPECT_EQ(counts(compare({1, 2, 3}, {1, 3})), (std::vector<std::uint64_t>{2, 1, 0, 0, 0}));
  EXPECT_EQ(counts(compare({1, 2}, {1, 9, 2})), (std::vector<std::uint64_t>{2, 0, 1, 0, 0}));
  EXPECT_EQ(counts(compare({1, 2, 3}, {1, 2, 2, 3})), (std::vector<std::uint64_t>{3, 0, 0, 1, 0}));
  EXPECT_EQ(counts(compare({1, 2, 3}, {1, 2, 3, 1})), (std::vector<std::uint64_t>{3, 0, 0, 1, 0}));
  EXPECT_EQ(counts(compare({1, 2, 3, 4}, {1, 4, 2, 3})), (std::vector<std::uint64_t>{3, 0, 0, 0, 1}));
  EXPECT_EQ(compare({1, 2, 3}, {1, 3}).first, 1U);
  EXPECT_EQ(compare({1, 2, 3}, {}).first, 0U);
}

TEST(Compare, RepeatedMessagesOfTheSourceAreNoDuplicates) {
  EXPECT_TRUE(compare({5, 5, 6}, {5, 5, 6}).none());
  EXPECT_EQ(counts(compare({5, 5, 6}, {5, 6})), (std::vector<std::uint64_t>{2, 1, 0, 0, 0}));
}

TEST(Compare, PrefixMayEndEarlyButHasNoHoles) {
  EXPECT_TRUE(compare({1, 2, 3}, {1}, true).none());
  EXPECT_TRUE(compare({1, 2, 3}, {}, true).none());
  EXPECT_FALSE(compare({1, 2, 3}, {1}, true).first.has_value());
  EXPECT_EQ(counts(compare({1, 2, 3, 4}, {1, 3}, true)), (std::vector<std::uint64_t>{2, 1, 0, 0, 0}));
  EXPECT_FALSE(compare({1}, {1, 2}, true).none());
}

TEST(Compare, ZeroIdsAreComparedWithoutId) {
  const std::vector<Entry> a = {entry(1), entry(2, true), entry(3)};
  const std::vector<Entry> b = {entry(1), entry(102), entry(3)};  // got an id at the target
  EXPECT_FALSE(compare_logs(a, b, false, false).none());
  EXPECT_TRUE(compare_logs(a, b, true, false).none());
  const std::vector<Entry> other = {entry(101), entry(102), entry(3)};
  EXPECT_FALSE(compare_logs(a, other, true, false).none()) << "only messages without id";
}

}  // namespace
}  // namespace load
