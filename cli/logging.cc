#include "cli/logging.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace cli {
namespace {

using LinePrinter = std::string (*)(std::uint64_t, std::string_view, std::string_view);

class Formatter final : public spdlog::formatter {
 public:
  explicit Formatter(LinePrinter print) : print_(print) {}
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto at = std::chrono::duration_cast<std::chrono::microseconds>(message.time.time_since_epoch()).count();
    const auto level = spdlog::level::to_string_view(message.level);
    const std::string line = print_(static_cast<std::uint64_t>(at), std::string_view(level.data(), level.size()),
                                    std::string_view(message.payload.data(), message.payload.size()));
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<Formatter>(print_); }

 private:
  LinePrinter print_;
};

std::string time_text(std::uint64_t at) {
  const auto seconds = static_cast<std::time_t>(at / 1'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:06}Z", std::string_view(text, length), at % 1'000'000);
}

// As inside a JSON string; also keeps a text record on one line.
std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (quotes && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string scrub(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t scheme = text.find("://");
    if (scheme == std::string_view::npos) break;
    const std::size_t begin = scheme + 3;
    const std::size_t end = std::min(text.find_first_of(" \t\n\"'/?", begin), text.size());
    const std::size_t at = text.substr(0, end).rfind('@');
    out += text.substr(0, begin);
    if (at != std::string_view::npos && at >= begin) {
      const std::size_t colon = text.substr(0, at).find(':', begin);
      if (colon != std::string_view::npos) out += text.substr(begin, colon + 1 - begin);
      out += "***";
      text.remove_prefix(at);
    } else {
      text.remove_prefix(begin);
    }
  }
  return out + std::string(text);
}

std::string log_line_json(std::uint64_t at, std::string_view level, std::string_view message) {
  return fmt::format("{{\"time\":\"{}\",\"level\":\"{}\",\"message\":\"{}\"}}\n", time_text(at), level,
                     escaped(scrub(message), true));
}

std::string log_line_text(std::uint64_t at, std::string_view level, std::string_view message) {
  return fmt::format("{} {:<7} {}\n", time_text(at), level, escaped(scrub(message), false));
}

void setup_logging(const replicator::Config& config) {
  auto logger = std::make_shared<spdlog::logger>("iggy-replicate", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::make_unique<Formatter>(config.log_format == "json" ? log_line_json : log_line_text));
  logger->set_level(spdlog::level::from_str(config.log_level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace cli
