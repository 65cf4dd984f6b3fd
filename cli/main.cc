#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/app.h"

namespace {

// Arguments are seen by every user of the machine (`ps`): the credentials in a URL are painted over.
void hide_credentials(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    const std::size_t scheme = argument.find("://");
    const std::size_t end = argument.rfind('@');
    if (scheme == std::string_view::npos || end == std::string_view::npos || end < scheme) continue;
    std::fill(argv[i] + scheme + 3, argv[i] + end, '*');
  }
}

}  // namespace

int main(int argc, char** argv) {
  // gRPC would write into our output; what it has to say comes back as a status.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  // A closed pipe (`status --watch | head`) ends a write, not the process.
  std::signal(SIGPIPE, SIG_IGN);
  // A core file would hold passwords. Who wants one all the same: prlimit --core=unlimited --pid PID.
  rlimit core{};
  if (::getrlimit(RLIMIT_CORE, &core) == 0) {
    core.rlim_cur = 0;
    ::setrlimit(RLIMIT_CORE, &core);
  }
  const cli::Streams streams{std::cout, std::cerr, std::cin, isatty(STDIN_FILENO) != 0, isatty(STDOUT_FILENO) != 0};
  std::vector<std::string> arguments(argv + 1, argv + argc);
  hide_credentials(argc, argv);
  return static_cast<int>(cli::run_cli(std::move(arguments), streams));
}
