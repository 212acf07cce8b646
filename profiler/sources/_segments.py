"""Reading the spool's files as they grow. A probe writes `<pid>.<n>.spool`, n = 0, 1, ..."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from profiler.sources._usage import start_of

NAME = re.compile(r"([0-9]{1,10})\.([0-9]{1,9})\.spool")
CHUNK = 1 << 18
MAX_LINE = 1 << 22  # a probe writes lines of some hundred bytes
MAX_SEGMENT = 1 << 26  # and goes on to the next segment after 8 MiB

# A link leads elsewhere, and to open a pipe waits for whoever would write into it.
_CAREFUL = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def open_regular(path: Path) -> BinaryIO:
    """A file that the target's processes may have put there. OSError when it is no regular one."""
    fd = os.open(path, os.O_RDONLY | _CAREFUL)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(f"{path.name} is not a regular file")
    return os.fdopen(fd, "rb")


class Segment:
    """One file, read from where the last look ended. Lines are bytes without their end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.overlong = 0
        self._offset = 0
        self._rest = b""
        self._skipping = False

    def lines(self) -> Iterator[bytes]:
        """The lines completed since the last call; a last line without its end waits."""
        try:
            if os.stat(self.path).st_size <= self._offset:  # noqa: PTH116 (most of many files, at most looks)
                return
            file = open_regular(self.path)
        except OSError:
            return
        with file:
            file.seek(self._offset)
            while self._offset < MAX_SEGMENT and (data := file.read(CHUNK)):
                self._offset += len(data)
                *complete, self._rest = (self._rest + data).split(b"\n")
                for line in complete:
                    if not self._skipping:
                        yield line
                    self._skipping = False
                if len(self._rest) > MAX_LINE or self._skipping or self._offset >= MAX_SEGMENT:
                    self.overlong += not self._skipping
                    self._skipping, self._rest = True, b""

    @property
    def unfinished(self) -> bool:
        """Whether the last line read has no end."""
        return bool(self._rest) or self._skipping


class Segments:
    """All segments of a directory, in order for each pid; those read to the end are deleted."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._at = 0, 0  # the segment that is being read
        self._over: set[tuple[int, int]] = set()
        self.gone: list[int] = []  # pids that have said that they end, and did; whoever reads it clears it
        self._open: dict[tuple[int, int], Segment] = {}
        self.torn: dict[int, int] = {}  # pid -> lines that lost their end or were overlong

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(pid, line) for everything complete since the last call."""
        present = self._present()
        for pid, number in sorted(present):
            # Listed before it is read: a segment with a successor grows no more.
            closed = (pid, number + 1) in present
            path = self._directory / f"{pid}.{number}.spool"
            segment = self._open.get((pid, number))
            if segment is None:
                segment = self._open[pid, number] = Segment(path)
            self._at = pid, number
            for line in segment.lines():
                yield pid, line
            if self._at in self._over and not closed and start_of(pid) is None:
                closed = True
                self.gone.append(pid)
            self._count(pid, segment.overlong + (closed and segment.unfinished))
            segment.overlong = 0
            if closed:
                with suppress(OSError):
                    path.unlink()
                    del self._open[pid, number]
                    self._over.discard((pid, number))

    def over(self) -> None:
        """The process whose line is being read writes no more; its file goes with it.

        A day has thousands of them. While a process lives its file shows that it has a probe.
        """
        self._over.add(self._at)

    def _present(self) -> set[tuple[int, int]]:
        try:
            names = os.listdir(self._directory)  # noqa: PTH208 (ten times as fast)
        except OSError:
            return set()
        return {(int(m[1]), int(m[2])) for name in names if (m := NAME.fullmatch(name))}

    def _count(self, pid: int, lines: int) -> None:
        if lines:
            self.torn[pid] = self.torn.get(pid, 0) + lines
