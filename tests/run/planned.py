"""Runs with known contents for the tests of the run file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from profiler.run.reader import Run
from profiler.run.writer import RunWriter

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def write(path: Path, samples: Iterable[tuple[int, float]], *, every: int = 10, seconds: float = 1.0,
          state: str | None = "finished") -> int:
    """A run with one track; a commit after `every` samples, `seconds` apart. Gives the track's id.

    `state` None leaves the file as a recorder does that is gone.
    """
    clock = Clock()
    meta = {"name": "planned", "start_ns": START, "recorder_pid": 2**22 + 1, "recorder_start": 1.0}
    writer = RunWriter.create(path, meta, clock=clock)
    track = writer.track("host.cpu")
    newest = START
    for number, (t_ns, value) in enumerate(samples):
        writer.sample(track, t_ns, value)
        newest = max(newest, t_ns)
        if number % every == every - 1:
            clock.now += seconds
            writer.commit()
    clock.now += seconds
    writer.commit()
    if state:
        writer.finish(state, newest)
    else:
        writer.close()
    return track


def read_all(path: Path) -> int:
    """Everything a reader can ask for. Gives the number of samples."""
    count = 0
    with Run.open(path) as run:
        run.refresh()
        assert run.end_ns is not None and run.start_ns is not None
        for track in run.tracks:
            count += len(run.values(track.id)[0])
            run.series(track.id, points=20)
            run.series(track.id, START, START + 20 * SECOND, points=5)
            run.latest(track.id)
        run.events(), run.output(), run.results("diagnosis")
        for attachment in run.attachments():
            run.attachment(attachment.id)
    return count


@contextlib.contextmanager
def loosened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection through which every column takes any value; the file then has its own schema again."""
    def connect() -> contextlib.closing[sqlite3.Connection]:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA writable_schema = ON")
        db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug on it
        return contextlib.closing(db)

    with connect() as db:
        kept = db.execute("SELECT sql, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
    with connect() as db:
        yield db
    with connect() as db:
        db.executemany("UPDATE sqlite_master SET sql = ? WHERE name = ?", kept)
