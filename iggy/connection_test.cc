// Goal: requests and answers find each other in both dialects, and every way an answer can stay away ends as it must.
// Method: one Connection over a loopback on virtual time; the test plays the server with the codec's own server side.
#include "iggy/connection.h"

#include <deque>
#include <list>

#include <asio/experimental/awaitable_operators.hpp>
#include <gtest/gtest.h>

#include "base/testing/run_until_done.h"
#include "iggy/codec/codes.h"
#include "iggy/codec/send.h"
#include "iggy/testing/late.h"
#include "iggy/testing/loopback_transport.h"
#include "iggy/testing/peer.h"

namespace iggy {
namespace {

using base::Task;
using testing::Peer;
using enum base::ErrorCode;

const base::TopicName kTopic{"orders", "events"};

// One message to send; owns what the pieces view into.
struct Message {
  std::string text;
  std::vector<base::Record> records;
  explicit Message(std::string body = "hello") : text(std::move(body)) {
    base::Record record;
    record.id = {1, 2};
    record.origin_timestamp = 1'700'000'000'000'000;
    record.payload_length = static_cast<std::uint32_t>(text.size());
    record.body = base::as_bytes(text);
    records.push_back(record);
  }
  OutgoingSend frame(Dialect dialect) const {
    auto encoded = encode_send(dialect, kTopic, 0, records);
    EXPECT_TRUE(encoded.has_value());
    return encoded ? *std::move(encoded) : OutgoingSend{};
  }
};

TopicDetails topic_ending_at(std::uint64_t end) {
  TopicDetails details;
  details.topic.name = kTopic.topic;
  details.topic.partitions_count = 1;
  details.partitions.push_back({.id = 0, .current_offset = end - 1, .messages_count = end});
  return details;
}

using CallResult = testing::Late<base::Result<Reply>>;
using SendResult = testing::Late<base::Result<SendAck>>;
using LoginResult = testing::Late<base::Result<LoggedIn>>;

base::ErrorCode code_of(const CallResult& result) {
  return !result ? kInternal : (*result ? kAlreadyExists : result->error().code());
}

// A connection and its server's end.
struct Bench {
  explicit Bench(Dialect dialect, base::Duration heartbeat = std::chrono::hours(1000)) {
    options.dialect = dialect;
    options.heartbeat_interval = heartbeat;
    options.peer = {"server", 8090};
    identity.client = {77, 88};
    dial();
  }
  ~Bench() { run(finish()); }

