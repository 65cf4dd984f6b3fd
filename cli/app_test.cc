// Goal: every verb does what its help says, with the exit code that its help names. Method: the whole command line in
// this process, against an admin server on a free port with commands by hand; run, check and plan answer as they are
// told.
#include "cli/app.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "replicator/admin/admin_server.h"
#include "replicator/run.h"
#include "state/sqlite_store.h"

namespace {

// What run, check and plan were given and answer.
std::optional<replicator::Config> given;
base::Result<replicator::RunReport> run_answer = replicator::RunReport();
replicator::CheckReport check_answer;
replicator::PlanReport plan_answer;

}  // namespace

namespace replicator {
base::Result<RunReport> run_link(const Config& config, const std::vector<Setting>&, std::function<ConfigReading()>) {
  given = config;
  return run_answer;
}
base::Result<CheckReport> check_link(const Config& config) {
  given = config;
  return check_answer;
}
base::Result<PlanReport> plan_link(const Config& config) {
  given = config;
  return plan_answer;
}
}  // namespace replicator

namespace cli {
namespace {

using replicator::CommandOutcome;
using replicator::Phase;

class Commands final : public replicator::Commands {
 public:
  base::Result<CommandOutcome> pause(std::string glob, std::string who, bool dry_run) override {
    return record("pause " + glob, who, dry_run);
  }
  base::Result<CommandOutcome> resume(std::string glob, std::string who, bool dry_run) override {
    return record("resume " + glob, who, dry_run);
  }
  base::Result<CommandOutcome> resolve(base::PartitionKey key, replicator::Exit exit, std::string who,
                                       bool dry_run) override {
    return record("resolve " + key.to_string() + " as " + std::string(to_string(exit)), who, dry_run);
  }
  base::Result<CommandOutcome> reset(base::PartitionKey key, std::uint64_t offset, std::string who,
                                     bool dry_run) override {
    return record("reset " + key.to_string() + " to " + std::to_string(offset), who, dry_run);
  }
  base::Result<CommandOutcome> set_throttle(std::string glob, replicator::Rate rate, std::string who,
                                            bool dry_run) override {
    return record("throttle " + (glob.empty() ? "link" : glob) + " " + format_rate(rate), who, dry_run);
  }
  base::Result<CommandOutcome> reload(std::string who, bool dry_run) override { return record("reload", who, dry_run); }
  base::Result<CommandOutcome> replay(std::vector<std::int64_t> ids, std::string who, bool dry_run) override {
    std::string what = "replay";
    for (const std::int64_t id : ids) what += " " + std::to_string(id);
    return record(what, who, dry_run);
  }
  base::Result<replicator::EndReport> end_link(replicator::EndRequest request) override {
    auto asked =
        record(request.ending == replicator::Ending::kPromote ? "promote" : "failover", request.actor, request.dry_run);
    if (!asked) return std::move(asked).error();
    replicator::EndReport report = end_report;
    report.dry_run = request.dry_run;
    report.ending = request.ending;
    return report;
  }
  base::Result<std::vector<state::GapRow>> gaps() override { return gap_rows; }
  base::Result<std::vector<state::EventRow>> events(std::size_t) override {
    return std::vector<state::EventRow>{{1, 1, "pause", "orders/events/0", "ann@host", "by hand"}};
  }
  base::Result<state::Translation> translate(base::PartitionKey key, state::Side from, std::uint64_t offset) override {
    calls.push_back("translate " + key.to_string());
    if (refuse) return *refuse;
    translation.from = from;
    translation.offset = offset;
    return translation;
  }
  base::Result<replicator::VerifyReport> verify(
      replicator::VerifyRequest request, std::function<bool(const replicator::VerifyProgress&)> on_progress) override {
    calls.push_back("verify " + request.glob + (request.full ? " full" : ""));
    if (refuse) return *refuse;
    replicator::VerifyProgress progress;
    progress.messages = 5;
    progress.messages_total = 10;
    if (!on_progress(progress)) return base::Error(base::ErrorCode::kStopped, "verify", "", "cancelled");
    return verify_report;
  }
  base::Result<std::vector<state::ConsumerRow>> consumers() override { return consumer_rows; }
  base::Result<std::vector<state::ConsumerRow>> sync_consumers(std::string actor, bool dry_run) override {
    calls.push_back("consumers sync by " + actor + (dry_run ? " (dry run)" : ""));
    if (refuse) return *refuse;
    return consumer_rows;
  }

