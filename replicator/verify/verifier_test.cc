// Goal: verify names the first difference of every kind at every place, raises no false alarm, and says what it left
// out. Method: an appliance copies between two clusters in memory, on virtual time; then a log is changed by hand.
#include "replicator/verify/verifier.h"

#include <gtest/gtest.h>

#include "replicator/testing/sim_appliance.h"

namespace replicator {
namespace {

using testing::Flavour;
using testing::SimAppliance;
using testing::SimLink;
using testing::SimMessage;

constexpr std::size_t kMessages = 1000;

class SimUpstream final : public VerifySide {
 public:
  explicit SimUpstream(testing::SimCluster& cluster, std::uint32_t partition) : source_(cluster, partition) {}
  base::Task<base::Result<Polled>> read(std::uint64_t from, std::uint32_t count) override {
    return source_.poll(from, count);
  }
  base::Task<base::Result<PartitionView>> view() override { return source_.view(); }

 private:
  testing::SimSource source_;
};

VerifyRequest full() { return {"", true, 0}; }

PipelineOptions pipeline_options() {
  PipelineOptions options;
  options.batch_bytes = 4096;
  options.invalid_records.skip = true;
  return options;
}

class VerifierTest : public ::testing::TestWithParam<Flavour> {
 protected:
  explicit VerifierTest(Flavour flavour = Flavour::kVsr) : link_(flavour, flavour) {
    options_.chunk_bytes = 16U * 1024;
  }
  ~VerifierTest() override {
    if (appliance_) link_.run(appliance_->stop());
  }

  void copy(std::size_t count = kMessages) {
    if (!appliance_) {
      appliance_ = std::make_unique<SimAppliance>(link_.io, link_.clock, link_.up, link_.down, *link_.faulty,
                                                  pipeline_options());
      appliance_->start();
    }
    if (count > 0) link_.up.produce(0, count);
    link_.pass(std::chrono::seconds(5));
    ASSERT_EQ(link_.row()->watermark, link_.up.at(0).next);
  }
  void stop() {
    link_.run(appliance_->stop());
    appliance_.reset();
  }

  base::Result<VerifyReport> verify(VerifyRequest request = {}) {
    base::Event stop(link_.io);
    Verifier verifier(link_.clock, stop, *link_.inline_store, options_, [this](const state::PartitionRow& row) {
      return VerifyPair{std::make_unique<SimUpstream>(link_.up, row.key.partition),
                        std::make_unique<SimUpstream>(link_.down, row.key.partition)};
    });
    auto report = link_.run(verifier.run(std::move(request)));
    progress_ = verifier.progress();
    return report;
  }
  PartitionVerdict verdict(VerifyRequest request = {}) {
    auto report = verify(std::move(request));
    base::check(report.has_value(), "verify ends with a report");
    return report->partitions.front();
  }

  std::vector<SimMessage>& log() { return link_.down.at(0).log; }
  // As if nothing had happened to the offsets: 0, 1, 2 …
  void renumber() {
    for (std::size_t i = 0; i < log().size(); ++i) log()[i].offset = i;
    link_.down.at(0).next = link_.down.at(0).saved = log().size();
  }
  SimMessage stranger() {
    SimMessage message;
    message.id = {77, 77};
    message.timestamp = message.origin_timestamp = link_.clock.wall_micros();
    message.body = "not ours";
    return message;
  }

