// Iggy's own connection strings, accepted as its users paste them.
//
//   iggy[+tcp]://user:password@host:port[,host:port…][?key=value&…]      user and password percent-decoded
//   iggy[+tcp]://<personal access token>@host:port[?…]                   no colon before the @ = token
//
// Options (as in the official client): tls, tls_domain, tls_ca_file, reconnection_retries, reconnection_interval,
// reestablish_after, heartbeat_interval, nodelay. An unknown option is an error that names it. iggy+quic, +http, +ws
// are refused with a sentence.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "iggy/dialect.h"

namespace iggy {

// Prints as ***, so that it can't reach a log by accident.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  const std::string& reveal() const { return value_; }
  bool empty() const { return value_.empty(); }

 private:
  std::string value_;
};

struct Password {
  std::string username;
  Secret password;
};
struct AccessTokenSecret {
  Secret token;
};
using Credentials = std::variant<Password, AccessTokenSecret>;

struct HostPort {
  std::string host;  // name, IPv4, or IPv6 without brackets
  std::uint16_t port = 0;
  std::string to_string() const;  // IPv6 in brackets
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

struct TlsOptions {
  bool enabled = false;
  std::string domain;   // expected in the certificate; empty = the host
  std::string ca_file;  // PEM; empty = the system's roots
};

struct ConnectionString {
  std::vector<HostPort> hosts;  // at least one; tried in order
  Credentials credentials;
  TlsOptions tls;
  base::Duration heartbeat_interval = std::chrono::seconds(5);
  std::optional<Dialect> dialect;  // option `dialect=legacy|vsr-0.11` of ours: configured wins over probing

  // "iggy://user:***@host:port?tls=true" for logs, status and the state file.
  std::string redacted() const;
};

// kInvalidArgument, naming the part that is wrong; never echoes a secret.
base::Result<ConnectionString> parse_connection_string(std::string_view text);

}  // namespace iggy
