// One test per row of the table in the guarantees: what is found on both sides, and what happens. Each makes two logs
// and a row, looks, and checks outcome, row and ledger in the state file after opening it again.
#include "replicator/partition/resync.h"

#include <gtest/gtest.h>

#include "replicator/testing/sim_link.h"

namespace replicator {
namespace {

using testing::Flavour;
using testing::SimLink;
using testing::SimMessage;

struct Case {
  explicit Case(Flavour up = Flavour::kVsr, Flavour down = Flavour::kVsr) : link(up, down) { begin(); }

  void begin() {
    resync = std::make_unique<Resync>(testing::sim_key(), testing::sim_downstream(), source, sink, *link.inline_store,
                                      link.clock, turn, options);
  }
  // As after a restart of the process: nothing in memory, the row from the file.
  void restart() {
    link.reopen();
    row = link.row();
    begin();
  }
  // `count` messages upstream, all copied and recorded.
  void copied(std::size_t count) {
    link.up.produce(0, count);
    auto& from = link.up.at(0);
    auto& to = link.down.at(0);
    std::vector<SimMessage> messages = from.log;
    const std::uint64_t down_begin = to.next;
    link.down.append(0, messages);
    link.up.save(0);
    link.down.save(0);
    state::PartitionReplace replace;
    state::PartitionRow& made = replace.row;
    made.key = testing::sim_key();
    made.downstream = testing::sim_downstream();
    made.up_created = from.created;
    made.down_created = to.created;
    made.watermark = from.next;
    made.down_end = to.next;
    if (count > 0) {
      made.anchor = anchor_at(from.log.size() - 1, to.log.back().offset);
      replace.ranges.push_back({from.log.front().offset, down_begin, count, true});
    }
    made.counters.copied = count;
    state::Transaction transaction;
    transaction.replaces.push_back(replace);
    base::check(link.file->apply(transaction).has_value(), "the row is written");
    row = made;
  }
  state::Anchor anchor_at(std::size_t index, std::uint64_t down_offset) {
    const SimMessage& message = link.up.at(0).log.at(index);
    base::Record record;
    record.id = message.id;
    record.origin_timestamp = message.origin_timestamp;
    record.payload_length = static_cast<std::uint32_t>(message.body.size());
    record.body = base::as_bytes(message.body);
    return {message.offset, down_offset, message.id, base::digest_of(record)};
  }
  // Our own send of the next `count` messages from `up_offset` on, whose ack nobody saw.
  void sent(std::uint64_t up_offset, std::size_t count) {
    std::vector<SimMessage> messages;
    for (const SimMessage& message : link.up.at(0).log) {
      if (message.offset >= up_offset && messages.size() < count) messages.push_back(message);
    }
    link.down.append(0, std::move(messages));
    link.down.save(0);
  }
  void stranger(const std::string& body = "stranger") {
    SimMessage message;
    message.id = {7, 7};
    message.body = body;
    link.down.append(0, {message});
    link.down.save(0);
  }

  base::Result<ResyncOutcome> look(std::optional<Decision> decision = std::nullopt, bool uncertain = false) {
    while (true) {
      auto outcome = link.run(resync->run(row, uncertain, decision));
      const bool dead = !outcome && outcome.error().code() == base::ErrorCode::kConnectionLost;
      if (!dead) return outcome;  // a crash cut the connection: the pipeline would back off and look again
    }
  }
  // Looks again while evidence is missing, at most for `patience`.
  ResyncOutcome settle(std::optional<Decision> decision = std::nullopt,
                       base::Duration patience = std::chrono::seconds(8)) {
    const base::TimePoint deadline = link.clock.now() + patience;
    while (true) {
      auto outcome = look(decision);
      base::check(outcome.has_value(), outcome ? "" : outcome.error().to_string().c_str());
      const bool waits = std::holds_alternative<Behind>(*outcome);
      if (std::holds_alternative<Repaired>(*outcome)) decision.reset();
      if ((!waits && !std::holds_alternative<Repaired>(*outcome)) || link.clock.now() >= deadline) return *outcome;
      if (waits) link.pass(std::chrono::milliseconds(500));
    }
  }
  static Decision decide(FaultKind kind, Exit exit) { return {kind, exit, "ada@host"}; }

