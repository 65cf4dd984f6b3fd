#include "replicator/model/rules.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

Rules compile(std::vector<std::string> includes, std::vector<std::string> excludes = {},
              std::vector<RenameRule> renames = {}) {
  auto rules = Rules::compile(includes, excludes, renames, "iggy-replicate/links");
  EXPECT_TRUE(rules) << rules.error().to_string();
  return std::move(rules).value_or(Rules{});
}
std::string target(const Rules& rules, const std::string& stream, const std::string& topic) {
  const auto name = rules.target({stream, topic});
  return name ? name->stream + "|" + name->topic : "-";
}
bool matches(std::string_view pattern, std::string_view name) { return Glob::compile(pattern).value().matches(name); }

TEST(Glob, MatchesWholeNames) {
  EXPECT_TRUE(matches("orders", "orders"));
  EXPECT_FALSE(matches("orders", "orders2"));
  EXPECT_FALSE(matches("orders2", "orders"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("o?ders", "orders"));
  EXPECT_FALSE(matches("o?ders", "oders"));
  EXPECT_TRUE(matches("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(matches("a*b*c", "aXbYbZ"));
  EXPECT_TRUE(matches("**", "x"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("", "x"));
}

TEST(Glob, TakesTheCharacterBehindABackslashAsItIs) {
  EXPECT_TRUE(matches(R"(a\*)", "a*"));
  EXPECT_FALSE(matches(R"(a\*)", "ab"));
  EXPECT_TRUE(matches(R"(a\\)", R"(a\)"));
  EXPECT_FALSE(Glob::compile(R"(a\)"));
}

TEST(Glob, StaysFastOnAPatternThatWouldBacktrack) {
  // Method: exponential matchers do not end on this.
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", std::string(255, 'a')));
}

TEST(Rules, CopiesEverythingButTheMarkersStreamByDefault) {
  const Rules rules = compile({});
  EXPECT_EQ(target(rules, "orders", "events"), "orders|events");
  EXPECT_EQ(target(rules, "iggy-replicate", "links"), "-");
  EXPECT_EQ(target(rules, "iggy-replicate", "other"), "-");
}

TEST(Rules, CopiesTheStreamOfADrillOnlyWhereItIsNamed) {
  EXPECT_EQ(target(compile({"*/*"}), "iggy-replicate-drill-1", "load"), "-");
  EXPECT_EQ(target(compile({"iggy-replicate-drill-1/*"}), "iggy-replicate-drill-1", "load"),
            "iggy-replicate-drill-1|load");
}

TEST(Rules, LeavesOutTheConfiguredMarkersStreamAndTheDefaultOne) {
  const auto rules = Rules::compile({"*/*"}, {}, {}, "ops/marks");
  ASSERT_TRUE(rules);
  EXPECT_FALSE(rules->target({"ops", "x"}));
  EXPECT_FALSE(rules->target({"iggy-replicate", "links"}));
  const auto off = Rules::compile({"*/*"}, {}, {}, "off");
  ASSERT_TRUE(off);
  EXPECT_FALSE(off->target({"iggy-replicate", "links"}));
  EXPECT_FALSE(off->marker());
}

TEST(Rules, ExcludesWin) {
  const Rules rules = compile({"orders/*", "pay/out"}, {"*/tmp-*"});
  EXPECT_EQ(target(rules, "orders", "events"), "orders|events");
  EXPECT_EQ(target(rules, "orders", "tmp-1"), "-");
  EXPECT_EQ(target(rules, "pay", "out"), "pay|out");
  EXPECT_EQ(target(rules, "pay", "in"), "-");
}

TEST(Rules, NeverConfusesASlashInsideANameWithTheSeparator) {
  const Rules literal = compile({"a/b"});
  EXPECT_EQ(target(literal, "a", "b"), "a|b");
  EXPECT_EQ(target(literal, "a/b", "b"), "-");
  const Rules star = compile({"a/*"});
  EXPECT_EQ(target(star, "a/x", "y"), "-") << "the stream's name is matched as a whole";
  EXPECT_EQ(target(star, "a", "x/y"), "a|x/y");
  const Rules escaped = compile({R"(a\/b/c)"});
  EXPECT_EQ(target(escaped, "a/b", "c"), "a/b|c");
  EXPECT_EQ(target(escaped, "a", "b/c"), "-");
  EXPECT_EQ(target(compile({"*/*"}), "a/b", "c/d"), "a/b|c/d") << "nothing is left out silently";
}

TEST(Rules, CarriesEachStarOverInOrder) {
  const Rules rules = compile({}, {}, {{"orders/*", "dr-orders/*"}, {"*/old-*", "archive/*-*"}, {"x*y*/t", "*-*/t"}});
  EXPECT_EQ(target(rules, "orders", "events"), "dr-orders|events");
  EXPECT_EQ(target(rules, "pay", "old-out"), "archive|pay-out");
  EXPECT_EQ(target(rules, "x1y2y3", "t"), "1-2y3|t") << "the earlier star matches as little as it can";
  EXPECT_EQ(target(rules, "other", "t"), "other|t");
}

TEST(Rules, TheFirstRenameThatMatchesGivesTheName) {
  const Rules rules = compile({}, {}, {{"orders/special", "a/b"}, {"orders/*", "c/*"}});
  EXPECT_EQ(target(rules, "orders", "special"), "a|b");
  EXPECT_EQ(target(rules, "orders", "x"), "c|x");
}

TEST(Rules, NamesTheRuleThatIsWrong) {
  const auto refused = [](std::vector<std::string> includes, std::vector<RenameRule> renames, const std::string& marker,
                          const std::string& text) {
    const auto rules = Rules::compile(includes, {}, renames, marker);
    ASSERT_FALSE(rules) << text;
    EXPECT_EQ(rules.error().code(), base::ErrorCode::kInvalidArgument);
    EXPECT_NE(rules.error().to_string().find(text), std::string::npos) << rules.error().to_string();
  };
  refused({"orders"}, {}, "off", "orders");
  refused({"orders/"}, {}, "off", "orders/");
  refused({"/x"}, {}, "off", "/x");
  refused({"a/b/c"}, {}, "off", "a/b/c");
  refused({}, {{"a/*", "b/c"}}, "off", "a/* -> b/c");
  refused({}, {{"a/b", "b/*"}}, "off", "a/b -> b/*");
  refused({}, {{"a/?", "b/?"}}, "off", "a/? -> b/?");
  refused({}, {{"a/b", "bc"}}, "off", "a/b -> bc");
  refused({}, {}, "links", "links");
  refused({}, {}, "links/*", "links/*");
}

TEST(Rules, RefusesTwoSourcesOntoOneTarget) {
  const Rules rules = compile({}, {}, {{"a/*", "c/*"}, {"b/*", "c/*"}});
  EXPECT_TRUE(rules.check_targets({{"a", "x"}, {"b", "y"}, {"iggy-replicate", "links"}}));
  EXPECT_TRUE(rules.check_targets({{"a", "x"}, {"a", "x"}})) << "one source named twice is one source";
  const auto status = rules.check_targets({{"a", "x"}, {"b", "x"}});
  ASSERT_FALSE(status);
  for (const char* name : {"a/x", "b/x", "c/x"}) {
    EXPECT_NE(status.error().to_string().find(name), std::string::npos) << status.error().to_string();
  }
}

TEST(Rules, RefusesTargetsThatAreNoNames) {
  const Rules rules = compile(
      {}, {}, {{"a*/*", "*/*"}, {"long/*", "long/" + std::string(250, 'x') + "*"}, {"m/*", "iggy-replicate/*"}});
  EXPECT_FALSE(rules.check_targets({{"a", "t"}}));
  EXPECT_TRUE(rules.check_targets({{"ab", "t"}}));
  EXPECT_TRUE(rules.check_targets({{"long", "12345"}}));
  EXPECT_FALSE(rules.check_targets({{"long", "123456"}}));
  EXPECT_FALSE(rules.check_targets({{"m", "links"}}));
  EXPECT_TRUE(rules.check_targets({{"m", "others"}}));
}

TEST(Rules, SaysWhichTopicsWouldFeedThemselvesInsideOneCluster) {
  const Rules same = compile({"orders/*"});
  EXPECT_TRUE(same.feeds_itself({"orders", "x"}));
  const Rules chain = compile({"*/*"}, {}, {{"orders/*", "dr-orders/*"}});
  EXPECT_TRUE(chain.feeds_itself({"orders", "x"})) << "dr-orders is copied too";
  const Rules apart = compile({"orders/*"}, {}, {{"orders/*", "dr-orders/*"}});
  EXPECT_FALSE(apart.feeds_itself({"orders", "x"}));
}

}  // namespace
}  // namespace replicator
