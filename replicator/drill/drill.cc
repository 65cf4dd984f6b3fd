#include "replicator/drill/drill.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/use_future.hpp>
#include <fmt/format.h>

#include "iggy/client.h"

namespace replicator {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};

std::string stream_of(const std::string& id) { return "iggy-replicate-drill-" + id; }
std::string links_stream_of(const std::string& id) { return stream_of(id) + "-links"; }

base::Task<base::Status> delete_stream(iggy::Client& client, std::string stream) {
  auto connecting = client.connect();
  auto connected = co_await std::move(connecting);
  CO_RETURN_IF_ERROR(connected);
  auto deleting = client.call(iggy::DeleteStream{stream});
  auto deleted = co_await std::move(deleting);
  if (!deleted && deleted.error().code() != base::ErrorCode::kNotFound) co_return std::move(deleted).error();
  co_return base::ok();
}

base::Task<base::Status> make_stream(iggy::Client& client, base::TopicName topic, std::uint32_t partitions) {
  auto connecting = client.connect();
  auto connected = co_await std::move(connecting);
  CO_RETURN_IF_ERROR(connected);
  auto stream_call = client.call(iggy::CreateStream{topic.stream, {}});
  auto stream = co_await std::move(stream_call);
  CO_RETURN_IF_ERROR(stream);  // kAlreadyExists: not ours
  auto topic_call = client.call(iggy::CreateTopic{topic.stream, topic.topic, partitions, {}});
  auto made = co_await std::move(topic_call);
  CO_RETURN_IF_ERROR(made);
  co_return base::ok();
}

base::Task<base::Result<bool>> is_there(iggy::Client& client, std::string stream) {
  auto connecting = client.connect();
  auto connected = co_await std::move(connecting);
  CO_RETURN_IF_ERROR(connected);
  auto asking = client.call(iggy::GetStream{stream});
  auto reply = co_await std::move(asking);
  if (!reply && reply.error().code() == base::ErrorCode::kNotFound) co_return false;
  CO_RETURN_IF_ERROR(reply);
  co_return std::holds_alternative<iggy::StreamDetails>(*reply);
}

// Reads until every message that was acknowledged first on the new primary is seen as it was written.
base::Task<base::Status> read_back(iggy::Client& client, DrillLoadOptions load, JournalEntry wanted) {
  auto reading = read_drill(client, std::move(load));
  auto stored = co_await std::move(reading);
  CO_RETURN_IF_ERROR(stored);
  for (const DrillStored& message : (*stored)[wanted.partition]) {
    if (message.sequence == wanted.sequence && message.digest == wanted.digest) co_return base::ok();
  }
  co_return base::Error(base::ErrorCode::kNotFound, "read", "", "what was just written is not there");
}

base::Task<std::uint64_t> acknowledged(const AckJournal& journal) {
  co_return static_cast<std::uint64_t>(std::ranges::count_if(journal.entries(), &JournalEntry::certain));
}

base::Task<base::Result<std::uint64_t>> messages_in(iggy::Client& client, base::TopicName topic) {
  auto asking = client.call(iggy::GetTopic{topic.stream, topic.topic});
  auto reply = co_await std::move(asking);
  if (!reply && reply.error().code() == base::ErrorCode::kNotFound) co_return std::uint64_t{0};  // not made yet
  CO_RETURN_IF_ERROR(reply);
  std::uint64_t count = 0;
  if (const auto* details = std::get_if<iggy::TopicDetails>(&*reply)) {
    for (const iggy::Partition& partition : details->partitions) count += partition.messages_count;
  }
  co_return count;
}

using Stored = std::vector<std::vector<DrillStored>>;
using Content = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

Content content_of(const DrillStored& message) { return {message.sequence, message.digest.low, message.digest.high}; }

// Messages of `wanted` that `there` does not hold.
std::uint64_t count_missing(const Stored& wanted, const Stored& there) {
  std::uint64_t count = 0;
  for (std::size_t partition = 0; partition < wanted.size(); ++partition) {
    std::set<Content> held;
    for (const DrillStored& message : there[partition]) held.insert(content_of(message));
    for (const DrillStored& message : wanted[partition]) count += held.contains(content_of(message)) ? 0 : 1;
  }
  return count;
}

