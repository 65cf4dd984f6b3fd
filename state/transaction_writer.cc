#include "state/transaction_writer.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace state {
namespace {

std::uint64_t end_of(const RangeRow& range) { return range.up_begin + range.length; }

bool continues(const RangeRow& last, const RangeRow& next) {
  return next.up_begin == end_of(last) && next.down_begin == last.down_begin + last.length &&
         next.confirmed == last.confirmed;
}

// A fault without a kind is no fault: its other fields mean nothing.
FaultRow normalised(const FaultRow& fault) { return fault.active() ? fault : FaultRow{}; }

}  // namespace

base::Result<TransactionWriter> TransactionWriter::prepare(sqlite::Database& database) {
  TransactionWriter writer(database);
  const std::string find = rows::select_partition_sql() + "WHERE up_stream = ?1 AND up_topic = ?2 AND partition = ?3";
  const std::string last_range = std::string("SELECT ") + rows::kRangeColumns +
                                 " FROM range WHERE partition_id = ?1 AND incarnation = ?2 "
                                 "ORDER BY up_begin DESC LIMIT 1";
  const std::initializer_list<std::pair<sqlite::Statement*, std::string>> all = {
      {&writer.find_, find},
      {&writer.put_, rows::upsert_partition_sql()},
      {&writer.last_range_, last_range},
      {&writer.put_range_, rows::kUpsertRange},
      {&writer.cut_ranges_, "DELETE FROM range WHERE partition_id = ?1 AND incarnation = ?2 AND up_begin >= ?3"},
      {&writer.put_gap_,
       "INSERT INTO gap (partition_id, incarnation, up_begin, up_end, cause, detail, found_at, resolved_as, "
       "resolved_by, resolved_at, digest, file, down_offset) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"},
      {&writer.change_gap_,
       "UPDATE gap SET resolved_as = ?3, resolved_by = ?4, resolved_at = ?5, down_offset = ?6 "
       "WHERE id = ?1 AND partition_id = ?2"},
      {&writer.close_gap_,
       "UPDATE gap SET resolved_as = ?3, resolved_by = ?4, resolved_at = ?5 "
       "WHERE id = ?1 AND partition_id = ?2 AND resolved_as = ''"},
      {&writer.gap_is_there_, "SELECT id FROM gap WHERE id = ?1 AND partition_id = ?2"},
      {&writer.count_error_,
       "INSERT INTO error_count (partition_id, cause, count) VALUES (?1, ?2, ?3) "
       "ON CONFLICT (partition_id, cause) DO UPDATE SET count = count + ?3"},
      {&writer.put_event_, "INSERT INTO event (at, kind, object, actor, detail) VALUES (?1, ?2, ?3, ?4, ?5)"},
      {&writer.link_id_, "SELECT id FROM link"},
      {&writer.put_link_,
       "INSERT INTO link (row, id, upstream, downstream, upstream_identity, downstream_identity, generation, state, "
       "created_at) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (row) DO UPDATE SET id = ?1, upstream = ?2, "
       "downstream = ?3, upstream_identity = ?4, downstream_identity = ?5, generation = ?6, state = ?7, "
       "created_at = ?8"},
      {&writer.put_verified_,
       "INSERT OR REPLACE INTO verified (partition_id, generation, up_end, down_end, at) VALUES (?1, ?2, ?3, ?4, ?5)"},
      {&writer.put_consumer_,
       "INSERT OR REPLACE INTO consumer_offset (partition_id, kind, name, up_offset, seen_at, down_offset, synced_at, "
       "state, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
  };
  for (const auto& [statement, sql] : all) {
    auto prepared = sqlite::Statement::prepare(database, sql);
    if (!prepared) return prepared.error();
    *statement = *std::move(prepared);
  }
  return writer;
}

base::Result<Applied> TransactionWriter::write(const Transaction& transaction) {
  Applied applied;
  for (const PartitionCommit& commit : transaction.commits) RETURN_IF_ERROR(write_commit(commit, applied));
  for (const PartitionReplace& replace : transaction.replaces) RETURN_IF_ERROR(write_replace(replace, applied));
  for (const PartitionNote& note : transaction.notes) RETURN_IF_ERROR(write_note(note, applied));
  for (const EventRow& event : transaction.events) {
    RETURN_IF_ERROR(put_event_.run(event.at, event.kind, event.object, event.actor, event.detail));
  }
  if (transaction.link) RETURN_IF_ERROR(write_link(*transaction.link));
  for (const VerifiedRow& row : transaction.verified) RETURN_IF_ERROR(write_verified(row, applied));
  for (const ConsumerRow& row : transaction.consumers) RETURN_IF_ERROR(write_consumer(row));
  return applied;
}

TransactionWriter::Found TransactionWriter::find(const base::PartitionKey& key) {
  std::optional<rows::Partition> found;
  RETURN_IF_ERROR(find_.each(
      [&](sqlite::Row& row) -> base::Status {
        auto partition = rows::read_partition(*database_, row);
        if (!partition) return partition.error();
        found = *std::move(partition);
        return base::ok();
      },
      key.topic.stream, key.topic.topic, key.partition));
  return found;
}

TransactionWriter::Found TransactionWriter::find_current(const base::PartitionKey& key, std::uint64_t generation,
                                                         Applied& applied) {
  auto found = find(key);
  if (found && (!*found || (*found)->row.generation != generation)) {
    applied.stale.push_back(key);
    found->reset();
  }
  return found;
}

base::Status TransactionWriter::write_commit(const PartitionCommit& commit, Applied& applied) {
  auto found = find_current(commit.key, commit.generation, applied);
  if (!found) return found.error();
  if (!*found) return base::ok();
  PartitionRow& row = (*found)->row;
  row.watermark = commit.watermark;  // the trigger refuses a step back
  row.down_end = commit.down_end;
  if (commit.anchor) row.anchor = commit.anchor;
  if (commit.caught_up_at != 0) row.caught_up_at = commit.caught_up_at;
  add(row.counters, commit.added);
  RETURN_IF_ERROR(rows::write_partition(put_, (*found)->id, row));
  RETURN_IF_ERROR(count_errors((*found)->id, commit.added));
  RETURN_IF_ERROR(append_ranges((*found)->id, row, commit.ranges));
  RETURN_IF_ERROR(append_gaps((*found)->id, row, commit.gaps));
  return change_gaps((*found)->id, row, commit.gap_changes);
}

base::Status TransactionWriter::write_replace(const PartitionReplace& replace, Applied& applied) {
  auto found = find(replace.row.key);
  if (!found) return found.error();
  std::optional<std::int64_t> id;
  if (*found) {
    if (replace.row.generation <= (*found)->row.generation) {
      applied.stale.push_back(replace.row.key);
      return base::ok();
    }
    id = (*found)->id;
  }
  PartitionRow row = replace.row;
  row.fault = normalised(row.fault);
  RETURN_IF_ERROR(rows::write_partition(put_, id, row));
  if (!id) {
    auto created = find(row.key);
    if (!created) return created.error();
    id = (*created)->id;
  }
  RETURN_IF_ERROR(cut_ranges(*id, row));
  RETURN_IF_ERROR(append_ranges(*id, row, replace.ranges));
  RETURN_IF_ERROR(append_gaps(*id, row, replace.gaps));
  RETURN_IF_ERROR(change_gaps(*id, row, replace.gap_changes));
  return close_gaps(*id, replace);
}

base::Status TransactionWriter::write_note(const PartitionNote& note, Applied& applied) {
  auto found = find_current(note.key, note.generation, applied);
  if (!found) return found.error();
  if (!*found) return base::ok();
  PartitionRow& row = (*found)->row;
  if (note.fault) row.fault = normalised(*note.fault);
  if (note.desired) row.desired = *note.desired;
  if (note.up_created) row.up_created = *note.up_created;
  if (note.down_created) row.down_created = *note.down_created;
  if (note.durability) row.durability = *note.durability;
  add(row.counters, note.added);
  RETURN_IF_ERROR(rows::write_partition(put_, (*found)->id, row));
  RETURN_IF_ERROR(count_errors((*found)->id, note.added));
  RETURN_IF_ERROR(append_gaps((*found)->id, row, note.gaps));
  return change_gaps((*found)->id, row, note.gap_changes);
}

base::Status TransactionWriter::count_errors(std::int64_t id, const Counters& added) {
  for (const auto& [cause, count] : added.errors_by_cause) RETURN_IF_ERROR(count_error_.run(id, cause, count));
  return base::ok();
}

base::Status TransactionWriter::write_link(const LinkRow& link) {
  std::string stored;
  RETURN_IF_ERROR(link_id_.each([&](sqlite::Row& row) {
    stored = row.text();
    return base::ok();
  }));
  if (!stored.empty() && stored != link.id) {
    return base::Error(base::ErrorCode::kWrongLink, "write", database_->path(),
                       "the state file belongs to link " + stored + ", not " + link.id,
                       "each link has a state file of its own: check --state");
  }
  return put_link_.run(link.id, link.upstream, link.downstream, link.upstream_identity, link.downstream_identity,
                       link.generation, link.state, link.created_at);
}

base::Status TransactionWriter::write_verified(const VerifiedRow& row, Applied& applied) {
  auto found = find_current(row.key, row.generation, applied);
  if (!found) return found.error();
  if (!*found) return base::ok();
  return put_verified_.run((*found)->id, row.generation, row.up_end, row.down_end, row.at);
}

base::Status TransactionWriter::write_consumer(const ConsumerRow& row) {
  auto found = find(row.key);
  if (!found) return found.error();
  if (!*found) return base::ok();
  return put_consumer_.run((*found)->id, row.kind, row.name, row.up_offset, row.seen_at, row.down_offset, row.synced_at,
                           row.state, row.detail);
}

base::Result<std::optional<RangeRow>> TransactionWriter::last_range(std::int64_t id, std::uint64_t incarnation) {
  std::optional<RangeRow> last;
  RETURN_IF_ERROR(last_range_.each(
      [&](sqlite::Row& row) -> base::Status {
        auto range = rows::read_range(*database_, row, id, incarnation);
        if (!range) return range.error();
        last = *range;
        return base::ok();
      },
      id, incarnation));
  return last;
}

base::Status TransactionWriter::cut_ranges(std::int64_t id, const PartitionRow& row) {
  RETURN_IF_ERROR(cut_ranges_.run(id, row.incarnation, row.watermark));
  auto last = last_range(id, row.incarnation);
  if (!last) return last.error();
  if (!*last || end_of(**last) <= row.watermark) return base::ok();
  RangeRow straddling = **last;
  straddling.length = row.watermark - straddling.up_begin;
  return rows::write_range(put_range_, id, row.incarnation, straddling);
}

base::Status TransactionWriter::append_ranges(std::int64_t id, const PartitionRow& row,
                                              const std::vector<RangeRow>& ranges) {
  if (ranges.empty()) return base::ok();
  auto found = last_range(id, row.incarnation);
  if (!found) return found.error();
  std::optional<RangeRow> last = *found;
  bool dirty = false;
  for (const RangeRow& range : ranges) {
    if (range.length == 0 || end_of(range) < range.up_begin || end_of(range) > row.watermark) {
      return broken(row, "a range at " + std::to_string(range.up_begin) + " of " + std::to_string(range.length) +
                             " is empty or ends above the watermark " + std::to_string(row.watermark));
    }
    if (last && range.up_begin < end_of(*last)) {
      return broken(row, "a range at " + std::to_string(range.up_begin) + " begins below " +
                             std::to_string(end_of(*last)) + ", where the offset map ends");
    }
    if (last && continues(*last, range)) {
      last->length += range.length;
    } else {
      if (dirty) RETURN_IF_ERROR(rows::write_range(put_range_, id, row.incarnation, *last));
      last = range;
    }
    dirty = true;
  }
  return rows::write_range(put_range_, id, row.incarnation, *last);
}

base::Status TransactionWriter::append_gaps(std::int64_t id, const PartitionRow& row, const std::vector<GapRow>& gaps) {
  for (const GapRow& gap : gaps) {
    if (gap.key != row.key) return broken(row, "a ledger row names another partition: " + gap.key.to_string());
    RETURN_IF_ERROR(put_gap_.run(id, gap.incarnation, gap.up_begin, gap.up_end, gap.cause, gap.detail, gap.found_at,
                                 gap.resolved_as, gap.resolved_by, gap.resolved_at, rows::digest_blob(gap.digest),
                                 gap.file, gap.down_offset));
  }
  return base::ok();
}

base::Status TransactionWriter::close_gaps(std::int64_t id, const PartitionReplace& replace) {
  if (replace.close_gaps.empty()) return base::ok();
  if (replace.resolved_as.empty() || replace.resolved_at == 0) {
    return broken(replace.row, "ledger rows are closed without saying how and when");
  }
  for (const std::int64_t gap : replace.close_gaps) {
    RETURN_IF_ERROR(expect_gap(gap, id, replace.row));
    RETURN_IF_ERROR(close_gap_.run(gap, id, replace.resolved_as, replace.resolved_by, replace.resolved_at));
  }
  return base::ok();
}

base::Status TransactionWriter::change_gaps(std::int64_t id, const PartitionRow& row,
                                            const std::vector<GapChange>& changes) {
  for (const GapChange& change : changes) {
    RETURN_IF_ERROR(expect_gap(change.id, id, row));
    RETURN_IF_ERROR(
        change_gap_.run(change.id, id, change.resolved_as, change.resolved_by, change.resolved_at, change.down_offset));
  }
  return base::ok();
}

base::Status TransactionWriter::expect_gap(std::int64_t gap, std::int64_t id, const PartitionRow& row) {
  bool is_there = false;
  RETURN_IF_ERROR(gap_is_there_.each(
      [&](sqlite::Row&) {
        is_there = true;
        return base::ok();
      },
      gap, id));
  if (is_there) return base::ok();
  return broken(row, "ledger row " + std::to_string(gap) + " is not of this partition");
}

base::Error TransactionWriter::broken(const PartitionRow& row, const std::string& what) const {
  return {base::ErrorCode::kInternal, "write", database_->path(), row.key.to_string() + ": " + what};
}

}  // namespace state
