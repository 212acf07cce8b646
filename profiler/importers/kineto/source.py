"""A file on disk as it is read: its blocks, and what is known of it."""

from __future__ import annotations

import io
import os
import select
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from profiler.errors import TraceError

BLOCK = 1 << 19   # bytes of text at a time: what a decoder makes of them stays in the processor's cache
FREE = 64 << 20   # text that any file may unpack to ...
RATIO = 300       # ... and above it at most this many times its size
PATIENCE = 0.2    # seconds without a block after which whoever waits looks about
_WRITER = 5.0     # seconds in which somebody must begin to write to a pipe

Blocks = Iterator[bytes]


def _nothing() -> None:
    pass


@dataclass
class Source:
    """What is known of a file while it is read."""

    name: str
    size: int = 0          # bytes on disk
    read: int = 0          # bytes read so far
    unpacked: int = 0      # bytes of text so far
    notes: list[str] = field(default_factory=list)
    damaged: str = ""      # why the text ends where it ends
    waiting: Callable[[], None] = _nothing  # asked again and again while no text comes; may raise
    closed: bool = False   # nobody wants more of a pipe

    def grew(self, unpacked: int) -> None:
        """TraceError when a layer of it has unpacked to far more than any trace does."""
        if unpacked > max(FREE, RATIO * max(self.size, self.read)):
            raise TraceError(f"{self.name} unpacks to more than {RATIO} times its size",
                             "It is no trace, or one that should be unpacked first.")


@contextmanager
def opened(path: Path, source: Source) -> Generator[Blocks, None, None]:
    """The blocks of a file or pipe. TraceError where it cannot be opened, or is something else."""
    try:
        source.size = size(path)
        file = io.FileIO(path, opener=_without_waiting)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise TraceError(f"{path} cannot be read: {why}", "Check the path.") from error
    with file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise TraceError(f"{path} is no file but a device", "Name the file of a trace.")
        yield _read(file, source) if stat.S_ISREG(mode) else _piped(file, source)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe also where nobody writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def size(path: Path) -> int:
    """Bytes of a file, 0 where that cannot be told."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def _read(file: io.FileIO, source: Source) -> Blocks:
    while block := file.read(BLOCK):
        source.read += len(block)
        yield block


def _piped(file: io.FileIO, source: Source) -> Blocks:
    """The same from a pipe, whose writer may take its time, but not to come at all."""
    latest = time.monotonic() + _WRITER
    while not source.closed:
        told = select.select([file], [], [], PATIENCE)[0]
        block = file.read(BLOCK)
        if block:
            source.read += len(block)
            yield block
        elif block == b"" and (told or time.monotonic() > latest):  # None: somebody will write
            return