  SimLink link;
  testing::SimSource source{link.up, 0};
  testing::SimSink sink{link.down, 0};
  Turn turn{link.io};
  ResyncOptions options;
  std::unique_ptr<Resync> resync;
  std::optional<state::PartitionRow> row;
};

bool ready(const ResyncOutcome& outcome) { return std::holds_alternative<Ready>(outcome); }
bool behind(const ResyncOutcome& outcome) { return std::holds_alternative<Behind>(outcome); }
std::string text(const ResyncOutcome& outcome) {
  if (const auto* found = std::get_if<Finding>(&outcome))
    return std::string(info(found->kind).name) + ": " + found->detail;
  if (const auto* waits = std::get_if<Behind>(&outcome)) return "behind: " + waits->why;
  return ready(outcome) ? "ready" : "repaired";
}
std::optional<FaultKind> fault(const ResyncOutcome& outcome) {
  const auto* found = std::get_if<Finding>(&outcome);
  return found == nullptr ? std::nullopt : std::optional(found->kind);
}

// --- start ---

TEST(Resync, StartsAtTheEarliestMessageAndFixesItBeforeTheFirstPoll) {
  Case c;
  c.link.up.produce(0, 10);
  c.link.up.expire(0, 4);
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  c.restart();
  ASSERT_TRUE(c.row);
  EXPECT_EQ(c.row->watermark, 4U);
  EXPECT_EQ(c.row->down_end, 0U);
  EXPECT_FALSE(c.row->anchor);
  EXPECT_EQ(c.link.count_events("start"), 1U);
}

TEST(Resync, StartPoliciesChooseTheWatermark) {
  for (const auto& [start, expected] : std::vector<std::pair<StartPolicy, std::uint64_t>>{
           {{Start::kLatest, 0}, 10}, {{Start::kOffset, 6}, 6}, {{Start::kOffset, 99}, 10}, {{Start::kOffset, 1}, 4}}) {
    Case c;
    c.options.start = start;
    c.begin();
    c.link.up.produce(0, 10);
    c.link.up.expire(0, 4);
    const auto outcome = c.settle();
    EXPECT_TRUE(ready(outcome)) << text(outcome);
    EXPECT_EQ(c.link.row()->watermark, expected);
  }
}

TEST(Resync, StartsAtATimestamp) {
  Case c;
  c.link.up.produce(0, 3);
  c.link.pass(std::chrono::seconds(10));
  c.options.start = {Start::kTimestamp, c.link.clock.wall_micros() - 5'000'000};
  c.begin();
  c.link.up.produce(0, 3);
  EXPECT_TRUE(ready(c.settle()));
  EXPECT_EQ(c.link.row()->watermark, 3U);
}

TEST(Resync, AnEmptyAnswerAtTheStartDoesNotSkipTheWholeHistory) {
  Case c;
  c.link.up.produce(0, 10);
  c.sink.line.empty_reads = 0;
  c.source.line.empty_reads = 3;  // last, then the oldest
  const auto first = c.look();
  ASSERT_TRUE(first);
  EXPECT_TRUE(behind(*first)) << text(*first);
  EXPECT_FALSE(c.link.row());
  EXPECT_TRUE(ready(c.settle()));
  EXPECT_EQ(c.link.row()->watermark, 0U);
}

TEST(Resync, NeverStartsSilentlyOnATargetThatHoldsMessages) {
  Case c;
  c.link.up.produce(0, 5);
  c.stranger();
  const auto outcome = c.settle();
  EXPECT_EQ(fault(outcome), FaultKind::kDownstreamNotEmpty) << text(outcome);
  c.restart();
  ASSERT_TRUE(c.row);
  EXPECT_EQ(c.row->fault.kind, "downstream_not_empty");
  EXPECT_EQ(c.link.count_events("fault"), 1U);
  // The exit appends from the start policy, after what is there.
  const auto resolved = c.settle(Case::decide(FaultKind::kDownstreamNotEmpty, Exit::kRestart));
  EXPECT_TRUE(ready(resolved)) << text(resolved);
  c.restart();
  EXPECT_FALSE(c.row->fault.active());
  EXPECT_EQ(c.row->watermark, 0U);
  EXPECT_EQ(c.row->down_end, 1U);
  EXPECT_EQ(c.link.count_events("resolve"), 1U);
}

TEST(Resync, ErrorsDecideNothing) {
  Case c;
  c.copied(5);
  const auto before = c.link.row();
  for (int call = 0; call < 6; ++call) {
    c.source.line.errors.clear();
    c.sink.line.errors.clear();
    auto& line = call % 2 == 0 ? c.source.line : c.sink.line;
    line.errors.emplace_back(base::ErrorCode::kTimeout, "poll", "", "injected");
    EXPECT_FALSE(c.look());
  }
  EXPECT_EQ(c.link.row(), before);
}

// --- upstream ---

TEST(Resync, UpstreamAsRecordedIsReadyAndAnchored) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 5);
  const auto outcome = c.settle();
  ASSERT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_TRUE(std::get<Ready>(outcome).anchored);
}

TEST(Resync, AnotherMessageAtTheAnchorIsARewoundUpstreamAtOnce) {
  for (const Flavour flavour : {Flavour::kLegacy, Flavour::kVsr}) {
    Case c(flavour, flavour);
    c.copied(5);
    c.link.up.purge(0);
    c.link.up.produce(0, 20);
    const auto outcome = c.look();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(fault(*outcome), FaultKind::kUpstreamRewound) << text(*outcome);
    const auto resolved = c.settle(Case::decide(FaultKind::kUpstreamRewound, Exit::kRestart));
    EXPECT_TRUE(ready(resolved)) << text(resolved);
    c.restart();
    EXPECT_EQ(c.row->watermark, 0U);
    EXPECT_EQ(c.row->down_end, 5U);
    EXPECT_EQ(c.row->incarnation, 2U);
    EXPECT_EQ(c.row->generation, 2U) << "an exit is carried out once";
    EXPECT_EQ(c.link.count_events("resolve"), 1U);
  }
}

TEST(Resync, ARestartIsCarriedOutAlsoWhenTheEvidenceWasJumpedOver) {
  Case c(Flavour::kVsrReserving, Flavour::kVsr);
  c.copied(10);
  c.link.up.at(0).saved = 0;
  c.link.up.purge(0);
  c.link.up.produce(0, 4);
  EXPECT_EQ(fault(c.settle()), FaultKind::kUpstreamRewound);
  c.link.up.at(0).next = 1000;  // before the exit is carried out: a crash, and new messages above the reservation
  c.link.up.produce(0, 3);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kUpstreamRewound, Exit::kRestart))));
  EXPECT_EQ(c.link.row()->watermark, 0U);
  EXPECT_EQ(c.link.row()->incarnation, 2U);
}

TEST(Resync, UpstreamThatLostItsTailIsWaitedFor) {
  Case c;
  c.copied(10);
  c.link.up.at(0).saved = 6;
  c.link.up.crash();
  const auto outcome = c.settle();
  EXPECT_TRUE(behind(outcome)) << text(outcome);
  c.restart();
  EXPECT_EQ(c.row->watermark, 10U);
  EXPECT_EQ(c.link.count_events("upstream_lost"), 1U);
}

TEST(Resync, UpstreamThatReissuesOffsetsIsRewoundAsSoonAsContentShowsIt) {
  Case c;
  c.copied(10);
  c.link.up.at(0).saved = 6;
  c.link.up.crash();
  c.link.up.produce(0, 1);
  const auto outcome = c.look();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(fault(*outcome), FaultKind::kUpstreamRewound) << text(*outcome);
}

TEST(Resync, AFollowerThatCatchesUpIsNotARewoundUpstream) {
  Case c;
  c.copied(10);
  c.link.up.answer_old_end(0, 4, std::chrono::seconds(7));
  EXPECT_TRUE(behind(c.settle(std::nullopt, std::chrono::seconds(6))));
  c.link.up.answer_old_end(0, 7, std::chrono::seconds(7));  // grows, still below the anchor
  const auto outcome = c.settle(std::nullopt, std::chrono::seconds(6));
  EXPECT_TRUE(behind(outcome)) << text(outcome);
  EXPECT_TRUE(ready(c.settle()));
  EXPECT_EQ(c.link.row()->generation, 1U);
}

