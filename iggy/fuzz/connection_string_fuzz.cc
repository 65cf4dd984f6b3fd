// Any text parses or is refused; what parses has a printable form without its secret.
#include "base/check.h"
#include "iggy/connection_string.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = iggy::parse_connection_string({reinterpret_cast<const char*>(data), size});
  if (!parsed) {
    base::check(parsed.error().code() == base::ErrorCode::kInvalidArgument, "a refusal names the argument");
    return 0;
  }
  base::check(!parsed->hosts.empty(), "there is a host");
  for (const iggy::HostPort& host : parsed->hosts) base::check(!host.host.empty() && host.port != 0, "host and port");
  base::check(parsed->redacted().find("***@") != std::string::npos, "the secret is replaced");
  return 0;
}
