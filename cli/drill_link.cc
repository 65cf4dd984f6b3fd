#include "cli/drill_link.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "replicator/failover/failback.h"

namespace cli {
namespace {

constexpr std::chrono::seconds kStartPatience(30);

// The address in "… admin API on 127.0.0.1:41234"; empty while it is not there.
std::string admin_address_in(const std::string& log) {
  constexpr std::string_view kSays = "admin API on ";
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    if (const auto at = line.find(kSays); at != std::string::npos) return line.substr(at + kSays.size());
  }
  return {};
}

std::string milliseconds(base::Duration duration) { return fmt::format("{}ms", duration.count() / 1000); }

replicator::Loss loss_in(const pb::EndReport& report) {
  replicator::Loss loss;
  loss.partitions = report.loss().partitions();
  loss.unknown = report.loss().unknown_partitions();
  loss.messages = report.loss().messages();
  loss.unseen = report.loss().unseen_messages();
  if (report.loss().has_age_micros()) loss.micros = report.loss().age_micros();
  const auto micros = [](const google::protobuf::Timestamp& time) {
    return static_cast<std::uint64_t>(time.seconds()) * 1'000'000 + static_cast<std::uint64_t>(time.nanos()) / 1000;
  };
  if (report.loss().has_known_at()) loss.known_at = micros(report.loss().known_at());
  loss.taken_at = micros(report.loss().taken_at());
  loss.worst_partition = report.loss().worst_partition();
  loss.worst_messages = report.loss().worst_messages();
  return loss;
}

}  // namespace

DrillLinkProcess::DrillLinkProcess(const replicator::Config& config, std::string folder)
    : config_(config), folder_(std::move(folder)) {}

base::Status DrillLinkProcess::start(const std::string& glob, const std::string& marker,
                                     const std::vector<std::string>& consumers) {
  glob_ = glob;
  marker_ = marker;
  consumers_ = consumers;
  return spawn(config_.upstream_url, config_.downstream_url, "link");
}

base::Status DrillLinkProcess::spawn(const std::string& upstream, const std::string& downstream,
                                     const std::string& name) {
  const std::string log = folder_ + "/" + name + ".log";
  std::vector<std::string> words = {"iggy-replicate",
                                    "run",
                                    "--topics=" + glob_,
                                    "--marker=" + marker_,
                                    "--state=" + folder_ + "/" + name + ".db",
                                    "--admin-address=127.0.0.1:0",
                                    "--metrics-address=off",
                                    "--poll-interval=" + milliseconds(config_.poll_interval),
                                    "--commit-interval=" + milliseconds(config_.commit_interval),
                                    "--connect-timeout=" + milliseconds(config_.connect_timeout),
                                    "--read-timeout=" + milliseconds(config_.read_timeout),
                                    "--consumer-interval=" + milliseconds(config_.consumer_interval)};
  for (const std::string& consumer : consumers_) words.push_back("--consumers=" + consumer);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // Secrets go through the environment: arguments can be seen by every user of the machine.
  setenv("IGGY_REPLICATE_LINK_UPSTREAM_URL", upstream.c_str(), 1);
  setenv("IGGY_REPLICATE_LINK_DOWNSTREAM_URL", downstream.c_str(), 1);
  child_ = fork();
  if (child_ < 0) return base::Error(base::ErrorCode::kInternal, "start link", "", std::strerror(errno));
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  const auto give_up = std::chrono::steady_clock::now() + kStartPatience;
  AdminTarget target;
  for (target.address.clear(); target.address.empty(); target.address = admin_address_in(log)) {
    const bool ended = waitpid(child_, nullptr, WNOHANG) == child_;
    if (ended) child_ = -1;
    if (ended || std::chrono::steady_clock::now() > give_up) {
      return base::Error(base::ErrorCode::kConnectFailed, "start link", log, "the drill's link did not start",
                         "its log says why");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  auto client = AdminClient::create(target);
  if (!client) return std::move(client).error();
  client_.emplace(std::move(*client));
  return base::ok();
}

bool DrillLinkProcess::upstream_is_gone() {
  auto link = client_->link();
  return link && !link->upstream().connected();
}

base::Result<pb::EndReport> DrillLinkProcess::ask(bool dry_run) {
  pb::FailoverRequest request;
  request.set_actor(actor());
  request.set_dry_run(dry_run);
  return client_->failover(request);
}

base::Result<replicator::Loss> DrillLinkProcess::predict() {
  auto report = ask(true);
  if (!report) return std::move(report).error();
  return loss_in(*report);
}

base::Result<replicator::Loss> DrillLinkProcess::fail_over() {
  auto report = ask(false);
  if (!report) return std::move(report).error();
  if (!report->undone().empty()) {
    return base::Error(base::ErrorCode::kUncertain, "failover", "", report->undone(0));
  }
  return loss_in(*report);
}

base::Result<std::uint64_t> DrillLinkProcess::fail_back(bool rebuild) {
  stop();
  replicator::Config ended = config_;
  ended.topics = {glob_};
  ended.marker = marker_;
  ended.state_file = folder_ + "/link.db";
  replicator::FailbackOptions options;
  options.mode = rebuild ? replicator::FailbackMode::kRebuild : replicator::FailbackMode::kKeep;
  options.actor = actor();
  options.export_folder = folder_ + "/orphans";
  options.reverse_file = folder_ + "/reverse.db";
  auto report = replicator::failback(ended, options);
  if (!report) return std::move(report).error();
  RETURN_IF_ERROR(spawn(config_.downstream_url, config_.upstream_url, "reverse"));
  return report->orphans;
}

void DrillLinkProcess::stop() {
  if (child_ < 0) return;
  ::kill(child_, SIGTERM);
  waitpid(child_, nullptr, 0);
  child_ = -1;
}

}  // namespace cli
