#include "replicator/marker/process.h"

#include <array>
#include <random>

#include <fmt/format.h>
#include <unistd.h>

namespace replicator {

std::string random_hex() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

std::string new_process_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}@{}:{}", random_hex().substr(0, 16), host.data(), getpid());
}

}  // namespace replicator