  std::vector<std::string> calls;
  std::vector<state::GapRow> gap_rows;
  state::Translation translation;
  replicator::VerifyReport verify_report;
  std::vector<state::ConsumerRow> consumer_rows;
  replicator::EndReport end_report;
  std::optional<base::Error> refuse;

 private:
  base::Result<CommandOutcome> record(const std::string& what, const std::string& who, bool dry_run) {
    EXPECT_NE(who.find('@'), std::string::npos) << who;
    calls.push_back(what + (dry_run ? " (dry run)" : ""));
    if (refuse) return *refuse;
    return CommandOutcome{{"orders/events/0"}, "watermark moves"};
  }
};

struct Outcome {
  ExitCode code;
  std::string out, err;
};

class App : public testing::Test {
 protected:
  App() {
    char name[] = "/tmp/app_test.XXXXXX";
    folder_ = mkdtemp(name);
    publish([](auto&) {});
    replicator::AdminOptions options;
    options.address = "127.0.0.1:0";
    auto server = replicator::AdminServer::start(options, board_, commands_);
    EXPECT_TRUE(server);
    server_ = std::move(*server);
    setenv("IGGY_REPLICATE_ADMIN", server_->address().c_str(), 1);
    given.reset();
    run_answer = replicator::RunReport();
    check_answer = {};
    plan_answer = {};
  }
  ~App() override {
    unsetenv("IGGY_REPLICATE_ADMIN");
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  // A healthy link of two partitions, changed as told.
  template <class Change>
  void publish(Change change) {
    auto status = std::make_shared<replicator::LinkStatus>();
    status->link_id = "cafe";
    status->state = "running";
    status->taken_at = 1'000'000'000'000'000;
    status->upstream.connected = status->downstream.connected = true;
    for (std::uint32_t number : {0U, 1U}) {
      replicator::PartitionStatus partition;
      partition.key = {{"orders", "events"}, number};
      partition.phase = Phase::kCaughtUp;
      partition.lag = {.messages = 0, .micros = 0, .observed_at = status->taken_at, .seen_end = {}};
      status->partitions.push_back(partition);
    }
    status->settings = {{"copy.batch_bytes", "", "4MiB", "default"}};
    change(*status);
    board_.publish(std::move(status));
  }
  void publish_fault() {
    publish([](replicator::LinkStatus& status) {
      status.partitions[0].phase = Phase::kFault;
      status.partitions[0].fault = {"retention", "offsets [1, 2) expired", 1, 1, 2};
    });
  }

  static Outcome run(std::vector<std::string> args, const std::string& typed = {}, bool is_terminal = false) {
    std::ostringstream out;
    std::ostringstream err;
    std::istringstream in(typed);
    const ExitCode code = run_cli(std::move(args), {out, err, in, is_terminal, false});
    return {code, out.str(), err.str()};
  }
  static std::vector<std::string> with_link(std::vector<std::string> args) {
    for (const char* arg : {"--upstream", "iggy://u:p@a:1", "--downstream", "iggy://u:p@b:1"}) args.emplace_back(arg);
    return args;
  }

  std::filesystem::path folder_;
  replicator::StatusBoard board_;
  Commands commands_;
  std::unique_ptr<replicator::AdminServer> server_;
};

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST_F(App, HelpTeachesByExample) {
  const Outcome top = run({"--help"});
  EXPECT_EQ(top.code, ExitCode::kGood);
  EXPECT_NE(top.out.find("Exit code"), std::string::npos);
  for (const char* verb : {"run", "check", "plan", "status", "lag", "pause", "resume", "gaps", "events", "resolve",
                           "reset", "promote", "failover", "failback", "drill", "state"}) {
    EXPECT_NE(top.out.find(std::string("\n  ") + verb), std::string::npos) << verb;
    const Outcome help = run({verb, "--help"});
    EXPECT_EQ(help.code, ExitCode::kGood) << verb;
    EXPECT_NE(help.out.find("Examples:\n  iggy-replicate " + std::string(verb)), std::string::npos) << verb;
    expect_narrow(help.out);
  }
  expect_narrow(top.out);
}

TEST_F(App, WrongUsageIsTwo) {
  EXPECT_EQ(run({}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"no-such-verb"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"status", "--no-such-flag"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"status", "-o", "xml"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"status", "a/b/c/d"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"resolve", "orders/events"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"reset", "orders/events/0"}).code, ExitCode::kUsage);
}

TEST_F(App, NobodyThereIsThree) {
  server_.reset();
  const Outcome outcome = run({"status"});
  EXPECT_EQ(outcome.code, ExitCode::kUnreachable);
  EXPECT_NE(outcome.err.find("no link answers there"), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.out.empty());
}

TEST_F(App, StatusAndLagEndWithOneWhenSomethingIsWrong) {
  EXPECT_EQ(run({"status"}).code, ExitCode::kGood);
  EXPECT_EQ(run({"lag"}).code, ExitCode::kGood);
  publish_fault();
  EXPECT_EQ(run({"status"}).code, ExitCode::kProblem);
  EXPECT_NE(run({"status"}).out.find("resolve orders/events/0 --as accept"), std::string::npos);
  EXPECT_EQ(run({"lag"}).code, ExitCode::kProblem);
  EXPECT_EQ(run({"lag", "orders/events/1"}).code, ExitCode::kGood) << "only what was asked for counts";
  publish([](auto& status) { status.partitions[1].lag.messages.reset(); });
  EXPECT_EQ(run({"lag"}).code, ExitCode::kProblem);
  EXPECT_NE(run({"lag"}).out.find("unknown"), std::string::npos);
  publish([](auto& status) { status.upstream.connected = false; });
  EXPECT_EQ(run({"status"}).code, ExitCode::kProblem);
}

TEST_F(App, StatusSpeaksJson) {
  const Outcome outcome = run({"status", "-o", "json"});
  EXPECT_TRUE(outcome.out.starts_with("{\n \"link\": {")) << outcome.out;
  EXPECT_NE(outcome.out.find("\"phase\": \"PHASE_CAUGHT_UP\""), std::string::npos);
  EXPECT_EQ(outcome.out.find("batch_bytes"), std::string::npos);
  EXPECT_NE(run({"status", "--settings", "-o", "json"}).out.find("batch_bytes"), std::string::npos);
  EXPECT_EQ(run({"status", "--settings"}).out, "copy.batch_bytes = 4MiB\n");
}

TEST_F(App, PauseAndResumeReachTheLink) {
  EXPECT_EQ(run({"pause", "orders/*"}).code, ExitCode::kGood);
  EXPECT_EQ(run({"resume", "orders/*", "--dry-run"}).out, "Would be done: watermark moves\n  orders/events/0\n");
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"pause orders/*", "resume orders/* (dry run)"}));
  commands_.refuse = base::Error(base::ErrorCode::kStateUnavailable, "pause", "orders/*", "the disk is full");
  EXPECT_EQ(run({"pause", "orders/*"}).code, ExitCode::kProblem);
  commands_.refuse = base::Error(base::ErrorCode::kInvalidArgument, "pause", "x/*", "matches nothing");
  const Outcome outcome = run({"pause", "x/*"});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_EQ(outcome.err, "iggy-replicate: pause x/*: matches nothing\n");
}

