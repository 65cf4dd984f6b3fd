#include "replicator/drill/drill_load.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "iggy/codec/send.h"

namespace replicator {
namespace {

constexpr std::string_view kHead = "drill ";
constexpr std::uint32_t kReadCount = 500;
constexpr base::Duration kPause = std::chrono::milliseconds(20);

std::uint64_t next(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

base::Task<base::Result<base::RecordBatch>> poll(iggy::Client& client, const DrillLoadOptions& options,
                                                 std::uint32_t partition, std::uint64_t from, std::string who) {
  iggy::PollMessages request;
  request.consumer.id = std::move(who);
  request.stream = options.topic.stream;
  request.topic = options.topic.topic;
  request.partition = partition;
  request.strategy = {iggy::PollStrategy::Kind::kOffset, from};
  request.count = kReadCount;
  auto call = client.call(std::move(request), iggy::Role::kPoll, partition);
  auto reply = co_await std::move(call);
  CO_RETURN_IF_ERROR(reply);
  auto* polled = std::get_if<iggy::PolledMessages>(&*reply);
  if (polled == nullptr) co_return base::RecordBatch{};
  co_return std::move(polled->batch);
}

}  // namespace

base::Record drill_message(const DrillLoadOptions& options, std::uint32_t partition, std::uint64_t sequence,
                           std::uint64_t now, base::Bytes& body) {
  std::uint64_t state = options.seed * 0x2545F4914F6CDD1DULL + partition * 0x9E3779B97F4A7C15ULL + sequence;
  const std::string head = fmt::format("{}{} ", kHead, sequence);
  body.resize(std::max<std::size_t>(options.size, head.size()));
  std::memcpy(body.data(), head.data(), head.size());
  for (std::size_t at = head.size(); at < body.size(); at += 8) {
    const std::uint64_t filler = next(state);
    std::memcpy(body.data() + at, &filler, std::min<std::size_t>(8, body.size() - at));
  }
  base::Record record;
  record.id = {next(state), next(state) | 1};  // never 0
  record.origin_timestamp = now;
  record.payload_length = static_cast<std::uint32_t>(body.size());
  record.body = body;
  return record;
}

std::optional<std::uint64_t> drill_sequence(const base::Record& record) {
  std::string_view text = base::as_text(record.payload());
  if (!text.starts_with(kHead)) return std::nullopt;
  text.remove_prefix(kHead.size());
  std::uint64_t sequence = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), sequence).ec != std::errc{}) return std::nullopt;
  return sequence;
}

DrillWriter::DrillWriter(base::Clock& clock, AckJournal& journal, DrillLoadOptions options)
    : clock_(clock), journal_(journal), options_(std::move(options)), sequences_(options_.partitions, 0) {}

base::Task<base::Status> DrillWriter::send(iggy::Client& client, std::uint32_t partition) {
  std::vector<base::Bytes> bodies(options_.batch);
  std::vector<base::Record> records;
  const std::uint64_t first = sequences_[partition];
  for (base::Bytes& body : bodies) {
    records.push_back(drill_message(options_, partition, sequences_[partition]++, clock_.wall_micros(), body));
  }
  for (;;) {
    auto frame = iggy::encode_send(client.server().dialect, options_.topic, partition, records);
    CO_RETURN_IF_ERROR(frame);
    iggy::SendTrace trace;
    auto sending = client.send(options_.topic, partition, std::move(*frame), options_.batch, partition, &trace);
    auto sent = co_await std::move(sending);
    const bool again = !sent && sent.error().code() == base::ErrorCode::kNotAccepted;
    if (again) {
      auto sleeping = clock_.sleep_for(kPause);
      co_await std::move(sleeping);
      continue;
    }
    auto noted = journal_.add(partition, first, records, clock_.wall_micros(), sent.has_value());
    CO_RETURN_IF_ERROR(noted);
    CO_RETURN_IF_ERROR(sent);
    co_return base::ok();
  }
}

base::Task<base::Status> DrillWriter::run(iggy::Client& client, base::Event& stop) {
  failed_ = false;
  const base::Duration pause(static_cast<std::int64_t>(1e6 * options_.batch / options_.rate));
  base::TimePoint due = clock_.now();
  while (!stop.is_set()) {
    auto sending = send(client, static_cast<std::uint32_t>(turn_++ % options_.partitions));
    auto sent = co_await std::move(sending);
    if (!sent) {
      failed_ = true;
      co_return sent;
    }
    due = std::max(due + pause, clock_.now() - std::chrono::seconds(1));  // what is late is not made up for for ever
    auto waiting = base::wait_until(clock_, stop, due);
    co_await std::move(waiting);
  }
  co_return base::ok();
}

