"""How a run file is opened for reading: while it is recorded, after a kill, on read-only media."""

from __future__ import annotations

import contextlib
import errno
import shutil
import sqlite3
import tempfile
from pathlib import Path

from profiler.errors import RunError
from profiler.run.files import BUSY_SECONDS, explain, identify, look
from profiler.run.guard import Patience, allocated, check_beside, check_size
from profiler.run.place import beside

_CLOSED = sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY
_NO_INDEX = (sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP,
             sqlite3.SQLITE_IOERR_SHMLOCK)


class Connection:
    """A read-only connection to a run file. `close` it; `db` is the connection of sqlite3."""

    def __init__(self, path: Path) -> None:
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self.wal = False
        self.unread: str | None = None  # a file beside the run that could not be read with it
        look(path)
        try:
            self.db = self._open(path)
        except (sqlite3.Error, ValueError, TypeError, MemoryError) as error:
            self._forget_copy()
            raise explain(error, path) from error
        except RunError:
            self._forget_copy()
            raise

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.db.close()
        self._forget_copy()

    def _forget_copy(self) -> None:
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _open(self, path: Path) -> sqlite3.Connection:
        try:
            return self._connect(path, "mode=ro")
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0)  # none where a text of the file is none
            if code not in _NO_INDEX and code & 0xFF not in _CLOSED:
                raise
        # SQLite reads a -wal only where it may put its index beside it: on read-only media and on a full
        # disk it is read from a copy. So is a file whose last change was cut off, and has to be undone.
        # Without either everything is in the one file, which nobody can be writing here.
        for ending in ("-wal", "-journal"):
            try:
                if beside(path, ending).stat().st_size:
                    return self._connect(self._copied(path, ending), "mode=rw")
            except FileNotFoundError:
                continue
            except OSError as error:
                self.unread = f"{path.name}{ending} could not be read: {error.strerror or error}"
        self._forget_copy()
        return self._connect(path, "mode=ro&immutable=1")

    def _copied(self, path: Path, ending: str) -> Path:
        """A copy of the run and of a file beside it, for as long as we are open. OSError without room."""
        check_beside(path)
        log = beside(path, ending)
        self._copy = tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True)
        copy = Path(self._copy.name) / path.name
        if path.stat().st_size + log.stat().st_size > shutil.disk_usage(copy.parent).free // 2:
            raise OSError(errno.ENOSPC, "no room for a copy")  # with holes it can be of any length
        shutil.copyfile(path, copy)
        shutil.copyfile(log, beside(copy, ending))
        return copy

    def _connect(self, path: Path, mode: str) -> sqlite3.Connection:
        check_beside(path)
        db = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS,
                             isolation_level=None, check_same_thread=False)
        try:
            # The file may come from anybody: no code in its schema runs, nothing else is opened through it.
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("PRAGMA query_only = ON")
            db.execute("PRAGMA cell_size_check = ON")
            db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self.patience = Patience(db)
            self.wal = identify(db, path) and self._copy is None
            check_size(db, allocated(path) + allocated(beside(path, "-wal")))
        except BaseException:
            db.close()
            raise
        return db
