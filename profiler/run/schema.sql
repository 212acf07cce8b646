-- A StepScope run: one SQLite file, ending .stepscope. Version 1.
--
-- Times are integer nanoseconds since the epoch on the run's own clock (the wall
-- clock at the start plus monotonic time since). Texts named JSON are strict JSON:
-- what is not a number is null. While it records, the file has a -wal beside it
-- (not on a network file system); finished, it is one plain file.
-- Another layout is another user_version: readers refuse what they do not know.

PRAGMA application_id = 0x53545053;  -- "STPS": how a run differs from another program's SQLite file
PRAGMA user_version = 1;

-- What is known of the run as a whole. Keys of the file itself:
--   state     "recording", "finished" or "partial"; a "recording" whose recorder is gone reads as partial
--   end_ns    the newest time when blocks were last written, and the end once finished
--   revision  grows with each change of meta, device, process or track, so that a reader knows when to look
--   recorder_pid, recorder_start   who writes: see profiler/run/alive.py
--   journal_note   why there is no -wal
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL              -- JSON
) WITHOUT ROWID;

CREATE TABLE device (
    id           INTEGER PRIMARY KEY,
    uuid         TEXT NOT NULL UNIQUE,
    idx          INTEGER NOT NULL,   -- the driver's index, which a reboot may change
    name         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    memory_total INTEGER,            -- bytes
    properties   TEXT NOT NULL       -- JSON
);

CREATE TABLE process (
    id         INTEGER PRIMARY KEY,
    pid        INTEGER NOT NULL,
    role       TEXT NOT NULL,
    command    TEXT NOT NULL,
    rank       INTEGER,
    started_ns INTEGER,
    properties TEXT NOT NULL         -- JSON
);

-- One metric of one device, process or core.
CREATE TABLE track (
    id         INTEGER PRIMARY KEY,
    metric     TEXT NOT NULL,        -- a name in profiler/metrics.py, which has the unit
    device     INTEGER,              -- device.id
    process    INTEGER,              -- process.id
    idx        INTEGER,              -- core number, or pid of a process that is not ours
    properties TEXT NOT NULL         -- JSON: how it was measured
);

-- The newest samples, one row a commit, until they go into blocks. Blocks are
-- written and the journal is emptied in one transaction, so that a sample is in
-- exactly one of the two.
CREATE TABLE journal (
    id    INTEGER PRIMARY KEY,       -- grows for ever; a reader that misses its first id reads anew
    t1_ns INTEGER NOT NULL,          -- newest time in the row
    n     INTEGER NOT NULL,
    data  BLOB NOT NULL              -- track u32[n], time in us i64[n], value f64[n], little endian
);

-- Samples of one track. Level 0 holds samples, in order of time within the block:
-- columns time, value. Level k >= 1 holds groups of 16**k samples: columns time of
-- the first and of the last sample, smallest and largest value. A level ends where
-- its last full group was written; what comes after it is in the level below, and
-- at last in the journal. Columns are packed as told in profiler/run/codec.py.
CREATE TABLE block (
    id    INTEGER PRIMARY KEY,
    track INTEGER NOT NULL,
    level INTEGER NOT NULL,
    first INTEGER NOT NULL,          -- number of the first entry in its track and level, from 0, without holes
    n     INTEGER NOT NULL,          -- entries
    t0_ns INTEGER NOT NULL,
    t1_ns INTEGER NOT NULL,
    data  BLOB NOT NULL
);
CREATE INDEX block_order ON block (track, level, first, n, t0_ns, t1_ns);

CREATE TABLE event (
    id       INTEGER PRIMARY KEY,
    t_ns     INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    severity TEXT NOT NULL,          -- info, warning, error
    text     TEXT NOT NULL,
    device   INTEGER,
    process  INTEGER,
    data     TEXT NOT NULL           -- JSON
);

-- Files kept inside the run: profiler traces.
CREATE TABLE attachment (
    id         INTEGER PRIMARY KEY,
    t_ns       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    process    INTEGER,
    properties TEXT NOT NULL,        -- JSON
    length     INTEGER NOT NULL,     -- bytes before compression
    stored     INTEGER NOT NULL,     -- bytes of data
    packing    TEXT NOT NULL,        -- zlib, or none for what was compressed already
    data       BLOB NOT NULL
);

-- What the target printed, in pieces as they came.
CREATE TABLE output (
    id   INTEGER PRIMARY KEY,
    t_ns INTEGER NOT NULL,
    data BLOB NOT NULL
);

-- What was found out about the run later: diagnoses, experiments.
CREATE TABLE result (
    id    INTEGER PRIMARY KEY,
    t_ns  INTEGER NOT NULL,          -- wall clock
    kind  TEXT NOT NULL,
    value TEXT NOT NULL              -- JSON object
);