std::uint64_t count_duplicates(const Stored& there) {
  std::uint64_t count = 0;
  for (const std::vector<DrillStored>& partition : there) {
    std::set<Content> held;
    for (const DrillStored& message : partition) count += held.insert(content_of(message)).second ? 0 : 1;
  }
  return count;
}

// An io_context on a thread of its own, with clients of both sides. The main thread hands it coroutines.
class Stage {
 public:
  Stage(const Config& config) : config_(config), clock_(base::system_clock(io_)), work_(io_.get_executor()) {
    thread_ = std::thread([this] { io_.run(); });
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    for (const auto& client : clients_) on(client->close());
    work_.reset();
    thread_.join();
  }
  template <class T>
  T on(base::Task<T> task) {
    return begin(std::move(task)).get();
  }
  template <class T>
  std::future<T> begin(base::Task<T> task) {
    return asio::co_spawn(io_, std::move(task), asio::use_future);
  }
  void set(base::Event& event) {
    std::promise<void> done;  // so that nothing is left behind that would set the next event at this place
    asio::post(io_, [&event, &done] {
      event.set();
      done.set_value();
    });
    done.get_future().wait();
  }
  // Another set of connections.
  iggy::Client& client(const std::string& url) {
    iggy::ClientOptions options;
    options.connect_timeout = std::min<base::Duration>(config_.connect_timeout, std::chrono::seconds(2));
    options.read_timeout = config_.read_timeout;
    options.reconnect = {std::chrono::milliseconds(50), std::chrono::milliseconds(500)};
    return *clients_.emplace_back(iggy::make_client(io_, *clock_, *iggy::parse_connection_string(url), options));
  }
  base::Clock& clock() { return *clock_; }
  asio::io_context& io() { return io_; }

 private:
  const Config& config_;
  asio::io_context io_{1};
  std::unique_ptr<base::Clock> clock_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::unique_ptr<iggy::Client>> clients_;
  std::thread thread_;
};

class Drill {
 public:
  Drill(const Config& config, const DrillOptions& options, DrillLink& link)
      : config_(config), options_(options), link_(link), stage_(config) {
    load_ = options.load;
    load_.topic = {stream_of(options.id), "load"};
    report_.id = options.id;
  }
  base::Result<DrillReport> run() {
    base::Status outcome = prepare();
    if (outcome) outcome = rehearse();
    if (outcome && options_.restart) outcome = way_back();
    report_.left = clean_up();
    if (!outcome) return std::move(outcome).error();
    return std::move(report_);
  }
  base::Result<PredictionReport> check() {
    PredictionReport checked;
    base::Status outcome = prepare();
    if (outcome) outcome = start_load();
    if (outcome) outcome = look_on(checked);
    checked.left = clean_up();
    if (!outcome) return std::move(outcome).error();
    return checked;
  }

 private:
  base::Status prepare();
  base::Status start_load();
  base::Status rehearse();
  base::Status fail_over_and_move();
  base::Status way_back();
  base::Status look_on(PredictionReport& checked);
  std::vector<std::string> clean_up() {
    stop_load();
    link_.stop();
    return made_ ? cleanup_drill(config_, options_.id) : std::vector<std::string>();
  }
  base::Status verify();
  void stop_load();
  // Waits; kTimeout says for what.
  template <class Condition>
  base::Status wait(const char* what, Condition condition) const {
    const auto give_up = Steady::now() + options_.give_up;
    while (!condition()) {
      if (Steady::now() > give_up) return base::Error(base::ErrorCode::kTimeout, "drill", options_.id, what);
      std::this_thread::sleep_for(kLook);
    }
    return base::ok();
  }
  void phase(const char* name) {
    const auto now = Steady::now();
    const auto micros = std::chrono::duration_cast<base::Duration>(now - phase_began_).count();
    report_.phases.push_back({name, static_cast<std::uint64_t>(micros)});
    report_.rto_micros += static_cast<std::uint64_t>(micros);
    phase_began_ = now;
    options_.say(fmt::format("{}: {} ms", name, micros / 1000));
  }

