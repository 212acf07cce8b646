"""What one process has used so far, read as cheaply as the system allows."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time in s since the start of the process, resident memory in B, and the short name."""

    cpu: float
    rss: int
    name: str
    parent: int


def _usage_psutil(process: psutil.Process) -> Usage | None:
    try:
        with process.oneshot():
            times = process.cpu_times()
            return Usage(times.user + times.system, process.memory_info().rss, process.name(), process.ppid())
    except psutil.Error:
        return None


def _stat(pid: int) -> tuple[bytes, list[bytes]] | None:
    """Of a living process: what stands before its state in /proc/PID/stat, and the fields from there on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            head, _, tail = file.read().rpartition(b")")
    except OSError:
        return None
    fields = tail.split()
    return None if len(fields) < 22 or fields[0] in (b"Z", b"X") else (head, fields)


def _start_psutil(pid: int) -> object | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def _start_procfs(pid: int) -> object | None:
    found = _stat(pid)
    return found and found[1][19]


def _usage_procfs(process: psutil.Process) -> Usage | None:
    # One read of one file in place of three: workers come in hundreds.
    found = _stat(process.pid)
    if found is None:
        return None
    head, fields = found
    name = head.partition(b"(")[2].decode(errors="replace")
    return Usage((int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE, name, int(fields[1]))


if sys.platform == "linux":
    _TICKS = os.sysconf("SC_CLK_TCK")
    _PAGE = os.sysconf("SC_PAGE_SIZE")
    usage, start_of = _usage_procfs, _start_procfs
else:
    usage, start_of = _usage_psutil, _start_psutil


def waited(pid: int, most: int) -> dict[int, int] | None:
    """ns in which each thread of a process could run and had no core, by its id.

    Empty where the process is gone or the system does not count it; None where there are more than
    `most` threads.
    """
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return {}
    if len(threads) > most:
        return None
    read = {int(thread): _waited(f"/proc/{pid}/task/{thread}/schedstat") for thread in threads}
    return {thread: ns for thread, ns in read.items() if ns is not None}


def _waited(path: str) -> int | None:
    try:
        with open(path, "rb", 0) as file:  # noqa: PTH123
            return int(file.read(100).split()[1])
    except (OSError, ValueError, IndexError):  # the thread has ended, or the kernel does not count
        return None


def is_spawned_worker(process: psutil.Process, parent: psutil.Process | None) -> bool:
    """Whether this looks like a child that Python's multiprocessing made, other than its helpers.

    For versions of torch that do not name their loader workers.
    """
    if parent is None:
        return False
    try:
        command = process.cmdline()
        if "python" not in Path(parent.name()).name.lower():
            return False
        return "--multiprocessing-fork" in command or (bool(command) and command == parent.cmdline())
    except psutil.Error:
        return False
