// Goal: the API does what admin.proto says, over a real connection. Method: server and client in this process, port 0,
// a board with known values, commands by hand.
#include "replicator/admin/admin_server.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace replicator {
namespace {

class FakeCommands final : public Commands {
 public:
  base::Result<CommandOutcome> pause(std::string glob, std::string actor, bool dry_run) override {
    return record("pause " + glob, actor, dry_run);
  }
  base::Result<CommandOutcome> resume(std::string glob, std::string actor, bool dry_run) override {
    return record("resume " + glob, actor, dry_run);
  }
  base::Result<CommandOutcome> resolve(base::PartitionKey key, Exit exit, std::string actor, bool dry_run) override {
    return record("resolve " + key.to_string() + " as " + std::string(to_string(exit)), actor, dry_run);
  }
  base::Result<CommandOutcome> reset(base::PartitionKey key, std::uint64_t up_offset, std::string actor,
                                     bool dry_run) override {
    return record("reset " + key.to_string() + " to " + std::to_string(up_offset), actor, dry_run);
  }
  base::Result<CommandOutcome> set_throttle(std::string glob, Rate rate, std::string actor, bool dry_run) override {
    return record("throttle " + glob + " " + format_rate(rate), actor, dry_run);
  }
  base::Result<CommandOutcome> reload(std::string actor, bool dry_run) override {
    return record("reload", actor, dry_run);
  }
  base::Result<CommandOutcome> replay(std::vector<std::int64_t> ids, std::string actor, bool dry_run) override {
    std::string what = "replay";
    for (const std::int64_t id : ids) what += " " + std::to_string(id);
    return record(what, actor, dry_run);
  }
  base::Result<EndReport> end_link(EndRequest request) override {
    auto asked = record(request.ending == Ending::kPromote ? "promote" : "failover", request.actor, request.dry_run);
    if (!asked) return std::move(asked).error();
    EndReport report = end_report;
    report.dry_run = request.dry_run;
    report.ending = request.ending;
    return report;
  }
  base::Result<std::vector<state::GapRow>> gaps() override { return gap_rows; }
  base::Result<std::vector<state::EventRow>> events(std::size_t newest) override {
    state::EventRow row;
    row.kind = "asked_for_" + std::to_string(newest);
    return std::vector<state::EventRow>{row};
  }
  base::Result<state::Translation> translate(base::PartitionKey key, state::Side from, std::uint64_t offset) override {
    calls.push_back("translate " + key.to_string());
    if (refuse) return *refuse;
    translation.from = from;
    translation.offset = offset;
    return translation;
  }
  base::Result<VerifyReport> verify(VerifyRequest request,
                                    std::function<bool(const VerifyProgress&)> on_progress) override {
    calls.push_back("verify " + request.glob + (request.full ? " full" : ""));
    if (refuse) return *refuse;
    VerifyProgress progress;
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

  std::optional<base::Error> refuse;
  std::vector<std::string> calls;
  std::vector<state::GapRow> gap_rows;
  state::Translation translation;
  VerifyReport verify_report;
  std::vector<state::ConsumerRow> consumer_rows;
  EndReport end_report;

 private:
  base::Result<CommandOutcome> record(const std::string& what, const std::string& actor, bool dry_run) {
    calls.push_back(what + " by " + actor + (dry_run ? " (dry run)" : ""));
    if (refuse) return *refuse;
    return CommandOutcome{{"orders/events/3"}, what};
  }
};

class AdminServerTest : public testing::Test {
 protected:
  AdminServerTest() {
    char name[] = "/tmp/admin_server_test.XXXXXX";
    folder_ = mkdtemp(name);
    auto status = std::make_shared<LinkStatus>();
    status->link_id = "cafe";
    status->state = "running";
    status->taken_at = 5'000'000;
    for (std::uint32_t partition : {0U, 1U, 2U}) {
      PartitionStatus entry;
      entry.key = {{"orders", partition == 2 ? "audit" : "events"}, partition};
      entry.phase = Phase::kCaughtUp;
      status->partitions.push_back(entry);
    }
    board_.publish(std::move(status));
  }
  ~AdminServerTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void start(AdminOptions options = {}) {
    options.address = "127.0.0.1:0";
    auto started = AdminServer::start(options, board_, commands_);
    ASSERT_TRUE(started) << started.error().to_string();
    server_ = std::move(*started);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = pb::Admin::NewStub(channel_);
  }

  std::string file(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }

  static pb::ErrorInfo info(const grpc::Status& status) {
    pb::ErrorInfo details;
    EXPECT_TRUE(details.ParseFromString(status.error_details()));
    return details;
  }