  const Config& config_;
  const DrillOptions& options_;
  DrillLink& link_;
  DrillLoadOptions load_;
  DrillReport report_;
  std::optional<AckJournal> journal_;
  std::optional<DrillWriter> writer_;
  std::vector<DrillReader> readers_;
  // Before clients close, in stop_load().
  std::optional<base::Event> stop_writer_, stop_readers_;
  std::optional<std::future<base::Status>> writing_;
  std::vector<std::future<void>> reading_;
  iggy::Client* upstream_ = nullptr;  // of the writer; the stage owns both
  iggy::Client* upstream_for_readers_ = nullptr;
  bool made_ = false;  // the streams are ours
  std::uint64_t killed_at_ = 0;
  std::vector<std::uint64_t> first_after_;
  Steady::time_point phase_began_;
  Stage stage_;  // last: its thread ends first
};

base::Status Drill::prepare() {
  iggy::Client& upstream = stage_.client(config_.upstream_url);
  iggy::Client& downstream = stage_.client(config_.downstream_url);
  for (const std::string& stream : {stream_of(options_.id), links_stream_of(options_.id)}) {
    for (iggy::Client* client : {&upstream, &downstream}) {
      auto there = stage_.on(is_there(*client, stream));
      if (!there) return std::move(there).error();
      if (*there) {
        return base::Error(base::ErrorCode::kAlreadyExists, "drill", stream, "this stream is there, and not made by us",
                           "give another --id, or delete what an older drill left with --cleanup " + options_.id);
      }
    }
  }
  RETURN_IF_ERROR(stage_.on(make_stream(upstream, load_.topic, load_.partitions)));
  made_ = true;
  report_.journal = options_.folder + "/journal";
  auto journal = AckJournal::create(report_.journal);
  if (!journal) return std::move(journal).error();
  journal_.emplace(std::move(*journal));
  writer_.emplace(stage_.clock(), *journal_, load_);
  for (std::uint32_t i = 0; i < load_.readers; ++i) {
    readers_.emplace_back(stage_.clock(), load_, fmt::format("drill-reader-{}", i));
  }
  return base::ok();
}

void Drill::stop_load() {
  if (stop_writer_) stage_.set(*stop_writer_);
  if (stop_readers_) stage_.set(*stop_readers_);
  if (writing_) writing_->wait();
  for (const auto& reading : reading_) reading.wait();
  reading_.clear();
  writing_.reset();
}

base::Status Drill::start_load() {
  std::vector<std::string> consumers;
  for (const DrillReader& reader : readers_) consumers.push_back(reader.name());
  RETURN_IF_ERROR(link_.start(stream_of(options_.id) + "/*", links_stream_of(options_.id) + "/links", consumers));
  upstream_ = &stage_.client(config_.upstream_url);
  upstream_for_readers_ = &stage_.client(config_.upstream_url);
  for (iggy::Client* client : {upstream_, upstream_for_readers_}) {
    auto connected = stage_.on(client->connect());
    if (!connected) return std::move(connected).error();
  }
  stop_writer_.emplace(stage_.io());
  stop_readers_.emplace(stage_.io());
  writing_ = stage_.begin(writer_->run(*upstream_, *stop_writer_));
  for (DrillReader& reader : readers_)
    reading_.push_back(stage_.begin(reader.run(*upstream_for_readers_, *stop_readers_)));
  options_.say(fmt::format("load: {:.0f} messages a second into {} partitions, {} readers", load_.rate,
                           load_.partitions, load_.readers));
  return base::ok();
}

base::Status Drill::rehearse() {
  RETURN_IF_ERROR(start_load());
  // The seed decides when it happens.
  const auto moment =
      options_.load_for + std::chrono::microseconds((load_.seed * 0x9E3779B97F4A7C15ULL >> 32) % 1'000'000);
  const auto kill_at = Steady::now() + moment;
  while (Steady::now() < kill_at) {
    if (writing_->wait_for(kLook) == std::future_status::ready) {
      base::Status ended = writing_->get();
      writing_.reset();
      if (!ended) return std::move(ended).error();
    }
  }
  killed_at_ = base::system_wall_micros();
  phase_began_ = Steady::now();
  options_.say("the upstream is killed");
  RETURN_IF_ERROR(options_.kill());
  RETURN_IF_ERROR(wait("nobody noticed that the upstream is gone", [&] {
    if (writing_->wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      report_.detected_by = "writer";
    } else if (link_.upstream_is_gone()) {
      report_.detected_by = "link";
    }
    return !report_.detected_by.empty();
  }));
  phase("detect");
  // Clients let go of the old primary, as they must: what it may still hold for them is uncertain.
  stage_.set(*stop_writer_);
  stage_.set(*stop_readers_);
  stage_.on(upstream_->close());
  stage_.on(upstream_for_readers_->close());
  stop_load();
  return fail_over_and_move();
}

