// Goal: every kind of port is recognised for what it is, in time, with a sentence that helps.
// Method: the probe on a loopback and virtual time; the test writes what such a port was seen to write.
#include "iggy/probe.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "iggy/codec/codes.h"
#include "iggy/testing/loopback_transport.h"
#include "iggy/testing/peer.h"

namespace iggy {
namespace {

using base::Task;
using testing::Peer;

base::Bytes bytes_of(std::string_view text) {
  const base::ByteView view = base::as_bytes(text);
  return {view.begin(), view.end()};
}
constexpr std::uint32_t word(std::uint32_t major, std::uint32_t minor, std::uint32_t patch) {
  return major << 20 | minor << 10 | patch;
}

struct Outcome {
  base::Result<Dialect> found = base::Error(base::ErrorCode::kInternal, "", "", "not run");
  base::Duration took{};
  std::string text() const { return found ? std::string(to_string(*found)) : found.error().to_string(); }
};

using Script = std::function<Task<void>(Peer&)>;

Task<void> play(Script script, Peer* peer) {
  auto playing = script(*peer);
  co_await std::move(playing);
}

Outcome probe_against(Script script, bool tls = false) {
  asio::io_context io;
  base::testing::SimClock clock(io);
  auto [ours, theirs] = testing::make_loopback(io);
  Peer peer(std::move(theirs));
  base::TaskGroup tasks(io);
  tasks.spawn(play(std::move(script), &peer));
  Outcome outcome;
  const auto start = clock.now();
  outcome.found = base::testing::run_until_done(
      io, clock, probe(clock, *ours, {"host", 8090}, tls, start + std::chrono::seconds(5)));
  outcome.took = clock.now() - start;
  ours->close();
  base::testing::run_until_done(io, clock, tasks.close());
  return outcome;
}

// Named coroutines, because a lambda would die before its coroutine.
Task<void> write_then_wait(Peer& peer, base::Bytes bytes) {
  auto reading = peer.read(vsr::kHeaderSize);
  auto ping = co_await std::move(reading);
  if (!ping) co_return;
  auto writing = peer.write(std::move(bytes));
  auto written = co_await std::move(writing);
  if (!written) co_return;
  auto waiting = peer.read(100'000);
  auto ended = co_await std::move(waiting);
}
Task<void> write_then_close(Peer& peer, base::Bytes bytes) {
  auto reading = peer.read(vsr::kHeaderSize);
  auto ping = co_await std::move(reading);
  if (!bytes.empty()) {
    auto writing = peer.write(std::move(bytes));
    auto written = co_await std::move(writing);
  }
  peer.transport().close();
}
// Answers the ping as a 0.9 server, checks its bytes, and answers the window question with `answer`.
Task<void> vsr_server(Peer& peer, std::optional<vsr::Eviction> answer, bool* well_formed) {
  auto reading = peer.vsr_call();
  auto ping = co_await std::move(reading);
  if (!ping) co_return;
  *well_formed = ping->header.code == code::kPing && !ping->header.client.is_zero() && ping->body.empty() &&
                 ping->header.operation == std::to_underlying(vsr::Operation::kRead);
  auto answering = peer.write(vsr::encode_reply(Ping{}, ping->header, Done{}, 0));
  auto answered = co_await std::move(answering);
  if (!answered) co_return;
  auto reading_question = peer.vsr_call();
  auto question = co_await std::move(reading_question);
  if (!question) co_return;
  *well_formed = *well_formed && question->header.operation == std::to_underlying(vsr::Operation::kRegister) &&
                 question->header.request == 0 && question->header.session == 0 &&
                 base::load<std::uint32_t>(question->body.data()) == 0;
  if (answer) {
    auto refusing = peer.write(vsr::encode_eviction(question->header.client, *answer));
    auto refused = co_await std::move(refusing);
  }
  auto waiting = peer.read(100'000);
  auto ended = co_await std::move(waiting);
}

Script waiting(base::Bytes bytes) {
  return [bytes](Peer& peer) { return write_then_wait(peer, bytes); };
}
Script closing(base::Bytes bytes) {
  return [bytes](Peer& peer) { return write_then_close(peer, bytes); };
}
Outcome window_of(std::uint32_t oldest, std::uint32_t newest) {
  bool well_formed = false;
  const Outcome outcome = probe_against([&well_formed, oldest, newest](Peer& peer) {
    return vsr_server(peer, vsr::Eviction{.protocol_max = newest, .protocol_min = oldest, .reason = 14}, &well_formed);
  });
  EXPECT_TRUE(well_formed);
  return outcome;
}

void expect_error(const Outcome& outcome, base::ErrorCode code, std::initializer_list<std::string_view> words) {
  ASSERT_FALSE(outcome.found.has_value()) << outcome.text();
  EXPECT_EQ(outcome.found.error().code(), code) << outcome.text();
  for (const std::string_view each : words) {
    EXPECT_NE(outcome.text().find(each), std::string::npos) << outcome.text();
  }
}

TEST(Probe, Server08AnswersWithSmallRefusals) {
  base::Bytes frames;
  for (int i = 0; i < 6; ++i) {
    const base::Bytes frame = legacy::encode_error(3);
    frames.insert(frames.end(), frame.begin(), frame.end());
  }
  const Outcome outcome = probe_against(waiting(frames));
  EXPECT_EQ(outcome.text(), "legacy");
  EXPECT_EQ(outcome.took, base::Duration::zero());
}

TEST(Probe, Server09TellsItsWindow) {
  EXPECT_EQ(window_of(word(0, 11, 0), word(0, 11, 0)).text(), "vsr-0.11");
  EXPECT_EQ(window_of(word(0, 11, 0), word(0, 11, 4)).text(), "vsr-0.11");
  EXPECT_EQ(window_of(word(0, 11, 0), word(0, 12, 0)).text(), "vsr-0.11") << "a server that still takes ours";
}

TEST(Probe, Server010IsNamedAndNotSpoken) {
  expect_error(window_of(word(0, 12, 3), word(0, 12, 3)), base::ErrorCode::kUnsupported,
               {"0.10.x", "0.12.3", "not supported", "0.9.x"});
}

TEST(Probe, OtherWindowsShowBothVersions) {
  expect_error(window_of(word(1, 0, 0), word(1, 2, 0)), base::ErrorCode::kUnsupported,
               {"1.0.0 to 1.2.0", "0.11.0", "newer version"});
  expect_error(window_of(word(0, 10, 0), word(0, 10, 0)), base::ErrorCode::kUnsupported, {"0.10.0", "0.11.0"});
}

TEST(Probe, AVsrServerThatKeepsItsWindowToItselfIsTakenAtItsPing) {
  bool well_formed = false;
  Outcome outcome = probe_against([&well_formed](Peer& peer) { return vsr_server(peer, std::nullopt, &well_formed); });
  EXPECT_EQ(outcome.text(), "vsr-0.11");
  EXPECT_LT(outcome.took, std::chrono::seconds(5)) << "there must be time left for the login";
  outcome = probe_against([&well_formed](Peer& peer) {
    return vsr_server(peer, vsr::Eviction{.protocol_max = 0, .protocol_min = 0, .reason = 15}, &well_formed);
  });
  EXPECT_EQ(outcome.text(), "vsr-0.11");
}

TEST(Probe, AnHttpPort) {
  expect_error(probe_against(closing(bytes_of("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"))),
               base::ErrorCode::kNotIggy, {"HTTP", "8090"});
  const Outcome open = probe_against(waiting(bytes_of("HTTP/1.1 400 Bad Request\r\n\r\n")));
  expect_error(open, base::ErrorCode::kNotIggy, {"HTTP"});
  EXPECT_EQ(open.took, base::Duration::zero());
}

TEST(Probe, ATlsPortSpokenToWithoutTls) {
  expect_error(probe_against(closing({})), base::ErrorCode::kNotIggy, {"TLS", "tls=true"});
  expect_error(probe_against(closing(bytes_of("\x15\x03\x03\x02\x02\x28"))), base::ErrorCode::kNotIggy, {"tls=true"});
}

TEST(Probe, AClosedTlsConnectionIsNotBlamedOnTls) {
  const Outcome outcome = probe_against(closing({}), true);
  expect_error(outcome, base::ErrorCode::kNotIggy, {"closed", "check the port"});
  EXPECT_EQ(outcome.text().find("tls=true"), std::string::npos);
}

TEST(Probe, ASilentPortTakesTheWholeTimeAndNoMore) {
  const Outcome outcome = probe_against(waiting({}));
  expect_error(outcome, base::ErrorCode::kTimeout, {"does not answer"});
  EXPECT_EQ(outcome.took, std::chrono::seconds(5));
}

TEST(Probe, SomethingElse) {
  expect_error(probe_against(closing(bytes_of("SSH-2.0-OpenSSH_9.2p1\r\n"))), base::ErrorCode::kNotIggy,
               {"not as an Iggy server"});
  expect_error(probe_against(waiting(bytes_of("220 mail"))), base::ErrorCode::kNotIggy, {"not as an Iggy server"});
  expect_error(probe_against(waiting(bytes_of("220"))), base::ErrorCode::kNotIggy, {"not as an Iggy server"});
  expect_error(probe_against(closing(base::Bytes(vsr::kHeaderSize))), base::ErrorCode::kNotIggy,
               {"not as an Iggy server"});
  // Half a pong.
  base::Bytes half(100);
  expect_error(probe_against(closing(half)), base::ErrorCode::kNotIggy, {"not as an Iggy server"});
}

}  // namespace
}  // namespace iggy
