#include "integration/sandbox/journal.h"

#include <array>
#include <utility>

namespace sandbox {
namespace {

// Record: | 1 put, 0 erase: u8 | key length u16 | key | value |.
base::Bytes head_of(std::string_view key, bool put) {
  base::Bytes head;
  base::ByteWriter writer(head);
  writer.u8(put ? 1 : 0);
  writer.u16(static_cast<std::uint16_t>(key.size()));
  writer.text(key);
  return head;
}

}  // namespace

Journal::Journal(const std::filesystem::path& path) {
  {
    const RecordFile old = RecordFile::open(path, [this](const base::BufferPtr&, base::ByteView payload) {
      base::ByteReader reader(payload);
      const bool put = reader.u8() == 1;
      std::string key = reader.text(reader.u16());
      const base::ByteView value = reader.rest();
      if (put) {
        values_[std::move(key)] = base::Bytes(value.begin(), value.end());
      } else {
        values_.erase(key);
      }
    });
  }
  std::filesystem::path fresh = path;
  fresh += ".new";
  std::filesystem::remove(fresh);
  file_ = RecordFile::open(fresh, [](const base::BufferPtr&, base::ByteView) {});
  for (const auto& [key, value] : values_) log(key, &value);
  file_.sync();
  std::filesystem::rename(fresh, path);
}

void Journal::log(std::string_view key, const base::Bytes* value) {
  if (!file_.is_open()) return;
  const base::Bytes head = head_of(key, value != nullptr);
  const std::array<base::ByteView, 2> pieces{head, value != nullptr ? base::ByteView(*value) : base::ByteView()};
  file_.append(pieces);
}

void Journal::put(std::string key, base::Bytes value) {
  log(key, &value);
  values_[std::move(key)] = std::move(value);
}

void Journal::erase(std::string_view key) {
  const auto at = values_.find(key);
  if (at == values_.end()) return;
  log(key, nullptr);
  values_.erase(at);
}

void Journal::erase_prefix(std::string_view prefix) {
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix);) {
    log(at->first, nullptr);
    at = values_.erase(at);
  }
}

const base::Bytes* Journal::find(std::string_view key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

void Journal::for_each(std::string_view prefix,
                       const std::function<void(std::string_view, base::ByteView)>& each) const {
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at)
    each(std::string_view(at->first).substr(prefix.size()), at->second);
}

}  // namespace sandbox