TEST_F(App, ResolveShowsAsksAndDoes) {
  publish_fault();
  // Without --as it only explains.
  const Outcome explained = run({"resolve", "orders/events/0"});
  EXPECT_EQ(explained.code, ExitCode::kProblem);
  EXPECT_NE(explained.out.find("--as accept"), std::string::npos);
  EXPECT_EQ(run({"resolve", "orders/events/1"}).code, ExitCode::kGood);
  EXPECT_EQ(run({"resolve", "orders/none/1"}).code, ExitCode::kUsage);
  EXPECT_TRUE(commands_.calls.empty());

  // Where nobody can be asked, nothing happens.
  EXPECT_EQ(run({"resolve", "orders/events/0", "--as", "accept"}).code, ExitCode::kUsage);
  // The answer is no, also by saying nothing.
  for (const char* answer : {"n\n", "\n", ""}) {
    const Outcome refused = run({"resolve", "orders/events/0", "--as", "accept"}, answer, true);
    EXPECT_EQ(refused.code, ExitCode::kProblem);
    EXPECT_NE(refused.out.find("nothing was changed"), std::string::npos);
  }
  for (const std::string& call : commands_.calls) EXPECT_EQ(call, "resolve orders/events/0 as accept (dry run)");

  commands_.calls.clear();
  const Outcome agreed = run({"resolve", "orders/events/0", "--as", "accept"}, "y\n", true);
  EXPECT_EQ(agreed.code, ExitCode::kGood);
  EXPECT_NE(agreed.out.find("Messages expired upstream"), std::string::npos) << "shown before asking";
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"resolve orders/events/0 as accept (dry run)",
                                                       "resolve orders/events/0 as accept"}));
  commands_.calls.clear();
  EXPECT_EQ(run({"resolve", "orders/events/0", "--as", "accept", "--dry-run"}).code, ExitCode::kGood);
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"resolve orders/events/0 as accept (dry run)"}));
  EXPECT_EQ(run({"resolve", "orders/events/0", "--as", "accept", "--yes"}).code, ExitCode::kGood);
  EXPECT_EQ(run({"resolve", "orders/events/0", "--as", "pray", "--yes"}).code, ExitCode::kUsage);
}

