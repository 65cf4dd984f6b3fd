#include "integration/sandbox/partition_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "iggy/codec/legacy.h"
#include "iggy/codec/vsr.h"

namespace sandbox {
namespace {

// Record of the partition file: | begin u64 | count u32 | timestamp u64 | odd deltas u8 | chunk bytes |.
constexpr std::size_t kEntrySize = 21;

std::size_t legacy_message_size(base::ByteView at) {
  return iggy::legacy::kMessageHeaderSize + base::load<std::uint32_t>(at.data() + 48) +
         base::load<std::uint32_t>(at.data() + 52);
}

// The messages of `chunk` with offsets in [from, current]: how many to skip, how many to take.
struct Range {
  std::uint32_t skip = 0, take = 0;
};
Range range_of(const Chunk& chunk, std::uint64_t from, std::uint64_t current) {
  if (!chunk.odd_deltas) {
    const auto skip = static_cast<std::uint32_t>(from > chunk.begin ? from - chunk.begin : 0);
    return {skip, chunk.count - skip};
  }
  Range out;
  const auto base_offset = base::load<std::uint64_t>(chunk.bytes.data() + 8);
  std::size_t at = iggy::vsr::kBatchHeaderSize;
  for (std::uint32_t i = 0; i < chunk.count; ++i) {
    const std::byte* frame = chunk.bytes.data() + at;
    const std::uint64_t offset = base_offset + base::load<std::uint32_t>(frame + 24);
    if (out.take == 0 && offset < from) ++out.skip;
    if (offset >= from && offset <= current) ++out.take;
    at += iggy::vsr::kFrameHeaderSize + base::load<std::uint32_t>(frame + 32) + base::load<std::uint32_t>(frame + 36);
  }
  out.take = std::min(out.take, chunk.count - out.skip);
  return out;
}

}  // namespace

Chunk cut(iggy::Dialect dialect, const Chunk& chunk, std::uint32_t first, std::uint32_t count) {
  base::check(first <= chunk.count && count <= chunk.count - first, "a cut stays inside its chunk");
  if (first == 0 && count == chunk.count) return chunk;
  Chunk part = chunk;
  part.begin = chunk.begin + first;
  part.count = count;
  if (dialect == iggy::Dialect::kLegacy) {
    std::size_t skip = 0;
    for (std::uint32_t i = 0; i < first; ++i) skip += legacy_message_size(chunk.bytes.subspan(skip));
    std::size_t size = 0;
    for (std::uint32_t i = 0; i < count; ++i) size += legacy_message_size(chunk.bytes.subspan(skip + size));
    part.bytes = chunk.bytes.subspan(skip, size);
    return part;
  }
  const base::Bytes sliced = iggy::vsr::slice_batch(chunk.bytes, first, count);
  auto buffer = std::make_shared<base::Buffer>(sliced.size());
  std::ranges::copy(sliced, buffer->data());
  part.buffer = buffer;
  part.bytes = buffer->view();
  return part;
}

PartitionLog::PartitionLog(const Profile& profile, LogSettings settings, std::filesystem::path path)
    : profile_(&profile), settings_(settings), path_(std::move(path)), segments_(1) {
  if (path_.empty()) return;
  file_ = RecordFile::open(path_, [this](base::BufferPtr buffer, base::ByteView payload) {
    if (payload.size() < kEntrySize) return;
    Chunk chunk{.buffer = std::move(buffer),
                .bytes = payload.subspan(kEntrySize),
                .begin = base::load<std::uint64_t>(payload.data()),
                .count = base::load<std::uint32_t>(payload.data() + 8),
                .timestamp = base::load<std::uint64_t>(payload.data() + 12),
                .odd_deltas = payload[20] != std::byte{0}};
    const bool was_full = segments_.back().bytes >= settings_.segment_size;
    add(std::move(chunk));
    rotate_if_full(was_full);
  });
}

void PartitionLog::add(Chunk chunk) {
  Segment& active = segments_.back();
  if (active.chunks.empty()) active.start = chunk.begin;
  active.messages += chunk.count;
  active.bytes += chunk.bytes.size();
  active.last_timestamp = chunk.timestamp;
  messages_ += chunk.count;
  bytes_ += chunk.bytes.size();
  last_timestamp_ = std::max(last_timestamp_, chunk.timestamp);
  next_offset_ = chunk.end();
  active.chunks.push_back(std::move(chunk));
}

void PartitionLog::rotate_if_full(bool was_full) {
  const bool full = segments_.back().bytes >= settings_.segment_size;
  if (profile_->rotate_after_full ? was_full : full) rotate();
}

void PartitionLog::rotate() {
  Segment next;
  next.start = next_offset_;
  segments_.push_back(std::move(next));
}

bool PartitionLog::append(Chunk chunk) {
  base::check(chunk.begin == next_offset_, "appended at the end");
  const bool was_full = segments_.back().bytes >= settings_.segment_size;
  unsaved_messages_ += chunk.count;
  unsaved_bytes_ += chunk.bytes.size();
  unsaved_.push_back(chunk);
  add(std::move(chunk));
  if (unsaved_messages_ < settings_.messages_to_save && unsaved_bytes_ < settings_.bytes_to_save && !was_full)
    return true;
  const bool saved = save();
  rotate_if_full(was_full);
  return saved;
}

bool PartitionLog::write(const Chunk& chunk) {
  if (path_.empty()) return true;
  std::array<std::byte, kEntrySize> entry{};
  base::store(entry.data(), chunk.begin);
  base::store(entry.data() + 8, chunk.count);
  base::store(entry.data() + 12, chunk.timestamp);
  base::store(entry.data() + 20, static_cast<std::uint8_t>(chunk.odd_deltas ? 1 : 0));
  const std::array<base::ByteView, 2> pieces{base::ByteView(entry), chunk.bytes};
  return file_.append(pieces);
}

bool PartitionLog::save() {
  if (unsaved_.empty()) return true;
  bool good = !disk_full_;
  if (unreadable_from_ == ~0ULL && good) {
    for (const Chunk& chunk : unsaved_) good = good && write(chunk);
    if (settings_.fsync) file_.sync();
  }
  // A hole in the file: what comes after it is acked and lost.
  if (!good && unreadable_from_ == ~0ULL) unreadable_from_ = next_offset_;
  unsaved_.clear();
  unsaved_messages_ = unsaved_bytes_ = 0;
  return good;
}

std::uint64_t PartitionLog::first_offset() const {
  for (const Segment& segment : segments_)
    if (!segment.chunks.empty()) return segment.chunks.front().begin;
  return next_offset_;
}

std::vector<Chunk> PartitionLog::read(std::uint64_t from, std::uint64_t count) const {
  std::vector<Chunk> out;
  auto segment = std::ranges::partition_point(segments_, [&](const Segment& s) { return s.end() <= from; });
  for (; segment != segments_.end() && count > 0; ++segment) {
    auto chunk = std::ranges::partition_point(segment->chunks, [&](const Chunk& c) { return c.end() <= from; });
    for (; chunk != segment->chunks.end() && count > 0; ++chunk) {
      if (chunk->begin >= unreadable_from_) return out;
      const Range range = range_of(*chunk, from, current_offset());
      const auto take = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, range.take));
      if (take == 0) continue;
      out.push_back(cut(profile_->dialect, *chunk, range.skip, take));
      count -= take;
    }
  }
  return out;
}

