"""Run files as files: what makes one, what is wrong with one, and how it is opened for writing."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from profiler.errors import (
    DamagedRunError,
    NotARunError,
    RunError,
    RunVersionError,
    TakenRunError,
    one_line,
)
from profiler.run import checked, filesystem
from profiler.run.alive import process_start, recorder_alive
from profiler.run.guard import SCHEMA, check_beside, check_layout
from profiler.run.rows import PUT_META

APPLICATION_ID = 0x53545053
VERSION = 1
_BESIDE = "-wal", "-shm", "-journal"
_UNFINISHED = re.compile(r"\..+\.([0-9]{1,9})\.new(-wal|-shm|-journal)?", re.DOTALL)
BUSY_SECONDS = 5.0  # how long to wait for another process that reads or writes


def look(path: Path) -> None:
    """RunError or NotARunError when there is no file to open. Does not open it: see `identify`."""
    try:
        if path.is_dir():
            raise NotARunError(f"{path} is a folder", "Name a run file inside it")
        if not path.is_file():
            raise RunError(f"{path} is not a regular file" if path.exists() else f"{path}: no such file")
        if not path.stat().st_size:
            raise NotARunError(f"{path} is empty", "Its recording ended before it began")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from error
    if not os.access(path, os.R_OK):
        raise RunError(f"{path} cannot be read: permission denied", "Check the permissions of the file")


def identify(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the run file has a -wal. NotARunError, RunVersionError, or an error of SQLite; ValueError
    when it has another layout than a run.

    Asked through SQLite: to open and close the file otherwise would, on POSIX, drop the locks that other
    connections of this process hold on it.
    """
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application & 0xFFFFFFFF != APPLICATION_ID:
        raise NotARunError(f"{path} is an SQLite file of another program, not a run file")
    if version != VERSION:
        hint = "Update StepScope" if version > VERSION else "Open it with the StepScope that made it"
        raise RunVersionError(f"{path} has file version {version}, this StepScope reads {VERSION}", hint)
    check_layout(db)
    return bool(db.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


def explain(error: Exception, path: Path) -> RunError:
    """What an error of SQLite, or a value that cannot be, means for a run file."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return NotARunError(f"{path} is not a run file", "`stepscope record` makes run files")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return RunError(f"{path} is in use by another process", "Try again in a moment")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return RunError(f"{path} cannot be opened: {error}", "Check the permissions of file and folder")
    if code == sqlite3.SQLITE_READONLY:
        return RunError(f"{path} cannot be changed: {error}", "Copy it to a folder that you can write to")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM):
        return RunError(f"{path}: {error}")
    if isinstance(error, MemoryError):
        return RunError(f"{path}: what it holds does not fit into memory")
    if code == sqlite3.SQLITE_INTERRUPT:
        return DamagedRunError(f"{path} is damaged: reading it does not end", "Copy it again from its source")
    # The error may hold names and texts of the file.
    return DamagedRunError(f"{path} is damaged: {one_line(str(error))}", "Copy it again from its source")


def why_not_written(error: Exception, path: Path) -> str:
    """In words. SQLite calls it an I/O error when the disk has no room for the index of the -wal."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    if code & 0xFF == sqlite3.SQLITE_FULL:
        return "the disk is full"
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return "it was moved, removed or replaced"
    if code & 0xFF != sqlite3.SQLITE_IOERR:
        return str(error)
    with contextlib.suppress(OSError):
        if shutil.disk_usage(path.parent).free < 1 << 16:
            return "the disk is full"
    if code == sqlite3.SQLITE_IOERR_WRITE:
        return "a file cannot grow (a quota, or ulimit -f)"
    return str(error)


def free_name(path: Path) -> Path:
    """This name, or the first of NAME-2, NAME-3 and so on that nothing has, not even a link to nowhere."""
    found, number = path, 2
    while os.path.lexists(found):
        found, number = path.with_name(f"{path.stem}-{number}{path.suffix}"), number + 1
    return found


def create_file(path: Path, meta: Mapping[str, Any], overwrite: bool) -> None:
    """A new run file with its schema and `meta`. It appears under its name only when it is complete."""
    new = path.with_name(f".{path.name[:40]}.{os.getpid()}.new")
    try:
        must_be_free(path, overwrite)
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + "-journal").lstat()  # a name that gets too long is told now
        _forget_unfinished(path.parent)
        new.unlink(missing_ok=True)
        new.touch(exist_ok=False)  # told by the system's own words where it cannot be
        with contextlib.closing(sqlite3.connect(new)) as db:
            db.executescript("BEGIN;" + SCHEMA.read_text(encoding="utf-8"))
            db.executemany(PUT_META, [(key, to_json(value)) for key, value in meta.items()])
            db.commit()
        place(new, path, overwrite)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or why_not_written(error, path)
        raise RunError(f"cannot write {path}: {reason}", "Name another file with -o") from error
    finally:
        remove_run(new)


