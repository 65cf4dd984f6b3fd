// Goal: /metrics, /healthz and /readyz say what the board says and what docs/METRICS.md promises, and strangers can't
// exhaust the responder. Method: a board with known values, a real socket on a free port.
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "replicator/monitor/http.h"
#include "replicator/monitor/metrics.h"

namespace replicator {
namespace {

std::shared_ptr<LinkStatus> running_link() {
  auto status = std::make_shared<LinkStatus>();
  status->version = "0.1.0";
  status->state = "running";
  status->started_at = 1'700'000'000'500'000;
  status->upstream.connected = true;
  status->downstream.connected = true;
  PartitionStatus known;
  known.key = {{"orders", "events"}, 0};
  known.phase = Phase::kCopying;
  known.lag = {.messages = 1500, .micros = 2'500'000, .observed_at = 1'700'000'001'000'000, .seen_end = {}};
  known.committed = 10;
  known.acked = 11;
  known.polled = 12;
  known.upstream_end = 1511;
  known.counters.copied = 10;
  PartitionStatus unknown;
  unknown.key = {{"orders", "events"}, 1};
  unknown.phase = Phase::kFault;
  unknown.fault.kind = "retention";
  known.expiry_micros = 3'600'000'000;
  known.retention_left_micros = -7'500'000;
  auto ledger = std::make_shared<Ledger>();
  ledger->open_of[known.key] = ledger->open = ledger->rows = 2;
  status->ledger = ledger;
  status->state_free_bytes = 1'000'000;
  status->certificates["upstream"] = 1'800'000'000'000'000;
  status->partitions = {known, unknown};
  return status;
}

std::string scrape(const StatusBoard& board) {
  return prometheus::TextSerializer().Serialize(Metrics(board).Collect());
}

bool has_line(const std::string& text, const std::string& wanted) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == wanted) return true;
  }
  return false;
}

TEST(Metrics, SayWhatTheBoardSays) {
  StatusBoard board;
  board.publish(running_link());
  const std::string text = scrape(board);
  const std::string p0 = R"({stream="orders",topic="events",partition="0"})";
  for (const std::string& line : {
           std::string("# TYPE iggy_replicate_copied_messages_total counter"),
           std::string("# TYPE iggy_replicate_lag_messages gauge"),
           std::string(R"(iggy_replicate_build_info{version="0.1.0"} 1)"),
           std::string("iggy_replicate_start_time_seconds 1700000000.5"),
           std::string(R"(iggy_replicate_connected{side="upstream"} 1)"),
           "iggy_replicate_lag_messages" + p0 + " 1500",
           "iggy_replicate_lag_seconds" + p0 + " 2.5",
           "iggy_replicate_committed_offset" + p0 + " 10",
           "iggy_replicate_acked_offset" + p0 + " 11",
           "iggy_replicate_polled_offset" + p0 + " 12",
           "iggy_replicate_upstream_end_offset" + p0 + " 1511",
           "iggy_replicate_copied_messages_total" + p0 + " 10",
           std::string("iggy_replicate_state_free_bytes 1000000"),
           std::string(R"(iggy_replicate_certificate_expiry_time_seconds{of="upstream"} 1800000000)"),
           "iggy_replicate_open_gaps" + p0 + " 2",
           "iggy_replicate_upstream_expiry_seconds" + p0 + " 3600",
           "iggy_replicate_retention_left_seconds" + p0 + " -7.5",
           std::string(
               R"(iggy_replicate_partition_phase{stream="orders",topic="events",partition="0",phase="copying"} 1)"),
           std::string(
               R"(iggy_replicate_partition_fault{stream="orders",topic="events",partition="1",kind="retention"} 1)"),
       }) {
    EXPECT_TRUE(has_line(text, line)) << line << "\nin\n" << text;
  }
}

TEST(Metrics, UnknownHasNoSample) {
  StatusBoard board;
  board.publish(running_link());
  const std::string text = scrape(board);
  const std::string p1 = R"({stream="orders",topic="events",partition="1"})";
  for (const char* family : {"lag_messages", "lag_seconds", "lag_observed_time_seconds", "caught_up_time_seconds",
                             "backlog_seconds", "upstream_end_offset", "downstream_end_offset"}) {
    EXPECT_EQ(text.find("iggy_replicate_" + std::string(family) + p1), std::string::npos) << family;
  }
  EXPECT_NE(text.find("iggy_replicate_committed_offset" + p1), std::string::npos);
}

