"""Whether a run file and its -wal are still the ones that were made."""

from __future__ import annotations

import contextlib
from pathlib import Path

from profiler.run import filesystem


def number(path: Path) -> tuple[int, int] | None:
    """What tells a file from others of the same name, while it is there; None without one."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def identity(path: Path) -> tuple[int, int] | None:
    """The same, or None where the other end of the file system is elsewhere: it may number a file anew."""
    return None if filesystem.is_network(filesystem.file_system(path)) else number(path)


def moved(path: Path, known: tuple[int, int] | None) -> bool:
    """Whether there is no file of this name any more, or another one than `known`."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # a server that does not answer now
        return False
    return known is not None and known != (found.st_dev, found.st_ino)


def beside(path: Path, ending: str) -> Path:
    """Where SQLite has its -wal and the like: beside the file itself, not beside a link to it."""
    whole = path.resolve()
    return whole.with_name(whole.name + ending)


def log_beside(path: Path) -> Path | None:
    """The -wal of a run file, where there is one with something in it."""
    log = beside(path, "-wal")
    with contextlib.suppress(OSError):
        if log.stat().st_size:
            return log
    return None
