-- Migration: what `verify` and the consumers of a link leave behind. Neither decides where copying goes on.

-- Up to where both sides were last found equal. Void when the generation of the partition is another.
CREATE TABLE verified (
  partition_id INTEGER PRIMARY KEY REFERENCES partition (id),
  generation   INTEGER NOT NULL CHECK (generation >= 0),
  up_end       INTEGER NOT NULL CHECK (up_end >= 0),
  down_end     INTEGER NOT NULL CHECK (down_end >= 0),
  at           INTEGER NOT NULL CHECK (at >= 0)
) STRICT;

-- Stored offsets of consumers and groups as last seen on both sides: the last processed message of each.
CREATE TABLE consumer_offset (
  partition_id INTEGER NOT NULL REFERENCES partition (id),
  kind         TEXT    NOT NULL CHECK (kind IN ('consumer', 'group')),
  name         TEXT    NOT NULL CHECK (name != ''),
  up_offset    INTEGER CHECK (up_offset >= 0),               -- NULL = nothing is stored upstream
  seen_at      INTEGER NOT NULL CHECK (seen_at >= 0),
  down_offset  INTEGER CHECK (down_offset >= 0),             -- NULL = nothing is stored downstream
  synced_at    INTEGER NOT NULL CHECK (synced_at >= 0),      -- 0 = never
  state        TEXT    NOT NULL,
  detail       TEXT    NOT NULL,
  PRIMARY KEY (partition_id, kind, name)
) STRICT, WITHOUT ROWID;