TEST(Resync, UpstreamThatContinuesAboveAReservationLeavesAHole) {
  Case c(Flavour::kVsrReserving, Flavour::kVsr);
  c.copied(10);
  c.link.up.at(0).saved = 6;
  c.link.up.crash();
  EXPECT_TRUE(behind(c.settle()));
  c.link.up.produce(0, 3);
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_FALSE(std::get<Ready>(outcome).anchored);
  c.restart();
  EXPECT_EQ(c.row->watermark, 1000U);
  ASSERT_EQ(c.link.gaps().size(), 1U);
  EXPECT_EQ(c.link.gaps()[0].cause, "hole");
}

TEST(Resync, AnUnusedReservationIsNoWork) {
  Case c(Flavour::kVsrReserving, Flavour::kVsr);
  c.copied(10);
  c.link.up.at(0).next = 1000;  // current_offset stands there, no message does
  const auto outcome = c.look();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(ready(*outcome)) << text(*outcome);
}

TEST(Resync, RecreatedUpstreamIsAFaultOnlyAfterItWasSeenForAWhile) {
  Case c;
  c.copied(5);
  c.link.up.recreate(0);
  const auto first = c.look();
  ASSERT_TRUE(first);
  EXPECT_TRUE(behind(*first)) << text(*first);
  EXPECT_EQ(c.link.row()->generation, 1U);
  const auto outcome = c.settle();
  EXPECT_EQ(fault(outcome), FaultKind::kUpstreamRecreated) << text(outcome);
  c.link.up.produce(0, 2);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kUpstreamRecreated, Exit::kRestart))));
  c.restart();
  EXPECT_EQ(c.row->watermark, 0U);
  EXPECT_EQ(c.row->incarnation, 2U);
  EXPECT_EQ(c.row->up_created, c.link.up.at(0).created);
}

TEST(Resync, EvidenceOfLongAgoDoesNotCountAfterARetry) {
  Case c;
  c.copied(5);
  const auto created = c.link.up.at(0).created;
  c.link.up.at(0).created.topic += 77'000'000;
  EXPECT_EQ(fault(c.settle()), FaultKind::kUpstreamRecreated);
  c.link.pass(std::chrono::hours(1));
  const auto again = c.look();  // one look is not confirm_for
  ASSERT_TRUE(again);
  EXPECT_TRUE(behind(*again)) << text(*again);
  c.link.up.at(0).created = created;
  EXPECT_TRUE(ready(c.settle()));
}

TEST(Resync, RecreatedBeforeAnythingWasCopiedIsSimplyCopied) {
  Case c;
  c.options.start = {Start::kLatest, 0};
  c.begin();
  c.link.up.produce(0, 8);
  EXPECT_TRUE(ready(c.settle()));
  c.link.up.recreate(0);
  c.link.up.produce(0, 3);
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.row()->watermark, 0U);
}

TEST(Resync, CreatedAtOfALegacyServerMovesAtItsFirstRestart) {
  Case c(Flavour::kLegacy, Flavour::kLegacy);
  c.copied(5);
  c.link.up.crash();
  c.link.down.crash();
  const auto outcome = c.look();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(ready(*outcome)) << text(*outcome);
  c.restart();
  EXPECT_EQ(c.row->up_created, c.link.up.at(0).created);
  EXPECT_EQ(c.row->down_created, c.link.down.at(0).created);
  EXPECT_EQ(c.link.count_events("upstream_created_at_moved"), 1U);
}

TEST(Resync, LegacyContentAtTheAnchorOutweighsCreatedAtHoweverFarItMoved) {
  Case c(Flavour::kLegacy, Flavour::kLegacy);
  c.copied(5);
  c.link.up.at(0).created.partition += 60'000'000;
  const auto outcome = c.look();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(ready(*outcome)) << text(*outcome);
}

TEST(Resync, AnExpiredAnchorIsNormalRetention) {
  for (const Flavour flavour : {Flavour::kLegacy, Flavour::kVsr}) {
    Case c(flavour, flavour);
    c.copied(5);
    c.link.up.produce(0, 5);
    c.link.up.at(0).has_retention = true;
    c.link.up.expire(0, 5);
    const auto outcome = c.look();
    ASSERT_TRUE(outcome);
    ASSERT_TRUE(ready(*outcome)) << text(*outcome);
    EXPECT_FALSE(std::get<Ready>(*outcome).anchored) << "a poll from the anchor would never find it";
  }
}

TEST(Resync, AnExpiredWatermarkIsALossWithItsLedgerRowWrittenOnce) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 10);
  c.link.up.at(0).has_retention = true;
  c.link.up.expire(0, 9);
  const auto outcome = c.look();
  ASSERT_TRUE(outcome);
  ASSERT_EQ(fault(*outcome), FaultKind::kRetention) << text(*outcome);
  const auto& found = std::get<Finding>(*outcome);
  EXPECT_EQ(found.up_begin, 5U);
  EXPECT_EQ(found.up_end, 9U);
  ASSERT_EQ(found.gaps.size(), 1U);
  // The pipeline writes it; a second look reports only what is new.
  state::Transaction transaction;
  state::PartitionNote& note = transaction.notes.emplace_back();
  note.key = testing::sim_key();
  note.generation = 1;
  note.gaps = found.gaps;
  ASSERT_TRUE(c.link.file->apply(transaction));
  c.link.up.expire(0, 11);
  const auto again = c.look();
  ASSERT_TRUE(again);
  ASSERT_EQ(fault(*again), FaultKind::kRetention);
  ASSERT_EQ(std::get<Finding>(*again).gaps.size(), 1U);
  EXPECT_EQ(std::get<Finding>(*again).gaps[0].up_begin, 9U);
  EXPECT_EQ(std::get<Finding>(*again).gaps[0].up_end, 11U);
  // Accepting closes the row and names what was lost since.
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kRetention, Exit::kAccept))));
  c.restart();
  EXPECT_EQ(c.row->watermark, 11U);
  EXPECT_EQ(c.row->counters.skipped, 6U);
  std::uint64_t named = 5;
  for (const state::GapRow& gap : c.link.gaps()) {
    EXPECT_EQ(gap.resolved_as, "accept");
    EXPECT_EQ(gap.resolved_by, "ada@host");
    EXPECT_EQ(gap.up_begin, named);
    named = gap.up_end;
  }
  EXPECT_EQ(named, 11U);
}