TEST_F(App, ResetShowsAsksAndDoes) {
  EXPECT_EQ(run({"reset", "orders/events/0", "--to", "42"}, "y\n", true).code, ExitCode::kGood);
  EXPECT_EQ(commands_.calls,
            (std::vector<std::string>{"reset orders/events/0 to 42 (dry run)", "reset orders/events/0 to 42"}));
  commands_.calls.clear();
  EXPECT_EQ(run({"reset", "orders/events/0", "--to", "42"}, "no\n", true).code, ExitCode::kProblem);
  EXPECT_EQ(commands_.calls.size(), 1U);
}

TEST_F(App, FailoverStatesTheLossAsksAndDoes) {
  replicator::Loss& loss = commands_.end_report.loss;
  loss.topics = {{{"orders", "events"}, 2, 1, 137, std::nullopt, 7'000'000}};
  loss.partitions = 2;
  loss.unknown = 1;
  loss.messages = 137;
  loss.known_at = 7'000'000;
  loss.taken_at = 10'000'000;
  const Outcome agreed = run({"failover"}, "y\n", true);
  EXPECT_EQ(agreed.code, ExitCode::kGood) << agreed.err;
  EXPECT_NE(agreed.out.find("Missing downstream: >= 137 messages"), std::string::npos) << agreed.out;
  EXPECT_NE(agreed.out.find("3s ago"), std::string::npos) << agreed.out;
  EXPECT_NE(agreed.out.find("Unknown: 1 of 2"), std::string::npos) << agreed.out;
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"failover (dry run)", "failover"}));

  commands_.calls.clear();
  EXPECT_EQ(run({"failover"}, "n\n", true).code, ExitCode::kProblem);
  EXPECT_EQ(run({"failover"}).code, ExitCode::kUsage) << "nobody can be asked";
  EXPECT_EQ(run({"failover", "--dry-run"}).code, ExitCode::kGood);
  for (const std::string& call : commands_.calls) EXPECT_EQ(call, "failover (dry run)");

  commands_.end_report.undone = {"the link's record downstream does not say so: connection refused"};
  const Outcome half = run({"failover", "--yes"});
  EXPECT_EQ(half.code, ExitCode::kProblem);
  EXPECT_NE(half.out.find("NOT DONE"), std::string::npos);
  expect_narrow(half.out);
}

TEST_F(App, FailoverByTheStateFileAloneNeedsNoLink) {
  server_.reset();
  const std::string path = folder_ / "link.db";
  const Outcome missing = run({"failover", "--state", path, "--downstream", "iggy://u:p@127.0.0.1:1", "--yes"});
  EXPECT_EQ(missing.code, ExitCode::kProblem);
  EXPECT_NE(missing.err.find("no such file"), std::string::npos) << missing.err;
  const Outcome nowhere = run({"failover", "--state", path, "--yes"});
  EXPECT_EQ(nowhere.code, ExitCode::kUsage);
  EXPECT_NE(nowhere.err.find("link.downstream_url"), std::string::npos) << nowhere.err;
  EXPECT_EQ(nowhere.err.find("link.upstream_url"), std::string::npos) << "the upstream is not asked";
}