  std::filesystem::path folder_;
  StatusBoard board_;
  FakeCommands commands_;
  std::unique_ptr<AdminServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::Admin::Stub> stub_;
};

TEST_F(AdminServerTest, ReadsTheBoard) {
  start();
  grpc::ClientContext link_context;
  pb::GetLinkResponse link;
  ASSERT_TRUE(stub_->GetLink(&link_context, {}, &link).ok());
  EXPECT_EQ(link.link().id(), "cafe");
  EXPECT_EQ(link.link().state(), pb::LINK_STATE_RUNNING);
  EXPECT_EQ(link.link().totals().partitions(), 3U);

  for (const auto& [glob, count] : {std::pair{"", 3}, {"orders/events", 2}, {"*/*/2", 1}, {"none/*", 0}}) {
    grpc::ClientContext context;
    pb::ListPartitionsRequest request;
    request.set_glob(glob);
    pb::ListPartitionsResponse response;
    ASSERT_TRUE(stub_->ListPartitions(&context, request, &response).ok());
    EXPECT_EQ(response.partitions_size(), count) << glob;
    EXPECT_EQ(response.taken_at().seconds(), 5);
  }
}

TEST_F(AdminServerTest, CommandsArriveAsTheyWereGiven) {
  start();
  pb::CommandResponse response;
  {
    grpc::ClientContext context;
    pb::PauseRequest request;
    request.set_glob("orders/*");
    request.set_actor("ann@host");
    ASSERT_TRUE(stub_->Pause(&context, request, &response).ok());
    EXPECT_EQ(response.affected(0), "orders/events/3");
  }
  {
    grpc::ClientContext context;
    pb::ResumeRequest request;
    request.set_glob("orders/*");
    request.set_actor("ann@host");
    request.set_dry_run(true);
    ASSERT_TRUE(stub_->Resume(&context, request, &response).ok());
  }
  {
    grpc::ClientContext context;
    pb::ResolveRequest request;
    *request.mutable_id() = to_proto(base::PartitionKey{{"orders", "events"}, 3});
    request.set_exit("restart");
    request.set_actor("ann@host");
    ASSERT_TRUE(stub_->Resolve(&context, request, &response).ok());
  }
  {
    grpc::ClientContext context;
    pb::ResetRequest request;
    *request.mutable_id() = to_proto(base::PartitionKey{{"orders", "events"}, 3});
    request.set_upstream_offset(42);
    request.set_actor("ann@host");
    ASSERT_TRUE(stub_->Reset(&context, request, &response).ok());
  }
  {
    grpc::ClientContext context;
    pb::ReplayGapsRequest request;
    request.add_gap_ids(17);
    request.set_actor("ann@host");
    ASSERT_TRUE(stub_->ReplayGaps(&context, request, &response).ok());
  }
  EXPECT_EQ(commands_.calls,
            (std::vector<std::string>{"pause orders/* by ann@host", "resume orders/* by ann@host (dry run)",
                                      "resolve orders/events/3 as restart by ann@host",
                                      "reset orders/events/3 to 42 by ann@host", "replay 17 by ann@host"}));
}

TEST_F(AdminServerTest, WrongRequestsChangeNothing) {
  start();
  pb::CommandResponse response;
  const auto pause = [&](const char* glob, const char* actor) {
    grpc::ClientContext context;
    pb::PauseRequest request;
    request.set_glob(glob);
    request.set_actor(actor);
    return stub_->Pause(&context, request, &response);
  };
  for (const auto& status : {pause("", "ann@host"), pause("orders", "ann@host"), pause("orders/*", "")}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(info(status).reason(), pb::ERROR_REASON_INVALID_ARGUMENT);
  }
  {
    grpc::ClientContext context;
    pb::ResolveRequest request;
    *request.mutable_id() = to_proto(base::PartitionKey{{"orders", "events"}, 3});
    request.set_exit("pray");
    request.set_actor("ann@host");
    EXPECT_EQ(stub_->Resolve(&context, request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    grpc::ClientContext context;
    pb::ListPartitionsRequest request;
    request.set_glob("a/b/c/d");
    pb::ListPartitionsResponse list;
    EXPECT_EQ(stub_->ListPartitions(&context, request, &list).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_TRUE(commands_.calls.empty());
}

TEST_F(AdminServerTest, AnErrorOfTheLinkKeepsItsReasonAndHint) {
  start();
  commands_.refuse =
      base::Error(base::ErrorCode::kStateUnavailable, "pause", "orders/*", "the disk is full", "free some");
  grpc::ClientContext context;
  pb::PauseRequest request;
  request.set_glob("orders/*");
  request.set_actor("ann@host");
  pb::CommandResponse response;
  const grpc::Status status = stub_->Pause(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(info(status).reason(), pb::ERROR_REASON_STATE_UNAVAILABLE);
  EXPECT_EQ(info(status).hint(), "free some");
}

TEST_F(AdminServerTest, TheEndOfALinkIsAskedForByNameAndAnsweredWhole) {
  start();
  commands_.end_report.loss.topics = {{{"orders", "events"}, 2, 1, 137, std::nullopt, 7'000'000}};
  commands_.end_report.loss.messages = 137;
  commands_.end_report.undone = {"the disk is full"};
  {
    grpc::ClientContext context;
    pb::FailoverRequest request;
    request.set_actor("ann@host");
    pb::EndReport report;
    ASSERT_TRUE(stub_->Failover(&context, request, &report).ok());
    EXPECT_EQ(report.verb(), "failover");
    EXPECT_EQ(report.loss().messages(), 137U);
    EXPECT_FALSE(report.loss().has_age_micros()) << "unknown is absent";
    ASSERT_EQ(report.loss().topics_size(), 1);
    EXPECT_EQ(report.loss().topics(0).unknown_partitions(), 1U);
    EXPECT_EQ(report.undone_size(), 1);
  }
  {
    grpc::ClientContext context;
    pb::PromoteRequest request;
    request.set_actor("ann@host");
    request.set_still_for_ms(600'001);
    pb::EndReport report;
    EXPECT_EQ(stub_->Promote(&context, request, &report).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    grpc::ClientContext context;
    pb::EndReport report;
    EXPECT_EQ(stub_->Failover(&context, pb::FailoverRequest(), &report).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(commands_.calls, (std::vector<std::string>{"failover by ann@host"}));
}

TEST_F(AdminServerTest, TheLedgerIsFiltered) {
  start();
  state::GapRow open;
  open.key = {{"orders", "events"}, 0};
  state::GapRow closed = open;
  closed.resolved_as = "accept";
  state::GapRow other = open;
  other.key.topic.topic = "audit";
  commands_.gap_rows = {open, closed, other};
  const auto count = [&](const char* glob, bool open_only) {
    grpc::ClientContext context;
    pb::ListGapsRequest request;
    request.set_glob(glob);
    request.set_open_only(open_only);
    pb::ListGapsResponse response;
    EXPECT_TRUE(stub_->ListGaps(&context, request, &response).ok());
    return response.gaps_size();
  };
  EXPECT_EQ(count("", false), 3);
  EXPECT_EQ(count("", true), 2);
  EXPECT_EQ(count("orders/events", true), 1);

  grpc::ClientContext context;
  pb::ListEventsResponse events;
  ASSERT_TRUE(stub_->ListEvents(&context, {}, &events).ok());
  EXPECT_EQ(events.events(0).kind(), "asked_for_100");
}

TEST_F(AdminServerTest, AWatchFollowsTheBoardAndEndsWithTheServer) {
  start();
  grpc::ClientContext context;
  pb::WatchPartitionsRequest request;
  request.set_glob("orders/audit");
  request.set_interval_ms(100);
  auto reader = stub_->WatchPartitions(&context, request);
  pb::WatchPartitionsResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.link().id(), "cafe");
  EXPECT_EQ(response.partitions_size(), 1);

  auto changed = std::make_shared<LinkStatus>(*board_.read());
  changed->link_id = "beef";
  board_.publish(std::move(changed));
  do {
    ASSERT_TRUE(reader->Read(&response));
  } while (response.link().id() != "beef");

  std::thread stopper([this] { server_.reset(); });
  while (reader->Read(&response)) {
  }
  const grpc::Status status = reader->Finish();
  stopper.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(info(status).reason(), pb::ERROR_REASON_STOPPED);
}

TEST_F(AdminServerTest, WatchesAreBounded) {
  start();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<pb::WatchPartitionsResponse>>> readers;
  pb::WatchPartitionsResponse response;
  for (int i = 0; i < AdminService::kWatchesMax; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub_->WatchPartitions(contexts.back().get(), {}));
    ASSERT_TRUE(readers.back()->Read(&response));
  }
  grpc::ClientContext one_more;
  auto refused = stub_->WatchPartitions(&one_more, {});
  EXPECT_FALSE(refused->Read(&response));
  EXPECT_EQ(info(refused->Finish()).reason(), pb::ERROR_REASON_TOO_MANY_WATCHES);
  // Other calls still have threads.
  grpc::ClientContext context;
  pb::GetLinkResponse link;
  EXPECT_TRUE(stub_->GetLink(&context, {}, &link).ok());
  for (auto& watch : contexts) watch->TryCancel();
  for (auto& reader : readers) reader->Finish();
}

TEST_F(AdminServerTest, ATokenIsAskedForInEveryCall) {
  AdminOptions options;
  options.token_file = file("token", "secret-of-the-link\n");
  start(options);
  const auto get_link = [&](const char* authorization) {
    grpc::ClientContext context;
    if (authorization != nullptr) context.AddMetadata("authorization", authorization);
    pb::GetLinkResponse response;
    return stub_->GetLink(&context, {}, &response);
  };
  EXPECT_TRUE(get_link("Bearer secret-of-the-link").ok());
  for (const char* wrong : {static_cast<const char*>(nullptr), "Bearer secret-of-the-lin", "Bearer secret-of-the-linK",
                            "secret-of-the-link", "Bearer "}) {
    const grpc::Status status = get_link(wrong);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(info(status).reason(), pb::ERROR_REASON_UNAUTHENTICATED);
    EXPECT_EQ(status.error_message().find("secret"), std::string::npos);
  }
  // Every other method too.
  const auto refused = [&](auto method, auto request, auto response) {
    grpc::ClientContext context;
    return (stub_.get()->*method)(&context, request, &response).error_code() == grpc::StatusCode::UNAUTHENTICATED;
  };
  using Stub = pb::Admin::Stub;
  EXPECT_TRUE(refused(&Stub::ListPartitions, pb::ListPartitionsRequest(), pb::ListPartitionsResponse()));
  EXPECT_TRUE(refused(&Stub::Pause, pb::PauseRequest(), pb::CommandResponse()));
  EXPECT_TRUE(refused(&Stub::Resume, pb::ResumeRequest(), pb::CommandResponse()));
  EXPECT_TRUE(refused(&Stub::ListGaps, pb::ListGapsRequest(), pb::ListGapsResponse()));
  EXPECT_TRUE(refused(&Stub::ListEvents, pb::ListEventsRequest(), pb::ListEventsResponse()));
  EXPECT_TRUE(refused(&Stub::Resolve, pb::ResolveRequest(), pb::CommandResponse()));
  EXPECT_TRUE(refused(&Stub::Reset, pb::ResetRequest(), pb::CommandResponse()));
  grpc::ClientContext context;
  auto watch = stub_->WatchPartitions(&context, {});
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(AdminServerTest, RefusesToBeOpenWithoutProtection) {
  for (const char* address : {"0.0.0.0:0", "[::]:0", "192.0.2.1:0"}) {
    AdminOptions options;
    options.address = address;
    auto server = AdminServer::start(options, board_, commands_);
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().code(), base::ErrorCode::kInvalidArgument);
    EXPECT_NE(server.error().to_string().find("without TLS or a token"), std::string::npos);
  }
  AdminOptions options;
  options.address = "0.0.0.0:0";
  options.token_file = file("token", "secret");
  EXPECT_TRUE(AdminServer::start(options, board_, commands_));
  options.token_file = file("empty", "\n");
  EXPECT_FALSE(AdminServer::start(options, board_, commands_)) << "an empty token protects nothing";
  options.token_file = folder_ / "missing";
  EXPECT_FALSE(AdminServer::start(options, board_, commands_));
}

TEST_F(AdminServerTest, TwoProcessesCannotShareThePort) {
  start();
  AdminOptions options;
  options.address = server_->address();
  auto second = AdminServer::start(options, board_, commands_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), base::ErrorCode::kConnectFailed);
}

// A unary call of a service whose stub is not generated here: request and reply as bytes.
std::string call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer out(&slice, 1);
  auto running = stub.PrepareUnaryCall(&context, method, out, &queue);
  running->StartCall();
  grpc::ByteBuffer in;
  grpc::Status status;
  running->Finish(&in, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice reply;
  return in.TrySingleSlice(&reply).ok() ? std::string(reinterpret_cast<const char*>(reply.begin()), reply.size()) : "";
}

TEST_F(AdminServerTest, HealthIsServed) {
  start();
  const std::string serving("\x08\x01", 2);  // HealthCheckResponse{status: SERVING}
  EXPECT_EQ(call(channel_, "/grpc.health.v1.Health/Check", ""), serving);
  const std::string name = pb::Admin::service_full_name();
  EXPECT_EQ(
      call(channel_, "/grpc.health.v1.Health/Check", std::string("\x0a", 1) + static_cast<char>(name.size()) + name),
      serving);
}

}  // namespace
}  // namespace replicator