TEST(Resync, AReservationThatWasJumpedOverIsNoLossWhereNothingCanHaveExpiredYet) {
  Case c(Flavour::kVsrReserving, Flavour::kVsr);
  c.copied(5);
  c.link.up.at(0).has_retention = true;
  c.link.up.at(0).expiry_micros = 3'600'000'000;
  c.row->caught_up_at = c.link.clock.wall_micros();
  c.link.up.at(0).saved = 0;
  c.link.up.crash();
  c.link.up.produce(0, 3);
  c.link.pass(std::chrono::minutes(1));
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.gaps().at(0).cause, "unknown");  // nothing older is kept that would tell
}

// Seed 60 of sim_test: the clock was set back, and retention was ruled out by it.
TEST(Resync, AClockThatWasSetBackRulesOutNoRetention) {
  Case c;
  c.copied(5);
  c.link.up.at(0).has_retention = true;
  c.link.up.at(0).expiry_micros = 30'000'000;
  c.row->caught_up_at = c.link.clock.wall_micros();
  c.link.up.produce(0, 5);
  c.link.up.expire(0, 8);
  c.link.clock.step_wall(-std::chrono::minutes(45));
  c.link.pass(std::chrono::minutes(1));
  const auto outcome = c.settle();
  EXPECT_EQ(fault(outcome), FaultKind::kRetention) << text(outcome);
}

TEST(Resync, AnUpstreamThatGrowsSlowlyBelowWhatWasCopiedIsRewoundAlsoWhenNothingCanBeCompared) {
  Case c;
  c.copied(50);
  c.link.down.at(0).has_retention = true;
  c.link.down.expire(0, 50);
  c.link.up.purge(0);
  std::optional<FaultKind> found;
  for (int i = 0; i < 20 && !found; ++i) {
    c.link.up.produce(0, 1);
    found = fault(*c.look());
    c.link.pass(std::chrono::milliseconds(700));
  }
  EXPECT_EQ(found, FaultKind::kUpstreamRewound);
  EXPECT_EQ(c.link.row()->generation, 1U);
}

TEST(Resync, AnUpstreamThatBeganAgainBelowAHoleIsNotCaughtUp) {
  // The anchor stands below the hole and is gone: only the end tells that the new history lies before the watermark.
  Case c(Flavour::kVsrReserving, Flavour::kVsr);
  c.copied(10);
  c.link.up.at(0).saved = 0;
  c.link.up.crash();  // empty, its end is 1000
  c.link.up.crash();
  EXPECT_TRUE(ready(c.settle()));
  const std::uint64_t watermark = c.link.row()->watermark;
  EXPECT_GE(watermark, 1000U);
  c.link.up.purge(0);
  c.link.up.at(0).next = 500;
  c.link.up.produce(0, 3);
  EXPECT_TRUE(behind(c.settle()));
  c.link.up.produce(0, 3);
  EXPECT_EQ(fault(c.settle()), FaultKind::kUpstreamRewound);
}

TEST(Resync, EverythingExpiredIsALossUpToTheEnd) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 10);
  c.link.up.at(0).has_retention = true;
  c.link.up.expire(0, 100);
  const auto outcome = c.look();
  ASSERT_TRUE(outcome);
  ASSERT_EQ(fault(*outcome), FaultKind::kRetention) << text(*outcome);
  EXPECT_EQ(std::get<Finding>(*outcome).up_end, 15U);
}

TEST(Resync, AGapInTheMiddleIsAHoleOnVsrAndUnknownOnLegacy) {
  for (const Flavour flavour : {Flavour::kVsr, Flavour::kLegacy}) {
    Case c(flavour, flavour);
    c.copied(5);
    c.link.up.produce(0, 10);
    auto& log = c.link.up.at(0).log;
    log.erase(log.begin() + 5, log.begin() + 8);
    const auto outcome = c.settle();
    if (flavour == Flavour::kVsr) {
      EXPECT_TRUE(ready(outcome)) << text(outcome);
      c.restart();
      EXPECT_EQ(c.row->watermark, 8U);
      EXPECT_EQ(c.row->generation, 1U);
    } else {
      EXPECT_EQ(fault(outcome), FaultKind::kUnknownGap) << text(outcome);
      EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kUnknownGap, Exit::kAccept))));
      EXPECT_EQ(c.link.row()->watermark, 8U);
    }
  }
}

TEST(Resync, UnreadableOffsetsAreProbedForwardOnLegacyAndWaitedForOnVsr) {
  for (const bool refused : {false, true}) {
    Case c(Flavour::kLegacy, Flavour::kLegacy);
    c.copied(5);
    c.link.up.produce(0, 40);
    c.link.up.at(0).unreadable.push_back({5, 23, refused});
    const auto first = c.look();
    ASSERT_TRUE(first);
    EXPECT_TRUE(behind(*first)) << text(*first);
    const auto outcome = c.settle();
    ASSERT_EQ(fault(outcome), FaultKind::kUpstreamUnreadable) << text(outcome);
    EXPECT_EQ(std::get<Finding>(outcome).up_begin, 5U);
    EXPECT_EQ(std::get<Finding>(outcome).up_end, 23U);
    EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kUpstreamUnreadable, Exit::kAccept))));
    EXPECT_EQ(c.link.row()->watermark, 23U);
  }
  Case c;
  c.copied(5);
  c.link.up.produce(0, 40);
  c.link.up.at(0).unreadable.push_back({5, 23, false});
  EXPECT_TRUE(behind(c.settle()));
  EXPECT_EQ(c.link.row()->watermark, 5U);
}

