#include "iggy/connection_string.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace iggy {
namespace {

constexpr std::string_view kHint = "iggy://user:password@host:port[,host:port][?tls=true&...]";

base::Error wrong(std::string message) {
  return {base::ErrorCode::kInvalidArgument, "connection string", "", std::move(message), std::string(kHint)};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// nullopt when a % is not followed by two hex digits.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~' || byte >= 0x80;
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

// Splits at the first `separator`; the second half is empty when there is none.
std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "5s", "500ms", "1m 30s", as the official clients read them.
std::optional<base::Duration> duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t micros;
  };
  static constexpr Unit kUnits[] = {{"us", 1},         {"ms", 1'000},       {"s", 1'000'000},    {"sec", 1'000'000},
                                    {"m", 60'000'000}, {"min", 60'000'000}, {"h", 3'600'000'000}};
  constexpr std::uint64_t kMax = 365ULL * 24 * 3'600'000'000;  // a year
  std::uint64_t total = 0;
  bool any = false;
  while (!text.empty()) {
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto count = number<std::uint64_t>(text.substr(0, digits));
    text.remove_prefix(digits);
    const std::size_t letters = std::min(text.find_first_of(" 0123456789"), text.size());
    const std::string_view name = text.substr(0, letters);
    text.remove_prefix(letters);
    const Unit* unit = nullptr;
    for (const Unit& candidate : kUnits) {
      if (candidate.name == name) unit = &candidate;
    }
    if (!count || unit == nullptr || *count > kMax / unit->micros) return std::nullopt;
    total += *count * unit->micros;
    if (total > kMax) return std::nullopt;
    any = true;
  }
  if (!any) return std::nullopt;
  return base::Duration(total);
}

std::optional<bool> boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

base::Result<HostPort> parse_host(std::string_view text) {
  HostPort host;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return wrong("an IPv6 address has no closing ']'");
    host.host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (!rest.starts_with(':')) return wrong(fmt::format("host '{}' has no port", text));
    port = rest.substr(1);
  } else {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return wrong(fmt::format("host '{}' has no port", text));
    host.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (host.host.find(':') != std::string::npos)
      return wrong(fmt::format("the IPv6 address in '{}' must be in brackets: [::1]:8090", text));
  }
  if (host.host.empty()) return wrong("a host is empty");
  if (host.host.find_first_of("/ \t\r\n\\#[]") != std::string::npos)
    return wrong(fmt::format("host '{}' is not a name or an address", host.host));
  const auto value = number<std::uint16_t>(port);
  if (!value || *value == 0) return wrong(fmt::format("port '{}' of host '{}' is not 1 to 65535", port, host.host));
  host.port = *value;
  return host;
}

base::Status parse_hosts(std::string_view text, std::vector<HostPort>& hosts) {
  if (text.ends_with('/')) text.remove_suffix(1);
  while (true) {
    const std::size_t comma = text.find(',');
    auto host = parse_host(text.substr(0, comma));
    if (!host) return std::move(host).error();
    hosts.push_back(*std::move(host));
    if (comma == std::string_view::npos) return base::ok();
    text.remove_prefix(comma + 1);
  }
}

base::Result<Credentials> parse_credentials(std::string_view text) {
  if (text.empty()) return wrong("user and password, or a token, are missing before the '@'");
  const bool is_token = text.find(':') == std::string_view::npos;
  const auto [first, second] = split(text, ':');
  const auto name = percent_decoded(first);
  const auto password = percent_decoded(second);
  if (!name || !password)
    return wrong(fmt::format("a '%' in the {} is not followed by two hex digits; write a plain % as %25",
                             is_token ? "token" : (!name ? "user" : "password")));
  if (is_token) return Credentials(AccessTokenSecret{Secret(*name)});
  if (name->empty()) return wrong("the user is empty");
  if (password->empty()) return wrong("the password is empty");
  // Both dialects carry them behind one length byte.
  if (name->size() > 255 || password->size() > 255) return wrong("user or password has more than 255 bytes");
  return Credentials(Password{*name, Secret(*password)});
}

base::Status parse_option(std::string_view key, std::string_view raw, ConnectionString& out) {
  const auto decoded = percent_decoded(raw);
  if (!decoded) return wrong(fmt::format("option '{}': a '%' is not followed by two hex digits", key));
  const std::string& value = *decoded;
  const auto refused = [&](std::string_view expected) {
    return wrong(fmt::format("option '{}' must be {}, not '{}'", key, expected, value));
  };
  if (key == "tls") {
    const auto enabled = boolean(value);
    if (!enabled) return refused("true or false");
    out.tls.enabled = *enabled;
  } else if (key == "tls_domain") {
    out.tls.domain = value;
  } else if (key == "tls_ca_file") {
    out.tls.ca_file = value;
  } else if (key == "reconnection_retries") {  // accepted for the sake of pasting: our own backoff decides
    if (value != "unlimited" && !number<std::uint32_t>(value)) return refused("a number or unlimited");
  } else if (key == "reconnection_interval" || key == "reestablish_after") {  // likewise
    if (!duration(value)) return refused("a duration such as 1s");
  } else if (key == "heartbeat_interval") {
    const auto interval = duration(value);
    if (!interval || *interval < std::chrono::milliseconds(100)) return refused("a duration of at least 100ms");
    out.heartbeat_interval = *interval;
  } else if (key == "nodelay") {  // likewise: it is always on
    if (!boolean(value)) return refused("true or false");
  } else if (key == "dialect") {
    if (value == to_string(Dialect::kLegacy)) {
      out.dialect = Dialect::kLegacy;
    } else if (value == to_string(Dialect::kVsr11)) {
      out.dialect = Dialect::kVsr11;
    } else {
      return refused("legacy (server 0.8) or vsr-0.11 (server 0.9)");
    }
  } else {
    return wrong(fmt::format("unknown option '{}'", key));
  }
  return base::ok();
}

}  // namespace

std::string HostPort::to_string() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

std::string ConnectionString::redacted() const {
  std::string text = "iggy://";
  if (const auto* password = std::get_if<Password>(&credentials)) text += percent_encoded(password->username) + ":";
  text += "***@";
  for (std::size_t i = 0; i < hosts.size(); ++i) text += (i == 0 ? "" : ",") + hosts[i].to_string();
  char separator = '?';
  const auto add = [&](std::string_view key, std::string_view value) {
    text += fmt::format("{}{}={}", separator, key, value);
    separator = '&';
  };
  if (tls.enabled) add("tls", "true");
  if (!tls.domain.empty()) add("tls_domain", tls.domain);
  if (!tls.ca_file.empty()) add("tls_ca_file", tls.ca_file);
  if (dialect) add("dialect", to_string(*dialect));
  return text;
}

base::Result<ConnectionString> parse_connection_string(std::string_view text) {
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return wrong("it does not start with iggy://");
  const std::string_view scheme = text.substr(0, scheme_end);
  if (scheme == "iggy+quic" || scheme == "iggy+http" || scheme == "iggy+ws")
    return wrong(fmt::format("{}:// is not supported, only TCP is: use iggy:// with the server's TCP port", scheme));
  // Not echoed: what stands there may be a password without a scheme.
  if (scheme != "iggy" && scheme != "iggy+tcp") return wrong("it does not start with iggy:// or iggy+tcp://");

  const auto [authority, query] = split(text.substr(scheme_end + 3), '?');
  // Otherwise what follows could be a part of the password, and be echoed.
  if (query.find('@') != std::string_view::npos)
    return wrong("there is an '@' behind the '?': in an option it is written %40, and a '?' in a password %3F");
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos)
    return wrong("there is no '@' between credentials and host; a '?' in a password is written %3F");

  ConnectionString out;
  auto credentials = parse_credentials(authority.substr(0, at));
  if (!credentials) return std::move(credentials).error();
  out.credentials = *std::move(credentials);
  RETURN_IF_ERROR(parse_hosts(authority.substr(at + 1), out.hosts));

  bool tls_given = false;
  std::string_view rest = query;
  while (!rest.empty()) {
    const auto [option, tail] = split(rest, '&');
    const auto [key, value] = split(option, '=');
    if (key.empty()) return wrong("an option has no name");
    RETURN_IF_ERROR(parse_option(key, value, out));
    tls_given = tls_given || key == "tls";
    rest = tail;
  }
  if (!tls_given && (!out.tls.domain.empty() || !out.tls.ca_file.empty()))
    return wrong("tls_domain and tls_ca_file are given without tls=true: the connection would be in the clear");
  return out;
}

}  // namespace iggy
