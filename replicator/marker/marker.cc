#include "replicator/marker/marker.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/digest.h"
#include "iggy/codec/send.h"

namespace replicator {
namespace {

using base::ErrorCode;

constexpr std::size_t kAttemptsKept = 16;
constexpr std::uint32_t kPageRecords = 1000;
constexpr int kSeenTries = 20;  // reads, half a second apart, until a write shows
constexpr base::Duration kSeenPause = std::chrono::milliseconds(500);
constexpr int kWatchErrorsMax = 15;

std::string when(std::uint64_t micros) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(micros / 1'000'000)));
}

std::string who(const MarkerRecord& record) {
  return fmt::format("process {} (generation {}, last written {})", record.process, record.generation,
                     when(record.timestamp));
}

}  // namespace

Marker::Marker(iggy::Client& downstream, base::Clock& clock, MarkerOptions options)
    : client_(downstream), clock_(clock), options_(std::move(options)) {
  base::check(!options_.link_id.empty() && !options_.process.empty(), "a marker names its link and its process");
}

bool Marker::may_send() const {
  if (fence_ || ended_ || clock_.now() >= confirmed_until_) return false;
  // A suspended machine's monotonic clock may have stood still. A wall clock that was set costs one write.
  const std::uint64_t now = clock_.wall_micros();
  return now < confirmed_wall_ || now - confirmed_wall_ < static_cast<std::uint64_t>(lease().count());
}

// ---------------------------------------------------------------------------------------------------------------------
// The topic

base::Error Marker::explain(base::Error error) const {
  error.with_object(options_.topic.to_string());
  if (error.code() == ErrorCode::kPermission) {
    error.with_hint(
        "the link's record can't be kept downstream: give the user manage_topics, send_messages and poll_messages "
        "there, "
        "create the topic for it, or set marker = \"off\" and make sure that only one process runs this link");
  }
  return error;
}

base::TopicName ended_topic(const base::TopicName& links_topic) {
  return {links_topic.stream, links_topic.topic + "-ended"};
}

base::Task<base::Status> Marker::ensure_topic() {
  auto making = ensure_topic(options_.topic, kLinkRecordLife);
  co_return co_await std::move(making);
}

base::Task<base::Status> Marker::ensure_topic(base::TopicName topic, std::uint64_t expiry) {
  const std::string& stream = topic.stream;
  auto get_call = client_.call(iggy::GetTopic{stream, topic.topic});
  auto got = co_await std::move(get_call);
  if (got && std::holds_alternative<iggy::TopicDetails>(*got)) co_return base::ok();
  if (!got && got.error().code() == ErrorCode::kPermission) co_return base::ok();  // it is there; polls and sends tell
  if (!got && got.error().code() != ErrorCode::kNotFound) co_return explain(std::move(got).error());
  auto stream_call = client_.call(iggy::GetStream{stream});
  auto found = co_await std::move(stream_call);
  if (!found || !std::holds_alternative<iggy::StreamDetails>(*found)) {
    auto create_call = client_.call(iggy::CreateStream{stream, {}});
    auto created = co_await std::move(create_call);
    const bool there = created || created.error().code() == ErrorCode::kAlreadyExists;
    const bool forbidden_to_look = !found && found.error().code() == ErrorCode::kPermission;
    if (!there && !forbidden_to_look) co_return explain(std::move(created).error());
  }
  iggy::TopicSettings settings;
  settings.message_expiry = expiry;
  auto topic_call = client_.call(iggy::CreateTopic{stream, topic.topic, 1, std::move(settings)});
  auto made = co_await std::move(topic_call);
  if (made || made.error().code() == ErrorCode::kAlreadyExists) co_return base::ok();
  co_return explain(std::move(made).error());
}

base::Task<base::Result<iggy::PolledMessages>> Marker::poll(iggy::PollStrategy strategy) {
  iggy::PollMessages request;
  request.consumer.id = std::string("iggy-replicate");
  request.stream = options_.topic.stream;
  request.topic = options_.topic.topic;
  request.partition = 0;
  request.strategy = strategy;
  request.count = kPageRecords;
  // In a cluster it is read where it is written: other nodes answer with an old end.
  auto call =
      client_.call(std::move(request), client_.server().nodes > 1 ? iggy::Role::kPoll : iggy::Role::kControl, 0);
  auto reply = co_await std::move(call);
  if (!reply) co_return explain(std::move(reply).error());
  auto* polled = std::get_if<iggy::PolledMessages>(&*reply);
  if (polled == nullptr) co_return iggy::PolledMessages{};
  co_return std::move(*polled);
}