TEST_F(App, PromoteIsToldHowTheUpstreamIsFenced) {
  EXPECT_EQ(run({"promote", "--yes"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"promote", "--yes", "--fence", "producer"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"promote", "--yes", "--fence", "user=p", "--fenced-by-hand"}).code, ExitCode::kUsage);
  EXPECT_TRUE(commands_.calls.empty());
  EXPECT_EQ(run({"promote", "--fenced-by-hand"}, "y\n", true).code, ExitCode::kGood);
  EXPECT_EQ(run({"promote", "--fence", "user=p", "--yes"}).code, ExitCode::kGood);
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"verify ", "promote", "verify ", "promote"}));
  commands_.refuse = base::Error(base::ErrorCode::kFenced, "promote", "link", "the upstream is not fenced");
  EXPECT_EQ(run({"promote", "--fenced-by-hand", "--yes"}).code, ExitCode::kProblem);
}

TEST_F(App, ADrillSaysHowTheUpstreamIsKilledAndPredictsWithoutKilling) {
  EXPECT_EQ(run(with_link({"drill"})).code, ExitCode::kUsage);
  EXPECT_EQ(run(with_link({"drill", "--kill-pid", "1", "--kill-command", "true"})).code, ExitCode::kUsage);
  commands_.end_report.loss.partitions = 1;
  commands_.end_report.loss.messages = 42;
  EXPECT_EQ(run({"drill", "--predict"}).code, ExitCode::kGood);
  EXPECT_EQ(run({"drill", "--predict", "--max-rpo-messages", "41"}).code, ExitCode::kProblem);
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"failover (dry run)", "failover (dry run)"}));
}

TEST_F(App, OpenGapsAreAProblemWhenAskedFor) {
  EXPECT_EQ(run({"gaps", "--open"}).code, ExitCode::kGood);
  state::GapRow gap;
  gap.key = {{"orders", "events"}, 0};
  commands_.gap_rows = {gap};
  EXPECT_EQ(run({"gaps"}).code, ExitCode::kGood);
  EXPECT_EQ(run({"gaps", "--open"}).code, ExitCode::kProblem);
  EXPECT_NE(run({"events"}).out.find("by ann@host"), std::string::npos);
}

TEST_F(App, ReplayShowsWhatItMeansAndAsks) {
  EXPECT_EQ(run({"throttle", "orders/*", "10MiB/s", "500msg/s"}).code, ExitCode::kGood);
  EXPECT_EQ(run({"throttle", "link", "off", "--dry-run"}).code, ExitCode::kGood);
  EXPECT_EQ(run({"throttle", "link", "fast"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"throttle", "link"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"reload"}).code, ExitCode::kGood);
  EXPECT_EQ(commands_.calls,
            (std::vector<std::string>{"throttle orders/* 10MiB/s 500msg/s", "throttle link off (dry run)", "reload"}));
  commands_.calls.clear();
  EXPECT_EQ(run({"gaps", "replay", "17", "18", "--dry-run"}).code, ExitCode::kGood);
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"replay 17 18 (dry run)"}));
  commands_.calls.clear();
  EXPECT_EQ(run({"gaps", "replay"}, "no\n", true).code, ExitCode::kProblem);
  EXPECT_EQ(run({"gaps", "replay", "--yes"}).code, ExitCode::kGood);
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"replay (dry run)", "replay (dry run)", "replay"}));
}

TEST_F(App, TranslateEndsWithZeroOnlyForAConfirmedCounterpart) {
  commands_.translation.mapping = state::Mapping::kConfirmed;
  commands_.translation.counterpart = 33;
  const Outcome sure = run({"translate", "orders/events/0", "42"});
  EXPECT_EQ(sure.code, ExitCode::kGood) << sure.err;
  EXPECT_NE(sure.out.find("upstream offset 42 is downstream offset 33"), std::string::npos) << sure.out;
  commands_.translation = {};
  commands_.translation.mapping = state::Mapping::kGap;
  commands_.translation.text = "never copied";
  commands_.translation.next = 40;
  const Outcome gap = run({"translate", "orders/events/0", "42", "--from", "downstream"});
  EXPECT_EQ(gap.code, ExitCode::kProblem);
  EXPECT_NE(gap.out.find("goes on at upstream offset 40"), std::string::npos) << gap.out;
  EXPECT_EQ(run({"translate", "orders", "42"}).code, ExitCode::kUsage);
}