std::uint64_t PartitionLog::offset_at(std::uint64_t timestamp) const {
  for (const Segment& segment : segments_) {
    if (segment.chunks.empty() || segment.last_timestamp < timestamp) continue;
    auto chunk = std::ranges::partition_point(segment.chunks, [&](const Chunk& c) { return c.timestamp < timestamp; });
    if (chunk != segment.chunks.end()) return chunk->begin;
  }
  return next_offset_;
}

void PartitionLog::pop_segment() {
  messages_ -= segments_.front().messages;
  bytes_ -= segments_.front().bytes;
  segments_.pop_front();
}

void PartitionLog::delete_segments(std::uint32_t count, std::uint64_t barrier) {
  for (; count > 0 && segments_.size() > 1 && segments_.front().end() <= barrier + 1; --count) pop_segment();
}

void PartitionLog::clean(std::uint64_t now, std::uint64_t expiry, std::uint64_t max_bytes, std::uint64_t barrier) {
  const auto removable = [&] { return segments_.size() > 1 && segments_.front().end() <= barrier + 1; };
  if (expiry != 0)
    while (removable() && now > expiry && segments_.front().last_timestamp <= now - expiry) pop_segment();
  if (max_bytes != 0)
    while (removable() && bytes_ > max_bytes) pop_segment();
}

void PartitionLog::expire_all() {
  save();
  if (!segments_.back().chunks.empty()) rotate();
  while (segments_.size() > 1) pop_segment();
}

void PartitionLog::trim(std::uint64_t offset) {
  save();
  while (segments_.size() > 1 && segments_.front().end() <= offset) pop_segment();
  Segment& segment = segments_.front();
  while (!segment.chunks.empty() && segment.chunks.front().begin < offset) {
    Chunk& front = segment.chunks.front();
    const auto gone = static_cast<std::uint32_t>(std::min(offset, front.end()) - front.begin);
    if (gone == front.count) {
      segment.chunks.pop_front();
    } else {
      front = cut(profile_->dialect, front, gone, front.count - gone);
    }
    segment.messages -= gone;
    messages_ -= gone;
  }
  segment.start = segment.chunks.empty() ? next_offset_ : segment.chunks.front().begin;
  bytes_ -= segment.bytes;
  segment.bytes = 0;
  for (const Chunk& chunk : segment.chunks) segment.bytes += chunk.bytes.size();
  bytes_ += segment.bytes;
}

void PartitionLog::lose_tail(std::uint64_t count) {
  save();
  while (count > 0 && messages_ > 0) {
    while (segments_.back().chunks.empty()) segments_.pop_back();
    Segment& segment = segments_.back();
    Chunk& last = segment.chunks.back();
    const auto gone = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, last.count));
    const std::uint64_t size = last.bytes.size();
    next_offset_ = last.end() - gone;
    std::uint64_t left = 0;
    if (gone == last.count) {
      segment.chunks.pop_back();
    } else {
      last = cut(profile_->dialect, last, 0, last.count - gone);
      left = last.bytes.size();
    }
    segment.bytes -= size - left;
    bytes_ -= size - left;
    segment.messages -= gone;
    messages_ -= gone;
    count -= gone;
  }
  rewrite_file();
}

void PartitionLog::continue_at(std::uint64_t offset) {
  if (offset <= next_offset_) return;
  next_offset_ = offset;
  if (segments_.back().chunks.empty()) segments_.back().start = offset;
}

void PartitionLog::rewind() {
  base::check(messages_ == 0, "only an empty log is rewound");
  next_offset_ = 0;
  segments_.assign(1, Segment{});
  rewrite_file();
}

void PartitionLog::rewrite_file() {
  if (path_.empty()) return;
  std::filesystem::path fresh = path_;
  fresh += ".new";
  std::filesystem::remove(fresh);
  file_ = RecordFile::open(fresh, [](base::BufferPtr, base::ByteView) {});
  for (const Segment& segment : segments_)
    for (const Chunk& chunk : segment.chunks) write(chunk);
  std::filesystem::rename(fresh, path_);
}

}  // namespace sandbox
