// Goal: a log line is one line, and holds no secret. Method: lines by hand.
#include "cli/logging.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

constexpr std::uint64_t kAt = 1'769'860'800'000'042;  // 2026-01-31 12:00:00.000042 UTC

TEST(Log, SecretsInUrlsAreReplaced) {
  EXPECT_EQ(scrub("connect iggy://ann:topsecret@a:8090?tls=true failed"),
            "connect iggy://ann:***@a:8090?tls=true failed");
  EXPECT_EQ(scrub("iggy+tcp://token@a:1"), "iggy+tcp://***@a:1");
  EXPECT_EQ(scrub("iggy://a:p@ss@h:1 and iggy://b:q@h:2"), "iggy://a:***@h:1 and iggy://b:***@h:2");
  EXPECT_EQ(scrub("iggy://ann:***@a:8090"), "iggy://ann:***@a:8090");
  for (const char* harmless : {"", "http://host/path@x", "a@b", "://", "iggy://host:8090"}) {
    EXPECT_EQ(scrub(harmless), harmless);
  }
}

TEST(Log, AMessageStaysOnItsLine) {
  EXPECT_EQ(log_line_text(kAt, "info", "a\nb\x1b[2J"), "2026-01-31T12:00:00.000042Z info    a\\nb\\u001b[2J\n");
  EXPECT_EQ(log_line_json(kAt, "warning", "say \"x\\y\"\n"),
            "{\"time\":\"2026-01-31T12:00:00.000042Z\",\"level\":\"warning\",\"message\":\"say \\\"x\\\\y\\\"\\n\"}\n");
}

}  // namespace
}  // namespace cli
