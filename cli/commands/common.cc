#include <iostream>

#include <fmt/format.h>
#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/output.h"

namespace cli {

void Session::fail(const base::Error& error) {
  streams.err << "iggy-replicate: " << error.to_string() << "\n";
  code = exit_code(error);
}

void Session::usage(const std::string& sentence) {
  streams.err << "iggy-replicate: " << sentence << "\n";
  code = ExitCode::kUsage;
}

void add_output_flags(CLI::App& verb, OutputFlags& flags) {
  verb.add_option("-o,--output", flags.format, "text or json")->check(CLI::IsMember({"text", "json"}));
}

void add_admin_flags(CLI::App& verb, AdminTarget& target) {
  verb.add_option("--admin", target.address, "Admin address of the link, host:port [127.0.0.1:8095]")
      ->envname("IGGY_REPLICATE_ADMIN");
  verb.add_option("--admin-token-file", target.token_file, "File whose first line is the bearer token")
      ->envname("IGGY_REPLICATE_ADMIN_TOKEN_FILE");
  verb.add_option("--admin-ca", target.ca_file, "PEM file with the certificate authority: use TLS")
      ->envname("IGGY_REPLICATE_ADMIN_CA");
}

base::Result<bool> confirm(Session& session, const std::string& question) {
  if (!session.streams.in_is_terminal) {
    return base::Error(base::ErrorCode::kInvalidArgument, "confirm", {}, "nobody can be asked here",
                       "give --yes, or --dry-run to see what would happen");
  }
  session.streams.out << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(session.streams.in, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

std::string actor() {
  std::string user = std::to_string(getuid());
  if (const passwd* const entry = getpwuid(getuid()); entry != nullptr) user = entry->pw_name;
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) return user + "@unknown";
  return fmt::format("{}@{}", user, host);
}

void add_consent_flags(CLI::App& verb, Consent& consent) {
  verb.add_flag("-y,--yes", consent.yes, "Do not ask");
  verb.add_flag("--dry-run", consent.dry_run, "Say what would be done, and do nothing");
}

void show_outcome(Session& session, const OutputFlags& output, const pb::CommandResponse& response, bool dry_run) {
  if (output.is_json()) {
    session.streams.out << to_json(response);
    return;
  }
  session.streams.out << wrap((dry_run ? "Would be done: " : "Done: ") + response.what());
  for (const std::string& partition : response.affected()) session.streams.out << "  " << partition << "\n";
}

}  // namespace cli