  void dial() {
    auto [ours, theirs] = testing::make_loopback(io);
    client_end = ours.get();
    server_end = theirs.get();
    if (peer) connection->abort({kStopped, "test", "", "replaced"});
    old_peers.push_back(std::move(peer));
    peer = std::make_unique<Peer>(std::move(theirs));
    connection = Connection::start(io, clock, tasks, std::move(ours), options, identity);
  }
  Task<void> finish() {
    connection->abort({kStopped, "test", "", "finished"});
    auto closing = tasks.close();
    co_await std::move(closing);
  }
  template <class T>
  T run(Task<T> task) {
    return base::testing::run_until_done(io, clock, std::move(task), 100'000);
  }

  // Starts a call whose result lands in `into`.
  void call(Request request, const CallResult& into) { tasks.spawn(into.keep(connection->call(std::move(request)))); }
  void send(const Message& message, const SendResult& into) {
    tasks.spawn(into.keep(connection->send(kTopic, 0, message.frame(options.dialect), 1)));
  }
  // Lets everything run that can without time passing.
  void settle() {
    io.restart();
    io.poll();
  }
  // The next request as the server sees it.
  testing::LegacyCall legacy_call() {
    auto call = run(peer->legacy_call());
    EXPECT_TRUE(call.has_value());
    return call.value_or(testing::LegacyCall{});
  }
  testing::VsrCall vsr_call() {
    auto call = run(peer->vsr_call());
    EXPECT_TRUE(call.has_value());
    return call.value_or(testing::VsrCall{});
  }
  void answer(base::Bytes bytes) {
    static_cast<void>(run(peer->write(std::move(bytes))));  // a cut is part of some tests
    settle();
  }
  void log_in() {
    LoginResult result;
    start_login(result);
    if (options.dialect == Dialect::kLegacy) {
      EXPECT_EQ(legacy_call().code, code::kLoginUser);
      answer(legacy::encode_reply(LoggedIn{1, 0, 0, ""}));
    } else {
      const auto login = vsr_call();
      EXPECT_EQ(login.header.operation, std::to_underlying(vsr::Operation::kRegister));
      EXPECT_EQ(login.header.request, 0U);
      answer(logged_in(login, vsr::kProtocolWord));
    }
    ASSERT_TRUE(result && *result);
  }
  void start_login(const LoginResult& into) {
    const Credentials credentials = Password{"iggy", Secret("hunter2")};
    tasks.spawn(into.keep(connection->login(credentials, clock.now() + std::chrono::seconds(5))));
    settle();
  }
  static base::Bytes logged_in(const testing::VsrCall& login, std::uint32_t word) {
    const LoggedIn reply{.user_id = 1, .session = 42, .protocol_word = word, .server_version = "0.9.0"};
    return vsr::encode_reply(LoginUser{}, login.header, reply, 1);
  }
  // Moves virtual time until `done`.
  template <class Done>
  void pass_time_until(Done done) {
    for (int i = 0; i < 100'000 && !done(); ++i) {
      settle();
      if (done() || !clock.advance()) break;
    }
    settle();
  }

  asio::io_context io;
  base::testing::SimClock clock{io};
  base::TaskGroup tasks{io};
  ConnectionOptions options;
  VsrIdentity identity;
  testing::LoopbackTransport* client_end = nullptr;
  testing::LoopbackTransport* server_end = nullptr;
  std::unique_ptr<Peer> peer;
  std::vector<std::unique_ptr<Peer>> old_peers;
  std::shared_ptr<Connection> connection;
};

std::string stream_in(const CallResult& result) {
  if (!result || !*result) return "no reply";
  const auto* details = std::get_if<StreamDetails>(&**result);
  return details == nullptr ? "another reply" : details->stream.name;
}
StreamDetails stream_named(std::string name) {
  StreamDetails details;
  details.stream.name = std::move(name);
  return details;
}

// --- legacy

TEST(LegacyConnection, MatchesPipelinedRequestsInOrder) {
  Bench bench(Dialect::kLegacy);
  bench.log_in();
  std::array<CallResult, 3> results;
  for (std::size_t i = 0; i < results.size(); ++i) bench.call(GetStream{std::to_string(i)}, results[i]);
  bench.settle();
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(bench.legacy_call().code, code::kGetStream);
  EXPECT_FALSE(results[0]);
  for (const char* name : {"first", "second", "third"}) bench.answer(legacy::encode_reply(stream_named(name)));
  EXPECT_EQ(stream_in(results[0]), "first");
  EXPECT_EQ(stream_in(results[1]), "second");
  EXPECT_EQ(stream_in(results[2]), "third");
}

TEST(LegacyConnection, ARefusalLeavesTheOthersInStep) {
  Bench bench(Dialect::kLegacy);
  bench.log_in();
  CallResult refused, answered;
  bench.call(CreateStream{.name = "a", .options = {}}, refused);
  bench.call(GetStream{"b"}, answered);
  bench.answer(legacy::encode_error(1012));
  bench.answer(legacy::encode_reply(stream_named("b")));
  EXPECT_EQ(code_of(refused), kAlreadyExists);
  EXPECT_EQ(refused->error().wire_status(), 1012U);
  EXPECT_EQ(stream_in(answered), "b");
  EXPECT_TRUE(bench.connection->is_open());
}

TEST(LegacyConnection, AnAckCarriesTheEndFromTheGetTopicBehindIt) {
  Bench bench(Dialect::kLegacy);
  bench.log_in();
  const Message message;
  SendResult ack;
  bench.send(message, ack);
  EXPECT_EQ(bench.legacy_call().code, code::kSendMessages);
  EXPECT_EQ(bench.legacy_call().code, code::kGetTopic);
  bench.answer(legacy::encode_reply(SendConfirmed{}));
  EXPECT_FALSE(ack) << "the end is not known yet";
  bench.answer(legacy::encode_reply(topic_ending_at(1001)));
  ASSERT_TRUE(ack && *ack);
  EXPECT_EQ((*ack)->end, 1001U);
}

TEST(LegacyConnection, AnAckWithoutItsGetTopicHasNoEnd) {
  Bench bench(Dialect::kLegacy);
  bench.log_in();
  const Message message;
  SendResult cut, missing;
  bench.send(message, missing);
  bench.answer(legacy::encode_reply(SendConfirmed{}));
  bench.answer(legacy::encode_reply(NotThere{}));
  ASSERT_TRUE(missing && *missing);
  EXPECT_FALSE((*missing)->end.has_value());
  bench.send(message, cut);
  bench.answer(legacy::encode_reply(SendConfirmed{}));
  bench.server_end->cut();
  bench.settle();
  ASSERT_TRUE(cut && *cut) << "the send itself was acknowledged";
  EXPECT_FALSE((*cut)->end.has_value());
}

TEST(LegacyConnection, ARefusedSendConsumesItsGetTopic) {
  Bench bench(Dialect::kLegacy);
  bench.log_in();
  const Message message;
  SendResult refused;
  CallResult after;
  bench.send(message, refused);
  bench.call(GetStream{"s"}, after);
  bench.answer(legacy::encode_error(2010));
  bench.answer(legacy::encode_reply(NotThere{}));
  bench.answer(legacy::encode_reply(stream_named("s")));
  ASSERT_TRUE(refused && !*refused);
  EXPECT_EQ(refused->error().code(), kNotFound);
  EXPECT_EQ(refused->error().object(), "orders/events/0");
  EXPECT_EQ(stream_in(after), "s");
}

TEST(LegacyConnection, WhatAStatusMeansForASend) {
  struct Case {
    std::uint32_t status;
    base::ErrorCode code;
    bool stays_open;
  };
  const Case cases[] = {{8, kUncertain, false},      {31, kUncertain, true},      {4007, kUncertain, true},
                        {10002, kUncertain, true},   {10006, kUncertain, true},   {10009, kUncertain, true},
                        {11001, kUncertain, true},   {13000, kUncertain, true},   {3, kServerRefused, false},
                        {6, kServerRefused, false},  {82, kServerRefused, false}, {30, kNotAccepted, false},
                        {40, kNotAccepted, false},   {41, kPermission, true},     {4036, kServerRefused, true},
                        {4242, kServerRefused, true}};
  for (const Case& each : cases) {
    Bench bench(Dialect::kLegacy);
    bench.log_in();
    const Message message;
    SendResult result;
    bench.send(message, result);
    base::Bytes answers = legacy::encode_error(each.status);
    const base::Bytes topic = legacy::encode_reply(topic_ending_at(5));
    answers.insert(answers.end(), topic.begin(), topic.end());
    bench.answer(answers);
    ASSERT_TRUE(result) << each.status;
    ASSERT_FALSE(*result) << each.status;
    EXPECT_EQ(result->error().code(), each.code) << each.status;
    EXPECT_EQ(result->error().wire_status(), each.status);
    EXPECT_EQ(bench.connection->is_open(), each.stays_open) << each.status;
  }
}

// A server that is slow, or stopped for an hour, will still answer in order: giving up would only lose the answer.
TEST(LegacyConnection, ASendHasNoTimeOutAndPingsWaitWithIt) {
  Bench bench(Dialect::kLegacy, std::chrono::seconds(5));
  bench.log_in();
  const Message message;
  SendResult ack;
  bench.send(message, ack);
  const auto start = bench.clock.now();
  bench.pass_time_until([&] { return bench.clock.now() - start > std::chrono::hours(1); });
  EXPECT_TRUE(bench.connection->is_open());
  EXPECT_FALSE(ack);
  EXPECT_EQ(bench.legacy_call().code, code::kSendMessages);
  EXPECT_EQ(bench.legacy_call().code, code::kGetTopic);
  EXPECT_EQ(bench.legacy_call().code, code::kPing) << "one ping, not one every five seconds";
  bench.answer(legacy::encode_reply(SendConfirmed{}));
  bench.answer(legacy::encode_reply(topic_ending_at(7)));
  ASSERT_TRUE(ack && *ack);
  EXPECT_EQ((*ack)->end, 7U);
}

TEST(LegacyConnection, APingBeforeASendDoesNotEndIt) {
  Bench bench(Dialect::kLegacy, std::chrono::seconds(5));
  bench.log_in();
  const auto start = bench.clock.now();
  bench.pass_time_until([&] { return bench.clock.now() - start >= std::chrono::seconds(6); });
  const Message message;
  SendResult ack;
  bench.send(message, ack);
  bench.pass_time_until([&] { return bench.clock.now() - start > std::chrono::minutes(10); });
  EXPECT_TRUE(bench.connection->is_open());
}

TEST(LegacyConnection, AStoppingServerIsNoticedWhileIdle) {
  Bench bench(Dialect::kLegacy);
  bench.log_in();
  bench.answer(legacy::encode_error(8));
  ASSERT_FALSE(bench.connection->is_open());
  EXPECT_EQ(bench.connection->why_closed().code(), kConnectionLost);
  EXPECT_NE(bench.connection->why_closed().message().find("stopping"), std::string::npos);
}

// A poll has no byte limit on the wire, so a server could announce anything: what was asked for, and one message.
TEST(LegacyConnection, RefusesAnAnswerToAPollThatIsLargerThanWhatWasAskedFor) {
  for (const std::uint64_t beyond : {0U, 1U}) {
    Bench bench(Dialect::kLegacy);
    bench.log_in();
    CallResult result;
    PollMessages poll;
    poll.stream = kTopic.stream;
    poll.topic = kTopic.topic;
    poll.partition = 0;
    poll.count = 100;
    poll.room_bytes = 1000;
    bench.call(poll, result);
    base::Bytes header(8);
    base::store(header.data() + 4, static_cast<std::uint32_t>(1000 + kLargestMessage + beyond));
    bench.answer(header);
    EXPECT_EQ(bench.connection->is_open(), beyond == 0);
    if (beyond == 0) continue;
    EXPECT_EQ(code_of(result), kMalformed);
    EXPECT_NE(result->error().message().find("to poll_messages, and 68158440 is the most that was asked for"),
              std::string::npos)
        << result->error().message();
  }
}

TEST(LegacyConnection, RefusesAnAnswerBeyondTwoGibibytes) {
  Bench bench(Dialect::kLegacy);
  bench.log_in();
  CallResult result;
  bench.call(GetStreams{}, result);
  base::Bytes header(8);
  base::store(header.data() + 4, 0x9000'0000U);
  bench.answer(header);
  EXPECT_EQ(code_of(result), kMalformed);
  EXPECT_FALSE(bench.connection->is_open());
}

TEST(LegacyConnection, WrongPasswordAndWrongTokenAreCredentials) {
  for (const std::uint32_t status : {42U, 20U, 47U, 54U}) {
    Bench bench(Dialect::kLegacy);
    LoginResult result;
    bench.start_login(result);
    bench.answer(legacy::encode_error(status));
    ASSERT_TRUE(result && !*result);
    EXPECT_EQ(result->error().code(), kCredentials) << status;
    EXPECT_EQ(result->error().to_string().find("hunter2"), std::string::npos);
  }
}

// --- both

// The answer to a small request is cut after each of its bytes.
TEST(Connection, CutInTheMiddleOfAnAnswer) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    for (std::size_t bytes = 0;; ++bytes) {
      Bench bench(dialect);
      bench.log_in();
      CallResult read, write;
      bench.call(GetStream{"s"}, read);
      bench.call(CreateStream{.name = "s", .options = {}}, write);
      bench.settle();
      base::Bytes answer;
      if (dialect == Dialect::kLegacy) {
        answer = legacy::encode_reply(stream_named("s"));
      } else {
        answer = vsr::encode_reply(GetStream{"s"}, bench.vsr_call().header, stream_named("s"), 1);
      }
      bench.server_end->cut_after(bytes);
      const bool whole = bytes >= answer.size();
      bench.answer(answer);
      bench.server_end->cut();
      bench.settle();
      EXPECT_EQ(code_of(write), kUncertain) << bytes;
      if (whole) {
        EXPECT_EQ(stream_in(read), "s");
        break;
      }
      ASSERT_EQ(code_of(read), kConnectionLost) << bytes;
      ASSERT_FALSE(bench.connection->is_open());
    }
  }
}

TEST(Connection, AnOverdueReadClosesAndFailsEverybody) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    Bench bench(dialect);
    bench.log_in();
    CallResult overdue, other, write, late;
    bench.call(GetStream{"s"}, overdue);
    bench.settle();
    const auto start = bench.clock.now();
    bench.call(GetTopics{"s"}, other);
    bench.call(DeleteStream{"s"}, write);
    bench.pass_time_until([&] { return overdue.has_value(); });
    EXPECT_EQ(bench.clock.now() - start, std::chrono::seconds(30));
    EXPECT_EQ(code_of(overdue), kTimeout);
    EXPECT_NE(overdue->error().message().find("no answer to get_stream within 30 s"), std::string::npos);
    EXPECT_EQ(code_of(other), kConnectionLost);
    EXPECT_EQ(code_of(write), kUncertain);
    bench.call(DeleteStream{"s"}, late);
    bench.settle();
    EXPECT_EQ(code_of(late), kConnectionLost) << "it never reached the transport: certainly not done";
  }
}