TEST_F(App, VerifyEndsAsItsVerdictSays) {
  replicator::PartitionVerdict verdict;
  verdict.key = {{"orders", "events"}, 0};
  commands_.verify_report.partitions = {verdict};
  EXPECT_EQ(run({"verify"}).code, ExitCode::kGood);
  commands_.verify_report.verdict = replicator::Verified::kUnreachable;
  EXPECT_EQ(run({"verify"}).code, ExitCode::kUnreachable);
  verdict.verdict = commands_.verify_report.verdict = replicator::Verified::kDifferent;
  verdict.difference = replicator::Difference{replicator::DifferenceKind::kOrder, 5, 6, "swapped"};
  commands_.verify_report.partitions = {verdict};
  const Outcome different = run({"verify", "orders/*", "--full"});
  EXPECT_EQ(different.code, ExitCode::kProblem);
  EXPECT_EQ(commands_.calls.back(), "verify orders/* full");
  EXPECT_NE(different.out.find("order at upstream offset 5"), std::string::npos) << different.out;
  EXPECT_EQ(run({"verify", "--rate", "fast"}).code, ExitCode::kUsage);
}

TEST_F(App, ConsumersAreListedAndMoved) {
  state::ConsumerRow row;
  row.key = {{"orders", "events"}, 0};
  row.name = "billing";
  row.state = "synced";
  commands_.consumer_rows = {row};
  const Outcome listed = run({"consumers"});
  EXPECT_EQ(listed.code, ExitCode::kGood) << listed.err;
  EXPECT_NE(listed.out.find("billing"), std::string::npos);
  commands_.consumer_rows.front().state = "failed";
  EXPECT_EQ(run({"consumers", "sync", "--dry-run"}).code, ExitCode::kProblem);
  EXPECT_NE(commands_.calls.back().find("(dry run)"), std::string::npos);
}

TEST_F(App, RunPassesTheConfigurationAndPrintsAReceipt) {
  run_answer->outcome = "caught_up";
  replicator::PartitionReceipt receipt;
  receipt.key = {{"orders", "events"}, 0};
  receipt.up_end = receipt.copied = 1500;
  receipt.copied_bytes = 1 << 20;
  receipt.digest = std::string(32, 'a');
  receipt.complete = true;
  run_answer->partitions = {receipt};
  const Outcome outcome = run(with_link({"run", "--topics", "orders/*", "audit/*", "--until-caught-up"}));
  EXPECT_EQ(outcome.code, ExitCode::kGood) << outcome.err;
  ASSERT_TRUE(given);
  EXPECT_EQ(given->topics, (std::vector<std::string>{"orders/*", "audit/*"}));
  EXPECT_TRUE(given->until_caught_up);
  EXPECT_EQ(outcome.out, R"(caught_up

PARTITION        UPSTREAM OFFSETS  COPIED     SIZE  SKIPPED  COMPLETE
orders/events/0         [0, 1500)   1,500  1.0 MiB        0  yes

DIGEST OF THE COPIED MESSAGES
  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  orders/events/0
)");
  run_answer->outcome = "incomplete";
  EXPECT_EQ(run(with_link({"run"})).code, ExitCode::kProblem);
  EXPECT_NE(run(with_link({"run", "-o", "json"})).out.find("\"outcome\": \"incomplete\""), std::string::npos);
  run_answer = base::Error(base::ErrorCode::kConnectFailed, "connect", "a:1", "refused");
  EXPECT_EQ(run(with_link({"run"})).code, ExitCode::kUnreachable);
}

