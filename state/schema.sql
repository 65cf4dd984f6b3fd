-- The state file of one link: schema version 1. Later versions are changes in migrations.cc.
--
-- Offsets, counts and generations are integers from 0 to 2^63 - 1; times are µs since the Unix epoch, 0 = never.
-- Ranges are half-open. `up_` is upstream, `down_` downstream. SQLite keeps no checksum of its pages, so rows that
-- decide positions carry one of their own (`checksum`: XXH3-64 of all other columns).

-- One row about the file itself.
CREATE TABLE file (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  clean INTEGER NOT NULL CHECK (clean IN (0, 1))  -- 1 = closed in order; 0 = open, or its process died
) STRICT;
INSERT INTO file (id, clean) VALUES (1, 1);

-- One row: the pair of clusters that this file belongs to.
CREATE TABLE link (
  row                 INTEGER PRIMARY KEY CHECK (row = 1),
  id                  TEXT    NOT NULL CHECK (id != ''),        -- random hex, made once
  upstream            TEXT    NOT NULL,                         -- URLs without secrets, as last used
  downstream          TEXT    NOT NULL,
  upstream_identity   TEXT    NOT NULL,                         -- '' = unknown
  downstream_identity TEXT    NOT NULL,
  generation          INTEGER NOT NULL CHECK (generation >= 0), -- of the marker
  state               TEXT    NOT NULL CHECK (state IN ('active', 'promoted')),
  created_at          INTEGER NOT NULL CHECK (created_at >= 0)
) STRICT;

CREATE TRIGGER link_keeps_its_identity BEFORE UPDATE ON link
WHEN NEW.id != OLD.id
BEGIN
  SELECT RAISE(ABORT, 'the state file belongs to another link');
END;

CREATE TRIGGER link_goes_forwards_only BEFORE UPDATE ON link
WHEN NEW.generation < OLD.generation OR (OLD.state = 'promoted' AND NEW.state != 'promoted')
BEGIN
  SELECT RAISE(ABORT, 'the generation of a link never goes back, and a promoted link stays promoted');
END;

-- One row per partition that was ever part of the link.
CREATE TABLE partition (
  id                     INTEGER PRIMARY KEY,
  up_stream              TEXT    NOT NULL,
  up_topic               TEXT    NOT NULL,
  partition              INTEGER NOT NULL CHECK (partition >= 0),
  down_stream            TEXT    NOT NULL,                          -- names after renaming
  down_topic             TEXT    NOT NULL,
  generation             INTEGER NOT NULL CHECK (generation >= 0),  -- raised by whatever rewinds or restarts it
  incarnation            INTEGER NOT NULL CHECK (incarnation >= 0), -- counts histories; keys the offset map
  up_created_stream      INTEGER NOT NULL CHECK (up_created_stream >= 0),  -- created_at's, 0 = not known yet
  up_created_topic       INTEGER NOT NULL CHECK (up_created_topic >= 0),
  up_created_partition   INTEGER NOT NULL CHECK (up_created_partition >= 0),
  down_created_stream    INTEGER NOT NULL CHECK (down_created_stream >= 0),
  down_created_topic     INTEGER NOT NULL CHECK (down_created_topic >= 0),
  down_created_partition INTEGER NOT NULL CHECK (down_created_partition >= 0),
  watermark              INTEGER NOT NULL CHECK (watermark >= 0),   -- next upstream offset to copy
  down_end               INTEGER NOT NULL CHECK (down_end >= 0),    -- downstream end that belongs to it
  anchor_up              INTEGER CHECK (anchor_up >= 0 AND anchor_up < watermark),     -- NULL = nothing copied yet
  anchor_down            INTEGER CHECK (anchor_down >= 0 AND anchor_down < down_end),
  anchor_id              BLOB    CHECK (length(anchor_id) = 16),     -- little-endian, as on the wire
  anchor_digest          BLOB    CHECK (length(anchor_digest) = 16),
  desired                INTEGER NOT NULL CHECK (desired IN (0, 1)),  -- 0 = running, 1 = paused
  fault_kind             TEXT    NOT NULL,                            -- '' = none
  fault_detail           TEXT    NOT NULL,
  fault_since            INTEGER NOT NULL CHECK (fault_since >= 0),
  fault_up_begin         INTEGER NOT NULL CHECK (fault_up_begin >= 0),
  fault_up_end           INTEGER NOT NULL CHECK (fault_up_end >= fault_up_begin),
  copied                 INTEGER NOT NULL CHECK (copied >= 0),
  copied_bytes           INTEGER NOT NULL CHECK (copied_bytes >= 0),
  skipped                INTEGER NOT NULL CHECK (skipped >= 0),
  duplicates             INTEGER NOT NULL CHECK (duplicates >= 0),
  errors                 INTEGER NOT NULL CHECK (errors >= 0),
  caught_up_at           INTEGER NOT NULL CHECK (caught_up_at >= 0),
  durability             TEXT    NOT NULL,
  checksum               INTEGER NOT NULL,
  UNIQUE (up_stream, up_topic, partition),
  CHECK ((anchor_up IS NULL) = (anchor_down IS NULL) AND (anchor_up IS NULL) = (anchor_id IS NULL)
         AND (anchor_up IS NULL) = (anchor_digest IS NULL)),
  CHECK (fault_kind != '' OR (fault_detail = '' AND fault_since = 0 AND fault_up_end = 0))
) STRICT;

