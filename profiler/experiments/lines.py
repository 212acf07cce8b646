"""A file of JSON lines that grows by one with each finished run, so that a stop loses none of them."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from profiler.errors import RunError, UsageError


def append(path: Path, told: Mapping[str, Any]) -> None:
    """Keep one line, on disk when this returns. RunError when it cannot be written.

    It is one write: a reader sees the line whole or, after a crash, torn at the end.
    """
    line = json.dumps(told, allow_nan=False).encode() + b"\n"
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            if (size := os.fstat(file).st_size) and os.pread(file, 1, size - 1) != b"\n":
                line = b"\n" + line  # what is torn stays a line of its own
            while line:  # a disk that is almost full takes a part, and refuses the rest
                line = line[os.write(file, line):]
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}",
                       "Make room, or name another folder with -o") from error


def read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The objects in a file, in order, and how many lines are none. RunError when it cannot be read."""
    found, damaged = [], 0
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from error
    for line in filter(None, lines):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            told = None
        if isinstance(told, dict):
            found.append(told)
        else:
            damaged += 1
    return found, damaged


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Inside, no other process has the folder. UsageError when one has: runs of two would be mixed."""
    file = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process is at work in {folder}",
                             "Wait for its end, or name another folder with -o") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(file)


def replace(path: Path, told: Mapping[str, Any]) -> None:
    """Write one object over a file: what was there stays until all is written. OSError when it cannot be."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        new.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