TEST(Resync, UnreadableEvidenceCountsWhileTheUpstreamGrows) {
  Case c(Flavour::kLegacy, Flavour::kLegacy);
  c.copied(5);
  c.link.up.produce(0, 10);
  c.link.up.at(0).unreadable.push_back({5, 8, false});
  std::optional<FaultKind> found;
  for (int i = 0; i < 12 && !found; ++i) {
    c.link.up.produce(0, 1);
    c.link.pass(std::chrono::milliseconds(500));
    found = fault(*c.look());
  }
  EXPECT_EQ(found, FaultKind::kUpstreamUnreadable);
}

// --- downstream ---

TEST(Resync, OurOwnTailIsAdopted) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 20);
  c.sent(5, 12);
  const auto outcome = c.settle();
  ASSERT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_TRUE(std::get<Ready>(outcome).anchored);
  c.restart();
  EXPECT_EQ(c.row->watermark, 17U);
  EXPECT_EQ(c.row->down_end, 17U);
  EXPECT_EQ(c.row->generation, 1U);
  EXPECT_EQ(c.row->counters.copied, 17U);
  ASSERT_EQ(c.link.ranges().size(), 1U);
  EXPECT_EQ(c.link.ranges()[0].length, 17U);
  EXPECT_EQ(c.link.count_events("adopted_own_tail"), 1U);
}

TEST(Resync, OurOwnTailLongerThanOneReadIsAdopted) {
  Case c;
  c.options.read_count = 7;
  c.begin();
  c.copied(5);
  c.link.up.produce(0, 40);
  c.sent(5, 33);
  EXPECT_TRUE(ready(c.settle()));
  EXPECT_EQ(c.link.row()->watermark, 38U);
}

TEST(Resync, AnAbandonedSendThatLandsTwiceIsNamedAndNoFault) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 20);
  c.sent(5, 4);
  c.sent(5, 4);  // the abandoned one
  c.sent(9, 2);  // and our next
  const auto outcome = c.settle();
  ASSERT_TRUE(ready(outcome)) << text(outcome);
  c.restart();
  EXPECT_EQ(c.row->watermark, 11U);
  EXPECT_EQ(c.row->down_end, 15U);
  EXPECT_EQ(c.row->counters.duplicates, 4U);
  ASSERT_EQ(c.link.gaps().size(), 1U) << "one ledger row for a run";
  EXPECT_EQ(c.link.gaps()[0].cause, "own_duplicate");
  EXPECT_EQ(c.link.ranges().size(), 2U);
}

TEST(Resync, ALateDuplicateOfWhatWasRecordedLongAgoIsNamed) {
  Case c;
  c.copied(5);
  c.sent(2, 3);
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.row()->counters.duplicates, 3U);
  EXPECT_EQ(c.link.row()->down_end, 8U);
}

TEST(Resync, AStrangersMessageIsAFaultWithItsOffsetAndId) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 5);
  c.sent(5, 2);
  c.stranger();
  const auto outcome = c.settle();
  ASSERT_EQ(fault(outcome), FaultKind::kForeignWriter) << text(outcome);
  EXPECT_NE(std::get<Finding>(outcome).detail.find("offset 7"), std::string::npos) << text(outcome);
  EXPECT_EQ(c.link.row()->watermark, 5U) << "nothing is believed of a tail that holds a stranger";
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kForeignWriter, Exit::kAccept))));
  c.restart();
  EXPECT_EQ(c.row->watermark, 7U);
  EXPECT_EQ(c.row->down_end, 8U);
  ASSERT_EQ(c.link.gaps().size(), 1U);
  EXPECT_EQ(c.link.gaps()[0].cause, "foreign_writer");
  EXPECT_EQ(c.link.gaps()[0].resolved_as, "accept");
  EXPECT_EQ(c.row->generation, 2U) << "an exit is a new generation";
  EXPECT_EQ(c.row->counters.copied, 7U);
  EXPECT_EQ(c.link.count_events("resolve"), 1U);
}

TEST(Resync, AnExitWhoseCauseIsGoneChangesNothingAndSaysSo) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 5);
  c.stranger();
  EXPECT_EQ(fault(c.settle()), FaultKind::kForeignWriter);
  c.link.down.at(0).saved = 5;
  c.link.down.crash();
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kForeignWriter, Exit::kAccept))));
  EXPECT_EQ(c.link.row()->generation, 1U);
  EXPECT_TRUE(c.link.gaps().empty());
  EXPECT_EQ(c.link.count_events("resolve"), 1U);
}

TEST(Resync, AcceptedStrangersThatAreLostLaterDoNotShiftTheEnd) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 5);
  c.stranger();
  EXPECT_EQ(fault(c.settle()), FaultKind::kForeignWriter);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kForeignWriter, Exit::kAccept))));
  c.link.down.at(0).saved = 5;
  c.link.down.crash();
  EXPECT_TRUE(behind(*c.look()));
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.row()->down_end, 5U) << "a send would be expected at another end than where it lands";
}

TEST(Resync, ATailThatUpstreamDoesNotHaveIsUnverifiableOnlyAfterAWhile) {
  Case c;
  c.copied(5);
  c.stranger();
  EXPECT_TRUE(behind(*c.look()));
  const auto outcome = c.settle();
  EXPECT_EQ(fault(outcome), FaultKind::kUnverifiableTail) << text(outcome);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kUnverifiableTail, Exit::kAdopt))));
  EXPECT_EQ(c.link.row()->down_end, 6U);
  EXPECT_EQ(c.link.gaps().at(0).cause, "unverified");
}

TEST(Resync, ATailWhoseUpstreamPartExpiredIsUnverifiableAndNotRetention) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 20);
  c.sent(5, 6);  // up to 11, never recorded
  c.link.up.at(0).has_retention = true;
  c.link.up.expire(0, 8);
  const auto outcome = c.settle();
  ASSERT_EQ(fault(outcome), FaultKind::kUnverifiableTail) << text(outcome);
  const auto resolved = c.settle(Case::decide(FaultKind::kUnverifiableTail, Exit::kAdopt));
  EXPECT_TRUE(ready(resolved)) << text(resolved);
  c.restart();
  EXPECT_EQ(c.row->watermark, 11U) << "what can be compared again is adopted";
  EXPECT_EQ(c.row->down_end, 11U);
}