base::Status Drill::fail_over_and_move() {
  auto predicted = link_.predict();
  if (!predicted) return std::move(predicted).error();
  report_.predicted = std::move(*predicted);
  phase("predict");
  auto stated = link_.fail_over();
  if (!stated) return std::move(stated).error();
  report_.stated = std::move(*stated);
  phase("fail over");
  // Consumers before producers: one that had read what is lost stands ahead of the new primary's end, and goes back to
  // it while that end is still the link's.
  iggy::Client& for_readers = stage_.client(config_.downstream_url);
  auto readers_connected = stage_.on(for_readers.connect());
  if (!readers_connected) return std::move(readers_connected).error();
  for (DrillReader& reader : readers_) {
    auto moved = stage_.on(reader.move_to(for_readers));
    if (!moved) return std::move(moved).error();
    report_.verdict.consumers.push_back({reader.name(), *moved, 0, 0});
  }
  phase("move consumers");
  for (std::uint32_t partition = 0; partition < load_.partitions; ++partition) {
    first_after_.push_back(writer_->next_sequence(partition));
  }
  iggy::Client& downstream = stage_.client(config_.downstream_url);
  auto connected = stage_.on(downstream.connect());
  if (!connected) return std::move(connected).error();
  RETURN_IF_ERROR(stage_.on(writer_->write_one(downstream, options_.give_up)));
  phase("first write");
  const JournalEntry written = journal_->entries().back();
  base::Status seen;
  RETURN_IF_ERROR(wait("what was written to the new primary can't be read there", [&] {
    seen = stage_.on(read_back(downstream, load_, written));
    return seen.has_value();
  }));
  phase("first read");

  stop_writer_.emplace(stage_.io());
  stop_readers_.emplace(stage_.io());
  for (DrillReader& reader : readers_) {
    reading_.push_back(stage_.begin(reader.run(for_readers, *stop_readers_)));
  }
  writing_ = stage_.begin(writer_->run(downstream, *stop_writer_));
  std::this_thread::sleep_for(options_.after_for);
  stage_.set(*stop_writer_);
  base::Status wrote = writing_->get();
  writing_.reset();
  if (!wrote) return std::move(wrote).error();
  return verify();
}

base::Status Drill::verify() {
  iggy::Client& downstream = stage_.client(config_.downstream_url);
  auto connected = stage_.on(downstream.connect());
  if (!connected) return std::move(connected).error();
  auto stored = stage_.on(read_drill(downstream, load_));
  if (!stored) return std::move(stored).error();
  // Readers get as long as they move; what they have not seen then, they skip.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  stop_load();
  std::vector<DrillConsumer> consumers = std::move(report_.verdict.consumers);
  report_.verdict = judge_drill(journal_->entries(), *stored, first_after_, killed_at_, load_.topic.to_string());
  for (std::size_t i = 0; i < readers_.size(); ++i) judge_consumer(consumers[i], readers_[i].processed(), *stored);
  report_.verdict.consumers = std::move(consumers);
  return base::ok();
}

