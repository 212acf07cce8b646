"""Private temporary folders: the spool of a recording, the runs of an experiment. None is left for long."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from profiler.errors import RunError
from profiler.record.stop import carriers
from profiler.run.alive import process_start

LEFT_KEPT_S = 86400.0  # where locks tell nothing

_locks: dict[Path, int] = {}  # held while this process lives, also seen from other containers


def private_folder(prefix: str) -> Path:
    """A temporary folder of this process. RunError when it cannot be made.

    Those of the same prefix that were left behind, for their process was killed, go.
    """
    try:
        base = Path(tempfile.gettempdir())
    except OSError:
        raise RunError("there is no folder for temporary files that can be written to",
                       "Set TMPDIR to one with room") from None
    for old in base.glob(f"{prefix}*"):
        with suppress(OSError, ValueError):
            pid = int(old.name.removeprefix(prefix).partition("-")[0])
            if process_start(pid) is None and _abandoned(old):
                shutil.rmtree(old, ignore_errors=True)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-"))
    except OSError as error:
        raise RunError(f"no folder can be made in {base}: {error.strerror}",
                       "Set TMPDIR to one with room") from None
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        _locks[folder] = fd
        _lock(fd)
    return folder


def remove_folder(folder: Path) -> None:
    """Away with it, whatever others have made of it."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.unlink(missing_ok=True)
    if (fd := _locks.pop(folder, None)) is not None:
        os.close(fd)


def _abandoned(folder: Path) -> bool:
    """Whether nobody uses it: its process has let go of the lock, and no command still sends steps into it.

    OSError for a folder that is not ours to look into.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        _lock(fd)
    except BlockingIOError:  # a process of another container holds it
        return False
    except OSError:  # a file system without locks
        return time.time() - folder.stat().st_mtime > LEFT_KEPT_S
    finally:
        os.close(fd)
    return not carriers("STEPSCOPE_SPOOL", str(folder))


def _lock(fd: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        raise OSError("no locks") from None
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
