#include "replicator/model/listen_address.h"

#include <charconv>

#include <asio/ip/address.hpp>

namespace replicator {

std::string ListenAddress::to_string() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

base::Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto refuse = [&] {
    return base::Error(base::ErrorCode::kInvalidArgument, "parse", std::string(text),
                       "\"" + std::string(text) + "\" is not host:port, such as 127.0.0.1:8095 or [::1]:8095");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) return refuse();
  ListenAddress address;
  const char* const end = text.data() + text.size();
  const auto [parsed, failure] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (failure != std::errc() || parsed != end) return refuse();
  address.host = host;
  std::error_code not_an_ip;
  const auto ip = asio::ip::make_address(address.host, not_an_ip);
  if (bracketed && (not_an_ip || !ip.is_v6())) return refuse();
  address.is_loopback = not_an_ip ? host == "localhost" : ip.is_loopback();
  return address;
}

}  // namespace replicator