  SimLink link_;
  VerifyOptions options_;
  VerifyProgress progress_;
  std::unique_ptr<SimAppliance> appliance_;
};

TEST_F(VerifierTest, EqualSidesGiveAReceiptWithDigests) {
  copy();
  const PartitionVerdict first = verdict();
  EXPECT_EQ(first.verdict, Verified::kEqual) << first.detail;
  EXPECT_EQ(first.messages, kMessages);
  EXPECT_EQ(first.up_end, kMessages);
  EXPECT_EQ(first.up_digest, first.down_digest);
  EXPECT_NE(first.up_digest, base::Digest());
  ASSERT_EQ(first.ranges.size(), 1U);
  EXPECT_EQ(first.ranges.front().length, kMessages);
  EXPECT_EQ(progress_.done, 1U);
  EXPECT_EQ(progress_.messages, progress_.messages_total);
  EXPECT_EQ(progress_.seconds_left, 0.0);
  EXPECT_EQ(link_.count_events("verify"), 1U);
}

TEST_F(VerifierTest, IsIncrementalAcrossARestartAndFullWhenAsked) {
  copy();
  EXPECT_EQ(verdict().messages, kMessages);
  copy(10);
  stop();
  link_.reopen();
  const PartitionVerdict next = verdict();
  EXPECT_EQ(next.verdict, Verified::kEqual) << next.detail;
  EXPECT_EQ(next.up_begin, kMessages);
  EXPECT_EQ(next.messages, 10U);
  EXPECT_EQ(verdict().messages, 0U) << "nothing new";
  EXPECT_EQ(verdict(full()).messages, kMessages + 10);
}

TEST_F(VerifierTest, ADifferenceIsNotForgottenByTheNextRun) {
  copy();
  log()[500].body[3] ^= 1;
  EXPECT_EQ(verdict().verdict, Verified::kDifferent);
  EXPECT_EQ(verdict().difference->up_offset, 500U);
}

struct Place {
  std::size_t at;
  const char* name;
};
constexpr Place kPlaces[] = {{0, "first"}, {kMessages / 2, "middle"}, {kMessages - 1, "last"}};

TEST_F(VerifierTest, NamesEveryKindOfDifferenceAtEveryPlace) {
  copy();
  stop();
  const std::vector<SimMessage> sound = log();
  const auto expect = [&](DifferenceKind kind, std::uint64_t up, std::uint64_t down, const char* what) {
    const PartitionVerdict found = verdict(full());
    EXPECT_EQ(found.verdict, Verified::kDifferent) << what << " " << found.detail;
    if (found.difference) {
      EXPECT_EQ(found.difference->kind, kind) << what << " " << found.difference->text;
      EXPECT_EQ(found.difference->up_offset, up) << what << " " << found.difference->text;
      EXPECT_EQ(found.difference->down_offset, down) << what << " " << found.difference->text;
    }
    log() = sound;
    renumber();
    ASSERT_EQ(verdict(full()).verdict, Verified::kEqual) << "the log is whole again";
  };
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    const auto at = static_cast<std::ptrdiff_t>(place.at);

    log()[place.at].body[5] ^= 1;
    expect(DifferenceKind::kDifferent, place.at, place.at, "flipped byte");

    log()[place.at].origin_timestamp += 1;
    expect(DifferenceKind::kDifferent, place.at, place.at, "origin time");

    log()[place.at] = stranger();
    log()[place.at].offset = place.at;
    expect(DifferenceKind::kDifferent, place.at, place.at, "another message");

    log().erase(log().begin() + at);
    renumber();
    expect(DifferenceKind::kMissing, place.at, place.at, "dropped, later ones move up");

    if (place.at + 1 < kMessages) {
      log().erase(log().begin() + at);
      expect(DifferenceKind::kMissing, place.at, place.at, "dropped, a hole stays");
    }

    log().insert(log().begin() + at, stranger());
    renumber();
    expect(DifferenceKind::kExtra, place.at, place.at, "a stranger's message before it");

    log().insert(log().begin() + at + 1, stranger());
    renumber();
    expect(DifferenceKind::kExtra, place.at + 1, place.at + 1, "a stranger's message behind it");

    log().insert(log().begin() + at + 1, SimMessage(log()[place.at]));
    renumber();
    expect(DifferenceKind::kDuplicate, place.at + 1, place.at + 1, "once more");

    const std::size_t first = std::min(place.at, kMessages - 2);
    std::swap(log()[first], log()[first + 1]);
    renumber();
    expect(DifferenceKind::kOrder, first, first, "swapped");
  }
}

TEST_F(VerifierTest, AMessageThatMovedFarIsOrderAndARunOfLostOnesIsMissing) {
  copy();
  stop();
  std::rotate(log().begin() + 100, log().begin() + 101, log().begin() + 160);
  renumber();
  PartitionVerdict found = verdict();
  ASSERT_TRUE(found.difference);
  EXPECT_EQ(found.difference->kind, DifferenceKind::kOrder) << found.difference->text;
  EXPECT_EQ(found.difference->up_offset, 100U);
  std::rotate(log().begin() + 100, log().begin() + 159, log().begin() + 160);
  log().erase(log().begin() + 200, log().begin() + 250);
  renumber();
  found = verdict();
  ASSERT_TRUE(found.difference);
  EXPECT_EQ(found.difference->kind, DifferenceKind::kMissing);
  EXPECT_EQ(found.difference->up_offset, 200U);
  EXPECT_NE(found.difference->text.find("50 missing"), std::string::npos) << found.difference->text;
}

TEST_F(VerifierTest, LiveLoadIsNoDifference) {
  copy();
  for (int round = 0; round < 20; ++round) {
    link_.up.produce(0, 300);
    link_.pass(std::chrono::milliseconds(37 * round));
    const PartitionVerdict found = verdict(round % 2 == 0 ? full() : VerifyRequest{});
    ASSERT_EQ(found.verdict, Verified::kEqual) << found.detail;
  }
  link_.pass(std::chrono::seconds(5));
}

TEST_F(VerifierTest, OwnUnackedTailIsNoDifference) {
  copy();
  appliance_->lane().sink.faults.push_back(testing::SendFault::kAckSilent);
  link_.up.produce(0, 10);
  link_.pass(std::chrono::seconds(1));
  ASSERT_EQ(link_.row()->watermark, kMessages) << "sent, and not acknowledged";
  const PartitionVerdict found = verdict();
  EXPECT_EQ(found.verdict, Verified::kEqual) << found.detail;
  link_.pass(std::chrono::seconds(60));
}

TEST_F(VerifierTest, OwnDuplicatesInTheLedgerAreListedAndNoDifference) {
  copy();
  appliance_->lane().sink.settles = false;
  appliance_->lane().sink.faults.push_back(testing::SendFault::kLandsLate);
  copy(10);
  link_.pass(std::chrono::seconds(20));
  copy(10);
  link_.pass(std::chrono::seconds(20));
  ASSERT_EQ(log().size(), kMessages + 30) << "ten of them landed twice";
  ASSERT_FALSE(link_.gaps().empty());
  const PartitionVerdict found = verdict();
  EXPECT_EQ(found.verdict, Verified::kEqual) << found.detail;
  EXPECT_EQ(found.strangers, 10U);
  ASSERT_EQ(found.gaps.size(), link_.gaps().size());
  EXPECT_EQ(found.gaps.front().cause, "own_duplicate");
  EXPECT_EQ(found.messages, kMessages + 20);
}

TEST_F(VerifierTest, AReplayedMessageIsListedAndComparedByItsDigest) {
  copy(5);
  link_.up.produce(0, 15);
  appliance_->lane().sink.invalid = link_.up.at(0).log[7].body;
  copy(0);
  appliance_->lane().sink.invalid.clear();
  ASSERT_TRUE(link_.run(appliance_->lane().pipeline->replay({link_.gaps().at(0)}, "ada@host")));
  copy(10);
  ASSERT_EQ(link_.gaps().at(0).down_offset, 19U);
  const PartitionVerdict found = verdict();
  EXPECT_EQ(found.verdict, Verified::kEqual) << found.detail;
  EXPECT_EQ(found.messages, 29U);
  EXPECT_EQ(found.strangers, 0U);
  ASSERT_EQ(found.gaps.size(), 1U);
  EXPECT_EQ(found.gaps.front().resolved_as, "replayed");
  log()[19].body[0] ^= 1;
  const PartitionVerdict damaged = verdict(full());
  ASSERT_TRUE(damaged.difference) << damaged.detail;
  EXPECT_EQ(damaged.difference->kind, DifferenceKind::kDifferent);
  EXPECT_EQ(damaged.difference->up_offset, 7U);
  EXPECT_EQ(damaged.difference->down_offset, 19U);
}

TEST_F(VerifierTest, RetentionOnEitherSideIsSaidAndNoDifference) {
  copy();
  link_.up.at(0).has_retention = link_.down.at(0).has_retention = true;
  link_.up.at(0).expiry_micros = link_.down.at(0).expiry_micros = 1'000'000;
  link_.up.expire(0, 100);
  link_.down.expire(0, 250);
  const PartitionVerdict found = verdict();
  EXPECT_EQ(found.verdict, Verified::kEqual) << found.detail;
  EXPECT_EQ(found.messages, kMessages - 250);
  ASSERT_EQ(found.removed.size(), 2U);
  EXPECT_EQ(found.removed[0], (Removed{state::Side::kUpstream, 0, 100}));
  EXPECT_EQ(found.removed[1], (Removed{state::Side::kDownstream, 100, 250}));
}

TEST_F(VerifierTest, AnExpiryThatCantHaveBeenReachedExplainsNothing) {
  copy();
  link_.down.at(0).has_retention = true;
  link_.down.at(0).expiry_micros = 3'600'000'000;
  link_.down.expire(0, 3);
  const PartitionVerdict found = verdict();
  ASSERT_EQ(found.verdict, Verified::kDifferent);
  EXPECT_EQ(found.difference->kind, DifferenceKind::kMissing);
  EXPECT_EQ(found.difference->up_offset, 0U);
}

TEST_F(VerifierTest, SurvivesCutConnectionsAndSaysWhenASideIsGone) {
  copy();
  link_.up.cut();
  link_.down.refuse_connections_until(link_.clock.now() + std::chrono::seconds(20));
  EXPECT_EQ(verdict().verdict, Verified::kEqual);
  link_.down.refuse_connections_until(link_.clock.now() + std::chrono::hours(1));
  const PartitionVerdict found = verdict(full());
  EXPECT_EQ(found.verdict, Verified::kUnreachable);
  EXPECT_NE(found.detail.find("refused"), std::string::npos) << found.detail;
}

TEST_F(VerifierTest, AnOldEndIsWaitedFor) {
  copy();
  link_.down.answer_old_end(0, 900, std::chrono::seconds(3));
  const PartitionVerdict found = verdict();
  EXPECT_EQ(found.verdict, Verified::kEqual) << found.detail;
}

TEST_F(VerifierTest, ThrottleHoldsItsRate) {
  copy();
  const base::TimePoint begin = link_.clock.now();
  const PartitionVerdict found = verdict({"", false, 50'000});
  const double seconds = std::chrono::duration<double>(link_.clock.now() - begin).count();
  const double bytes = 2.0 * static_cast<double>(found.bytes + 64 * found.messages);
  EXPECT_NEAR(seconds, bytes / 50'000, 1.0);
}

TEST_F(VerifierTest, AGlobThatMatchesNothingIsRefused) {
  copy();
  auto report = verify({"nobody/*", false, 0});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), base::ErrorCode::kInvalidArgument);
}

TEST_F(VerifierTest, ADownstreamThatWasRewoundMeanwhileIsComparedAgain) {
  copy();
  link_.down.save(0);
  copy(50);
  link_.down.at(0).saved = kMessages;
  link_.down.crash();  // the last 50 are gone, the pipeline notices and sends them again
  link_.pass(std::chrono::seconds(30));
  const PartitionVerdict found = verdict(full());
  EXPECT_EQ(found.verdict, Verified::kEqual) << found.detail;
  EXPECT_EQ(found.messages, kMessages + 50);
}

}  // namespace
}  // namespace replicator
