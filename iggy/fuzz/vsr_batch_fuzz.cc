// One stored batch: whatever decodes can be sliced anywhere, and every slice is valid.
#include <algorithm>

#include "base/check.h"
#include "iggy/codec/vsr.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iggy::vsr;
  const base::ByteView batch = std::as_bytes(std::span(data, size));
  std::vector<base::Record> records;
  if (!decode_batch(batch, records, false)) return 0;
  base::Bytes stamped(batch.begin(), batch.end());
  auto header = read_batch_header(stamped);
  header->batch_checksum = batch_checksum(*header, base::ByteView(stamped).subspan(kBatchHeaderSize)).value();
  write_batch_header(stamped.data(), *header);
  const auto count = static_cast<std::uint32_t>(records.size());
  const std::uint32_t first = data[0] % count;
  const base::Bytes slice = slice_batch(stamped, first, count - first);
  std::vector<base::Record> sliced;
  base::check(decode_batch(slice, sliced, false).has_value(), "a slice is a batch");
  base::check(sliced.size() == count - first, "with the messages asked for");
  const bool same = std::ranges::equal(sliced, std::span(records).subspan(first), [](const auto& a, const auto& b) {
    return a.offset == b.offset && std::ranges::equal(a.raw, b.raw);
  });
  base::check(same, "in the same bytes and at the same offsets");
  return 0;
}