base::Task<base::Status> DrillWriter::write_one(iggy::Client& client, base::Duration patience) {
  const base::TimePoint give_up = clock_.now() + patience;
  for (;;) {
    auto sending = send(client, 0);
    auto sent = co_await std::move(sending);
    if (sent || clock_.now() >= give_up) co_return sent;
    auto sleeping = clock_.sleep_for(kPause);
    co_await std::move(sleeping);
  }
}

DrillReader::DrillReader(base::Clock& clock, DrillLoadOptions options, std::string name)
    : clock_(clock),
      options_(std::move(options)),
      name_(std::move(name)),
      next_(options_.partitions, 0),
      processed_(options_.partitions) {}

// True when there was something.
base::Task<base::Result<bool>> DrillReader::read_once(iggy::Client& client, std::uint32_t partition) {
  auto polling = poll(client, options_, partition, next_[partition], name_);
  auto batch = co_await std::move(polling);
  CO_RETURN_IF_ERROR(batch);
  if (batch->empty()) co_return false;
  for (const base::Record& record : batch->records) {
    if (const auto sequence = drill_sequence(record)) ++processed_[partition][*sequence];
  }
  next_[partition] = batch->records.back().offset + 1;
  iggy::StoreConsumerOffset store;
  store.consumer.id = name_;
  store.stream = options_.topic.stream;
  store.topic = options_.topic.topic;
  store.partition = partition;
  store.offset = next_[partition] - 1;
  auto storing = client.call(std::move(store), iggy::Role::kPoll, partition);
  auto stored = co_await std::move(storing);
  CO_RETURN_IF_ERROR(stored);
  co_return true;
}

base::Task<void> DrillReader::run(iggy::Client& client, base::Event& stop) {
  while (!stop.is_set()) {
    bool found = false;
    for (std::uint32_t partition = 0; partition < options_.partitions && !stop.is_set(); ++partition) {
      auto reading = read_once(client, partition);
      auto read = co_await std::move(reading);
      if (!read && read.error().is_cancelled()) co_return;
      found = found || read.value_or(false);
    }
    if (found) continue;
    auto waiting = base::wait_until(clock_, stop, clock_.now() + kPause);
    co_await std::move(waiting);
  }
}

base::Task<base::Result<std::string>> DrillReader::move_to(iggy::Client& client) {
  bool any_stored = false;
  for (std::uint32_t partition = 0; partition < options_.partitions; ++partition) {
    iggy::GetConsumerOffset get;
    get.consumer.id = name_;
    get.stream = options_.topic.stream;
    get.topic = options_.topic.topic;
    get.partition = partition;
    auto getting = client.call(std::move(get), iggy::Role::kPoll, partition);
    auto got = co_await std::move(getting);
    CO_RETURN_IF_ERROR(got);
    if (const auto* offset = std::get_if<iggy::ConsumerOffset>(&*got)) {
      next_[partition] = offset->stored_offset + 1;
      any_stored = true;
      continue;
    }
    auto asking = client.call(iggy::GetTopic{options_.topic.stream, options_.topic.topic});
    auto reply = co_await std::move(asking);
    CO_RETURN_IF_ERROR(reply);
    const auto* details = std::get_if<iggy::TopicDetails>(&*reply);
    if (details == nullptr || partition >= details->partitions.size()) continue;
    const iggy::Partition& view = details->partitions[partition];
    next_[partition] = std::min(next_[partition], view.messages_count == 0 ? 0 : view.current_offset + 1);
  }
  co_return std::string(any_stored ? "stored" : "own");
}

base::Task<base::Result<std::vector<std::vector<DrillStored>>>> read_drill(iggy::Client& client,
                                                                           DrillLoadOptions options) {
  std::vector<std::vector<DrillStored>> all(options.partitions);
  for (std::uint32_t partition = 0; partition < options.partitions; ++partition) {
    for (std::uint64_t next = 0;;) {
      auto polling = poll(client, options, partition, next, "drill-verify");
      auto batch = co_await std::move(polling);
      CO_RETURN_IF_ERROR(batch);
      if (batch->empty()) break;
      for (const base::Record& record : batch->records) {
        const auto sequence = drill_sequence(record);
        if (sequence) all[partition].push_back({*sequence, base::digest_of(record)});
      }
      next = batch->records.back().offset + 1;
    }
  }
  co_return all;
}

}  // namespace replicator