TEST(Resync, ALostTailIsSentAgainFromTheLastEqualPoint) {
  for (const Flavour flavour : {Flavour::kLegacy, Flavour::kVsr, Flavour::kVsrReserving}) {
    Case c(Flavour::kVsr, flavour);
    c.copied(20);
    c.link.down.at(0).saved = 13;
    c.link.down.crash();
    const auto first = c.look();
    ASSERT_TRUE(first);
    EXPECT_TRUE(behind(*first)) << text(*first);
    EXPECT_EQ(c.link.row()->watermark, 20U) << "absence is no evidence yet";
    const auto outcome = c.settle();
    EXPECT_TRUE(ready(outcome)) << text(outcome);
    c.restart();
    EXPECT_EQ(c.row->watermark, 13U);
    EXPECT_EQ(c.row->down_end, 13U);
    EXPECT_EQ(c.row->generation, 2U);
    EXPECT_EQ(c.row->incarnation, 1U);
    EXPECT_EQ(c.link.ranges().at(0).length, 13U);
    EXPECT_EQ(c.link.count_events("downstream_lost_tail"), 1U);
  }
}

TEST(Resync, ATailLostAboveWhichMessagesStandIsNotTakenForRetention) {
  Case c(Flavour::kVsr, Flavour::kVsrReserving);
  c.copied(20);
  c.link.down.at(0).saved = 13;
  c.link.down.crash();
  c.stranger();  // above the reservation: reading from the anchor jumps to it
  const auto outcome = c.settle();
  EXPECT_EQ(fault(outcome), FaultKind::kForeignWriter) << text(outcome);
  EXPECT_EQ(c.link.row()->watermark, 13U);
  EXPECT_EQ(c.link.count_events("downstream_lost_tail"), 1U);
}

TEST(Resync, EverythingLostAboveAReservationIsSentAgain) {
  Case c(Flavour::kVsr, Flavour::kVsrReserving);
  c.copied(20);
  c.link.down.at(0).saved = 0;
  c.link.down.crash();  // empty, and its end is 1000
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.row()->watermark, 0U);
}

TEST(Resync, ALostTailAcrossSeveralRangesFindsTheRightOne) {
  Case c;
  c.copied(5);
  c.stranger();
  c.link.up.produce(0, 10);
  EXPECT_EQ(fault(c.settle()), FaultKind::kForeignWriter);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kForeignWriter, Exit::kAccept))));
  c.sent(5, 10);
  EXPECT_TRUE(ready(c.settle()));
  ASSERT_EQ(c.link.ranges().size(), 2U);
  c.link.down.at(0).saved = 9;  // upstream 5, 6, 7 at 6, 7, 8
  c.link.down.crash();
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.row()->watermark, 8U);
  EXPECT_EQ(c.link.row()->down_end, 9U);
}

TEST(Resync, AStaleFollowerDownstreamChangesNothing) {
  Case c;
  c.copied(20);
  c.link.down.answer_old_end(0, 9, std::chrono::seconds(3));
  EXPECT_TRUE(behind(*c.look()));
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.row()->generation, 1U);
  EXPECT_EQ(c.link.row()->watermark, 20U);
}

TEST(Resync, DownstreamRetentionKeepsTheEnd) {
  for (const std::uint64_t floor : {3U, 5U, 100U}) {
    Case c;
    c.copied(5);
    c.link.up.produce(0, 5);
    c.link.down.at(0).has_retention = true;
    c.link.down.expire(0, floor);
    const auto outcome = c.look();
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(ready(*outcome)) << text(*outcome);
    EXPECT_EQ(c.link.row()->down_end, 5U);
  }
}

TEST(Resync, ALateDuplicateWhoseTwinExpiredDownstreamIsStillOurs) {
  Case c;
  c.copied(30);
  c.link.up.produce(0, 5);
  c.link.down.at(0).has_retention = true;
  c.link.down.expire(0, 28);
  c.sent(10, 6);
  c.sent(30, 5);
  const auto outcome = c.settle();
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.row()->counters.duplicates, 6U);
  EXPECT_EQ(c.link.row()->watermark, 35U);
}

TEST(Resync, OurFirstSendWhoseBeginningExpiredIsUnverifiableAndNotAStranger) {
  Case c;
  c.link.up.produce(0, 10);
  EXPECT_TRUE(ready(c.settle()));
  c.sent(0, 6);
  c.link.down.at(0).has_retention = true;
  c.link.down.expire(0, 2);
  const auto outcome = c.settle();
  EXPECT_EQ(fault(outcome), FaultKind::kUnverifiableTail) << text(outcome);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kUnverifiableTail, Exit::kAdopt))));
  EXPECT_EQ(c.link.row()->watermark, 6U);
}

TEST(Resync, DownstreamThatHoldsOtherMessagesIsAFault) {
  Case c;
  c.copied(5);
  c.link.down.purge(0);
  for (int i = 0; i < 9; ++i) c.stranger("other " + std::to_string(i));
  const auto outcome = c.look();
  ASSERT_TRUE(outcome);
  ASSERT_EQ(fault(*outcome), FaultKind::kDownstreamRecreated) << text(*outcome);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kDownstreamRecreated, Exit::kRecopy))));
  c.restart();
  EXPECT_EQ(c.row->watermark, 0U);
  EXPECT_EQ(c.row->down_end, 9U);
  EXPECT_EQ(c.row->generation, 2U) << "an exit is carried out once";
}

// Seed 1066 of pipeline_sim_test: everything was lost and copied again from offset 1000 on, then a purge came between a
// look and a send; older messages were sent behind the newer one that had landed.
TEST(Resync, ASendThatLandsInAPurgedCopyIsNotFollowedByOlderOnes) {
  Case c;
  c.link.down.at(0).next = 1000;
  c.copied(5);
  c.link.up.produce(0, 1);
  c.link.down.purge(0);
  c.sent(5, 1);
  const auto outcome = c.settle();
  ASSERT_EQ(fault(outcome), FaultKind::kDownstreamRecreated) << text(outcome);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kDownstreamRecreated, Exit::kAdopt))));
  EXPECT_EQ(c.link.row()->watermark, 6U) << "the send that landed is ours";
  EXPECT_EQ(c.link.row()->down_end, 1U);
}

