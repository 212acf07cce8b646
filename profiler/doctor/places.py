"""Where things are written: shared memory, runs, the cache."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from profiler.doctor.base import Check
from profiler.paths import cache_dir, runs_dir
from profiler.run.filesystem import file_system, is_network
from profiler.units import format_bytes, format_gib

SHM = Path("/dev/shm")
LITTLE_SHM = 1 << 30
LOW, FULL = 5_000_000_000, 200_000_000  # B free


def rows() -> Iterator[Check]:
    if SHM.is_dir():
        usage = shutil.disk_usage(SHM)
        yield shm_check(usage.total, usage.free)
    for name, folder, variable in (("Runs folder", runs_dir(), "STEPSCOPE_RUNS"),
                                   ("Cache folder", cache_dir(), "STEPSCOPE_CACHE")):
        there = existing(folder)
        yield folder_check(name, folder, shutil.disk_usage(there).free,
                           os.access(there, os.W_OK | os.X_OK), variable)
    yield file_system_check(file_system(existing(runs_dir())))


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that there is."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def shm_check(total: int, free: int) -> Check:
    text = f"{format_gib(free)} free of {format_gib(total)}"
    if free < LITTLE_SHM:
        return Check("/dev/shm", "warning", f"{text}: loader workers hand their batches over in it",
                     "Start the container with --shm-size=8g or --ipc=host")
    return Check("/dev/shm", "ok", text)


def folder_check(name: str, folder: Path, free: int, writable: bool, variable: str) -> Check:
    text = f"{folder}, {format_bytes(free)} free"
    if not writable:
        return Check(name, "error", f"{folder} cannot be written to", f"Set {variable} to another folder")
    if free < FULL:
        return Check(name, "error", text, f"Free some space, or set {variable} to another folder")
    if free < LOW:
        return Check(name, "warning", text, f"Free some space, or set {variable} to another folder")
    return Check(name, "ok", text)


def file_system_check(kind: str | None) -> Check:
    """Of the folder of runs. SQLite's write-ahead log needs shared memory."""
    if is_network(kind):
        return Check("File system", "warning", f"runs lie on {kind}, a network file system: they are written "
                     "without a write-ahead log", "A local folder is faster: set STEPSCOPE_RUNS")
    return Check("File system", "ok", f"runs lie on {kind}" if kind else "not told by this system")