TEST(Metrics, FamiliesFollowTheRules) {
  std::set<std::string_view> names;
  for (const MetricInfo& info : metric::kAll) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(info.name.starts_with("iggy_replicate_")) << info.name;
    EXPECT_EQ(info.kind == MetricKind::kCounter, info.name.ends_with("_total")) << info.name;
    EXPECT_TRUE(info.help.ends_with('.')) << info.name;
  }
}

TEST(Metrics, AreDocumentedInTheOrderOfTheHeader) {
  std::vector<std::string> documented;
  std::ifstream page("docs/METRICS.md");
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `iggy_replicate_")) documented.push_back(line);
  }
  std::vector<std::string> wanted;
  for (const MetricInfo& info : metric::kAll) {
    wanted.push_back("| `" + std::string(info.name) + "` | " +
                     (info.kind == MetricKind::kCounter ? "counter" : "gauge") + " | " +
                     (info.labels.empty() ? "-" : std::string(info.labels)) + " | " + std::string(info.help) + " |");
  }
  EXPECT_EQ(documented, wanted);
}

TEST(Metrics, AnEmptyBoardCanBeScraped) {
  const StatusBoard board;
  EXPECT_NE(scrape(board).find(R"(iggy_replicate_link_state{state="starting"} 1)"), std::string::npos);
}

// Everything that the server sends until it closes.
std::string talk(const HttpServer& server, const std::string& request) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  const std::string& address = server.address();
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  socket.connect({asio::ip::make_address("127.0.0.1"), port});
  std::error_code error;
  asio::write(socket, asio::buffer(request), error);
  std::string reply;
  asio::read(socket, asio::dynamic_buffer(reply), error);
  return reply;
}
std::string fetch(const HttpServer& server, const std::string& path) {
  return talk(server, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(Http, ServesMetricsHealthAndReadiness) {
  StatusBoard board;
  auto server = HttpServer::start("127.0.0.1:0", operating_handler(board));
  ASSERT_TRUE(server) << server.error().to_string();
  EXPECT_TRUE(fetch(**server, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(fetch(**server, "/readyz").starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(fetch(**server, "/readyz").ends_with("\r\n\r\nthe link is starting\n"));

  auto status = running_link();
  board.publish(status);
  EXPECT_TRUE(fetch(**server, "/readyz").starts_with("HTTP/1.1 200 "));
  const std::string metrics = fetch(**server, "/metrics?x=1");
  EXPECT_NE(metrics.find("text/plain; version=0.0.4"), std::string::npos);
  EXPECT_NE(metrics.find("\niggy_replicate_lag_messages{"), std::string::npos);

  status = running_link();
  status->downstream.connected = false;
  board.publish(status);
  EXPECT_TRUE(fetch(**server, "/readyz").ends_with("the downstream is not connected\n"));
}

TEST(Http, RefusesWhatItDoesNotServe) {
  StatusBoard board;
  auto server = HttpServer::start("127.0.0.1:0", operating_handler(board));
  ASSERT_TRUE(server);
  EXPECT_TRUE(fetch(**server, "/nothing").starts_with("HTTP/1.1 404 "));
  const std::string page = fetch(**server, "/");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 "));
  EXPECT_NE(page.find("\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"),
            std::string::npos);
  EXPECT_NE(page.find("<h2>Partitions</h2>"), std::string::npos);
  EXPECT_TRUE(talk(**server, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(talk(**server, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(talk(**server, "GET /x\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(talk(**server, "GET /" + std::string(8192 - 5, 'x')).starts_with("HTTP/1.1 400 "));
}

TEST(Http, EndsWhileAStrangerHoldsAConnection) {
  StatusBoard board;
  auto server = HttpServer::start("127.0.0.1:0", operating_handler(board));
  ASSERT_TRUE(server);
  asio::io_context io;
  asio::ip::tcp::socket silent(io);
  const std::string address = (*server)->address();
  silent.connect({asio::ip::make_address("127.0.0.1"),
                  static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)))});
  EXPECT_TRUE(fetch(**server, "/healthz").starts_with("HTTP/1.1 200 "));  // the silent one was accepted before
  server->reset();
  char byte = 0;
  std::error_code error;
  silent.read_some(asio::buffer(&byte, 1), error);
  EXPECT_TRUE(error);
}

TEST(Http, SaysWhenThePortIsTaken) {
  StatusBoard board;
  auto first = HttpServer::start("127.0.0.1:0", operating_handler(board));
  ASSERT_TRUE(first);
  auto second = HttpServer::start((*first)->address(), operating_handler(board));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), base::ErrorCode::kConnectFailed);
  EXPECT_EQ(HttpServer::start("nonsense", operating_handler(board)).error().code(), base::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace replicator
