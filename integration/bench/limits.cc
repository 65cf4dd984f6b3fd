// iggy-limits: what this machine and these servers could do at best, measured beside every figure of the appliance.
//
//   both   a reader of the upstream and a writer to the downstream at once, which know nothing of each other
//   relay  bytes through a plain read/write loop over loopback TCP: CPU seconds per GB
//
// One line of JSON on stdout. Same batches and depth as the appliance: 4 MiB, one unresolved send per partition.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "integration/load/blocking_client.h"
#include "integration/load/message_source.h"
#include "integration/load/partition_reader.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kBatchBytes = 4ULL * 1024 * 1024;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void fail(const base::Error& error) {
  std::cerr << "iggy-limits: " << error.to_string() << "\n";
  std::exit(1);
}

template <class T>
T value_of(base::Result<T> result) {
  if (!result) fail(result.error());
  return std::move(*result);
}

struct Half {
  std::atomic<std::uint64_t> messages = 0, bytes = 0;
  double seconds = 0;
};

void read_partition(const iggy::ConnectionString& url, const base::TopicName& topic, std::uint32_t partition,
                    Half& half) {
  auto client = value_of(load::BlockingClient::connect(url));
  load::PartitionReader reader(client, topic, partition);
  while (true) {
    const base::RecordBatch batch = value_of(reader.next());
    if (batch.empty()) return;
    half.messages += batch.records.size();
    for (const base::Record& record : batch.records) half.bytes += record.payload_length;
  }
}

// The same batch again and again: making messages is not what is measured.
void write_partition(const iggy::ConnectionString& url, const base::TopicName& topic, std::uint32_t partition,
                     std::uint64_t messages, std::uint32_t size, Half& half) {
  auto client = value_of(load::BlockingClient::connect(url));
  load::MessageOptions options;
  options.min_size = options.max_size = size;
  load::MessageBatch batch;
  constexpr std::uint64_t kPerMessage = 64;  // header of a message, in either dialect
  const std::uint64_t count = std::clamp<std::uint64_t>(kBatchBytes / (size + kPerMessage), 1, messages);
  for (std::uint64_t i = 0; i < count; ++i) batch.add(options, partition, i, 1'700'000'000'000'000);
  for (std::uint64_t sent = 0; sent < messages;) {
    const std::size_t now = std::min<std::uint64_t>(count, messages - sent);
    auto frame = value_of(iggy::encode_send(client.dialect(), topic, partition, std::span(batch.records()).first(now)));
    value_of(client.send(frame));
    sent += now;
    half.messages += now;
    half.bytes += now * size;
  }
}

struct BothOptions {
  std::string upstream, downstream, stream, topic, target;
  std::uint32_t size = 1000;
};

int run_both(const BothOptions& options) {
  const auto up = value_of(iggy::parse_connection_string(options.upstream));
  const auto down = value_of(iggy::parse_connection_string(options.downstream));
  const base::TopicName source{options.stream, options.topic};
  const base::TopicName target{options.stream, options.target};
  auto client = value_of(load::BlockingClient::connect(up));
  const auto reply = value_of(client.call(iggy::GetTopic{.stream = source.stream, .topic = source.topic}));
  const auto* const details = std::get_if<iggy::TopicDetails>(&reply);
  if (details == nullptr) fail({base::ErrorCode::kNotFound, "both", source.to_string(), "not there"});

  Half reading, writing;
  const Clock::time_point start = Clock::now();
  const auto half_of = [&](Half& half, auto&& each) {
    return std::jthread([&, each] {
      {
        std::vector<std::jthread> partitions;
        for (const iggy::Partition& partition : details->partitions) partitions.emplace_back(each, partition);
      }
      half.seconds = seconds_since(start);
    });
  };
  {
    const std::jthread reader =
        half_of(reading, [&](const iggy::Partition& partition) { read_partition(up, source, partition.id, reading); });
    const std::jthread writer = half_of(writing, [&](const iggy::Partition& partition) {
      write_partition(down, target, partition.id, partition.messages_count, options.size, writing);
    });
  }
  std::cout << fmt::format(
      R"({{"read_messages":{},"read_bytes":{},"read_seconds":{:.4f},"written_messages":{},"written_bytes":{},"written_seconds":{:.4f}}})"
      "\n",
      reading.messages.load(), reading.bytes.load(), reading.seconds, writing.messages.load(), writing.bytes.load(),
      writing.seconds);
  return 0;
}

// A connected pair of loopback TCP sockets.
std::array<int, 2> tcp_pair() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::bind(listener, generic, length) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, generic, &length) != 0 || ::connect(client, generic, length) != 0) {
    fail({base::ErrorCode::kConnectFailed, "relay", "127.0.0.1", "no loopback connection"});
  }
  const int server = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  return {client, server};
}

int run_relay(std::uint64_t total) {
  const std::array<int, 2> in = tcp_pair();
  const std::array<int, 2> out = tcp_pair();
  std::jthread feeder([&] {
    const std::vector<char> block(256 * 1024);
    for (std::uint64_t left = total; left > 0;) {
      const ssize_t done = ::write(in[0], block.data(), std::min<std::uint64_t>(left, block.size()));
      if (done <= 0) return;
      left -= static_cast<std::uint64_t>(done);
    }
    ::shutdown(in[0], SHUT_WR);
  });
  std::jthread drain([&] {
    std::vector<char> block(256 * 1024);
    while (::read(out[1], block.data(), block.size()) > 0) {
    }
  });
  rusage before{}, after{};
  ::getrusage(RUSAGE_THREAD, &before);
  const Clock::time_point start = Clock::now();
  std::vector<char> block(256 * 1024);
  std::uint64_t moved = 0;
  while (true) {
    const ssize_t got = ::read(in[1], block.data(), block.size());
    if (got <= 0) break;
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote = ::write(out[0], block.data() + done, static_cast<std::size_t>(got - done));
      if (wrote <= 0) fail({base::ErrorCode::kConnectionLost, "relay", "127.0.0.1", "the other end is gone"});
      done += wrote;
    }
    moved += static_cast<std::uint64_t>(got);
  }
  ::shutdown(out[0], SHUT_WR);
  const double wall = seconds_since(start);
  ::getrusage(RUSAGE_THREAD, &after);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  const double cpu =
      seconds(after.ru_utime) + seconds(after.ru_stime) - seconds(before.ru_utime) - seconds(before.ru_stime);
  std::cout << fmt::format(R"({{"bytes":{},"seconds":{:.4f},"cpu_seconds":{:.4f}}})"
                           "\n",
                           moved, wall, cpu);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("iggy-limits: what could be reached at best");
  app.require_subcommand(1);
  BothOptions both;
  CLI::App* const both_verb = app.add_subcommand("both", "read the upstream and write to the downstream, at once");
  both_verb->add_option("--upstream", both.upstream)->required();
  both_verb->add_option("--downstream", both.downstream)->required();
  both_verb->add_option("--stream", both.stream, "on both sides")->required();
  both_verb->add_option("--topic", both.topic, "read to its end")->required();
  both_verb->add_option("--target", both.target, "topic downstream that takes as many messages; must be there")
      ->required();
  both_verb->add_option("--size", both.size, "payload bytes of each message written")->capture_default_str();
  std::uint64_t bytes = 1'000'000'000;
  CLI::App* const relay_verb = app.add_subcommand("relay", "a plain read/write loop");
  relay_verb->add_option("--bytes", bytes)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return *both_verb ? run_both(both) : run_relay(bytes);
}
