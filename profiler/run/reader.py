"""Reads a run file: finished, being recorded, or left behind by a recorder that was killed."""

from __future__ import annotations

import contextlib
import sqlite3
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from profiler.errors import RunError
from profiler.model import Attachment, Device, Event, Process, Track
from profiler.run import checked
from profiler.run.alive import recorder_alive
from profiler.run.decode import Float64, Int64, inflate
from profiler.run.files import explain
from profiler.run.guard import everything, rising
from profiler.run.opening import Connection
from profiler.run.place import log_beside
from profiler.run.samples import ALWAYS, Kept, Series, count, decimated, load, newest, time_of

__all__ = ["Run", "Series"]

T = TypeVar("T")
LARGEST = 1 << 31  # bytes of an attachment, unpacked
MOST_DEVICES, MOST_PROCESSES = 2048, 4096  # each costs a look: a recorder takes 4001 processes
SMALL, SQUEEZED = 1 << 27, 200  # up to so many bytes, and so many more for each packed one: traces make fewer
NO_LOG = ("{name}-wal is not beside it. If this is a copy that was made while it was recorded, copy that "
          "file as well: the newest part of the run is in there")
_ATTACHMENTS = "SELECT id, t_ns, kind, name, process, stored, properties FROM attachment ORDER BY id"
_OUTPUT = "SELECT id, t_ns, data FROM output WHERE id > ? ORDER BY id"
_WRONG = (sqlite3.Error, ValueError, TypeError, LookupError, ArithmeticError, MemoryError, zlib.error)


