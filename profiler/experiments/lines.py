"""A file of JSON lines that grows by one with each finished run, so that a stop loses none of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.errors import RunError


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
