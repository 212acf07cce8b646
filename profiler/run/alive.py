"""Is the process that records still there? A pid alone may have been given to another one since."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

QUIET = 10.0  # seconds without a write after which a recorder that cannot be asked counts as gone


def process_start(pid: int | None = None) -> float | None:
    """When a process began: clock ticks since boot on Linux, seconds since the epoch elsewhere.

    Only good to be compared with another answer for the same machine. None: no such process.
    """
    pid = os.getpid() if pid is None else pid
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
        return None if fields[0] in "ZX" else float(fields[19])
    except (OSError, IndexError, ValueError):
        if Path("/proc/self/stat").exists():
            return None
    import psutil  # late: it is only needed where there is no /proc

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def recorder_alive(meta: Mapping[str, Any], path: Path) -> bool:
    """Whether the recorder named in `meta` still runs.

    On another machine it cannot be asked: then a file that was written a moment ago counts as alive.
    """
    machine = meta.get("machine")
    host = machine.get("hostname") if isinstance(machine, Mapping) else None
    if host not in (None, socket.gethostname()):
        return time.time() - _written(path) < QUIET
    pid, start = meta.get("recorder_pid"), meta.get("recorder_start")
    if not isinstance(pid, int) or pid <= 0:
        return False
    now = process_start(pid)
    return now is not None and (not isinstance(start, int | float) or now == start)


def _written(path: Path) -> float:
    """Time of the last write to the file or its -wal."""
    times = [0.0]
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            times.append(file.stat().st_mtime)
        except OSError:
            continue
    return max(times)
