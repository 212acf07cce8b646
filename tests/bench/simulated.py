"""Time that passes as fast as the work is done, and what a process holds in memory."""

from __future__ import annotations

import ctypes
import gc
import time
from contextlib import suppress
from pathlib import Path

SECOND = 1_000_000_000


class Time:
    """A clock of simulated ns that takes the place of those in `time`, for the whole process.

    What waits in C, as locks and events do, goes by the real clock, and so do CPU times.
    """

    def __init__(self) -> None:
        self._now = self._begin = time.monotonic_ns()
        self._wall = time.time_ns() - self._now

    def install(self) -> None:
        """From here on `time` tells simulated times. Before anything keeps one of its functions."""
        time.monotonic_ns = lambda: self._now
        time.monotonic = lambda: self._now / SECOND
        time.time_ns = lambda: self._now + self._wall
        time.time = lambda: (self._now + self._wall) / SECOND

    @property
    def passed_s(self) -> float:
        return (self._now - self._begin) / SECOND

    def go_to(self, seconds: float) -> None:
        """It is now so many seconds since the start."""
        self._now = self._begin + round(seconds * SECOND)


def resident() -> int:
    """Bytes of memory that this process holds, what the allocator has free for itself given back."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def slope(points: list[tuple[float, float]]) -> float:
    """Of the line that fits (x, y) best."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