TEST(Connection, AnUnansweredPingCloses) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    Bench bench(dialect, std::chrono::seconds(5));
    bench.log_in();
    const auto start = bench.clock.now();
    for (int i = 0; i < 3; ++i) {
      if (dialect == Dialect::kLegacy) {
        EXPECT_EQ(bench.legacy_call().code, code::kPing);
        bench.answer(legacy::encode_reply(Done{}));
      } else {
        const auto ping = bench.vsr_call();
        EXPECT_EQ(ping.header.code, code::kPing);
        bench.answer(vsr::encode_reply(Ping{}, ping.header, Done{}, 0));
      }
    }
    EXPECT_EQ(bench.clock.now() - start, std::chrono::seconds(15));
    bench.pass_time_until([&] { return !bench.connection->is_open(); });
    EXPECT_EQ(bench.clock.now() - start, std::chrono::seconds(15 + 5 + 30));
  }
}

// The memory of a send belongs to its caller: when that one goes away early, nothing may read it any more.
TEST(Connection, ACancelledSendThatIsBeingWrittenCloses) {
  using namespace asio::experimental::awaitable_operators;
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    Bench bench(dialect);
    bench.log_in();
    bench.client_end->stall_writes(true);
    const Message message;
    auto race =
        bench.connection->send(kTopic, 0, message.frame(dialect), 1) || bench.clock.sleep_for(std::chrono::seconds(1));
    const auto winner = base::testing::run_until_done(bench.io, bench.clock, std::move(race));
    EXPECT_EQ(winner.index(), 1U);
    EXPECT_FALSE(bench.connection->is_open());
  }
}