class Run:
    """A run file, read-only. To be used from one thread at a time.

    Every method that reads raises RunError, or DamagedRunError where the file turns out to be damaged.
    Between two calls a run that is being recorded may have grown; `refresh` tells, and reads anew what
    the attributes hold.
    """

    path: Path
    meta: dict[str, Any]
    state: str  # recording, finished, partial
    devices: list[Device]
    processes: list[Process]
    tracks: list[Track]
    lacks: str | None = None  # what of the run is known to be elsewhere

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._connection: Connection | None = None
        self._closed = False
        self._kept = Kept()
        self._version: int | None = None
        self._revision: Any = None
        self._asked = 0.0
        self.meta, self.state = {}, ""
        self.devices, self.processes, self.tracks = [], [], []
        self._of_metric: dict[str, list[Track]] = {}
        self._events: tuple[int, list[Event]] = -1, []
        self.refresh()

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """NotARunError, RunVersionError, DamagedRunError, or RunError when it cannot be read."""
        return cls(Path(path))

    def close(self) -> None:
        self._closed = True
        self._let_go()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self) -> bool:
        """Whether anything has changed since the last call. Cheap when nothing has."""
        before = self._version, self._revision, self.state
        with self._reading() as db:
            self._version = db.execute("PRAGMA data_version").fetchone()[0]
            if self._version == before[0] and time.monotonic() - self._asked < 1.0:
                return False
            row = db.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
            self._revision = row[0] if row else None
            if self._revision != before[1] or not self.meta:
                self._describe(db)
            self._asked = time.monotonic()
            self.state = str(self.meta.get("state"))
            if self.state == "recording" and not recorder_alive(self.meta, self.path):
                self.state = "partial"
                if self._connection is not None and self._connection.wal and log_beside(self.path) is None:
                    self.lacks = NO_LOG.format(name=self.path.name)
        return before != (self._version, self._revision, self.state)

    @property
    def start_ns(self) -> int:
        """When the recording began; 0 when nothing tells."""
        known = self.meta.get("start_ns")
        if isinstance(known, int):
            return known
        with self._reading() as db:
            times = [db.execute(f"SELECT min({column}) FROM {table}").fetchone()[0]
                     for table, column in (("block", "t0_ns"), ("event", "t_ns"), ("output", "t_ns"))]
            self._kept.follow(db)
            times += [int(part.t0[0]) for part in map(self._kept.part, self._kept.tracks()) if len(part)]
            return min((checked.time(t) for t in times if t is not None), default=0)

    @property
    def end_ns(self) -> int:
        """The end; of a run without one the newest time in it."""
        known = self.meta.get("end_ns")
        if self.meta.get("state") != "recording" and isinstance(known, int):
            return known
        with self._reading() as db:
            times = [known if isinstance(known, int) else None]
            for table in ("event", "output"):
                row = db.execute(f"SELECT t_ns FROM {table} ORDER BY id DESC LIMIT 1").fetchone()
                times.append(row and checked.time(row[0]))
            self._kept.follow(db)
        return max((t for t in (*times, self._kept.newest) if t is not None), default=self.start_ns)

    def find(self, metric: str, *, device: int | None = None, process: int | None = None,
             index: int | None = None) -> list[Track]:
        """Tracks of a metric; None stands for any."""
        return [track for track in self._of_metric.get(metric, ())
                if device in (None, track.device)
                and process in (None, track.process) and index in (None, track.index)]

    def series(self, track: int, t0_ns: int | None = None, t1_ns: int | None = None,
               points: int | None = None) -> Series:
        """A track between two times, both included.

        Without `points` every sample. With it, at most about 2 * points entries, each with the smallest and
        the largest value in it: a single sample that stands out is always there.
        """
        t0, t1 = _range(t0_ns, t1_ns)
        with self._reading() as db:
            self._kept.follow(db)
            if points is not None:
                return decimated(db, self._kept, track, t0, t1, max(points, 1))
            part = load(db, self._kept, track, 0, t0, t1)
            return Series(part.t0, part.low, part.high, True, part.t1)

    def values(self, track: int, t0: int | None = None, t1: int | None = None) -> tuple[Int64, Float64]:
        """Times in ns and values of every sample between two times, both included."""
        series = self.series(track, t0, t1)
        return series.t_ns, series.low

    def count(self, track: int, until: int | None = None) -> int:
        """How many samples a track has, or has before a time, without reading them."""
        with self._reading() as db:
            self._kept.follow(db)
            return count(db, self._kept, track, _range(None, until)[1])

    def time_of(self, track: int, place: int) -> int | None:
        """When the sample at a place from 0 was, ns; None where there is none. Does not read the others."""
        with self._reading() as db:
            self._kept.follow(db)
            return time_of(db, self._kept, track, place)

    def latest(self, track: int) -> tuple[int, float] | None:
        """The newest sample of a track: (t_ns, value)."""
        with self._reading() as db:
            self._kept.follow(db)
            return newest(db, self._kept, track)

    def events(self, after_id: int = 0) -> list[Event]:
        with self._reading() as db:
            version = db.execute("PRAGMA data_version").fetchone()[0]
            if not after_id and self._events[0] == version:  # asked again for every process of a job
                return list(self._events[1])
            rows = rising(db.execute("SELECT * FROM event WHERE id > ? ORDER BY id", (after_id,)), after_id)
            found = [checked.row(Event, row) for row in rows]
            if not after_id:
                self._events = version, found
            return list(found)

    def attachments(self) -> list[Attachment]:
        with self._reading() as db:
            rows = everything(db.execute(_ATTACHMENTS))
            return [checked.row(Attachment, row) for row in rows]

    def attachment(self, id: int) -> bytes:
        """The bytes as they were attached."""
        with self._reading() as db:
            row = db.execute("SELECT packing, length, data FROM attachment WHERE id = ?", (id,)).fetchone()
            if row is None:
                raise RunError(f"{self.path} has no attachment {id}")
            packing, length, data = row
            data = checked.content(data)
            if not 0 <= length <= min(LARGEST, SMALL + len(data) * SQUEEZED):
                raise ValueError(f"an attachment of {length} bytes")
            if packing == "zlib":
                data = inflate(data, max(length, 1))
            if len(data) != length:
                raise ValueError("an attachment of the wrong length")
            return data

    def output(self, after_id: int = 0) -> list[tuple[int, int, bytes]]:
        """What the target printed: (id, t_ns, bytes)."""
        with self._reading() as db:
            rows = rising(db.execute(_OUTPUT, (after_id,)), after_id)
            return [(int(number), checked.time(t), checked.content(data)) for number, t, data in rows]

    def results(self, kind: str) -> list[dict]:
        """What was found out later, of one kind, the newest last."""
        with self._reading() as db:
            rows = everything(db.execute("SELECT value FROM result WHERE kind = ? ORDER BY id", (kind,)))
            return [checked.json_object(value) for (value,) in rows]

    def _describe(self, db: sqlite3.Connection) -> None:
        def rows(kind: type[T]) -> list[T]:
            table = kind.__name__.lower()
            found = everything(db.execute(f"SELECT * FROM {table} ORDER BY id"))
            return [checked.row(kind, row) for row in found]

        self.meta = checked.meta(everything(db.execute("SELECT key, value FROM meta")))
        self.devices, self.processes, self.tracks = rows(Device), rows(Process), rows(Track)
        if len(self.devices) > MOST_DEVICES or len(self.processes) > MOST_PROCESSES:
            raise ValueError(f"{len(self.devices)} devices and {len(self.processes)} processes")
        self._of_metric = {}
        for track in self.tracks:
            self._of_metric.setdefault(track.metric, []).append(track)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file for as long as the block lasts."""
        if self._closed:
            raise RunError(f"{self.path} has been closed")
        if self._connection is None:
            self._connection = Connection(self.path)
            if self._connection.unread is not None:
                self.lacks = f"{self._connection.unread}. The newest part of the run is in there"
        try:
            db = self._connection.db
            self._connection.patience.begin()
            db.execute("BEGIN")
            try:
                yield db
            finally:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("COMMIT")
        except _WRONG as error:
            raise explain(error, self.path) from error
        finally:
            # A finished recording becomes one plain file as soon as nobody holds it open.
            if self._connection.wal and self.meta.get("state") in ("finished", "partial"):
                self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection, self._events = None, (-1, [])  # a version is that of one connection


def _range(t0: int | None, t1: int | None) -> tuple[int, int]:
    """A range of time that SQLite can take."""
    low, high = ALWAYS
    return low if t0 is None else max(int(t0), low), high if t1 is None else min(int(t1), high)