// What was promoted long ago: the links topic has forgotten it.
base::Task<base::Status> Marker::read_ended() {
  auto reading = read_links(client_, ended_topic(options_.topic));
  auto found = co_await std::move(reading);
  if (!found) {
    if (found.error().code() == ErrorCode::kPermission) co_return base::ok();  // unknown; the links topic decides
    co_return explain(std::move(found).error());
  }
  ended_for_good_ = found->links.find(options_.link_id) != nullptr;
  co_return base::ok();
}

void Marker::absorb(const iggy::PolledMessages& polled) {
  links_.add_all(polled);
  if (!polled.batch.records.empty()) next_ = polled.batch.records.back().offset + 1;
  confirm();
}

void Marker::set_topics(std::vector<std::string> topics, std::vector<std::string> exclude) {
  options_.topics = std::move(topics);
  options_.exclude = std::move(exclude);
  write_at_once_ = true;
}

base::Task<base::Status> Marker::read_newest() {
  auto polling = poll({iggy::PollStrategy::Kind::kLast, 0});
  auto polled = co_await std::move(polling);
  CO_RETURN_IF_ERROR(polled);
  next_ = polled->batch.records.empty() ? 0 : next_;
  absorb(*polled);
  co_return base::ok();
}

// Everything written since the last read. A log that ends before that was purged, re-created, cut by a crash, or is
// read at a node that lags: the newest records are read again, and ours is written again.
base::Task<base::Status> Marker::read_on() {
  for (;;) {
    const std::uint64_t from = next_;
    auto polling = poll({iggy::PollStrategy::Kind::kOffset, from});
    auto polled = co_await std::move(polling);
    if (!polled && polled.error().code() == ErrorCode::kNotFound) {
      auto making = ensure_topic();
      auto made = co_await std::move(making);
      CO_RETURN_IF_ERROR(made);
      next_ = 0;
      write_at_once_ = true;
      co_return base::ok();
    }
    CO_RETURN_IF_ERROR(polled);
    if (polled->batch.records.empty() && from > 0 && polled->current_offset + 1 < from) {
      write_at_once_ = true;
      auto again = read_newest();
      co_return co_await std::move(again);
    }
    absorb(*polled);
    if (polled->batch.records.size() < kPageRecords) co_return base::ok();
  }
}

base::Task<base::Status> Marker::write(base::TopicName topic, LinkState state, std::uint64_t generation) {
  MarkerRecord record;
  record.cluster = identity_;
  record.link = options_.link_id;
  record.generation = generation;
  record.process = options_.process;
  record.state = state;
  record.written_at = written_at_ = std::max(clock_.wall_micros(), written_at_ + 1);
  record.upstream = options_.upstream;
  record.upstream_identity = options_.upstream_identity;
  record.downstream = options_.downstream;
  record.topics = options_.topics;
  record.exclude = options_.exclude;
  record.rename = options_.rename;
  const std::string text = encode(record);

  base::Record message;
  // An id of 0 would be replaced by 0.8 servers.
  message.id = base::mint_id(options_.process, {options_.topic, 0}, ++writes_);
  message.origin_timestamp = record.written_at;
  message.payload_length = static_cast<std::uint32_t>(text.size());
  message.body = base::as_bytes(text);
  const std::array records = {message};
  auto frame = iggy::encode_send(client_.server().dialect, topic, 0, records);
  if (!frame) co_return explain(std::move(frame).error());
  if (state == LinkState::kActive) {
    attempts_.push_back({record.written_at, clock_.now()});
    if (attempts_.size() > kAttemptsKept) attempts_.pop_front();
  }
  iggy::SendTrace trace;
  auto sending = client_.send(topic, 0, *std::move(frame), 1, 0, &trace);
  auto sent = co_await std::move(sending);
  if (!sent) co_return explain(std::move(sent).error());
  write_at_once_ = false;
  co_return base::ok();
}

bool Marker::is_seen(std::uint64_t written_at) const {
  const Links::Link* link = links_.find(options_.link_id);
  return link != nullptr && link->holder.process == options_.process && link->holder.written_at >= written_at;
}

// The lease counts from the start of the write that is our newest record, when that record is the holder's.
void Marker::confirm() {
  const Links::Link* link = links_.find(options_.link_id);
  if (link == nullptr || generation_ == 0 || ended_ || link->promoted) return;
  if (link->holder.process != options_.process || link->holder.generation != generation_) return;
  const auto attempt = std::ranges::find(attempts_, link->holder.written_at, &Attempt::written_at);
  if (attempt == attempts_.end() || attempt->started + lease() <= confirmed_until_) return;
  confirmed_until_ = attempt->started + lease();
  confirmed_wall_ = attempt->written_at;
}

