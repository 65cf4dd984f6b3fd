// Goal: what users of the official clients paste parses to the same meaning; nothing that goes wrong prints a secret.
#include "iggy/connection_string.h"

#include <gtest/gtest.h>

namespace iggy {
namespace {

ConnectionString parsed(std::string_view text) {
  auto result = parse_connection_string(text);
  EXPECT_TRUE(result.has_value()) << text << ": " << (result ? "" : result.error().to_string());
  return result ? *result : ConnectionString{};
}

std::string refusal(std::string_view text) {
  auto result = parse_connection_string(text);
  EXPECT_FALSE(result.has_value()) << text;
  if (result) return {};
  EXPECT_EQ(result.error().code(), base::ErrorCode::kInvalidArgument);
  return result.error().to_string();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

const Password& password_of(const ConnectionString& string) { return std::get<Password>(string.credentials); }

TEST(ConnectionString, AsUsersPasteIt) {
  for (const std::string_view text : {"iggy://iggy:secret@localhost:8090", "iggy+tcp://iggy:secret@localhost:8090",
                                      "iggy://iggy:secret@localhost:8090/", "iggy://iggy:secret@localhost:8090?"}) {
    const ConnectionString string = parsed(text);
    EXPECT_EQ(password_of(string).username, "iggy");
    EXPECT_EQ(password_of(string).password.reveal(), "secret");
    EXPECT_EQ(string.hosts.size(), 1U);
    EXPECT_EQ(string.hosts.at(0).to_string(), "localhost:8090");
    EXPECT_FALSE(string.tls.enabled);
    EXPECT_FALSE(string.dialect.has_value());
    EXPECT_EQ(string.heartbeat_interval, std::chrono::seconds(5));
  }
}

TEST(ConnectionString, EveryOptionOfTheOfficialClient) {
  const ConnectionString string = parsed(
      "iggy+tcp://iggy:secret@host:8090?tls=true&tls_domain=broker.example&tls_ca_file=/etc/ca%20file.pem&"
      "reconnection_retries=unlimited&reconnection_interval=1s&reestablish_after=1m 30s&heartbeat_interval=500ms&"
      "nodelay=true&dialect=legacy");
  EXPECT_TRUE(string.tls.enabled);
  EXPECT_EQ(string.tls.domain, "broker.example");
  EXPECT_EQ(string.tls.ca_file, "/etc/ca file.pem");
  EXPECT_EQ(string.heartbeat_interval, std::chrono::milliseconds(500));
  EXPECT_EQ(string.dialect, Dialect::kLegacy);
  EXPECT_EQ(parsed("iggy://u:p@h:1?reconnection_retries=3&dialect=vsr-0.11").dialect, Dialect::kVsr11);
  EXPECT_FALSE(parsed("iggy://u:p@h:1?tls=false&tls_domain=x").tls.enabled);
}

TEST(ConnectionString, PasswordWithReservedCharacters) {
  const ConnectionString encoded = parsed("iggy://us%40er:p%40ss%3Aw%25rd%3F@host:8090");
  EXPECT_EQ(password_of(encoded).username, "us@er");
  EXPECT_EQ(password_of(encoded).password.reveal(), "p@ss:w%rd?");
  const ConnectionString raw = parsed("iggy://user:p@ss:word@host:8090");
  EXPECT_EQ(password_of(raw).username, "user");
  EXPECT_EQ(password_of(raw).password.reveal(), "p@ss:word");
}

TEST(ConnectionString, AccessToken) {
  const ConnectionString string = parsed("iggy://abc%2Fdef%3D@host:8090");
  EXPECT_EQ(std::get<AccessTokenSecret>(string.credentials).token.reveal(), "abc/def=");
  EXPECT_EQ(string.redacted(), "iggy://***@host:8090");
}

TEST(ConnectionString, SeveralHostsAndIpv6) {
  const ConnectionString string = parsed("iggy://u:p@a:8090,10.0.0.2:8091,[::1]:8092,[fe80::1%eth0]:1");
  ASSERT_EQ(string.hosts.size(), 4U);
  EXPECT_EQ(string.hosts[0].to_string(), "a:8090");
  EXPECT_EQ(string.hosts[1].to_string(), "10.0.0.2:8091");
  EXPECT_EQ(string.hosts[2].host, "::1");
  EXPECT_EQ(string.hosts[2].to_string(), "[::1]:8092");
  EXPECT_EQ(string.hosts[3].host, "fe80::1%eth0");
}

TEST(ConnectionString, RefusesWhatItDoesNotUnderstand) {
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?colour=red"), "unknown option 'colour'"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?=red"), "no name"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?tls=yes"), "'tls' must be true or false"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?heartbeat_interval=5"), "heartbeat_interval"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?heartbeat_interval=1ms"), "heartbeat_interval"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?heartbeat_interval=99999999999999999999s"), "heartbeat_interval"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?reconnection_retries=many"), "reconnection_retries"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?dialect=vsr-0.12"), "legacy (server 0.8) or vsr-0.11"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@h:1?tls_ca_file=/ca.pem"), "without tls=true"));
  for (const std::string_view scheme : {"iggy+quic", "iggy+http", "iggy+ws"}) {
    const std::string text = refusal(std::string(scheme) + "://u:p@h:1");
    EXPECT_TRUE(contains(text, scheme) && contains(text, "only TCP")) << text;
  }
  EXPECT_TRUE(contains(refusal("kafka://u:p@h:1"), "iggy://"));
  EXPECT_TRUE(contains(refusal("u:p@h:1"), "iggy://"));
  EXPECT_TRUE(contains(refusal(""), "iggy://"));
}