TEST(Connection, ACancelledSendThatWasWrittenLeavesTheConnection) {
  using namespace asio::experimental::awaitable_operators;
  Bench bench(Dialect::kLegacy);
  bench.log_in();
  const Message message;
  auto race = bench.connection->send(kTopic, 0, message.frame(Dialect::kLegacy), 1) ||
              bench.clock.sleep_for(std::chrono::seconds(1));
  const auto winner = base::testing::run_until_done(bench.io, bench.clock, std::move(race));
  EXPECT_EQ(winner.index(), 1U);
  CallResult next;
  bench.call(GetStream{"s"}, next);
  bench.answer(legacy::encode_reply(SendConfirmed{}));
  bench.answer(legacy::encode_reply(topic_ending_at(1)));
  bench.answer(legacy::encode_reply(stream_named("s")));
  EXPECT_EQ(stream_in(next), "s");
}

TEST(Connection, AbortFailsWhatIsOutstandingWithItsReason) {
  Bench bench(Dialect::kVsr11);
  bench.log_in();
  CallResult write;
  bench.call(DeleteStream{"s"}, write);
  bench.settle();
  bench.connection->abort({kStopped, "client", "", "closed"});
  bench.settle();
  EXPECT_EQ(code_of(write), kStopped);
}

TEST(Connection, ARequestThatIsNotWrittenYetCannotBeAnswered) {
  for (const Dialect dialect : {Dialect::kLegacy, Dialect::kVsr11}) {
    Bench bench(dialect);
    bench.log_in();
    bench.client_end->stall_writes(true);
    CallResult first;
    CallResult second;
    bench.call(GetStream{"first"}, first);
    bench.settle();  // being written
    bench.call(GetStream{"second"}, second);
    bench.settle();  // waits for its turn
    const bool legacy = dialect == Dialect::kLegacy;
    const std::uint64_t number = bench.identity.next_request - 2;
    for (std::uint64_t i = 0; i < 2; ++i) {
      bench.answer(legacy ? legacy::encode_reply(stream_named("s"))
                          : vsr::encode_reply(GetStream{"s"}, {.client = {77, 88}, .request = number + i},
                                              stream_named("s"), 1));
    }
    EXPECT_EQ(bench.connection->is_open(), !legacy);  // vsr answers carry a number: such a one is left aside
    EXPECT_FALSE(second.has_value() && second->has_value());
    bench.connection->abort({kStopped, "client", "", "closed"});
    bench.settle();
    EXPECT_EQ(stream_in(first), "s");
    EXPECT_EQ(code_of(second), legacy ? kMalformed : kStopped) << "and it does not wait for ever";
  }
}

