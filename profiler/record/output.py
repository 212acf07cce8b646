"""What the target prints, as much of it as a run keeps."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from profiler.model import Sink

HEAD = 256 << 10  # bytes kept of the beginning
TAIL = 1 << 20  # and at least so many of the end
PIECE = 64 << 10
GRAIN = 4 << 10  # pieces below are dropped together: a day of dots makes half a million of them


class OutputSink(Sink, Protocol):
    """A sink whose oldest pieces of output can be dropped again, by their number from 1.

    While `failed` says why it cannot be written, nothing is put in: the numbers would not be its own.
    """

    failed: str | None

    def drop_output(self, first: int, last: int) -> None: ...


class Output:
    """Bytes as the target wrote them, carriage returns too: the first 256 kB and the last 1 MB.

    Everything is written as it comes, so that it can be followed live; what
    lies between beginning and end is dropped later.
    """

    def __init__(self, sink: OutputSink) -> None:
        self._sink = sink
        self._pending = bytearray()
        self._pieces = 0
        self._head = 0  # bytes in pieces that stay
        self._tail: deque[tuple[int, int]] = deque()  # of pieces after the head: the last one's number, size
        self._first = 0  # number of the first of them
        self._tail_size = 0
        self.cut = 0  # bytes dropped

    def add(self, data: bytes) -> None:
        """Take what was printed. Bounded: somebody calls `flush` ten times a second."""
        self._pending += data

    def flush(self, t_ns: int) -> None:
        """Put what was taken into the run."""
        if self._sink.failed is not None:
            self._pending.clear()
            return
        room = HEAD - self._head
        if (surplus := len(self._pending) - room - 2 * TAIL) > 0:
            del self._pending[room:room + surplus]
            self._tell_cut(t_ns, surplus)
        while self._pending:
            size = min(PIECE, len(self._pending))
            if 0 < (room := HEAD - self._head) < size:
                size = room
            self._sink.output(t_ns, bytes(self._pending[:size]))
            del self._pending[:size]
            self._pieces += 1
            self._count(size)
        self._drop(t_ns)

    def _count(self, size: int) -> None:
        if self._head < HEAD:
            self._head += size
        else:
            self._first = self._first or self._pieces
            self._tail_size += size
            together = self._tail.pop()[1] if self._tail and self._tail[-1][1] < GRAIN else 0
            self._tail.append((self._pieces, together + size))

    def _drop(self, t_ns: int) -> None:
        if self._tail_size <= 2 * TAIL:  # rarely, and then much at once
            return
        last, before = 0, self._tail_size
        while self._tail_size - self._tail[0][1] >= TAIL:
            last, size = self._tail.popleft()
            self._tail_size -= size
        self._sink.drop_output(self._first, last)
        self._first = last + 1
        self._tell_cut(t_ns, before - self._tail_size)

    def _tell_cut(self, t_ns: int, size: int) -> None:
        if not self.cut:
            self._sink.event(t_ns, "output_cut", "info",
                             "The target prints much: its first 256 kB and its last 1 MB of output are kept")
        self.cut += size
