// What the links topic of a cluster says: which links write into this cluster, who holds each of them, and whether they
// are in our way.
//
// Who holds a link is a function of the log alone, so that all readers agree: the process of the *first* record with
// the *highest* generation. A later record of that generation from another process is a claim that came too late; a
// record of a lower generation is a former holder that has not noticed yet.
//
// Affinity: any one thread; read_links(): the client's io_context.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/task.h"
#include "iggy/client.h"
#include "replicator/marker/marker_record.h"
#include "replicator/model/rules.h"

namespace replicator {

inline constexpr std::uint32_t kLinkRecordsRead = 1000;  // newest records read at first; above some 300 links on one
                                                         // cluster a quiet link's record may be older than that
inline constexpr std::uint64_t kLinkRecordLife = 86'400'000'000;  // µs; expiry of the topic

class Links {
 public:
  struct Link {
    MarkerRecord holder;    // its newest record
    bool promoted = false;  // stays so, whatever is written later
    struct Writer {
      std::uint64_t records = 0;     // in state active: signs of life
      std::uint64_t written_at = 0;  // of the newest: a record that is read twice is counted once
    };
    std::map<std::string, Writer> writers;  // by process
  };

  // In log order. The same record again changes nothing.
  void add(MarkerRecord record);
  // Every link record of a reply; messages that are none are ignored.
  void add_all(const iggy::PolledMessages& polled);

  const Link* find(const std::string& link) const;
  const std::map<std::string, Link>& all() const { return links_; }
  // Identity of the cluster by its oldest record; "" = unknown.
  const std::string& identity() const { return identity_; }
  bool names_identity(const std::string& identity) const { return identities_.contains(identity); }
  // Records in state active from other processes than `process`, of one link.
  std::uint64_t signs_of_others(const std::string& link, const std::string& process) const;

 private:
  std::map<std::string, Link> links_;
  std::string identity_;
  std::map<std::string, std::uint64_t> identities_;
};

// The newest records of the topic, without creating anything. `present` = the topic is there. kPermission when it can't
// be read: unknown, not absent.
struct LinksFound {
  bool present = false;
  Links links;
};
base::Task<base::Result<LinksFound>> read_links(iggy::Client& client, base::TopicName topic);

// Our side of a comparison with other links.
struct LinkInView {
  std::string link_id;
  std::string upstream, upstream_identity;      // redacted URL; identity "" = unknown
  std::string downstream, downstream_identity;  // the same
  const Rules* rules = nullptr;
  std::vector<base::TopicName> sources;  // upstream topics that the rules want
};

// Links that write into our upstream, read from our downstream, and would bring back what we copy: one sentence each.
// `at_upstream` as read through the upstream's URL; a record counts for a day after the server's timestamp (`now`: µs).
std::vector<std::string> reverse_links(const Links& at_upstream, const LinkInView& ours, std::uint64_t now);

// Another link that copies from the same upstream into a topic that is our target as well (a lost state file makes such
// a twin). Active within the last day.
bool is_rival(const MarkerRecord& other, const LinkInView& ours, std::uint64_t now);

// Hosts of two redacted URLs are the same text; users and options do not matter.
bool same_address(std::string_view url, std::string_view other);

}  // namespace replicator