// Seed 1224 of pipeline_sim_test: the beginning of the send had expired when it was looked for, and it was sent again.
TEST(Resync, AdoptFindsOurOwnSendAlsoWhenItsBeginningHasExpired) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 20);
  c.link.down.at(0).has_retention = true;
  c.link.down.purge(0);
  c.sent(5, 10);
  ASSERT_EQ(fault(c.settle()), FaultKind::kDownstreamRecreated);
  c.link.down.expire(0, 4);
  const auto outcome = c.settle(Case::decide(FaultKind::kDownstreamRecreated, Exit::kAdopt));
  EXPECT_TRUE(ready(outcome)) << text(outcome);
  EXPECT_EQ(c.link.row()->watermark, 15U);
  EXPECT_EQ(c.link.row()->down_end, 10U);
  EXPECT_EQ(c.link.gaps().at(0).up_end, 9U) << "what could not be looked for is named";
}

TEST(Resync, AdoptLooksForOurOwnSendAlsoWhileTheUpstreamShowsAnOldEnd) {
  Case c;
  c.copied(5);
  c.link.down.purge(0);
  c.link.up.produce(0, 3);
  c.sent(5, 3);
  ASSERT_EQ(fault(c.settle()), FaultKind::kDownstreamRecreated);
  c.link.up.answer_old_end(0, 5, std::chrono::seconds(2));
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kDownstreamRecreated, Exit::kAdopt))));
  EXPECT_EQ(c.link.row()->watermark, 8U);
  EXPECT_EQ(c.link.row()->down_end, 3U);
}

TEST(Resync, RecreatedDownstreamIsAFaultAfterAWhile) {
  Case c;
  c.copied(5);
  c.link.down.recreate(0);
  EXPECT_TRUE(behind(*c.look()));
  EXPECT_EQ(fault(c.settle()), FaultKind::kDownstreamRecreated);
}

TEST(Resync, RecreatedDownstreamWhoseAnchorExpiredIsNotAdoptedUnseen) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 3);
  c.link.down.recreate(0);
  for (int i = 0; i < 5; ++i) c.stranger();
  c.link.down.at(0).has_retention = true;
  c.link.down.expire(0, 5);
  EXPECT_EQ(fault(c.settle()), FaultKind::kDownstreamRecreated);
}

TEST(Resync, LegacyDownstreamThatBeganAgainAtZeroAfterExpiryIsAFault) {
  Case c(Flavour::kLegacy, Flavour::kLegacy);
  c.copied(5);
  c.link.down.at(0).has_retention = true;
  c.link.down.purge(0);  // all segments expired, then a restart
  EXPECT_EQ(fault(c.settle()), FaultKind::kDownstreamRecreated);
}

TEST(Resync, SettlesBeforeItTrustsTheTailAfterAnUncertainSend) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 5);
  std::vector<SimMessage> late(c.link.up.at(0).log.begin() + 5, c.link.up.at(0).log.end());
  c.link.down.append_later(0, late, c.link.clock.now() + std::chrono::seconds(20));
  const auto outcome = c.look(std::nullopt, true);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(ready(*outcome)) << text(*outcome);
  EXPECT_EQ(c.link.row()->watermark, 10U);
}

TEST(Resync, AStoreThatFailsDecidesNothingAndTheNextLookRepeatsIt) {
  for (std::uint64_t nth = 1;; ++nth) {
    Case c;
    c.copied(5);
    c.link.up.produce(0, 20);
    c.sent(5, 4);
    c.sent(5, 4);
    c.link.faulty->fail(nth, state::testing::Failing::kOnce);
    const auto first = c.look();
    const bool failed = c.link.faulty->has_failed();
    EXPECT_EQ(failed, !first.has_value());
    if (failed) EXPECT_EQ(c.link.row()->watermark, 5U);
    const auto outcome = c.settle();
    EXPECT_TRUE(ready(outcome)) << text(outcome);
    c.restart();
    EXPECT_EQ(c.row->watermark, 9U);
    EXPECT_EQ(c.row->counters.duplicates, 4U);
    if (!failed) break;
  }
}

// --- exits that take the downstream as it is ---

TEST(Resync, AdoptGoesOnAfterWhatOthersWroteAndClaimsNothingBelow) {
  Case c;
  c.copied(5);
  c.link.up.produce(0, 3);
  c.link.down.purge(0);
  for (int i = 0; i < 9; ++i) c.stranger("other " + std::to_string(i));
  EXPECT_EQ(fault(*c.look()), FaultKind::kDownstreamRecreated);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kDownstreamRecreated, Exit::kAdopt))));
  c.restart();
  EXPECT_EQ(c.row->watermark, 5U) << "nothing is sent again";
  EXPECT_EQ(c.row->down_end, 9U);
  EXPECT_EQ(c.row->generation, 2U);
  EXPECT_EQ(c.row->incarnation, 2U);
  EXPECT_TRUE(c.link.ranges().empty());
  ASSERT_EQ(c.link.gaps().size(), 1U);
  EXPECT_EQ(c.link.gaps()[0].cause, "downstream_recreated");
  EXPECT_EQ(c.link.gaps()[0].up_end, 5U);
  EXPECT_EQ(c.link.gaps()[0].resolved_as, "adopt");
  EXPECT_EQ(c.link.count_events("resolve"), 1U);
}

TEST(Resync, AdoptDoesNotSendAgainWhatLandedInTheNewDownstream) {
  Case c;
  c.copied(9);
  c.link.up.produce(0, 6);
  c.link.down.recreate(0);
  c.stranger();
  c.sent(9, 4);  // our send went into the new topic; its ack named another end than predicted
  EXPECT_EQ(fault(c.settle()), FaultKind::kDownstreamRecreated);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kDownstreamRecreated, Exit::kAdopt))));
  c.restart();
  EXPECT_EQ(c.row->watermark, 13U);
  EXPECT_EQ(c.row->down_end, 5U);
}