// --- vsr

TEST(VsrConnection, MatchesAnswersByNumberInAnyOrder) {
  Bench bench(Dialect::kVsr11);
  bench.log_in();
  std::array<CallResult, 3> results;
  for (std::size_t i = 0; i < results.size(); ++i) bench.call(GetStream{std::to_string(i)}, results[i]);
  std::deque<testing::VsrCall> calls;
  for (std::size_t i = 0; i < results.size(); ++i) calls.push_front(bench.vsr_call());
  for (const testing::VsrCall& call : calls) {
    const auto request = vsr::decode_request(call.header, call.body);
    ASSERT_TRUE(request.has_value());
    const auto name = std::get<std::string>(std::get<GetStream>(*request).stream);
    bench.answer(vsr::encode_reply(*request, call.header, stream_named(name), 1));
  }
  EXPECT_EQ(stream_in(results[0]), "0");
  EXPECT_EQ(stream_in(results[1]), "1");
  EXPECT_EQ(stream_in(results[2]), "2");
}

TEST(VsrConnection, ARequestNumberNeverRepeatsAcrossConnections) {
  Bench bench(Dialect::kVsr11);
  const Message message;
  std::uint64_t expected = 1;
  for (int round = 0; round < 3; ++round) {
    bench.log_in();
    CallResult read;
    SendResult sent;
    bench.call(GetStream{"s"}, read);
    const auto get = bench.vsr_call();
    EXPECT_EQ(get.header.request, expected++);
    EXPECT_EQ(get.header.client, (base::MessageId{77, 88}));
    bench.send(message, sent);
    const auto send = bench.vsr_call();
    EXPECT_EQ(send.header.operation, std::to_underlying(vsr::Operation::kSendMessages));
    EXPECT_EQ(send.header.request, expected++);
    EXPECT_EQ(send.header.client, (base::MessageId{77, 88}));
    EXPECT_EQ(send.header.session, 42U);
    bench.dial();
    bench.settle();
  }
}

