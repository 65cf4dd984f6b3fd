#include "integration/load/compare.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace load {
namespace {

struct Hash {
  std::size_t operator()(const base::Digest& digest) const { return digest.low; }
};

}  // namespace

Difference compare_logs(const std::vector<Entry>& a, const std::vector<Entry>& b, bool ignore_zero_ids, bool prefix) {
  // One key per message: its digest, or the one without id where `a` has none.
  std::vector<base::Digest> left, right;
  std::unordered_set<base::Digest, Hash> without_id;
  for (const Entry& entry : a) {
    const bool no_id = ignore_zero_ids && entry.zero_id;
    left.push_back(no_id ? entry.digest_no_id : entry.digest);
    if (no_id) without_id.insert(entry.digest_no_id);
  }
  for (const Entry& entry : b)
    right.push_back(without_id.contains(entry.digest_no_id) ? entry.digest_no_id : entry.digest);

  Difference out;
  std::size_t same = 0;
  while (same < left.size() && same < right.size() && left[same] == right[same]) ++same;
  out.equal = same;
  const bool b_ended = same == right.size();
  if (same < right.size() || (same < left.size() && !(prefix && b_ended))) out.first = same;

  // Behind the common front: give each message of `b` a position in `a`.
  std::unordered_map<base::Digest, std::vector<std::size_t>, Hash> positions;
  for (std::size_t i = left.size(); i-- > same;) positions[left[i]].push_back(i);  // earliest at the back
  std::unordered_set<base::Digest, Hash> front(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(same));
  std::vector<std::size_t> matched;
  for (std::size_t i = same; i < right.size(); ++i) {
    const auto at = positions.find(right[i]);
    if (at == positions.end()) {
      front.contains(right[i]) ? ++out.duplicates : ++out.extra;
    } else if (at->second.empty()) {
      ++out.duplicates;
    } else {
      matched.push_back(at->second.back());
      at->second.pop_back();
    }
  }
  // The longest run in order is equal; what is not part of it is out of order.
  std::vector<std::size_t> tails;
  for (std::size_t position : matched) {
    const auto at = std::ranges::lower_bound(tails, position);
    at == tails.end() ? tails.push_back(position) : static_cast<void>(*at = position);
  }
  out.equal += tails.size();
  out.out_of_order = matched.size() - tails.size();
  std::size_t expected = left.size() - same;
  if (prefix) {  // what `a` holds behind the last message that `b` has is still to come
    const std::size_t end = matched.empty() ? same : *std::ranges::max_element(matched) + 1;
    expected = end - same;
  }
  out.missing = expected - matched.size();
  return out;
}

}  // namespace load
