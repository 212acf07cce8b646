"""The target's process tree: the root, its descendants, and what was once seen of it."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import psutil

from profiler.sources._usage import start_of

REFRESH_NS = 400_000_000  # the host source asks every 500 ms and shall see each new process at once


class TargetTree:
    """The processes that descend from a root. Without a root the tree is empty.

    A process is told by its pid and start time, so that a pid given out again is
    another process. One that was in the tree and lost its parent (a worker of a rank
    that died, a daemon) stays in it. May be asked from several threads.

    `process` is the target's id in the run. `loops` holds the pids of processes that
    run a training loop; the spool source adds them.
    """

    def __init__(self, pid: int | None = None, process: int | None = None) -> None:
        self.pid: int | None = None
        self.process: int | None = None
        self.loops: set[int] = set()
        self._lock = threading.Lock()
        self._members: dict[int, psutil.Process] = {}
        self._starts: dict[int, object] = {}
        self._seen: set[int] = set()  # pids of the last look, in the tree or not
        self._read_at = -REFRESH_NS
        if pid is not None:
            self.follow(pid, process)

    def follow(self, pid: int, process: int | None = None) -> None:
        """Make `pid` the root. A pid that does not exist leaves the tree empty."""
        with self._lock:
            self.pid, self.process = pid, process
            self._members.clear()
            self._starts.clear()
            self._seen.clear()
            self._read_at = -REFRESH_NS
            self._add(pid)

    def processes(self) -> list[psutil.Process]:
        """Those alive, at most REFRESH_NS old. The objects stay the same while a process lives."""
        with self._lock:
            if self._members and time.monotonic_ns() - self._read_at >= REFRESH_NS:
                self._refresh()
                self._read_at = time.monotonic_ns()
            return list(self._members.values())

    def has(self, pid: int) -> bool:
        """Whether a living process of the tree has this pid."""
        return any(p.pid == pid for p in self.processes())

    def _refresh(self) -> None:
        alive = {pid for pid in self._members if start_of(pid) == self._starts[pid]}
        self._members = {pid: p for pid, p in self._members.items() if pid in alive}
        self._starts = {pid: self._starts[pid] for pid in alive}
        pids = set(psutil.pids())
        # Only parents of new pids are read: a big server has thousands of processes.
        new = pids - self._seen - self._members.keys()
        parents = {pid: parent for pid in new if (parent := _parent(pid)) is not None}
        self._seen = pids
        found = True
        while found:
            found = False
            for pid, parent in list(parents.items()):
                if parent in self._members:
                    del parents[pid]
                    found = self._add(pid) or found

    def _add(self, pid: int) -> bool:
        start = start_of(pid)
        if start is None:
            return False
        with suppress(psutil.Error):
            self._members[pid] = psutil.Process(pid)
            self._starts[pid] = start
        return pid in self._members


def _parent(pid: int) -> int | None:
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None
