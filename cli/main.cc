#include <csignal>
#include <iostream>

#include <stdlib.h>
#include <unistd.h>

#include "cli/app.h"

int main(int argc, char** argv) {
  // gRPC would write into our output; what it has to say comes back as a status.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  // A closed pipe (`status --watch | head`) ends a write, not the process.
  std::signal(SIGPIPE, SIG_IGN);
  const cli::Streams streams{std::cout, std::cerr, std::cin, isatty(STDIN_FILENO) != 0, isatty(STDOUT_FILENO) != 0};
  return static_cast<int>(cli::run_cli({argv + 1, argv + argc}, streams));
}
