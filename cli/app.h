// The command line: parses, runs one verb, says how it ended.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace cli {

struct Streams {
  std::ostream& out;
  std::ostream& err;
  std::istream& in;
  bool in_is_terminal = false;   // somebody can be asked
  bool out_is_terminal = false;  // a screen can be cleared
};

// `args` without the program's name.
ExitCode run_cli(std::vector<std::string> args, Streams streams);

}  // namespace cli
