"""What keeps a file that was made to harm from taking more than its share: of layout, of memory, of time."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import stat
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from profiler.run.place import beside

SCHEMA = Path(__file__).with_name("schema.sql")

MOST_ROWS = 1 << 29  # bytes that the rows of one question, and what their JSON becomes, may take in memory
MOST_ENTRIES = 1 << 20  # samples of a whole run, however small its file
PER_BYTE = 16  # more of them for each byte of the file: equal samples at equal distances come to fewer
STEPS = 1_000_000  # of SQLite's machine between two looks
MOST_LOOKS = 300  # some seconds; pages that point at each other in circles have rows without end
_ROW, _ITEM = 200, 100  # bytes of a row, and of an item of JSON, as Python objects
_SUPER = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names one of several files
_OBJECTS = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master"


def check_beside(path: Path) -> None:
    """ValueError when what lies beside a run could take more from us than the run itself.

    SQLite reads these files by itself. A pipe would make it wait for ever. A journal left by a change to
    several files names another one, which SQLite deletes when it has rolled back: with a forged name that
    is any file of ours. A run is never one of several, so none of its journals holds a name.
    """
    for ending in ("-journal", "-wal", "-shm"):
        found = beside(path, ending)
        try:
            if not stat.S_ISREG(found.lstat().st_mode):
                raise ValueError(f"the {ending} beside it is no regular file")
            if ending == "-journal" and _last(found, len(_SUPER)) == _SUPER:
                raise ValueError("the -journal beside it names another file")
        except OSError:
            continue


def allocated(path: Path) -> int:
    """Bytes that a file takes on the disk, at most its length: holes are no content. 0 where it is not."""
    try:
        told = path.stat()
    except OSError:
        return 0
    blocks = getattr(told, "st_blocks", 0) * 512  # 0 also where a file system does not tell
    return min(told.st_size, blocks + (1 << 16)) if blocks else told.st_size


def check_layout(db: sqlite3.Connection) -> None:
    """ValueError unless the file's schema is that of a run: no view, trigger, virtual or computed column."""
    found = set(everything(db.execute(_OBJECTS)))
    wrong = {(kind, name, table, _plain(sql)) for kind, name, table, sql in found} ^ _layout()
    if wrong:
        name = min(str(name) for _, name, _, _ in wrong)
        raise ValueError(f"its {name} is not that of a run file")


def check_size(db: sqlite3.Connection, size: int) -> None:
    """ValueError when a file of `size` bytes tells of more samples than it can be meant to hold.

    Those of all levels count: above the samples there are hardly any in a real one.
    """
    (count,) = db.execute("SELECT total(n) FROM block").fetchone()
    if not count <= MOST_ENTRIES + PER_BYTE * size:
        raise ValueError(f"{count:.3g} samples in {size} bytes")


def everything(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """All rows of a question. ValueError when they take more memory than those of any run."""
    kept, size = [], 0
    for row in rows:
        size += _ROW + sum(weight(value) for value in row)
        if size > MOST_ROWS:
            raise ValueError("more rows than a run has")
        kept.append(row)
    return kept


def rising(rows: Iterable[tuple[Any, ...]], after: int) -> list[tuple[Any, ...]]:
    """All rows of a question for ids above one, in order, the id first. ValueError when they are not.

    Damaged pages tell the same rows again at each look, which would pile up.
    """
    found = everything(rows)
    for row in found:
        if row[0] <= after:
            raise ValueError("rows out of order")
        after = row[0]
    return found


def _last(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(file.seek(0, 2) - size, 0))
        return file.read(size)


def weight(value: Any) -> int:
    """About the bytes that a value of a row takes, also when it is JSON and is read as such."""
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, str):
        return len(value) + _ITEM * (value.count(",") + value.count("[") + value.count("{"))
    return 0


class Patience:
    """Ends a question to SQLite that takes longer than those of any run; `begin` anew for each."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._looks = 0
        db.set_progress_handler(self._look, STEPS)

    def begin(self) -> None:
        self._looks = 0

    def _look(self) -> bool:
        self._looks += 1
        return self._looks > MOST_LOOKS


@cache
def _layout() -> frozenset[tuple[str, str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA.read_text(encoding="utf-8"))
        return frozenset((kind, name, table, _plain(sql)) for kind, name, table, sql in db.execute(_OBJECTS))


def _plain(sql: str) -> str:
    """A statement without comments, which SQLite keeps, and with single spaces."""
    return " ".join(re.sub(r"--[^\n]*", " ", str(sql)).split())
