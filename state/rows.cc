#include "state/rows.h"

#include <array>
#include <tuple>
#include <utility>

#include "base/digest.h"

namespace state::rows {
namespace {

// All columns between `id` and `checksum`, in the order of values_of() and read_partition().
constexpr std::array kColumns = {"up_stream",
                                 "up_topic",
                                 "partition",
                                 "down_stream",
                                 "down_topic",
                                 "generation",
                                 "incarnation",
                                 "up_created_stream",
                                 "up_created_topic",
                                 "up_created_partition",
                                 "down_created_stream",
                                 "down_created_topic",
                                 "down_created_partition",
                                 "watermark",
                                 "down_end",
                                 "anchor_up",
                                 "anchor_down",
                                 "anchor_id",
                                 "anchor_digest",
                                 "desired",
                                 "fault_kind",
                                 "fault_detail",
                                 "fault_since",
                                 "fault_up_begin",
                                 "fault_up_end",
                                 "copied",
                                 "copied_bytes",
                                 "skipped",
                                 "duplicates",
                                 "errors",
                                 "caught_up_at",
                                 "durability"};

base::Bytes pair_bytes(std::uint64_t low, std::uint64_t high) {
  base::Bytes bytes;
  base::ByteWriter writer(bytes);
  writer.u64(low);
  writer.u64(high);
  return bytes;
}

// REQUIRES: `row` outlives the tuple.
auto values_of(const PartitionRow& row) {
  using Number = std::uint64_t;
  using Text = std::string_view;
  std::optional<Number> anchor_up, anchor_down;
  std::optional<base::Bytes> anchor_id, anchor_digest;
  if (row.anchor) {
    anchor_up = row.anchor->up_offset;
    anchor_down = row.anchor->down_offset;
    anchor_id = pair_bytes(row.anchor->id.low, row.anchor->id.high);
    anchor_digest = pair_bytes(row.anchor->digest.low, row.anchor->digest.high);
  }
  return std::make_tuple(Text(row.key.topic.stream), Text(row.key.topic.topic), Number{row.key.partition},
                         Text(row.downstream.stream), Text(row.downstream.topic), row.generation, row.incarnation,
                         row.up_created.stream, row.up_created.topic, row.up_created.partition, row.down_created.stream,
                         row.down_created.topic, row.down_created.partition, row.watermark, row.down_end, anchor_up,
                         anchor_down, std::move(anchor_id), std::move(anchor_digest), static_cast<Number>(row.desired),
                         Text(row.fault.kind), Text(row.fault.detail), row.fault.since, row.fault.up_begin,
                         row.fault.up_end, row.counters.copied, row.counters.copied_bytes, row.counters.skipped,
                         row.counters.duplicates, row.counters.errors, row.caught_up_at, Text(row.durability));
}
static_assert(std::tuple_size_v<decltype(values_of(std::declval<const PartitionRow&>()))> == kColumns.size());

void put(base::ByteWriter& writer, std::uint64_t value) { writer.u64(value); }
void put(base::ByteWriter& writer, std::string_view value) { writer.text32(value); }
void put(base::ByteWriter& writer, const base::Bytes& value) { writer.bytes(value); }
template <class T>
void put(base::ByteWriter& writer, const std::optional<T>& value) {
  writer.u8(value ? 1 : 0);
  if (value) put(writer, *value);
}

std::int64_t checksum_of(const PartitionRow& row) {
  base::Bytes bytes;
  base::ByteWriter writer(bytes);
  std::apply([&](const auto&... values) { (put(writer, values), ...); }, values_of(row));
  return static_cast<std::int64_t>(base::xxh3_64(bytes));
}

std::int64_t checksum_of(std::int64_t partition_id, std::uint64_t incarnation, const RangeRow& range) {
  base::Bytes bytes;
  base::ByteWriter writer(bytes);
  for (const std::uint64_t value : {static_cast<std::uint64_t>(partition_id), incarnation, range.up_begin,
                                    range.down_begin, range.length, std::uint64_t{range.confirmed}}) {
    writer.u64(value);
  }
  return static_cast<std::int64_t>(base::xxh3_64(bytes));
}

std::pair<std::uint64_t, std::uint64_t> read_pair(sqlite::Row& row) {
  base::ByteReader reader(row.blob());
  const std::uint64_t low = reader.u64();
  const std::uint64_t high = reader.u64();
  if (!reader.ok() || !reader.at_end()) row.fail();
  return {low, high};
}

Incarnation read_incarnation(sqlite::Row& row) {
  Incarnation created;
  created.stream = row.u64();
  created.topic = row.u64();
  created.partition = row.u64();
  return created;
}

std::string join(const char* before, const char* after = "") {
  std::string text;
  for (const char* column : kColumns) {
    if (!text.empty()) text += ", ";
    text += before;
    text += column;
    text += after;
  }
  return text;
}

}  // namespace

const std::string& select_partition_sql() {
  static const std::string sql = "SELECT id, " + join("") + ", checksum FROM partition ";
  return sql;
}

const std::string& upsert_partition_sql() {
  static const std::string sql = [] {
    std::string marks;
    for (std::size_t i = 0; i < kColumns.size(); ++i) marks += "?, ";
    return "INSERT INTO partition (id, " + join("") + ", checksum) VALUES (?, " + marks +
           "?) ON CONFLICT (id) DO UPDATE SET (" + join("") + ", checksum) = (" + join("excluded.") +
           ", excluded.checksum)";
  }();
  return sql;
}

base::Result<Partition> read_partition(const sqlite::Database& database, sqlite::Row& row) {
  Partition stored;
  PartitionRow& to = stored.row;
  stored.id = row.i64();
  to.key.topic.stream = row.text();
  to.key.topic.topic = row.text();
  to.key.partition = row.u32();
  to.downstream.stream = row.text();
  to.downstream.topic = row.text();
  to.generation = row.u64();
  to.incarnation = row.u64();
  to.up_created = read_incarnation(row);
  to.down_created = read_incarnation(row);
  to.watermark = row.u64();
  to.down_end = row.u64();
  if (row.next_is_null()) {
    row.skip(4);
  } else {
    Anchor anchor;
    anchor.up_offset = row.u64();
    anchor.down_offset = row.u64();
    std::tie(anchor.id.low, anchor.id.high) = read_pair(row);
    std::tie(anchor.digest.low, anchor.digest.high) = read_pair(row);
    to.anchor = anchor;
  }
  to.desired = row.u64() == 0 ? Desired::kRunning : Desired::kPaused;
  to.fault.kind = row.text();
  to.fault.detail = row.text();
  to.fault.since = row.u64();
  to.fault.up_begin = row.u64();
  to.fault.up_end = row.u64();
  to.counters.copied = row.u64();
  to.counters.copied_bytes = row.u64();
  to.counters.skipped = row.u64();
  to.counters.duplicates = row.u64();
  to.counters.errors = row.u64();
  to.caught_up_at = row.u64();
  to.durability = row.text();
  if (const std::int64_t checksum = row.i64(); !row.ok() || checksum != checksum_of(to)) {
    return database.corrupt("read", "the row of partition " + to.key.to_string() + " does not have its checksum");
  }
  return stored;
}

base::Status write_partition(sqlite::Statement& upsert, std::optional<std::int64_t> id, const PartitionRow& row) {
  return std::apply([&](const auto&... values) { return upsert.run(id, values..., checksum_of(row)); }, values_of(row));
}

base::Result<RangeRow> read_range(const sqlite::Database& database, sqlite::Row& row, std::int64_t partition_id,
                                  std::uint64_t incarnation) {
  RangeRow range;
  range.up_begin = row.u64();
  range.down_begin = row.u64();
  range.length = row.u64();
  range.confirmed = row.u64() != 0;
  if (const std::int64_t checksum = row.i64(); !row.ok() || checksum != checksum_of(partition_id, incarnation, range)) {
    return database.corrupt("read", "an offset-map row at upstream offset " + std::to_string(range.up_begin) +
                                        " does not have its checksum");
  }
  return range;
}

base::Status write_range(sqlite::Statement& upsert, std::int64_t partition_id, std::uint64_t incarnation,
                         const RangeRow& range) {
  return upsert.run(partition_id, incarnation, range.up_begin, range.down_begin, range.length, range.confirmed,
                    checksum_of(partition_id, incarnation, range));
}

std::optional<base::Bytes> digest_blob(const std::optional<base::Digest>& digest) {
  if (!digest) return std::nullopt;
  return pair_bytes(digest->low, digest->high);
}

std::optional<base::Digest> read_digest(sqlite::Row& row) {
  if (row.next_is_null()) {
    row.skip();
    return std::nullopt;
  }
  base::Digest digest;
  std::tie(digest.low, digest.high) = read_pair(row);
  return digest;
}

}  // namespace state::rows
