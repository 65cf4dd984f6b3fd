#include "replicator/marker/marker_record.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

MarkerRecord sample() {
  MarkerRecord record;
  record.cluster = "c0ffee";
  record.link = "1a2b";
  record.generation = 7;
  record.process = "99@host-1:42";
  record.state = LinkState::kReleased;
  record.written_at = 1'767'225'600'000'001;
  record.upstream = "iggy://u:***@a:8090?tls=true";
  record.upstream_identity = "beef";
  record.downstream = "iggy://b:8090";
  record.topics = {"orders/*", "with \"quotes\" \\ and\nlines/*"};
  record.exclude = {"*/tmp"};
  record.rename = {{"orders/*", "dr/*"}, {"a/b", "c/d"}};
  return record;
}

TEST(MarkerRecord, ReadsBackWhatItWrote) {
  const MarkerRecord record = sample();
  const auto read = decode_marker_record(encode(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->cluster, record.cluster);
  EXPECT_EQ(read->link, record.link);
  EXPECT_EQ(read->generation, record.generation);
  EXPECT_EQ(read->process, record.process);
  EXPECT_EQ(read->state, record.state);
  EXPECT_EQ(read->written_at, record.written_at);
  EXPECT_EQ(read->upstream, record.upstream);
  EXPECT_EQ(read->upstream_identity, record.upstream_identity);
  EXPECT_EQ(read->downstream, record.downstream);
  EXPECT_EQ(read->topics, record.topics);
  EXPECT_EQ(read->exclude, record.exclude);
  ASSERT_EQ(read->rename.size(), 2U);
  EXPECT_EQ(read->rename[0].from, "orders/*");
  EXPECT_EQ(read->rename[1].to, "c/d");
  EXPECT_EQ(encode(*read), encode(record));
}

TEST(MarkerRecord, IgnoresWhatALaterVersionAdds) {
  const auto read = decode_marker_record(
      R"( { "v" : 2, "new": {"a":[1,{"b":null}],"c":-1.5e3}, "more":[["x"]], "link":"l", "generation":3,
            "process":"\u0070\u00e9\/", "state":"active", "flag":true } )");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->generation, 3U);
  EXPECT_EQ(read->process, "p\xC3\xA9/");
}

TEST(MarkerRecord, RefusesWhatIsNoRecord) {
  for (const char* text : {"", "{}", "[]", "{", "\xff", "null", R"({"v":1,"link":"l"})",
                           R"({"link":"l","generation":0,"process":"p","state":"active"})",
                           R"({"link":"l","generation":1,"process":"p","state":"asleep"})",
                           R"({"link":"l","generation":1,"process":"p","state":"active"}x)",
                           R"({"link":"l","generation":1.5,"process":"p","state":"active"})",
                           R"({"link":"l","generation":"1","process":"p","state":"active"})"}) {
    EXPECT_FALSE(decode_marker_record(text)) << text;
  }
}

TEST(MarkerRecord, SurvivesEveryTruncationAndEveryWrongByte) {
  const std::string text = encode(sample());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(decode_marker_record(text.substr(0, size))) << size;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char wrong : {'"', '\\', '{', '[', '\0', '\xff'}) {
      std::string broken = text;
      broken[at] = wrong;
      (void)decode_marker_record(broken);  // must end, and touch nothing outside (sanitizers)
    }
  }
  (void)decode_marker_record("{\"a\":" + std::string(100'000, '['));
}

TEST(MarkerRecord, KnowsTheHostOfAProcess) {
  EXPECT_EQ(host_of("99@host-1:42"), "host-1");
  EXPECT_EQ(host_of("99@fe80::1:42"), "fe80::1");
  EXPECT_EQ(host_of("99"), "");
}

}  // namespace
}  // namespace replicator
