// Goal: the table of faults is complete, no exit is offered without a sentence, and an operator finds each of them in
// docs/OPERATIONS.md. Method: walk both enums; parse the headings of that page.
#include "replicator/model/fault.h"

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "replicator/model/status.h"

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

TEST(Fault, AHistoryThatIsGoneIsNeverRetriedAway) {
  for (const FaultKind kind :
       {FaultKind::kUpstreamRewound, FaultKind::kUpstreamRecreated, FaultKind::kDownstreamRecreated}) {
    for (const Exit exit : info(kind).exits) EXPECT_NE(exit, Exit::kRetry) << info(kind).name;
  }
}

TEST(Fault, WhatAnExitMeansHereIsSaidInNumbersOrAsUnknown) {
  FaultCounts counts;
  counts.watermark = 500;
  EXPECT_EQ(consequence(FaultKind::kDownstreamRecreated, Exit::kRecopy, counts),
            "an unknown number of messages are upstream and an unknown number of messages downstream; how many will be "
            "there twice is not known now");
  counts.up_messages = 510;
  counts.down_messages = 20;
  EXPECT_EQ(consequence(FaultKind::kDownstreamRecreated, Exit::kRecopy, counts),
            "510 messages are upstream and 20 messages downstream; up to 20 of them will be there twice");
  counts.up_begin = 500;
  counts.up_end = 540;
  EXPECT_EQ(consequence(FaultKind::kRetention, Exit::kAccept, counts), "40 upstream offsets are given up: 500 to 540");
  EXPECT_EQ(consequence(FaultKind::kRetention, Exit::kRetry, counts), "");
  for (int i = 0; i < kFaultKindCount; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    for (const Exit exit : info(kind).exits) {
      if (exit != Exit::kRetry && kind != FaultKind::kForeignWriter)
        EXPECT_FALSE(consequence(kind, exit, counts).empty());
    }
  }
}

// Of "## Faults": the text of each "### name", and the exits that its list items begin with.
struct Section {
  std::string text;
  std::vector<std::string> exits;
};
std::map<std::string, Section> documented_faults() {
  std::map<std::string, Section> sections;
  std::ifstream page("docs/OPERATIONS.md");
  bool inside = false;
  std::string name;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## Faults";
    if (!inside || line.starts_with("## ")) continue;
    if (line.starts_with("### ")) {
      name = line.substr(4);
      EXPECT_FALSE(sections.contains(name)) << name << " has two sections";
      sections[name];
    } else if (!name.empty()) {
      sections[name].text += line + "\n";
      if (line.starts_with("* `")) sections[name].exits.push_back(line.substr(3, line.find('`', 3) - 3));
    }
  }
  return sections;
}

TEST(Fault, EveryKindAndEveryExitIsExplainedToTheOperator) {
  std::map<std::string, Section> sections = documented_faults();
  for (int i = 0; i < kFaultKindCount; ++i) {
    const FaultInfo& fault = info(static_cast<FaultKind>(i));
    const auto found = sections.find(std::string(fault.name));
    ASSERT_NE(found, sections.end()) << "docs/OPERATIONS.md has no section \"### " << fault.name << "\"";
    const Section& section = found->second;
    EXPECT_NE(section.text.find(fault.meaning), std::string::npos) << fault.name << " is explained in other words";
    std::vector<std::string> exits;
    for (const Exit exit : fault.exits) exits.emplace_back(to_string(exit));
    EXPECT_EQ(section.exits, exits) << fault.name;
    sections.erase(found);
  }
  for (const auto& [name, section] : sections) ADD_FAILURE() << "docs/OPERATIONS.md explains " << name << ", no fault";
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