// ---------------------------------------------------------------------------------------------------------------------
// Verdicts

base::Status Marker::fence_off(std::string message, std::string hint) {
  confirmed_until_ = {};
  fence_.emplace(ErrorCode::kFenced, "hold link " + options_.link_id, options_.topic.to_string(), std::move(message),
                 std::move(hint));
  return *fence_;
}

// What the log says about our right to write. Before the claim generation_ is 0 and the state file's generation counts.
base::Status Marker::judge() {
  if (fence_) return *fence_;
  const Links::Link* link = links_.find(options_.link_id);
  if ((ended_for_good_ || (link != nullptr && link->promoted)) && !ended_) {
    return fence_off("this link was promoted: its downstream is a primary now and the link never writes again",
                     "`iggy-replicate failback` makes the state file of the link in the other direction");
  }
  if (link == nullptr) return base::ok();
  const MarkerRecord& holder = link->holder;
  if (holder.process == options_.process) return base::ok();
  if (generation_ == 0) {
    if (holder.generation <= options_.stored_generation) return base::ok();
    return fence_off(
        fmt::format("the state file knows generation {}, and {} has held the link since", options_.stored_generation,
                    who(holder)),
        "this is an old or copied state file: start the link with the newest one, or with a fresh file and "
        "`resolve` what it finds");
  }
  if (holder.generation < generation_) return base::ok();
  return fence_off(fmt::format("{} has taken the link over from us (generation {})", who(holder), generation_),
                   "only one process may run a link; stop the one that is not wanted, then start the other again");
}

// Links whose holder must be silent before we may claim: ours, when its holder may still run, and rivals.
std::vector<std::string> Marker::in_our_way() const {
  std::vector<std::string> names;
  for (const auto& [name, link] : links_.all()) {
    const MarkerRecord& holder = link.holder;
    if (link.promoted || holder.state != LinkState::kActive || holder.process == options_.process) continue;
    const bool elsewhere = host_of(holder.process) != host_of(options_.process);
    const bool alive_here = !elsewhere && options_.still_runs && options_.still_runs(holder.process);
    const bool ours = name == options_.link_id && (elsewhere || alive_here);
    const bool rival = name != options_.link_id && options_.is_rival && options_.is_rival(holder);
    if (ours || rival) names.push_back(name);
  }
  return names;
}

std::uint64_t Marker::signs_of_life(const std::vector<std::string>& links) const {
  std::uint64_t count = 0;
  for (const std::string& name : links) count += links_.signs_of_others(name, options_.process);
  return count;
}

base::Task<base::Status> Marker::watch() {
  int errors = 0;
  std::vector<std::string> watched = in_our_way();
  std::uint64_t before = signs_of_life(watched);
  base::TimePoint silent_at = clock_.now() + 3 * options_.write_interval;
  while (!watched.empty()) {
    auto sleeping = clock_.sleep_for(options_.read_interval);
    co_await std::move(sleeping);
    auto reading = read_on();
    auto read = co_await std::move(reading);
    if (!read) {
      if (read.error().is_cancelled() || read.error().retry() == base::Retry::kNeedsOperator ||
          ++errors > kWatchErrorsMax) {
        co_return read;
      }
      silent_at = std::max(silent_at, clock_.now() + options_.write_interval);  // silence is heard, not assumed
      continue;
    }
    auto verdict = judge();
    CO_RETURN_IF_ERROR(verdict);
    const std::uint64_t signs = signs_of_life(watched);
    std::vector<std::string> still = in_our_way();
    if (signs > before && !still.empty()) {
      const MarkerRecord& holder = links_.find(still.front())->holder;
      if (still.front() == options_.link_id) {
        co_return fence_off(
            fmt::format("{} holds it and is alive", who(holder)),
            "stop that process first; a process that was killed is believed dead after three missing writes");
      }
      co_return fence_off(fmt::format("link {}, {}, copies from the same upstream into the same topics and is alive",
                                      holder.link, who(holder)),
                          "stop that link first, or give this one other topics");
    }
    if (still != watched) {  // released, or a rival more
      watched = std::move(still);
      before = signs_of_life(watched);
    }
    if (clock_.now() >= silent_at) break;
  }
  co_return base::ok();
}

// ---------------------------------------------------------------------------------------------------------------------
// Calls