TEST_F(App, AWrongConfigurationStartsNothingAndListsEverything) {
  const Outcome outcome = run({"run", "--batch-bytes", "4MB", "--read-timeout", "1ms"});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_FALSE(given);
  EXPECT_NE(outcome.err.find("the configuration has 4 problems"), std::string::npos) << outcome.err;
  for (const char* key : {"link.upstream_url", "link.downstream_url", "copy.batch_bytes", "time.read_timeout"}) {
    EXPECT_NE(outcome.err.find(std::string("\n  ") + key), std::string::npos) << outcome.err;
  }
}

TEST_F(App, CheckSaysGoOrNoGo) {
  using replicator::Verdict;
  check_answer.items = {{"upstream", "reachable", Verdict::kOk, "a:1 answers"},
                        {"upstream", "rights", Verdict::kWarn, "read_servers is missing"}};
  Outcome outcome = run(with_link({"check"}));
  EXPECT_EQ(outcome.code, ExitCode::kGood);
  EXPECT_EQ(outcome.out, "upstream\n  ok    reachable: a:1 answers\n  warn  rights: read_servers is missing\ngo\n");
  check_answer.items.push_back({"downstream", "reachable", Verdict::kFail, "connection refused"});
  outcome = run(with_link({"check"}));
  EXPECT_EQ(outcome.code, ExitCode::kProblem);
  EXPECT_TRUE(outcome.out.ends_with("downstream\n  FAIL  reachable: connection refused\nNO GO\n")) << outcome.out;
  EXPECT_NE(run(with_link({"check", "-o", "json"})).out.find("\"go\": false"), std::string::npos);
}

TEST_F(App, PlanSaysWhatWouldBeDone) {
  plan_answer.lines = {{"orders/events", "dr/events", "create", "3 partitions, no expiry"}};
  Outcome outcome = run(with_link({"plan"}));
  EXPECT_EQ(outcome.code, ExitCode::kGood);
  EXPECT_EQ(outcome.out, "create    orders/events -> dr/events\n          3 partitions, no expiry\n");
  plan_answer.lines.push_back({"a/b", "", "refuse", "feeds itself"});
  EXPECT_EQ(run(with_link({"plan"})).code, ExitCode::kProblem);
}

TEST_F(App, StateOpensTheFileItself) {
  const std::string path = folder_ / "link.db";
  EXPECT_EQ(run({"state", "show", "--state", path}).code, ExitCode::kProblem);
  EXPECT_FALSE(std::filesystem::exists(path)) << "looking makes no file";
  {
    auto store = state::SqliteStore::open(path, state::OpenMode::kCreate);
    ASSERT_TRUE(store) << store.error().to_string();
    state::Transaction transaction;
    state::LinkRow link;
    link.id = "cafe";
    link.upstream = "iggy://u:***@a:1";
    link.downstream = "iggy://u:***@b:1";
    link.upstream_identity = link.downstream_identity = "";
    link.created_at = 1;
    transaction.link = link;
    state::PartitionRow row;
    row.key = {{"orders", "events"}, 0};
    row.downstream = row.key.topic;
    row.watermark = 1500;
    row.down_end = 1700;
    state::PartitionReplace replace;
    replace.row = row;
    transaction.replaces.push_back(replace);
    auto applied = (*store)->apply(transaction);
    ASSERT_TRUE(applied) << applied.error().to_string();

    // Also while it is in use.
    const Outcome shown = run({"state", "show", "--state", path});
    EXPECT_EQ(shown.code, ExitCode::kGood) << shown.err;
    EXPECT_NE(shown.out.find("orders/events/0  -           1500      1700"), std::string::npos) << shown.out;
    const Outcome json = run({"state", "show", "--state", path, "-o", "json"});
    EXPECT_NE(json.out.find("\"committed\": \"1500\""), std::string::npos);
    EXPECT_EQ(run({"state", "backup", "--state", path, folder_ / "copy.db"}).code, ExitCode::kGood);
  }
  EXPECT_EQ(run({"state", "check", "--state", path}).out, path + " is sound\n");
  EXPECT_EQ(run({"state", "check", "--state", folder_ / "copy.db"}).code, ExitCode::kGood);
  std::ofstream(folder_ / "garbage.db") << "this is no database, and long enough to be looked at "
                                        << std::string(200, 'x');
  EXPECT_NE(run({"state", "check", "--state", folder_ / "garbage.db"}).code, ExitCode::kGood);
}

}  // namespace
}  // namespace cli