TEST(VsrConnection, AnAckCarriesTheEndOfItsBatch) {
  Bench bench(Dialect::kVsr11);
  bench.log_in();
  const Message message;
  SendResult first, unknown, duplicate;
  bench.send(message, first);
  auto call = bench.vsr_call();
  bench.answer(vsr::encode_reply(SendMessages{}, call.header, SendConfirmed{.base_offset = 99}, 1));
  bench.send(message, unknown);
  call = bench.vsr_call();
  bench.answer(vsr::encode_reply(SendMessages{}, call.header, SendConfirmed{}, 1));
  bench.send(message, duplicate);
  call = bench.vsr_call();
  bench.answer(vsr::encode_reply(SendMessages{}, call.header, SendConfirmed{.base_offset = {}, .duplicate = true}, 1));
  ASSERT_TRUE(first && *first && unknown && *unknown && duplicate && *duplicate);
  EXPECT_EQ((*first)->end, 100U);
  EXPECT_FALSE((*unknown)->end.has_value());
  EXPECT_FALSE((*duplicate)->end.has_value());
}

TEST(VsrConnection, WhatAStatusMeansForASend) {
  const std::pair<std::uint32_t, base::ErrorCode> cases[] = {
      {57, kUncertain}, {58, kNotAccepted}, {20, kNotFound}, {41, kPermission}, {40, kNotAccepted}};
  for (const auto& [status, code] : cases) {
    Bench bench(Dialect::kVsr11);
    bench.log_in();
    const Message message;
    SendResult result;
    bench.send(message, result);
    bench.answer(vsr::encode_status(bench.vsr_call().header, status));
    ASSERT_TRUE(result && !*result) << status;
    EXPECT_EQ(result->error().code(), code) << status;
    EXPECT_EQ(bench.connection->is_open(), status != 40) << "a lost login is renewed by a new connection";
  }
}

