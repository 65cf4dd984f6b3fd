// Notices what changes in the watched topics of one stream, once per interval, with as few requests as that takes.
//
//   a topic that changed within the last second, or whose answer is missing ──▶ get_topic, each
//   all others: one get_topics; it holds no partitions, but each topic's counters
//       the line is that of the topic's newest get_topic ──▶ nothing has changed
//       it differs, or is not there                       ──▶ get_topic
//
// Counters that stand still while something happens (as much expired as came, to the byte, between two looks) are not
// believed for ever: each topic is asked by itself every kFullLookInterval, one after the other.
// What each failure does: no right to list, or a list much longer than what is watched: each topic is asked by itself,
// and the list again after kListAgainAfter. Any other failure: each topic's own answer or error counts, and the list is
// asked for again once they are quiet.
// Affinity: one io_context. Lifetime: client and watchers outlive run(); stop() ends it.
#pragma once

#include <map>
#include <string>

#include "replicator/link/topic_watcher.h"

namespace replicator {

inline constexpr base::Duration kLivelyFor = std::chrono::seconds(1);
inline constexpr base::Duration kFullLookInterval = std::chrono::seconds(30);
inline constexpr base::Duration kListAgainAfter = std::chrono::seconds(60);

class StreamWatcher {
 public:
  StreamWatcher(asio::io_context& io, base::Clock& clock, iggy::Client& client, std::string stream,
                base::Duration interval);

  // Any time; `watcher` is of this stream.
  void add(TopicWatcher& watcher);
  base::Task<void> run();
  void stop() { stop_.set(); }

 private:
  base::Task<void> look();
  base::Task<bool> compare_list();
  bool is_quiet(const TopicWatcher& watcher) const;
  void look_in_turn();

  base::Clock& clock_;
  iggy::Client& client_;
  const std::string stream_;
  const base::Duration interval_;
  std::map<std::string, TopicWatcher*, std::less<>> topics_;
  base::TimePoint list_again_at_{};
  std::string turn_;  // name of the topic that was last asked in its turn
  double turns_due_ = 0;
  base::Event stop_;
};

}  // namespace replicator