TEST(Resync, AnExitOfARecreatedDownstreamNeedsTheEvidenceAgain) {
  Case c;
  c.copied(5);
  c.link.down.recreate(0);
  EXPECT_EQ(fault(c.settle()), FaultKind::kDownstreamRecreated);
  EXPECT_TRUE(behind(*c.look(Case::decide(FaultKind::kDownstreamRecreated, Exit::kRecopy))));
  EXPECT_EQ(c.link.row()->generation, 1U);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kDownstreamRecreated, Exit::kRecopy))));
  EXPECT_EQ(c.link.row()->watermark, 0U);
}

TEST(Resync, AdoptFindsWhereTheCopyEndsAfterTheStateFileWasLost) {
  for (const Flavour flavour : {Flavour::kLegacy, Flavour::kVsr}) {
    Case c(flavour, flavour);
    c.options.read_count = 7;  // the run lies across several reads
    c.begin();
    c.link.up.produce(0, 40);
    c.sent(0, 30);
    EXPECT_EQ(fault(c.settle()), FaultKind::kDownstreamNotEmpty);
    const auto outcome = c.settle(Case::decide(FaultKind::kDownstreamNotEmpty, Exit::kAdopt));
    EXPECT_TRUE(ready(outcome)) << text(outcome);
    c.restart();
    EXPECT_EQ(c.row->watermark, 30U);
    EXPECT_EQ(c.row->down_end, 30U);
    EXPECT_FALSE(c.row->fault.active());
    ASSERT_TRUE(c.row->anchor);
    EXPECT_EQ(*c.row->anchor, c.anchor_at(29, 29));
    EXPECT_EQ(c.link.ranges(), (std::vector<state::RangeRow>{{14, 14, 16, true}}));
    ASSERT_EQ(c.link.gaps().size(), 1U);
    EXPECT_EQ(c.link.gaps()[0].cause, "unverified");
    EXPECT_EQ(c.link.gaps()[0].up_end, 14U);
    EXPECT_EQ(c.link.gaps()[0].resolved_as, "adopt");
    c.sent(30, 4);  // what comes next is recognised as ours
    EXPECT_TRUE(ready(c.settle()));
    EXPECT_EQ(c.link.row()->watermark, 34U);
  }
}

TEST(Resync, AdoptTakesAShortPartitionAsAWhole) {
  Case c;
  c.link.up.produce(0, 40);
  c.link.up.expire(0, 3);
  c.sent(5, 6);
  EXPECT_EQ(fault(c.settle()), FaultKind::kDownstreamNotEmpty);
  EXPECT_TRUE(ready(c.settle(Case::decide(FaultKind::kDownstreamNotEmpty, Exit::kAdopt))));
  EXPECT_EQ(c.link.row()->watermark, 11U);
  EXPECT_EQ(c.link.row()->down_end, 6U);
}

TEST(Resync, AdoptIsRefusedWhereTheCopyIsNotFoundOrFoundTwice) {
  for (const bool twice : {false, true}) {
    Case c;
    c.link.up.produce(0, 20);
    c.sent(0, 20);
    if (twice) {
      c.link.up.append(0, c.link.up.at(0).log);  // the producer sent all of it again
    } else {
      c.stranger();
    }
    EXPECT_EQ(fault(c.settle()), FaultKind::kDownstreamNotEmpty);
    const auto outcome = c.settle(Case::decide(FaultKind::kDownstreamNotEmpty, Exit::kAdopt));
    ASSERT_EQ(fault(outcome), FaultKind::kDownstreamNotEmpty) << text(outcome);
    const std::string& detail = std::get<Finding>(outcome).detail;
    EXPECT_NE(detail.find("adopt was refused"), std::string::npos) << detail;
    EXPECT_NE(detail.find(twice ? "2 times" : "nowhere"), std::string::npos) << detail;
    EXPECT_EQ(c.link.row()->fault.kind, "downstream_not_empty");
    EXPECT_EQ(c.link.count_events("resolve"), 0U);
  }
}

TEST(Resync, ALostTailThatUpstreamNoLongerHoldsIsUnverifiable) {
  Case c;
  c.copied(20);
  c.link.up.produce(0, 5);
  c.link.up.at(0).has_retention = true;
  c.link.up.expire(0, 16);
  c.link.down.at(0).saved = 13;
  c.link.down.crash();  // 12 is its last; upstream begins at 16
  const auto outcome = c.settle();
  ASSERT_EQ(fault(outcome), FaultKind::kUnverifiableTail) << text(outcome);
  const std::string& detail = std::get<Finding>(outcome).detail;
  EXPECT_NE(detail.find("from offset 13 on (recorded is 20)"), std::string::npos) << detail;
  // What is left is taken as ours; what was lost and is no longer upstream is named next.
  const auto resolved = c.settle(Case::decide(FaultKind::kUnverifiableTail, Exit::kAdopt));
  ASSERT_EQ(fault(resolved), FaultKind::kRetention) << text(resolved);
  EXPECT_EQ(std::get<Finding>(resolved).up_begin, 13U);
  EXPECT_EQ(std::get<Finding>(resolved).up_end, 16U);
  EXPECT_EQ(c.link.row()->watermark, 13U);
  EXPECT_EQ(c.link.row()->down_end, 13U);
  EXPECT_EQ(c.link.gaps().at(0).cause, "unverified");
  EXPECT_EQ(c.link.count_events("resolve"), 1U);
}

TEST(Resync, AnOperatorsPauseWhileItSavesIsNotOverwritten) {
  Case c;
  c.copied(20);
  c.link.down.at(0).saved = 13;
  c.link.down.crash();
  while (true) {
    c.row->desired = state::Desired::kPaused;  // as the pipeline does when the note is durable
    const auto outcome = c.look();
    ASSERT_TRUE(outcome);
    if (!behind(*outcome)) break;
    c.link.pass(std::chrono::milliseconds(500));
  }
  EXPECT_EQ(c.link.row()->desired, state::Desired::kPaused);
}

}  // namespace
}  // namespace replicator