TEST(VsrConnection, AnUnansweredSendIsUncertainAndCloses) {
  Bench bench(Dialect::kVsr11);
  bench.log_in();
  const Message message;
  SendResult result;
  const auto start = bench.clock.now();
  bench.send(message, result);
  bench.pass_time_until([&] { return result.has_value(); });
  EXPECT_EQ(bench.clock.now() - start, std::chrono::seconds(30));
  ASSERT_TRUE(result && !*result);
  EXPECT_EQ(result->error().code(), kTimeout);
  EXPECT_FALSE(bench.connection->is_open());
}

TEST(VsrConnection, AnEvictionEndsEverythingOutstanding) {
  Bench bench(Dialect::kVsr11);
  bench.log_in();
  const Message message;
  CallResult read, write;
  SendResult sent;
  bench.call(GetStream{"s"}, read);
  bench.call(DeleteStream{"s"}, write);
  bench.send(message, sent);
  bench.settle();
  bench.answer(vsr::encode_eviction({77, 88}, {.protocol_max = 0, .protocol_min = 0, .reason = 7}));
  EXPECT_EQ(code_of(read), kConnectionLost);
  EXPECT_EQ(code_of(write), kUncertain);
  ASSERT_TRUE(sent && !*sent);
  EXPECT_EQ(sent->error().code(), kUncertain);
  EXPECT_FALSE(bench.connection->is_open());
}

TEST(VsrConnection, AnswersToNothingAreCountedAndIgnored) {
  Bench bench(Dialect::kVsr11);
  bench.log_in();
  CallResult read;
  bench.call(GetStream{"s"}, read);
  const auto call = bench.vsr_call();
  auto foreign = call.header;
  foreign.request = 4711;
  bench.answer(vsr::encode_reply(GetStream{"s"}, foreign, stream_named("foreign"), 1));
  bench.answer(vsr::encode_reply(GetStream{"s"}, call.header, stream_named("ours"), 1));
  EXPECT_EQ(stream_in(read), "ours");
  EXPECT_EQ(bench.connection->unknown_replies(), 1U);
}