def place(new: Path, path: Path, overwrite: bool) -> None:
    """Give a complete run file its name. RunError when that is taken, and not to be written over; OSError."""
    must_be_free(path, overwrite)
    try:
        if overwrite:
            _forget_beside(path)
            new.replace(path)
        else:
            _rename(new, path)
            _forget_beside(path)  # the name is ours alone from here on
    except FileExistsError as error:
        raise TakenRunError(f"{path} exists already", "Name another file, or remove it") from error


def _forget_unfinished(folder: Path) -> None:
    """Remove files of recorders that were killed while they made them."""
    for old in folder.glob(".*.new*"):
        named = _UNFINISHED.fullmatch(old.name)
        with contextlib.suppress(OSError, OverflowError):
            # the number may be that of a process on another machine
            if named and process_start(int(named[1])) is None and time.time() - old.stat().st_mtime > 60.0:
                old.unlink()


def remove_run(path: Path) -> None:
    """Away with a run file that has not begun, and with what lies beside it."""
    for ending in ("", *_BESIDE):
        with contextlib.suppress(OSError):
            path.with_name(path.name + ending).unlink(missing_ok=True)


def _forget_beside(path: Path) -> None:
    """Remove what belonged to another file of that name: SQLite would put it into the new one."""
    for ending in _BESIDE:
        path.with_name(path.name + ending).unlink(missing_ok=True)


def connect_for_writing(path: Path) -> sqlite3.Connection:
    """A connection to an existing run file, in autocommit mode. ValueError: see `check_beside`."""
    check_beside(path)
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS,
                         isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def enter_wal(db: sqlite3.Connection, path: Path) -> tuple[bool, str | None]:
    """Have a -wal beside the file where that works: whether it does, and why not."""
    kind = filesystem.file_system(path)
    if filesystem.is_network(kind):
        return False, f"no -wal on a network file system ({kind})"
    with contextlib.suppress(sqlite3.OperationalError):
        if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
            return True, None
    return False, f"no -wal: the file system ({kind or 'unknown'}) does not support it"


def leave_wal(db: sqlite3.Connection, seconds: float) -> bool:
    """Put everything into the one plain file. Waits so long for readers to let go; True when done.

    When they do not, everything is in the file all the same, and only an empty -wal stays beside it.
    """
    db.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
    deadline = time.monotonic() + seconds
    with contextlib.suppress(sqlite3.OperationalError):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    while True:
        try:
            if db.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete":
                return True
        except sqlite3.OperationalError:
            pass
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside, or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def to_json(value: Any) -> str:
    """Strict JSON: not-a-number and infinity become null, what JSON does not know its text."""
    try:
        return json.dumps(value, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, default=str)


def must_be_free(path: Path, overwrite: bool) -> None:
    """Nothing is written over but run files, and no run while it is recorded: RunError."""
    if path.is_dir():
        raise RunError(f"{path} is a folder", "Name a file")
    if not path.exists():
        return
    if not overwrite:
        raise TakenRunError(f"{path} exists already", "Name another file, or remove it")
    if not path.is_file():  # a device or a pipe would be gone for good
        raise RunError(f"{path} is not a regular file", "Name another file")
    if not path.stat().st_size:
        return
    try:
        with contextlib.closing(connect_for_writing(path)) as db:
            try:
                identify(db, path)
            except RunVersionError:
                return
            meta = checked.meta(db.execute("SELECT key, value FROM meta").fetchall())
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise explain(error, path) from error
    if meta.get("state") == "recording" and recorder_alive(meta, path):
        raise RunError(f"{path} is being recorded", "Name another file with -o")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _rename(new: Path, path: Path) -> None:
    """Move to a name that must be free. A link fails where it is taken."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:
        if path.exists():
            raise FileExistsError(path) from None
        new.rename(path)