// The old primary comes back with what never got across; the link of the other direction brings it what is new.
base::Status Drill::way_back() {
  const auto begin = Steady::now();
  RETURN_IF_ERROR(options_.restart());
  iggy::Client& downstream = stage_.client(config_.downstream_url);
  iggy::Client& old_primary = stage_.client(config_.upstream_url);
  base::Status connected = base::ok();
  const base::Status came = wait("the old primary did not come back", [&] {
    auto attempt = stage_.on(old_primary.connect());
    connected = attempt ? base::ok() : base::Status(std::move(attempt).error());
    return connected.has_value();
  });
  RETURN_IF_ERROR(connected);
  RETURN_IF_ERROR(came);
  auto there = stage_.on(downstream.connect());
  if (!there) return std::move(there).error();
  auto before = stage_.on(read_drill(old_primary, load_));
  if (!before) return std::move(before).error();
  auto wanted = stage_.on(read_drill(downstream, load_));
  if (!wanted) return std::move(wanted).error();
  DrillFailback& back = report_.failback.emplace();
  back.expected = count_missing(*before, *wanted);
  options_.say(fmt::format("the old primary is back; it holds {} messages that the new one lacks", back.expected));
  auto orphans = link_.fail_back(options_.rebuild);
  if (!orphans) return std::move(orphans).error();
  back.orphans = *orphans;
  std::vector<std::vector<DrillStored>> now;
  base::Status read;
  base::Status converged = wait("the old primary does not get what is new", [&] {
    auto reading = stage_.on(read_drill(old_primary, load_));
    if (!reading) {
      read = std::move(reading).error();
      return false;
    }
    read = base::ok();
    now = std::move(*reading);
    return count_missing(*wanted, now) == 0 && (!options_.rebuild || count_missing(now, *wanted) == 0);
  });
  RETURN_IF_ERROR(read);
  back.missing = count_missing(*wanted, now);
  back.duplicates = count_duplicates(now);
  back.micros = static_cast<std::uint64_t>(std::chrono::duration_cast<base::Duration>(Steady::now() - begin).count());
  options_.say(fmt::format("failed back: {} orphans listed, {} messages missing", back.orphans, back.missing));
  return converged;
}

base::Status Drill::look_on(PredictionReport& checked) {
  // A rate is known after the first seconds.
  RETURN_IF_ERROR(wait("the link does not copy the heartbeats", [&] {
    const auto predicted = link_.predict();
    return predicted && predicted->partitions == load_.partitions && predicted->unknown == 0;
  }));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto end = Steady::now() + options_.load_for;
  iggy::Client& downstream = stage_.client(config_.downstream_url);
  auto connected = stage_.on(downstream.connect());
  if (!connected) return std::move(connected).error();
  while (Steady::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    // What is true lies between: the heartbeats go on while the link is asked.
    auto arrived_before = stage_.on(messages_in(downstream, load_.topic));
    if (!arrived_before) return std::move(arrived_before).error();
    const std::uint64_t acknowledged_before = stage_.on(acknowledged(*journal_));
    auto predicted = link_.predict();
    if (!predicted) return std::move(predicted).error();
    const std::uint64_t acknowledged_after = stage_.on(acknowledged(*journal_));
    auto arrived_after = stage_.on(messages_in(downstream, load_.topic));
    if (!arrived_after) return std::move(arrived_after).error();
    const std::uint64_t said = predicted->messages + predicted->unseen;
    const std::uint64_t most = acknowledged_after - std::min(acknowledged_after, *arrived_before);
    const std::uint64_t least = acknowledged_before - std::min(acknowledged_before, *arrived_after);
    const std::uint64_t error = said > most ? said - most : least - std::min(least, said);
    ++checked.looks;
    checked.acknowledged = acknowledged_after;
    checked.worst_loss = std::max(checked.worst_loss, least);
    if (error <= checked.worst_error) continue;
    checked.worst_error = error;
    checked.worst_predicted = said;
    checked.worst_truth = said > most ? most : least;
    options_.say(fmt::format("{} heartbeats: {} predicted, between {} and {} are missing", acknowledged_after, said,
                             least, most));
  }
  return base::ok();
}

}  // namespace

base::Result<PredictionReport> check_prediction(const Config& config, const DrillOptions& options, DrillLink& link) {
  Drill drill(config, options, link);
  return drill.check();
}

base::Result<DrillReport> run_drill(const Config& config, const DrillOptions& options, DrillLink& link) {
  Drill drill(config, options, link);
  return drill.run();
}

std::vector<std::string> cleanup_drill(const Config& config, const std::string& id) {
  std::vector<std::string> left;
  Stage stage(config);
  const std::vector<std::string> streams = {stream_of(id), links_stream_of(id)};  // after a way back on both sides
  for (const auto& [side, url, its] : {std::tuple("upstream", config.upstream_url, streams),
                                       std::tuple("downstream", config.downstream_url, streams)}) {
    iggy::Client& client = stage.client(url);
    for (const std::string& stream : its) {
      auto deleted = stage.on(delete_stream(client, stream));
      if (deleted) continue;
      left.push_back(fmt::format("{} stream {}: {}", side, stream, deleted.error().to_string()));
      break;  // a side that is gone is said once
    }
  }
  return left;
}

}  // namespace replicator
