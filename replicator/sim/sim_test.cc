// Whole runs of the real supervisor, with everything below it, on virtual time between two clusters in memory. What
// happens in a run, and what must hold: world.h, faults.h, checkers.h. Usage: docs/TESTING.md.
#include <chrono>
#include <cstdlib>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "replicator/sim/world.h"

namespace replicator::sim {
namespace {

struct Outcome {
  std::string problem;
  std::uint64_t trace = 0;
};

// Over all runs of this process.
struct Totals {
  std::uint64_t seeds = 0;
  base::Duration time{};
  Tally faults;
} totals;

Outcome run_seed(std::uint64_t seed, bool verbose = false) {
  World world(seed, verbose);
  Outcome outcome;
  outcome.problem = world.run();
  outcome.trace = world.trace();
  ++totals.seeds;
  totals.time += world.time();
  for (const auto& [fault, count] : world.tally()) totals.faults[fault] += count;
  return outcome;
}

std::optional<std::uint64_t> from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 0);
}

class Sim : public ::testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(from_environment("SIM_SEED") ? spdlog::level::info : spdlog::level::off); }
  static void TearDownTestSuite() {
    fmt::print("{} seeds, {:.1f} virtual hours\n", totals.seeds,
               std::chrono::duration<double, std::ratio<3600>>(totals.time).count());
    for (const auto& [fault, count] : totals.faults) fmt::print("{:>9} {}\n", count, fault);
  }
  // SIM_FIRST, SIM_SEEDS: another range. SIM_SHARD of SIM_SHARDS: every nth of it. SIM_FAILURES: ends after so many,
  // and names each seed when it begins, for what ends the process.
  static void run_range(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t shards = from_environment("SIM_SHARDS").value_or(1);
    const std::uint64_t shard = from_environment("SIM_SHARD").value_or(0);
    const auto most = from_environment("SIM_FAILURES");
    std::uint64_t failures = 0;
    for (std::uint64_t seed = first; seed < first + count && failures < most.value_or(20); ++seed) {
      if (seed % shards != shard) continue;
      if (most) fmt::print(stderr, "seed {}\n", seed);
      const Outcome outcome = run_seed(seed);
      if (!outcome.problem.empty()) ++failures;
      EXPECT_EQ(outcome.problem, "") << "SIM_SEED=" << seed;
    }
  }
};

TEST_F(Sim, RandomRunsLoseNothingAndSayWhatHappened) {
  if (const auto seed = from_environment("SIM_SEED")) {
    EXPECT_EQ(run_seed(*seed, true).problem, "") << "SIM_SEED=" << *seed;
    return;
  }
  run_range(from_environment("SIM_FIRST").value_or(1), from_environment("SIM_SEEDS").value_or(2000));
}

// What each found: docs/TESTING.md.
TEST_F(Sim, SeedsThatFailedOnce) {
  for (const std::uint64_t seed : {60U, 79U, 90U, 149U, 161U, 180U, 182U})
    EXPECT_EQ(run_seed(seed).problem, "") << "SIM_SEED=" << seed;
}

TEST_F(Sim, TheSameSeedIsTheSameRun) {
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome once = run_seed(seed);
    const Outcome again = run_seed(seed);
    EXPECT_EQ(once.problem, again.problem);
    EXPECT_EQ(once.trace, again.trace) << "SIM_SEED=" << seed;
    traces.insert(once.trace);
  }
  EXPECT_EQ(traces.size(), 20U);
}

}  // namespace
}  // namespace replicator::sim