TEST(VsrConnection, AnAnswerLargerThanTheReadAhead) {
  Bench bench(Dialect::kVsr11);
  bench.log_in();
  CallResult read;
  bench.call(GetStreams{}, read);
  Streams streams;
  for (int i = 0; i < 3000; ++i) {
    streams.streams.push_back(stream_named("stream number " + std::to_string(i)).stream);
  }
  bench.answer(vsr::encode_reply(GetStreams{}, bench.vsr_call().header, streams, 1));
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(std::get<Streams>(**read).streams, streams.streams);
}

TEST(VsrConnection, ALoginThatIsNotYetPossibleIsRepeatedOnTheSameConnection) {
  Bench bench(Dialect::kVsr11);
  LoginResult result;
  bench.start_login(result);
  const auto start = bench.clock.now();
  for (const std::uint32_t transient : {57U, 58U, 57U}) {
    const auto login = bench.vsr_call();
    EXPECT_EQ(login.header.client, (base::MessageId{77, 88}));
    bench.answer(vsr::encode_result(login.header, transient));
    EXPECT_FALSE(result);
  }
  const auto login = bench.vsr_call();
  EXPECT_EQ(bench.clock.now() - start, std::chrono::milliseconds(300));
  bench.answer(Bench::logged_in(login, vsr::kProtocolWord | 1));  // another patch level is fine
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->server_version, "0.9.0");
}

TEST(VsrConnection, ALoginThatStaysImpossibleEndsWithItsDeadline) {
  Bench bench(Dialect::kVsr11);
  LoginResult result;
  bench.start_login(result);
  const auto start = bench.clock.now();
  while (!result) bench.answer(vsr::encode_result(bench.vsr_call().header, 58));
  EXPECT_FALSE(*result);
  EXPECT_LE(bench.clock.now() - start, std::chrono::seconds(5));
}

TEST(VsrConnection, LoginEvictions) {
  const std::pair<std::uint8_t, base::ErrorCode> cases[] = {
      {9, kCredentials}, {10, kCredentials}, {11, kCredentials}, {12, kServerRefused}, {14, kUnsupported}};
  for (const auto& [reason, code] : cases) {
    Bench bench(Dialect::kVsr11);
    LoginResult result;
    bench.start_login(result);
    bench.answer(vsr::encode_eviction({77, 88}, {.protocol_max = 0x3000, .protocol_min = 0x3000, .reason = reason}));
    ASSERT_TRUE(result && !*result);
    EXPECT_EQ(result->error().code(), code) << static_cast<int>(reason);
    EXPECT_EQ(result->error().to_string().find("hunter2"), std::string::npos);
    EXPECT_FALSE(bench.connection->is_open());
  }
}

TEST(VsrConnection, ALoginReplyOfAnotherProtocolIsRefused) {
  Bench bench(Dialect::kVsr11);
  LoginResult result;
  bench.start_login(result);
  bench.answer(Bench::logged_in(bench.vsr_call(), 0x3000));
  ASSERT_TRUE(result && !*result);
  EXPECT_EQ(result->error().code(), kUnsupported);
  EXPECT_NE(result->error().message().find("0.12"), std::string::npos);
}

TEST(VsrConnection, ALegacyServerIsRecognisedAtOnce) {
  Bench bench(Dialect::kVsr11);
  LoginResult result;
  bench.start_login(result);
  const auto start = bench.clock.now();
  bench.answer(legacy::encode_error(3));
  ASSERT_TRUE(result && !*result);
  EXPECT_EQ(result->error().code(), kNotIggy);
  EXPECT_EQ(bench.clock.now(), start);
}

}  // namespace
}  // namespace iggy
