// What every verb ends with. Documented in `--help`; scripts rely on it.
#pragma once

#include "base/error.h"

namespace cli {

enum class ExitCode : int {
  kGood = 0,
  kProblem = 1,      // the answer is bad news: a fault, unknown lag, a failed check, a refused command
  kUsage = 2,        // flags, arguments or configuration are wrong; nothing was done
  kUnreachable = 3,  // no answer: the daemon or a server can't be reached, or refused the login
};

inline ExitCode exit_code(const base::Error& error) {
  switch (error.code()) {
    case base::ErrorCode::kInvalidArgument:
      return ExitCode::kUsage;
    case base::ErrorCode::kConnectFailed:
    case base::ErrorCode::kConnectionLost:
    case base::ErrorCode::kTimeout:
    case base::ErrorCode::kNotIggy:
    case base::ErrorCode::kCredentials:
      return ExitCode::kUnreachable;
    default:
      return ExitCode::kProblem;
  }
}

}  // namespace cli
