"""What is added to a run after its recording: a name, notes, diagnoses, experiments."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from profiler.errors import RunError
from profiler.run import checked
from profiler.run.alive import recorder_alive
from profiler.run.files import (
    connect_for_writing,
    explain,
    identify,
    leave_wal,
    look,
    to_json,
    transaction,
)
from profiler.run.rows import BUMP, PUT_META


def update_meta(path: Path, key: str, value: Any) -> None:
    """Set a meta key of a run that is not being recorded. RunError when it is, or cannot be changed."""
    with _changing(path) as db:
        db.execute(PUT_META, (key, to_json(value)))


def append_result(path: Path, kind: str, value: Mapping[str, Any]) -> int:
    """Add a result ("diagnosis", "experiment", ...) and give its id. RunError as for `update_meta`."""
    with _changing(path) as db:
        row = (time.time_ns(), kind, to_json(dict(value)))
        return int(db.execute("INSERT INTO result VALUES (NULL, ?, ?, ?)", row).lastrowid or 0)


def settle(path: Path) -> None:
    """Make one plain file, in state "partial", of a run whose recorder was killed. RunError while it runs."""
    with _changing(path):
        pass


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[sqlite3.Connection]:
    look(path)
    try:
        with contextlib.closing(connect_for_writing(path)) as db:
            identify(db, path)
            with transaction(db):
                meta = checked.meta(db.execute("SELECT key, value FROM meta").fetchall())
                if meta.get("state") == "recording":
                    if recorder_alive(meta, path):
                        raise RunError(f"{path} is still being recorded", "Stop it, or wait for its end")
                    db.execute(PUT_META, ("state", to_json("partial")))
                yield db
                db.execute(BUMP)
            leave_wal(db, seconds=0.0)
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise explain(error, path) from error
