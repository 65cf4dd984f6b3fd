// Goal: the table of faults is complete, and no exit is offered without a sentence. Method: walk both enums.
#include "replicator/fault.h"

#include <set>

#include <gtest/gtest.h>

#include "replicator/status.h"

namespace replicator {
namespace {

TEST(Fault, EveryKindHasANameASentenceAndAnExit) {
  std::set<std::string_view> names;
  for (int i = 0; i < kFaultKindCount; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    const FaultInfo& fault = info(kind);
    EXPECT_EQ(fault.kind, kind) << fault.name;
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_EQ(fault.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << fault.name;
    EXPECT_TRUE(fault.meaning.ends_with('.')) << fault.name;
    EXPECT_EQ(fault_from_name(fault.name), kind);
    ASSERT_FALSE(fault.exits.empty()) << fault.name;
    for (const Exit exit : fault.exits) {
      EXPECT_GT(meaning(kind, exit).size(), 20U) << fault.name << " " << to_string(exit);
    }
  }
  EXPECT_EQ(fault_from_name(""), std::nullopt);
  EXPECT_EQ(fault_from_name("no_such_fault"), std::nullopt);
}

TEST(Fault, OffersOnlyExitsThatAreTakenToday) {
  const std::set<Exit> taken = {Exit::kRetry, Exit::kAccept, Exit::kRestart};
  for (int i = 0; i < kFaultKindCount; ++i) {
    for (const Exit exit : info(static_cast<FaultKind>(i)).exits) EXPECT_TRUE(taken.contains(exit)) << i;
  }
}

TEST(Fault, AHistoryThatIsGoneIsNeverRetriedAway) {
  for (const FaultKind kind :
       {FaultKind::kUpstreamRewound, FaultKind::kUpstreamRecreated, FaultKind::kDownstreamRecreated}) {
    for (const Exit exit : info(kind).exits) EXPECT_EQ(exit, Exit::kRestart) << info(kind).name;
  }
}

TEST(Exit, NamesAreReadBack) {
  for (int i = 0; i <= static_cast<int>(Exit::kSkip); ++i) {
    EXPECT_EQ(exit_from_name(to_string(static_cast<Exit>(i))), static_cast<Exit>(i));
  }
  EXPECT_EQ(exit_from_name("unknown"), std::nullopt);
}

TEST(Phase, EveryPhaseHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Phase::kStopped); ++i) {
    const std::string_view name = to_string(static_cast<Phase>(i));
    EXPECT_NE(name, "unknown");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace replicator
