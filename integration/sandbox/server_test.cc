// Goal: the faults and the sockets. Method: a sandbox on its own thread, commands through the control interface, a
// blocking client of its own on the other side.
#include "integration/sandbox/server.h"

#include <cstdio>
#include <memory>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "iggy/codec/legacy.h"
#include "iggy/codec/vsr.h"
#include "integration/load/blocking_client.h"
#include "integration/sandbox/testing_server.h"

namespace sandbox {
namespace {

using base::ErrorCode;
using load::BlockingClient;

class Faulty : public testing::TestWithParam<const char*> {
 protected:
  Faulty() {
    auto client = connect();
    client.call(iggy::CreateStream{.name = "s", .options = {}}).value();
    iggy::TopicSettings settings;
    if (server_.dialect() != iggy::Dialect::kLegacy) settings.message_expiry = settings.max_topic_size = 0;
    client.call(iggy::CreateTopic{.stream = "s", .name = "t", .partitions_count = 1, .settings = settings}).value();
  }
  BlockingClient connect(std::chrono::seconds timeout = std::chrono::seconds(10)) {
    return BlockingClient::connect(server_.url(), timeout).value();
  }
  base::Result<iggy::SendConfirmed> send(BlockingClient& client) {
    const base::Record record{.id = {1, 0},
                              .origin_timestamp = 5,
                              .payload_length = 5,
                              .body = base::as_bytes("hello"),
                              .raw = {},
                              .envelope = {}};
    auto frame = iggy::encode_send(server_.dialect(), {"s", "t"}, 0, std::span(&record, 1)).value();
    return client.send(frame);
  }
  std::uint64_t messages() {
    auto client = connect();
    return std::get<iggy::TopicDetails>(client.call(iggy::GetTopic{.stream = "s", .topic = "t"}).value())
        .topic.messages_count;
  }
  TestingServer server_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Server, Faulty, testing::Values("0.8.0", "0.9.0-edge.5", "0.9.0"));

TEST_P(Faulty, DroppedReplyMeansAppended) {
  EXPECT_EQ(server_.control("drop-reply 1"), "ok");
  auto client = connect(std::chrono::seconds(1));
  const auto lost = send(client);
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code(), ErrorCode::kUncertain);
  EXPECT_EQ(messages(), 1U);
  auto again = connect();
  EXPECT_TRUE(send(again).has_value());
}

TEST_P(Faulty, CutAfterAppendAndBeforeAppend) {
  server_.control("cut-after-append 1");
  auto first = connect();
  EXPECT_EQ(send(first).error().code(), ErrorCode::kUncertain);
  EXPECT_EQ(messages(), 1U);
  server_.control("cut-before-append 1");
  auto second = connect();
  EXPECT_EQ(send(second).error().code(), ErrorCode::kUncertain);
  EXPECT_EQ(messages(), 1U);
}

TEST_P(Faulty, RefusalsKeepTheConnectionInStep) {
  server_.control("refuse 41 2");
  server_.control("refuse-poll 3007 1");
  auto client = connect();
  EXPECT_EQ(send(client).error().wire_status(), 41U);
  EXPECT_EQ(send(client).error().wire_status(), 41U);
  EXPECT_TRUE(send(client).has_value());
  const iggy::PollMessages poll{.consumer = {iggy::ConsumerKind::kConsumer, 1U},
                                .stream = "s",
                                .topic = "t",
                                .partition = 0,
                                .strategy = {},
                                .count = 10};
  EXPECT_EQ(client.call(poll).error().wire_status(), 3007U);
  EXPECT_EQ(std::get<iggy::PolledMessages>(client.call(poll).value()).batch.records.size(), 1U);
}

TEST_P(Faulty, DelayAndPause) {
  auto client = connect(std::chrono::seconds(1));
  server_.control("delay 50");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(client.call(iggy::Ping{}).has_value());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
  server_.control("delay 0");
  server_.control("pause");
  EXPECT_FALSE(client.call(iggy::Ping{}).has_value()) << "no answer within the time-out";
  server_.control("resume");
  auto after = connect();
  EXPECT_TRUE(after.call(iggy::Ping{}).has_value());
}

TEST_P(Faulty, CutAllEndsEveryConnection) {
  auto client = connect();
  EXPECT_EQ(server_.control("cut-all").substr(0, 15), "ok connections=");
  EXPECT_FALSE(client.call(iggy::Ping{}).has_value());
}

TEST_P(Faulty, StateAndStatsAreOneLineOfJson) {
  auto client = connect();
  EXPECT_TRUE(send(client).has_value());
  EXPECT_NE(server_.control("state").find("\"next_offset\":1"), std::string::npos);
  EXPECT_NE(server_.control("stats").find("\"send_messages\":1"), std::string::npos);
  EXPECT_TRUE(server_.control("lose-tail s none 0 1").starts_with("error no topic none"));
  EXPECT_TRUE(server_.control("nonsense").starts_with("error unknown command"));
}

// A self-signed certificate for 127.0.0.1, written as two PEM files.
void write_certificate(const std::string& certificate_file, const std::string& key_file) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("sandbox"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  X509_add_ext(certificate.get(), names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const auto write = [](const std::string& path, const auto& with) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    with(file);
    std::fclose(file);
  };
  write(certificate_file, [&](std::FILE* file) { PEM_write_X509(file, certificate.get()); });
  write(key_file,
        [&](std::FILE* file) { PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
}

TEST(ServerTls, SpeaksTlsOnlyAndTurnsPlainBytesAwayWithoutAByte) {
  const TemporaryFolder folder;
  const std::string certificate = folder.path() / "cert.pem", key = folder.path() / "key.pem";
  write_certificate(certificate, key);
  for (const char* version : {"0.8.0", "0.9.0"}) {
    SCOPED_TRACE(version);
    TestingServer server(version, {}, kDefaultSegmentSize, certificate, key);
    iggy::ConnectionString url = server.url();
    url.tls = {.enabled = true, .domain = "localhost", .ca_file = certificate};
    auto client = BlockingClient::connect(url);
    ASSERT_TRUE(client.has_value()) << client.error().to_string();
    EXPECT_TRUE(client->call(iggy::GetStreams{}).has_value());
    url.tls.domain = "elsewhere";
    EXPECT_EQ(BlockingClient::connect(url).error().code(), ErrorCode::kConnectFailed);
    RawConnection plain(server.port(), server.dialect());
    EXPECT_TRUE(plain.write(iggy::legacy::encode_request(iggy::Ping{}).value()));
    EXPECT_TRUE(plain.at_end());
  }
}

TEST(Server09, SameRequestNumberAgainIsADuplicate) {
  for (const auto& [version, duplicate] : {std::pair("0.9.0", true), std::pair("0.9.0-edge.5", false)}) {
    SCOPED_TRACE(version);
    TestingServer server(version);
    const base::MessageId id{77, 1};
    RawConnection wire(server.port(), server.dialect());
    const auto ask = [&](const iggy::Request& request, std::uint64_t session, std::uint64_t number) {
      EXPECT_TRUE(wire.write(
          iggy::vsr::encode_request(request, {.client = id, .session = session, .request = number}).value()));
      return wire.read_frame().value();
    };
    ask(iggy::LoginUser{.username = "iggy", .password = "iggy", .client_version = "1", .context = {}}, 0, 0);
    ask(iggy::CreateStream{.name = "s", .options = {}}, 1, 1);
    iggy::TopicSettings settings;
    settings.message_expiry = settings.max_topic_size = 0;
    ask(iggy::CreateTopic{.stream = "s", .name = "t", .partitions_count = 1, .settings = settings}, 1, 2);
    const base::Record record{.id = {1, 0},
                              .origin_timestamp = 5,
                              .payload_length = 5,
                              .body = base::as_bytes("hello"),
                              .raw = {},
                              .envelope = {}};
    auto frame = iggy::encode_send(server.dialect(), {"s", "t"}, 0, std::span(&record, 1)).value();
    base::store(frame.scratch.data() + 128, id.low);
    base::store(frame.scratch.data() + 136, id.high);
    base::store(frame.scratch.data() + 168, std::uint64_t{3});
    base::store(frame.scratch.data() + 184, std::uint64_t{1});
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 2; ++i) {
      for (base::ByteView piece : frame.pieces) EXPECT_TRUE(wire.write(piece));
      sizes.push_back(wire.read_frame().value().size());
    }
    EXPECT_EQ(sizes[0], iggy::vsr::kHeaderSize + 24);
    EXPECT_EQ(sizes[1], iggy::vsr::kHeaderSize + (duplicate ? 0 : 24));
    EXPECT_NE(server.control("state").find(duplicate ? "\"next_offset\":1" : "\"next_offset\":2"), std::string::npos);
  }
}

}  // namespace
}  // namespace sandbox
