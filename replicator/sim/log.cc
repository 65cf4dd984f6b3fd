#include "replicator/sim/log.h"

#include <algorithm>
#include <iterator>

namespace replicator::sim {

namespace {

constexpr std::uint64_t kReservation = 1000;

auto first_from(const std::deque<Message>& messages, std::uint64_t offset) {
  return std::ranges::lower_bound(messages, offset, {}, &Message::offset);
}

}  // namespace

std::uint64_t Log::visible_end(base::TimePoint now) const {
  return old_end && now < old_end->until ? std::min(old_end->end, next) : next;
}

std::uint64_t Log::visible_count(base::TimePoint now) const {
  return static_cast<std::uint64_t>(first_from(kept, visible_end(now)) - kept.begin());
}

std::vector<Message> Log::read(std::uint64_t from, std::uint64_t count, base::TimePoint now, bool& refused) const {
  const bool in_limbo = limbo && now < limbo->until;
  const std::deque<Message>& messages = in_limbo ? limbo->old : kept;
  const std::uint64_t end = in_limbo ? ~0ULL : visible_end(now);
  std::vector<Message> found;
  for (auto at = first_from(messages, from); at != messages.end() && at->offset < end && found.size() < count; ++at) {
    const auto hidden = std::ranges::find_if(
        unreadable, [at](const Unreadable& range) { return at->offset >= range.begin && at->offset < range.end; });
    if (hidden != unreadable.end()) {
      refused = found.empty() && hidden->refused;
      break;
    }
    found.push_back(*at);
  }
  return found;
}

std::vector<Message> Log::last(std::uint64_t count, base::TimePoint now) const {
  const std::uint64_t end = limbo && now < limbo->until ? ~0ULL : visible_end(now);
  const std::deque<Message>& messages = limbo && now < limbo->until ? limbo->old : kept;
  const auto behind = first_from(messages, end);
  const auto begin = behind - std::min<std::ptrdiff_t>(behind - messages.begin(), static_cast<std::ptrdiff_t>(count));
  return {begin, behind};
}

std::vector<Message> Log::at_time(std::uint64_t micros, std::uint64_t count) const {
  std::vector<Message> found;
  for (const Message& message : kept) {
    if (message.timestamp >= micros && found.size() < count) found.push_back(message);
  }
  return found;
}

std::uint64_t Log::append(std::vector<Message> messages, std::uint64_t wall) {
  const std::uint64_t base = next;
  const std::uint64_t time = std::max(wall, kept.empty() ? 0 : kept.back().timestamp);
  for (Message& message : messages) {
    message.offset = next++;
    message.timestamp = time;
    if (dedups) ids.emplace(message.id.high, message.id.low);
    kept.push_back(std::move(message));
  }
  sealed = false;
  if (persisted) saved = next;
  return base;
}

void Log::crash(Flavour flavour) {
  limbo.reset();
  old_end.reset();
  ids.clear();
  const bool unsaved = next > saved;
  kept.erase(first_from(kept, saved), kept.end());
  if (flavour == Flavour::kVsrReserving) {
    if (unsaved) next = saved = (next / kReservation + 1) * kReservation;
  } else {
    next = saved = std::min(next, saved);
    // Observed: a 0.8 server whose segments have all expired begins again at 0.
    if (flavour == Flavour::kLegacy && kept.empty()) next = saved = 0;
  }
  if (flavour == Flavour::kLegacy && !shifted) {
    created_at += 1'200'000;
    shifted = true;
  }
}

void Log::clear(bool acked_before_done, base::TimePoint until) {
  if (acked_before_done) limbo = Limbo{until, kept, false};
  kept.clear();
  gone.clear();
  unreadable.clear();
  ids.clear();
  next = saved = 0;
}

void Log::expire(std::uint64_t floor) {
  const auto end = std::ranges::lower_bound(kept, floor, {}, &Message::offset);
  std::move(kept.begin(), end, std::back_inserter(gone));
  kept.erase(kept.begin(), end);
  saved = std::max(saved, std::min(floor, next));
}

void Log::clean(std::uint64_t expiry, std::uint64_t max_bytes, std::uint64_t wall) {
  while (!kept.empty()) {
    const std::uint64_t index = kept.front().offset / segment;
    if (!sealed && index == kept.back().offset / segment) return;  // the active one stays
    const auto end = std::ranges::lower_bound(kept, (index + 1) * segment, {}, &Message::offset);
    std::uint64_t bytes = 0;
    for (const Message& message : kept) bytes += message.body.size();
    const bool too_old = expiry != 0 && std::prev(end)->timestamp + expiry <= wall;
    const bool too_big = max_bytes != 0 && bytes > max_bytes;
    if (!too_old && !too_big) return;
    expire((index + 1) * segment);
  }
}

}  // namespace replicator::sim
