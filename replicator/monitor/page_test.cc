// What others have named is text on the page, whatever it holds; and what needs attention stands first.
#include "replicator/monitor/page.h"

#include <gtest/gtest.h>

namespace replicator {
namespace {

const std::string kHostile = "<script>alert(\"x\")</script>&'\x01\xff";

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

LinkStatus with_partitions(std::uint32_t number) {
  LinkStatus status;
  status.state = "running";
  status.taken_at = 1'767'225'600'000'000;
  for (std::uint32_t i = 0; i < number; ++i) {
    PartitionStatus partition;
    partition.key = {{"orders", "events"}, i};
    partition.downstream = partition.key.topic;
    partition.phase = Phase::kCaughtUp;
    partition.lag.messages = 0;
    status.partitions.push_back(partition);
  }
  return status;
}

TEST(HtmlText, LeavesNothingThatABrowserWouldTakeForMarkup) {
  EXPECT_EQ(html_text("a<b>&\"'c"), "a&lt;b&gt;&amp;&quot;&#39;c");
  EXPECT_EQ(html_text("é€😀"), "é€😀");
  EXPECT_EQ(html_text(std::string("\x00\x1b\x7f\n", 4)), "\\x00\\x1b\\x7f\\x0a");
  EXPECT_EQ(html_text("\xff\xc3"), "\\xff\\xc3") << "no UTF-8";
  EXPECT_EQ(html_text("\xc0\xbc"), "\\xc0\\xbc") << "an overlong <";
  EXPECT_EQ(html_text("\xe0\x80\xbc"), "\\xe0\\x80\\xbc") << "a longer one";
  EXPECT_EQ(html_text("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(html_text("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(StatusPage, HostileNamesAreTextEverywhere) {
  LinkStatus status = with_partitions(1);
  status.link_id = status.state_detail = status.version = kHostile;
  for (EndStatus* end : {&status.upstream, &status.downstream}) {
    end->url = end->endpoint = end->dialect = end->version = end->last_error = kHostile;
  }
  status.store_error = kHostile;
  status.notices = {kHostile};
  PartitionStatus& partition = status.partitions.front();
  partition.key.topic = {kHostile, kHostile};
  partition.downstream = {kHostile + "2", kHostile};
  partition.phase = Phase::kFault;
  partition.waits_for = partition.fault.kind = partition.fault.detail = kHostile;
  auto ledger = std::make_shared<Ledger>();
  ledger->rows = ledger->open = 1;
  state::GapRow gap;
  gap.key = partition.key;
  gap.cause = gap.detail = kHostile;
  ledger->newest_gaps = {gap, gap};
  ledger->newest_gaps[1].resolved_as = ledger->newest_gaps[1].resolved_by = kHostile;
  ledger->newest_events = {{1, 1, kHostile, kHostile, kHostile, kHostile}};
  status.ledger = ledger;
  const std::string page = status_page(status);
  EXPECT_EQ(count(page, "<script"), 0U);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_GE(count(page, "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;&#39;\\x01\\xff"), 20U);
}

TEST(StatusPage, WhatNeedsAttentionStandsFirstAndTheRestIsCounted) {
  LinkStatus status = with_partitions(kPageRowsMax + 50);
  status.partitions[kPageRowsMax + 20].phase = Phase::kFault;
  status.partitions[kPageRowsMax + 30].lag.messages.reset();
  status.partitions[kPageRowsMax + 40].phase = Phase::kCopying;
  status.partitions[kPageRowsMax + 40].lag.messages = 1'234'567;
  const std::string page = status_page(status);
  const std::size_t fault = page.find("orders/events/220<"), unknown = page.find("orders/events/230<"),
                    copying = page.find("orders/events/240<"), quiet = page.find("orders/events/0<");
  ASSERT_NE(quiet, std::string::npos);
  EXPECT_LT(fault, unknown);
  EXPECT_LT(unknown, copying);
  EXPECT_LT(copying, quiet);
  EXPECT_NE(page.find("1,234,567"), std::string::npos);
  EXPECT_EQ(count(page, "<td class=\"name\">orders/events/"), kPageRowsMax);
  EXPECT_NE(page.find("50 more"), std::string::npos);
}

TEST(StatusPage, UnknownIsNotZero) {
  LinkStatus status = with_partitions(1);
  status.partitions[0].lag.messages.reset();
  EXPECT_NE(status_page(status).find("unknown for 1 partitions"), std::string::npos);
  EXPECT_NE(status_page(status).find("not read yet"), std::string::npos);
}

TEST(StatusPage, HasNothingThatActsOrLoads) {
  const std::string page = status_page(with_partitions(3));
  for (const std::string_view tag :
       {"<a ", "<form", "<button", "<input", "<img", "<iframe", "<link", " src=", " href=", "onload"})
    EXPECT_EQ(page.find(tag), std::string::npos) << tag;
}

}  // namespace
}  // namespace replicator
