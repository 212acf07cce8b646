"""The run's clock: the wall clock at the start plus monotonic time since."""

from __future__ import annotations

import time


def _anchor() -> tuple[int, int]:
    """(monotonic ns, wall ns) read together.

    The wall clock is read between two readings of the monotonic one; the
    tightest of a few attempts is taken, so that being interrupted in between
    does not shift the pair.
    """
    best: tuple[int, int, int] | None = None
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, wall)
    assert best is not None
    return best[1], best[2]


class Clock:
    """Times of one run, integer ns since the epoch. A step of the wall clock moves nothing.

    `anchors` holds (monotonic ns, wall ns) pairs taken over the run, by which a
    trace in wall-clock time is aligned although the wall clock was stepped.
    """

    def __init__(self, start: tuple[int, int] | None = None) -> None:
        """Begins now; with `start`, another clock's (monotonic ns, wall ns), it is that clock."""
        self.start_monotonic_ns, self.start_wall_ns = start or _anchor()
        self.anchors: list[tuple[int, int]] = [(self.start_monotonic_ns, self.start_wall_ns)]

    def now_ns(self) -> int:
        """Now, on the run's clock."""
        return self.start_wall_ns + time.monotonic_ns() - self.start_monotonic_ns

    def from_monotonic(self, monotonic_ns: int) -> int:
        """A CLOCK_MONOTONIC reading of any process of this machine, on the run's clock."""
        return self.start_wall_ns + (monotonic_ns - self.start_monotonic_ns)

    def add_anchor(self) -> tuple[int, int]:
        """Take another (monotonic ns, wall ns) pair."""
        pair = _anchor()
        self.anchors.append(pair)
        return pair
