// An iggy::Client of a simulated cluster: requests take time, change places across connections, and meet the troubles
// that the weather holds for them. Sends are encoded by the real codec and decoded as a server does.
//
// Affinity: the process's io_context and clock. Lifetime: cluster and weather outlive it; die() or close() before
// destruction.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "iggy/client.h"
#include "replicator/sim/cluster.h"

namespace replicator::sim {

enum class Trouble : std::uint8_t {
  kNone,
  kLose,      // the connection is cut, the request never arrives
  kAckLost,   // done, and the connection is cut before the answer
  kLate,      // cut; done `delay` later
  kPartial,   // cut; the beginning of a send is done `delay` later
  kSlow,      // takes `delay`
  kSilence,   // neither done nor answered
  kRefuse,    // `status`; what it leaves open may have been done
  kNoOffset,  // sends: done, the answer does not say where
  kEmpty,     // polls: nothing, although there is something
  kShort,     // polls: fewer than asked for
};
std::string_view to_string(Trouble trouble);

struct Planned {
  Trouble trouble = Trouble::kNone;
  base::Duration delay{};
  std::uint32_t status = 0;
};

// Between all processes and one cluster. Each planned trouble meets the next request of its kind.
struct Weather {
  std::deque<Planned> sends, reads, writes;
  std::uint64_t latency_low = 100, latency_high = 2000;  // one way, µs
  std::uint64_t lost_in_cuts = 30;                       // percent of written requests that a cut takes along
  bool leaks = false;                                    // cut connections stay in the client list for ever
  base::TimePoint lands_until{};                         // when the last abandoned or slow request is carried out
  std::uint64_t double_sends = 0;                        // two unresolved ones to one partition: never
};

class Client final : public iggy::Client {
 public:
  Client(asio::io_context& io, base::Clock& clock, Cluster& cluster, Weather& weather, iggy::ClientOptions options,
         std::uint64_t seed);
  ~Client() override;

  void die();  // its process was killed: nothing that it does has an effect any more

  base::Task<base::Result<iggy::ServerIdentity>> connect() override;
  const iggy::ServerIdentity& server() const override { return identity_; }
  base::Task<base::Result<iggy::Reply>> call(iggy::Request request, iggy::Role role, std::uint32_t slot) override;
  base::Task<base::Result<iggy::SendAck>> send(base::TopicName topic, std::uint32_t partition, iggy::OutgoingSend frame,
                                               std::uint32_t count, std::uint32_t slot,
                                               iggy::SendTrace* trace) override;
  base::Task<base::Result<iggy::SendTrace>> open_send(base::TopicName topic, std::uint32_t partition) override;
  bool is_open(const iggy::SendTrace& trace) const override;
  base::Task<base::Result<bool>> is_listed(iggy::SendTrace trace) override;
  base::Task<void> close() override;

 private:
  // One request under way. `work` is called at the server, once or never.
  struct Exchange {
    explicit Exchange(asio::io_context& io) : over(io) {}
    base::Event over;
    SessionPtr session;
    bool answered = false;
  };
  using ExchangePtr = std::shared_ptr<Exchange>;
  using Slot = std::pair<iggy::Role, std::uint32_t>;

  base::Task<base::Result<SessionPtr>> acquire(iggy::Role role, std::uint32_t slot);
  // true: answered. Otherwise the connection ended, or `patience` did (and the connection with it).
  base::Task<bool> exchange(SessionPtr session, Planned plan, bool is_write, std::function<void()> work,
                            base::Duration patience);
  base::Task<base::Result<iggy::Reply>> ask(SessionPtr session, Planned plan, bool is_write, iggy::Request request);
  static Planned take(std::deque<Planned>& planned);
  base::Duration latency() { return dice_.micros(weather_.latency_low, weather_.latency_high); }
  void end_all();

  asio::io_context& io_;
  base::Clock& clock_;
  Cluster& cluster_;
  Weather& weather_;
  const iggy::ClientOptions options_;
  Dice dice_;
  iggy::ServerIdentity identity_;
  std::map<Slot, SessionPtr> slots_;
  std::set<ExchangePtr> under_way_;
  std::set<std::pair<base::TopicName, std::uint32_t>> unresolved_;  // sends
  bool closed_ = false;
};

}  // namespace replicator::sim