CREATE TRIGGER partition_goes_forwards_only BEFORE UPDATE ON partition
WHEN NEW.generation < OLD.generation
  OR NEW.incarnation < OLD.incarnation
  OR (NEW.generation = OLD.generation AND (NEW.watermark < OLD.watermark OR NEW.incarnation != OLD.incarnation))
BEGIN
  SELECT RAISE(ABORT, 'a watermark never goes back within a generation');
END;

CREATE TRIGGER partition_is_kept BEFORE DELETE ON partition
BEGIN
  SELECT RAISE(ABORT, 'the position of a partition is never deleted');
END;

-- The offset map: [up_begin, up_begin + length) upstream is at [down_begin, down_begin + length) downstream.
-- One row as long as both sides stay contiguous.
CREATE TABLE range (
  partition_id INTEGER NOT NULL REFERENCES partition (id),
  incarnation  INTEGER NOT NULL,
  up_begin     INTEGER NOT NULL CHECK (up_begin >= 0),
  down_begin   INTEGER NOT NULL CHECK (down_begin >= 0),
  length       INTEGER NOT NULL CHECK (length > 0),
  confirmed    INTEGER NOT NULL CHECK (confirmed IN (0, 1)),  -- 0 = assumed: never used to translate
  checksum     INTEGER NOT NULL,
  PRIMARY KEY (partition_id, incarnation, up_begin)
) STRICT, WITHOUT ROWID;

-- The ledger: upstream offsets that will never be copied, or downstream messages that are not ours. Never deleted.
CREATE TABLE gap (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  partition_id INTEGER NOT NULL REFERENCES partition (id),
  incarnation  INTEGER NOT NULL,
  up_begin     INTEGER NOT NULL CHECK (up_begin >= 0),
  up_end       INTEGER NOT NULL CHECK (up_end >= up_begin),
  cause        TEXT    NOT NULL CHECK (cause != ''),
  detail       TEXT    NOT NULL,
  found_at     INTEGER NOT NULL CHECK (found_at >= 0),
  resolved_as  TEXT    NOT NULL,  -- '' = open
  resolved_by  TEXT    NOT NULL,
  resolved_at  INTEGER NOT NULL CHECK (resolved_at >= 0)
) STRICT;

-- Audit: every operator action and every automatic repair. Only ever appended.
CREATE TABLE event (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  at     INTEGER NOT NULL CHECK (at >= 0),
  kind   TEXT    NOT NULL CHECK (kind != ''),
  object TEXT    NOT NULL,  -- partition, topic, or '' for the link
  actor  TEXT    NOT NULL,  -- "appliance" or user@host
  detail TEXT    NOT NULL
) STRICT;
