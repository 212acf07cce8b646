"""Writes a run file. Sources put things in from any thread, one thread commits them.

Nothing that a source calls touches the disk. When the disk is full or fails,
`failed` says so once and everything after is left out; what was committed stays
readable.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from profiler.run.alive import process_start
from profiler.run.blocks import OpenBlocks
from profiler.run.codec import journal_row
from profiler.run.files import (
    connect_for_writing,
    create_file,
    enter_wal,
    explain,
    leave_wal,
    to_json,
    transaction,
    why_not_written,
)
from profiler.run.results import append_result, settle, update_meta
from profiler.run.rows import (
    BUMP,
    DROP_OUTPUT,
    PUT_ATTACHMENT,
    PUT_BLOCK,
    PUT_DEVICE,
    PUT_EVENT,
    PUT_JOURNAL,
    PUT_META,
    PUT_OUTPUT,
    PUT_PROCESS,
    PUT_TRACK,
    put,
)

__all__ = ["RunWriter", "append_result", "settle", "update_meta"]

FLUSH_SECONDS = 30.0  # how long samples may wait in the journal
FLUSH_SAMPLES = 1 << 16  # and how many
SLOW_COMMIT_SECONDS = 0.5  # without a -wal every commit waits for the disk
SWITCH_SECONDS = 1.0  # how long to wait at the end for readers to let go of the -wal
KEPT = "The run keeps what it had"
LARGEST = 900_000_000  # bytes of one attachment, below what SQLite takes

@dataclass(slots=True)
class _Pending:
    """What was put in since the last commit."""

    rows: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    samples: list[tuple[int, int, float]] = field(default_factory=list)
    described: bool = False  # meta, device, process or track changed


class RunWriter:
    """A run file that grows. Implements `profiler.model.Sink`.

    Sink methods may be called from any thread; `commit`, `finish` and `close` from one.
    `clock` gives seconds that only grow; it decides when blocks are written.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, wal: bool, clock: Callable[[], float]) -> None:
        self.path = path
        self.failed: str | None = None
        self._db = db
        self._wal = wal
        self._clock = clock
        self._lock = threading.Lock()
        self._pending = _Pending()
        self._backlog: list[_Pending] = []  # taken out of _pending, not written yet
        self._devices: dict[str, int] = {}
        self._processes: dict[tuple[int, int | None], int] = {}
        self._process_rows: dict[int, list[Any]] = {}  # columns; properties as a dict
        self._tracks: dict[tuple[Any, ...], int] = {}
        self._blocks = OpenBlocks()
        self._journal_id = 0
        self._journaled = 0
        self._flushed_at = self._committed_at = clock()
        self._on = True

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, Any], *, overwrite: bool = False,
               max_pages: int | None = None, clock: Callable[[], float] = time.monotonic) -> RunWriter:
        """A new run file, its folder must exist. RunError when it cannot be written, or exists.

        `max_pages` caps the file at so many pages of 4096 bytes (0: no cap).
        """
        create_file(path, {"recorder_pid": os.getpid(), "recorder_start": process_start(), **meta,
                           "state": "recording", "revision": 0}, overwrite)
        try:
            db = connect_for_writing(path)
            wal, note = enter_wal(db, path)
            if max_pages:
                db.execute(f"PRAGMA max_page_count = {int(max_pages)}")
        except sqlite3.Error as error:
            raise explain(error, path) from error
        writer = cls(path, db, wal, clock)
        if note:
            writer.set_meta("journal_note", note)
            writer.commit()
        return writer

    # What sources call.

    def set_meta(self, key: str, value: Any) -> None:
        """A fact about the run as a whole; `value` is anything JSON has."""
        self._put(PUT_META, (key, to_json(value)), described=True)

    def add_device(self, uuid: str, index: int, name: str, *, kind: str = "cuda",
                   memory_total: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        """The id of a device; of the known one when there is one with this UUID."""
        with self._lock:
            if (known := self._devices.get(uuid)) is not None:
                return known
            number = self._devices[uuid] = len(self._devices) + 1
            row = (number, uuid, index, name, kind, memory_total, to_json(dict(properties or {})))
            self._describe(PUT_DEVICE, row)
            return number

    def add_process(self, pid: int, role: str, *, command: str = "", rank: int | None = None,
                    started_ns: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        """The id of a process. A known one (same pid and start) learns what was not known of it yet."""
        with self._lock:
            number = self._processes.get((pid, started_ns))
            if number is None:
                number = self._processes[pid, started_ns] = len(self._processes) + 1
                row = self._process_rows[number] = [number, pid, role, command, rank, started_ns, {}]
            else:
                row = self._process_rows[number]
                row[3:5] = row[3] or command, rank if row[4] is None else row[4]
            row[6].update(properties or {})
            self._describe(PUT_PROCESS, (*row[:6], to_json(row[6])))
            return number

    def update_process(self, process: int, properties: Mapping[str, Any]) -> None:
        """Add to the properties of a process, by its id."""
        with self._lock:
            row = self._process_rows[process]
            row[6].update(properties)
            self._describe(PUT_PROCESS, (*row[:6], to_json(row[6])))

    def track(self, metric: str, *, device: int | None = None, process: int | None = None,
              index: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        """The id of a track; of the known one when there is one of the same metric and owner."""
        key = (metric, device, process, index)
        with self._lock:
            if (known := self._tracks.get(key)) is not None:
                return known
            number = self._tracks[key] = len(self._tracks) + 1
            self._describe(PUT_TRACK, (number, *key, to_json(dict(properties or {}))))
            return number

    def sample(self, track: int, t_ns: int, value: float) -> None:
        """A value at a time, kept to whole microseconds. One that is not finite is missing."""
        if isfinite(value) and self._on:
            with self._lock:
                self._pending.samples.append((track, t_ns, value))

    def event(self, t_ns: int, kind: str, severity: str, text: str, *, device: int | None = None,
              process: int | None = None, data: Mapping[str, Any] | None = None) -> None:
        """Something worth telling, at a time."""
        self._put(PUT_EVENT, (t_ns, kind, severity, text, device, process, to_json(dict(data or {}))))

    def attach(self, t_ns: int, kind: str, name: str, data: bytes, *, process: int | None = None,
               properties: Mapping[str, Any] | None = None) -> None:
        """Keep a file. It is compressed here, in the caller's thread."""
        gzipped = data[:2] == b"\x1f\x8b"
        stored = data if gzipped else zlib.compress(data, 3)
        if len(stored) > LARGEST:
            self.event(t_ns, "attachment_too_large", "warning", f"{name} is too large to be kept in the run",
                       process=process, data={"bytes": len(stored)})
            return
        self._put(PUT_ATTACHMENT, (t_ns, kind, name, process, to_json(dict(properties or {})), len(data),
                                    len(stored), "none" if gzipped else "zlib", stored))

    def output(self, t_ns: int, data: bytes) -> None:
        """A piece of what the target printed."""
        self._put(PUT_OUTPUT, (t_ns, bytes(data)))

    def drop_output(self, first: int, last: int) -> None:
        """Drop pieces of output again, by number from 1. The newest must stay: numbers go on from it."""
        self._put(DROP_OUTPUT, (first, last))

    def _put(self, statement: str, row: tuple[Any, ...], described: bool = False) -> None:
        if self._on:
            with self._lock:
                self._pending.rows.append((statement, row))
                self._pending.described |= described

    def _describe(self, statement: str, row: tuple[Any, ...]) -> None:
        """For callers that hold the lock."""
        if self._on:
            self._pending.rows.append((statement, row))
            self._pending.described = True

    # What the recorder calls.

    def commit(self) -> None:
        """Write what is new. Costs next to nothing when nothing is."""
        now = self._clock()
        if not self._wal and now - self._committed_at < SLOW_COMMIT_SECONDS:
            return
        self._committed_at = now
        self._write(now - self._flushed_at >= FLUSH_SECONDS or self._journaled >= FLUSH_SAMPLES)

    def finish(self, state: str, t_ns: int) -> None:
        """The end, at `t_ns`: "finished" or "partial". One plain file is left, and closed."""
        self.set_meta("state", state)
        self.set_meta("end_ns", t_ns)
        self._write(flush=True, whole=True)
        if self._on and self._wal:
            try:
                leave_wal(self._db, SWITCH_SECONDS)
            except sqlite3.Error as error:
                self._fail(error)
        self.close()

    def close(self) -> None:
        """Let go of the file as it is; without `finish` it reads as a recording that was cut off."""
        self._on = False
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def _write(self, flush: bool, whole: bool = False) -> None:
        with self._lock:
            if self._pending.rows or self._pending.samples:
                self._backlog.append(self._pending)
                self._pending = _Pending()
        if not self._on:
            return
        try:
            while self._backlog:
                self._write_pending(self._backlog[0])
                del self._backlog[0]
            if flush:
                self._flush(whole)
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                self._fail(error)
            # A reader without -wal was in the way for seconds: what is left goes with the next commit.

    def _write_pending(self, pending: _Pending) -> None:
        db = self._db
        with transaction(db):
            for statement, row in pending.rows:
                put(db, statement, row)
            if pending.described:
                db.execute(BUMP)
            if not pending.samples:
                return
            tracks, times_ns, values = zip(*pending.samples, strict=True)
            times = [int(t + 500) // 1000 for t in times_ns]
            self._put_journal(tracks, times, values)
        self._blocks.add(tracks, times, values, self._clock())
        self._journaled += len(times)

    def _flush(self, whole: bool) -> None:
        """Blocks in, journal empty: one transaction, so that no sample is in both or in neither."""
        if not self._blocks.close(self._clock(), whole):
            return
        self._flushed_at, self._journaled = self._clock(), 0
        if not self._blocks.rows:
            return
        db = self._db
        with transaction(db):
            db.executemany(PUT_BLOCK, self._blocks.rows)
            db.execute("DELETE FROM journal")
            left = self._blocks.left()
            if left[0]:
                self._put_journal(*left)
            if not whole:
                db.execute(PUT_META, ("end_ns", to_json(self._blocks.newest_us * 1000)))
        self._blocks.rows.clear()

    def _put_journal(self, tracks: Sequence[int], times: Sequence[int], values: Sequence[float]) -> None:
        self._journal_id += 1
        data = journal_row(tracks, times, values)
        self._db.execute(PUT_JOURNAL, (self._journal_id, max(times) * 1000, len(times), data))

    def _fail(self, error: Exception) -> None:
        self.failed = (f"{self.path} cannot be written any more: {why_not_written(error, self.path)}. "
                       f"{KEPT}")
        self._on = False
        with self._lock:
            self._pending, self._backlog = _Pending(), []
