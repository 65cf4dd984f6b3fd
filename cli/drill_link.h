// The drill's own link: `iggy-replicate run` as a child process, spoken to over its admin API, as any operator would.
//
// A process of its own, because that is what is rehearsed: the same program, start and end included; and whatever
// happens to it can't take the measuring process along. It dies with us.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "cli/admin_client.h"
#include "replicator/drill/drill.h"

namespace cli {

class DrillLinkProcess final : public replicator::DrillLink {
 public:
  // `folder`: for state file and log.
  DrillLinkProcess(const replicator::Config& config, std::string folder);
  DrillLinkProcess(const DrillLinkProcess&) = delete;
  DrillLinkProcess& operator=(const DrillLinkProcess&) = delete;
  ~DrillLinkProcess() override { stop(); }

  base::Status start(const std::string& glob, const std::string& marker,
                     const std::vector<std::string>& consumers) override;
  bool upstream_is_gone() override;
  base::Result<replicator::Loss> predict() override;
  base::Result<replicator::Loss> fail_over() override;
  base::Result<std::uint64_t> fail_back(bool rebuild) override;
  void stop() override;

 private:
  base::Result<pb::EndReport> ask(bool dry_run);
  base::Status spawn(const std::string& upstream, const std::string& downstream, const std::string& name);
  const replicator::Config& config_;
  const std::string folder_;
  std::string glob_, marker_;
  std::vector<std::string> consumers_;
  pid_t child_ = -1;
  std::optional<AdminClient> client_;
};

}  // namespace cli
