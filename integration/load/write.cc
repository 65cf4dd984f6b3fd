#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "integration/load/blocking_client.h"
#include "integration/load/commands.h"
#include "integration/load/partition_reader.h"

namespace load {
namespace {

using Clock = std::chrono::steady_clock;

// One line per message: `partition seq id size digest`, with `? ` in front when nobody knows whether it is stored.
class AckJournal {
 public:
  explicit AckJournal(const std::string& path) {
    if (!path.empty()) file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    broken_ = !path.empty() && file_ < 0;
  }
  AckJournal(const AckJournal&) = delete;
  AckJournal& operator=(const AckJournal&) = delete;
  ~AckJournal() {
    if (file_ >= 0) ::close(file_);
  }
  // On disk when it returns true.
  bool add(std::uint32_t partition, const MessageBatch& batch, std::size_t first, std::size_t count, bool certain) {
    if (file_ < 0) return !broken_;
    std::string lines;
    for (std::size_t i = first; i < first + count; ++i) {
      const base::Record& record = batch.records()[i];
      lines += fmt::format("{}{} {} {} {} {}\n", certain ? "" : "? ", partition, batch.sequences()[i],
                           record.id.to_string(), record.payload_length, base::digest_of(record).to_string());
    }
    for (std::size_t done = 0; done < lines.size();) {
      const ssize_t written = ::write(file_, lines.data() + done, lines.size() - done);
      if (written <= 0) return false;
      done += static_cast<std::size_t>(written);
    }
    return ::fsync(file_) == 0;
  }

 private:
  int file_ = -1;
  bool broken_ = false;
};

base::Status create(BlockingClient& client, const WriteOptions& options) {
  auto stream = client.call(iggy::CreateStream{.name = options.topic.stream, .options = {}});
  if (!stream && stream.error().code() != base::ErrorCode::kAlreadyExists) return stream.error();
  auto topic = client.call(iggy::CreateTopic{.stream = options.topic.stream,
                                             .name = options.topic.topic,
                                             .partitions_count = options.partitions,
                                             .settings = {}});
  if (!topic && topic.error().code() != base::ErrorCode::kAlreadyExists) return topic.error();
  return base::ok();
}

int fail(const base::Error& error) {
  std::fprintf(stderr, "iggy-load: %s\n", error.to_string().c_str());
  return 1;
}

}  // namespace

int run_write(const WriteOptions& options) {
  std::optional<BlockingClient> client;
  const auto connect = [&]() -> base::Status {
    auto connected = BlockingClient::connect(options.url);
    if (!connected) return connected.error();
    client.emplace(std::move(*connected));
    return base::ok();
  };
  const auto connect_patiently = [&]() -> base::Status {
    while (true) {
      base::Status connected = connect();
      if (connected || !options.retry || connected.error().code() == base::ErrorCode::kCredentials) return connected;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  };
  if (base::Status connected = connect_patiently(); !connected) return fail(connected.error());
  if (options.create)
    if (base::Status created = create(*client, options); !created) return fail(created.error());
  auto partitions = partitions_of(*client, options.topic);
  if (!partitions) return fail(partitions.error());
  AckJournal journal(options.journal);

  std::vector<std::uint64_t> sequence(*partitions, options.first_sequence);
  std::uint64_t sent = 0, acknowledged = 0, uncertain = 0, bytes = 0;
  const Clock::time_point start = Clock::now();
  for (std::uint32_t turn = 0; sent < options.count; ++turn) {
    const std::uint32_t partition = options.only_partition.value_or(turn % *partitions);
    if (partition >= *partitions)
      return fail({base::ErrorCode::kNotFound, "write", options.topic.to_string(), "no such partition"});
    const std::uint64_t size = std::min<std::uint64_t>(options.batch, options.count - sent);
    MessageBatch batch;
    const std::uint64_t now = base::system_wall_micros();
    for (std::uint64_t i = 0; i < size; ++i) batch.add(options.message, partition, sequence[partition]++, now);
    sent += size;
    if (options.rate > 0)
      std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                                static_cast<double>(sent) / options.rate)));

    for (std::size_t first = 0; first < size;) {
      const std::span rest = std::span(batch.records()).subspan(first);
      const auto fitting = iggy::fit(client->dialect(), rest, 16 * 1024 * 1024);
      if (!fitting) return fail(fitting.error());
      auto frame = iggy::encode_send(client->dialect(), options.topic, partition, rest.first(*fitting));
      if (!frame) return fail(frame.error());
      const auto confirmed = client->send(*frame);
      if (confirmed) {
        if (!journal.add(partition, batch, first, *fitting, true))
          return fail({base::ErrorCode::kStateUnavailable, "write", options.journal, "can't write the journal"});
        acknowledged += *fitting;
        bytes += frame->bytes;
        first += *fitting;
        continue;
      }
      const bool not_done = confirmed.error().code() == base::ErrorCode::kNotAccepted;
      if (!options.retry) {
        journal.add(partition, batch, first, *fitting, false);
        return fail(confirmed.error());
      }
      if (!not_done) {
        // It may be stored: never sent again, only noted.
        if (!journal.add(partition, batch, first, *fitting, false))
          return fail({base::ErrorCode::kStateUnavailable, "write", options.journal, "can't write the journal"});
        uncertain += *fitting;
        first += *fitting;
      }
      std::fprintf(stderr, "iggy-load: %s; connecting again\n", confirmed.error().to_string().c_str());
      if (base::Status connected = connect_patiently(); !connected) return fail(connected.error());
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("acknowledged=%llu uncertain=%llu bytes=%llu seconds=%.3f\n",
              static_cast<unsigned long long>(acknowledged), static_cast<unsigned long long>(uncertain),
              static_cast<unsigned long long>(bytes), seconds);
  return 0;
}

}  // namespace load