base::Task<base::Status> Marker::write_until_seen(LinkState state, std::uint64_t generation) {
  base::Status written = base::ok();
  for (int attempt = 0; attempt < kSeenTries; ++attempt) {
    if (attempt == 0 || !written || write_at_once_) {
      auto writing = write(options_.topic, state, generation);
      written = co_await std::move(writing);
      if (!written && (written.error().is_cancelled() || written.error().code() == ErrorCode::kPermission))
        co_return written;
    }
    auto reading = read_on();
    auto read = co_await std::move(reading);
    if (!read && (read.error().is_cancelled() || read.error().code() == ErrorCode::kPermission)) co_return read;
    if (read) {
      if (is_seen(written_at_)) co_return base::ok();
      auto verdict = judge();  // another claim came first: ours will never be the holder's
      CO_RETURN_IF_ERROR(verdict);
    } else if (written) {
      written = std::move(read);  // told below; the record is written once more, which does no harm
    }
    auto sleeping = clock_.sleep_for(kSeenPause);
    co_await std::move(sleeping);
  }
  if (!written) co_return written;
  co_return base::Error(ErrorCode::kTimeout, "hold link " + options_.link_id, options_.topic.to_string(),
                        "the record was written and can't be read back");
}

base::Task<base::Result<std::uint64_t>> Marker::acquire(Persist persist) {
  if (fence_) co_return *fence_;
  auto ending = read_ended();
  auto ended = co_await std::move(ending);
  CO_RETURN_IF_ERROR(ended);
  auto making = ensure_topic();
  auto made = co_await std::move(making);
  CO_RETURN_IF_ERROR(made);
  auto reading = read_newest();
  auto read = co_await std::move(reading);
  CO_RETURN_IF_ERROR(read);
  auto verdict = judge();
  CO_RETURN_IF_ERROR(verdict);
  auto watching = watch();
  auto watched = co_await std::move(watching);
  CO_RETURN_IF_ERROR(watched);

  std::uint64_t seen = 0;
  if (const Links::Link* link = links_.find(options_.link_id)) seen = link->holder.generation;
  const std::uint64_t claimed = std::max({seen, options_.stored_generation, generation_}) + 1;
  auto saving = persist(claimed);
  auto saved = co_await std::move(saving);
  CO_RETURN_IF_ERROR(saved);

  // Once more, so that whatever a former holder still writes is seen as having come after this.
  auto again = read_on();
  auto caught_up = co_await std::move(again);
  CO_RETURN_IF_ERROR(caught_up);
  auto still_free = judge();
  CO_RETURN_IF_ERROR(still_free);
  const std::vector<std::string> ours = {options_.link_id};
  if (!signs_before_claim_) signs_before_claim_ = signs_of_life(ours);
  if (links_.names_identity(options_.stored_identity)) {
    identity_ = options_.stored_identity;
  } else {
    identity_ = !links_.identity().empty()          ? links_.identity()
                : !options_.stored_identity.empty() ? options_.stored_identity
                                                    : options_.fresh_identity;
  }
  generation_ = claimed;
  auto claiming = write_until_seen(LinkState::kActive, claimed);
  auto claim = co_await std::move(claiming);
  CO_RETURN_IF_ERROR(claim);
  // Of two that met on an empty topic the first one's identity counts.
  if (!links_.names_identity(options_.stored_identity)) identity_ = links_.identity();
  auto held = judge();
  CO_RETURN_IF_ERROR(held);
  if (signs_of_life(ours) > *signs_before_claim_) {
    auto waiting = wait_out_former_holder();
    auto waited = co_await std::move(waiting);
    CO_RETURN_IF_ERROR(waited);
  }
  last_error_.reset();
  co_return generation_;
}

// A former holder was alive while we claimed. It finds our claim at its next read, and its lease ends before this does.
base::Task<base::Status> Marker::wait_out_former_holder() {
  auto sleeping = clock_.sleep_for(lease());
  co_await std::move(sleeping);
  auto claiming = write_until_seen(LinkState::kActive, generation_);
  auto claim = co_await std::move(claiming);
  CO_RETURN_IF_ERROR(claim);
  co_return judge();
}

base::Task<base::Status> Marker::run(base::Event& stop) {
  base::check(generation_ > 0, "a lease is acquired before it is kept");
  base::TimePoint write_at = confirmed_until_ - lease() + options_.write_interval;
  while (!stop.is_set() && !ended_) {
    const base::TimePoint tick = clock_.now();
    auto reading = read_on();
    auto status = co_await std::move(reading);
    auto verdict = judge();
    CO_RETURN_IF_ERROR(verdict);
    // Only a process that has just seen that it holds the link goes on writing into its record.
    if (status && !stop.is_set() && (tick >= write_at || write_at_once_ || !may_send())) {
      auto writing = write(options_.topic, LinkState::kActive, generation_);
      status = co_await std::move(writing);
      if (status) write_at = tick + options_.write_interval;
      auto again = read_on();
      auto read = co_await std::move(again);
      if (status) status = std::move(read);
      auto held = judge();
      CO_RETURN_IF_ERROR(held);
    }
    if (status) {
      last_error_.reset();
    } else {
      last_error_ = std::move(status).error();
    }
    auto waiting = base::wait_until(clock_, stop, tick + options_.read_interval);
    co_await std::move(waiting);
  }
  co_return base::ok();
}