TEST(ConnectionString, RefusesIncompleteOnes) {
  EXPECT_TRUE(contains(refusal("iggy://u:p@host"), "no port"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@host:"), "not 1 to 65535"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@host:0"), "not 1 to 65535"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@host:70000"), "not 1 to 65535"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@host:80x"), "not 1 to 65535"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@a:1,"), "no port"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@:8090"), "empty"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@::1:8090"), "brackets"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@[::1:8090"), "closing"));
  EXPECT_TRUE(contains(refusal("iggy://u:p@[::1]"), "no port"));
  EXPECT_TRUE(contains(refusal("iggy://host:8090"), "no '@'"));
  EXPECT_TRUE(contains(refusal("iggy://@host:8090"), "missing"));
  EXPECT_TRUE(contains(refusal("iggy://:p@host:8090"), "user is empty"));
  EXPECT_TRUE(contains(refusal("iggy://u:@host:8090"), "password is empty"));
}

// Whatever is wrong with the string, its password and token must not appear in what a log or a terminal shows.
TEST(ConnectionString, NoSecretInAnyErrorOrRedactedText) {
  const std::string_view broken[] = {"iggy://user:hunter2@host",
                                     "iggy://user:hunter2%zz@host:1",
                                     "iggy://hunter2%@host:1",
                                     "iggy://user:hunter2@host:99999",
                                     "iggy://user:hunter2@host:1?x=y",
                                     "iggy://user:hun?ter2@host:1",
                                     "iggy://user:a@hunter2?b@host:1",
                                     "http://user:hunter2@host:1",
                                     "hunter2@host:1",
                                     "iggy://user:hunter2",
                                     "iggy+ws://user:hunter2@host:1",
                                     "iggy:/user:hunter2@host:1",
                                     "iggy://user:hunter2@[::1:8090",
                                     "iggy://user:hunter2@a:1,b",
                                     "iggy://user:hunter2@h:1?tls=maybe",
                                     "iggy://user:x@hunter2?tls=1@host:1"};
  for (const std::string_view text : broken) {
    const std::string message = refusal(text);
    EXPECT_FALSE(contains(message, "hunter2")) << message;
    EXPECT_FALSE(contains(message, "ter2")) << message;
  }
  const ConnectionString string =
      parsed("iggy://us%3Aer:hunter2@a:1,[::1]:2?tls=true&tls_ca_file=/ca.pem&dialect=vsr-0.11");
  EXPECT_EQ(string.redacted(), "iggy://us%3Aer:***@a:1,[::1]:2?tls=true&tls_ca_file=/ca.pem&dialect=vsr-0.11");
}

}  // namespace
}  // namespace iggy
