"""Writes a run file. Sources put things in from any thread, one thread commits them.

Nothing that a source calls touches the disk. When the disk is full or fails,
`failed` says so, and samples, output and attachments are left out until it can be
written again; what was committed stays readable. A file that is no longer in its
place is given up.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from profiler.errors import RunError
from profiler.run.alive import process_start
from profiler.run.blocks import OpenBlocks
from profiler.run.codec import journal_row
from profiler.run.files import (
    connect_for_writing,
    create_file,
    enter_wal,
    leave_wal,
    remove_run,
    to_json,
    transaction,
    why_not_written,
)
from profiler.run.intake import Intake
from profiler.run.pending import Gap, Pending
from profiler.run.place import beside, identity, log_beside, moved, number
from profiler.run.results import append_result, settle, update_meta
from profiler.run.rows import BUMP, PUT_BLOCK, PUT_JOURNAL, PUT_META, put

__all__ = ["RunWriter", "append_result", "settle", "update_meta"]

FLUSH_SECONDS = 30.0  # how long samples may wait in the journal
FLUSH_SAMPLES = 1 << 16  # and how many
SLOW_COMMIT_SECONDS = 0.5  # without a -wal every commit waits for the disk
RETRY_SECONDS = 5.0  # until the first attempt to write again; each failure doubles it
LONGEST_RETRY_SECONDS = 300.0
LOOK_SECONDS = 1.0  # between looks whether the file is still in its place
SWITCH_SECONDS = 1.0  # how long to wait at the end for readers to let go of the -wal
KEPT = "The run keeps what it had"


class RunWriter(Intake):
    """A run file that grows. Implements `profiler.model.Sink`.

    Sink methods may be called from any thread; `commit`, `finish` and `close` from one.
    `clock` gives seconds that only grow; it decides when blocks are written. `now_ns` is the run's clock.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, wal: bool, clock: Callable[[], float],
                 now_ns: Callable[[], int]) -> None:
        super().__init__()
        self.path = path
        self.incomplete: str | None = None  # what is missing though the file can be written again
        self._db = db
        self._wal = wal
        self._clock = clock
        self._now_ns = now_ns
        self._backlog: list[Pending] = []  # taken out of _pending, not written yet
        self._blocks = OpenBlocks()
        self._journal_id = 0
        self._journaled = 0
        self._identity = identity(path)
        self._log: tuple[int, int] | None = None
        self._flushed_at = self._committed_at = self._looked_at = clock()
        self._retry_at, self._retry = 0.0, RETRY_SECONDS

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, Any], *, overwrite: bool = False,
               max_pages: int | None = None, clock: Callable[[], float] = time.monotonic,
               now_ns: Callable[[], int] = time.time_ns) -> RunWriter:
        """A new run file, its folder must exist. RunError when it cannot be written, or exists.

        `max_pages` caps the file at so many pages of 4096 bytes (0: no cap).
        """
        create_file(path, {"recorder_pid": os.getpid(), "recorder_start": process_start(), **meta,
                           "state": "recording", "revision": 0}, overwrite)
        db = None
        try:
            db = connect_for_writing(path)
            wal, note = enter_wal(db, path)
            if max_pages:
                db.execute(f"PRAGMA max_page_count = {int(max_pages)}")
        except (sqlite3.Error, ValueError) as error:
            if db is not None:
                with contextlib.suppress(sqlite3.Error):
                    db.close()
            remove_run(path)
            reason = why_not_written(error, path)
            raise RunError(f"cannot write {path}: {reason}", "Name another file with -o") from error
        writer = cls(path, db, wal, clock, now_ns)
        if note:
            writer.set_meta("journal_note", note)
            writer.commit()
        return writer

    def commit(self) -> None:
        """Write what is new. Costs next to nothing when nothing is."""
        now = self._clock()
        if now - self._looked_at >= LOOK_SECONDS:
            self._look(now)
        if not self._wal and now - self._committed_at < SLOW_COMMIT_SECONDS:
            return
        self._committed_at = now
        self._write(now - self._flushed_at >= FLUSH_SECONDS or self._journaled >= FLUSH_SAMPLES)

    def finish(self, state: str, t_ns: int) -> None:
        """The end, at `t_ns`: "finished" or "partial". One plain file is left, and closed."""
        self._look(self._clock())
        self.set_meta("state", state)
        self.set_meta("end_ns", t_ns)
        self._write(flush=True, whole=True)
        self._write(flush=False, whole=True)  # of a gap that has ended just now
        in_place = self._on
        if in_place and self._wal:
            with contextlib.suppress(sqlite3.Error):
                leave_wal(self._db, SWITCH_SECONDS)
        self.close()
        if in_place and self.failed is None and (log := log_beside(self.path)):
            self.failed = f"there was no room to put it into one file: {log} belongs to {self.path}"

    def close(self) -> None:
        """Let go of the file as it is; without `finish` it reads as a recording that was cut off."""
        self._on = False
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def _write(self, flush: bool, whole: bool = False) -> None:
        if not self._on or (self.failed is not None and self._clock() < self._retry_at and not whole):
            return
        with self._lock:
            if self._pending.rows or self._pending.samples or self._pending.ended:
                self._backlog.append(self._pending)
                self._pending = Pending()
        for last in (False, True):  # what fails once may go well at once, without what needs most room
            try:
                while self._backlog:
                    self._write_pending(self._backlog[0])
                    del self._backlog[0]
                if flush:
                    self._flush(whole)
                self._recovered()
                return
            except (sqlite3.Error, OSError) as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                    return  # a reader without -wal was in the way for seconds: it goes with the next commit
                why = why_not_written(error, self.path)
                for pending in self._backlog:
                    pending.drop_attachments(why)
                if last:
                    self._fail(why)

    def _write_pending(self, pending: Pending) -> None:
        db = self._db
        with transaction(db):
            for statement, row in pending.rows:
                put(db, statement, row, self._now_ns)
            if pending.described:
                db.execute(BUMP)
            if pending.samples:
                tracks, times_ns, values = zip(*pending.samples, strict=True)
                times = [int(t + 500) // 1000 for t in times_ns]
                self._put_journal(tracks, times, values)
        if pending.samples:
            self._blocks.add(tracks, times, values, self._clock())
            self._journaled += len(times)
        self._blocks.end(pending.ended)

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

    def _fail(self, why: str) -> None:
        self._why, self._retry_at = why, self._clock() + self._retry
        self._retry = min(2 * self._retry, LONGEST_RETRY_SECONDS)
        with self._lock:
            self.failed = f"{self.path} cannot be written any more: {why}. {KEPT}"
        self._look(self._clock())  # that may be why

    def _recovered(self) -> None:
        if self.failed is None:
            return
        with self._lock:
            self.failed = None
            if self._gap.samples:
                event = self._gap.event(self._why)
                self._pending.rows.append(event)
                self.incomplete = f"{self.path}: {event[1][3]}"
            self._gap = Gap()

    def _look(self, now: float) -> None:
        """Whether the file is still in its place: what is written elsewhere would be found by nobody."""
        if self._on and moved(self.path, self._identity):
            self.failed = f"{self.path} was moved, removed or replaced while it was recorded"
            self._on = False
        elif self._on and self._wal:
            self._look_at_log()
        self._looked_at = now

    def _look_at_log(self) -> None:
        """A -wal that was cleaned away is still ours to read, but for nobody after us: begin anew."""
        found = number(beside(self.path, "-wal"))
        if self._log is not None and found != self._log:
            with contextlib.suppress(sqlite3.Error):
                if not leave_wal(self._db, 0.0):
                    return  # a reader is in the way: at the next look
                self._wal, _ = enter_wal(self._db, self.path)
            found = None  # it comes with the next commit
        self._log = found