base::Task<base::Status> Marker::check() {
  if (fence_) co_return *fence_;
  auto reading = read_on();
  auto read = co_await std::move(reading);
  auto verdict = judge();
  CO_RETURN_IF_ERROR(verdict);
  co_return read;
}

base::Task<base::Status> Marker::release() {
  if (generation_ == 0 || fence_ || ended_) co_return base::ok();
  ended_ = true;
  confirmed_until_ = {};
  auto writing = write(options_.topic, LinkState::kReleased, generation_);
  co_return co_await std::move(writing);
}

base::Task<base::Status> Marker::promote() {
  auto making = ensure_topic();
  auto made = co_await std::move(making);
  CO_RETURN_IF_ERROR(made);
  auto reading = read_newest();
  auto read = co_await std::move(reading);
  CO_RETURN_IF_ERROR(read);
  if (!options_.stored_identity.empty() && !links_.identity().empty() &&
      !links_.names_identity(options_.stored_identity)) {
    co_return base::Error(ErrorCode::kWrongLink, "promote", "link " + options_.link_id,
                          fmt::format("this is cluster {}, and the link writes into cluster {}", links_.identity(),
                                      options_.stored_identity),
                          "give the URL of the link's own downstream");
  }
  if (identity_.empty()) identity_ = links_.identity().empty() ? options_.fresh_identity : links_.identity();
  ended_ = true;
  confirmed_until_ = {};
  const Links::Link* link = links_.find(options_.link_id);
  const std::uint64_t seen = link == nullptr ? 0 : link->holder.generation;
  const std::uint64_t claimed = std::max({seen, options_.stored_generation, generation_}) + 1;
  const bool promoted = link != nullptr && link->promoted;
  auto ending = write_ended(claimed);
  auto ended = co_await std::move(ending);
  CO_RETURN_IF_ERROR(ended);
  if (promoted) co_return base::ok();
  auto writing = write_until_seen(LinkState::kPromoted, claimed);
  co_return co_await std::move(writing);
}

// The record that stays, unless it is there.
base::Task<base::Status> Marker::write_ended(std::uint64_t generation) {
  const base::TopicName topic = ended_topic(options_.topic);
  auto making = ensure_topic(topic, iggy::kNeverExpire);
  auto made = co_await std::move(making);
  CO_RETURN_IF_ERROR(made);
  base::Status outcome = base::ok();
  for (int attempt = 0; attempt < kSeenTries; ++attempt) {
    auto reading = read_ended();
    outcome = co_await std::move(reading);
    if (outcome && ended_for_good_) co_return base::ok();
    if (outcome && attempt % 4 == 0) {  // a record that is written twice does no harm
      auto writing = write(topic, LinkState::kPromoted, generation);
      outcome = co_await std::move(writing);
      if (outcome) continue;
    }
    if (!outcome && outcome.error().retry() != base::Retry::kSameCall) co_return outcome;
    auto sleeping = clock_.sleep_for(kSeenPause);
    co_await std::move(sleeping);
  }
  if (!outcome) co_return outcome;
  co_return base::Error(ErrorCode::kTimeout, "promote", topic.to_string(),
                        "the record was written and can't be read back");
}

base::Task<base::Result<bool>> Marker::visible_through(iggy::Client& upstream) {
  base::check(generation_ > 0, "a record is looked for after it was written");
  // A node of a cluster may answer from an older end for half a second.
  const base::TimePoint give_up = clock_.now() + std::chrono::seconds(3);
  for (;;) {
    auto reading = read_links(upstream, options_.topic);
    auto found = co_await std::move(reading);
    CO_RETURN_IF_ERROR(found);
    if (!found->present) co_return false;
    const Links::Link* link = found->links.find(options_.link_id);
    if (link != nullptr && link->holder.process == options_.process) co_return true;
    if (found->links.names_identity(identity_)) co_return true;
    if (clock_.now() >= give_up) co_return false;
    auto sleeping = clock_.sleep_for(kSeenPause);
    co_await std::move(sleeping);
  }
}

}  // namespace replicator
