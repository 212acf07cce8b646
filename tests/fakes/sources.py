"""A vendor's two sources of GPUs with their sink, on a clock that moves when it is told to."""

from __future__ import annotations

from profiler.sources import Source
from tests.fakes.sink import ListSink


class Clock:
    """Stands still but for a step at each reading of it."""

    def __init__(self) -> None:
        self.t = 0

    def now_ns(self) -> int:
        self.t += 1000
        return self.t

    def from_monotonic(self, monotonic_ns: int) -> int:
        return monotonic_ns


class Both:
    """The fast one and the slow one, with one sink and one clock."""

    def __init__(self, fast: Source, slow: Source) -> None:
        self.sink, self.clock = ListSink(), Clock()
        self.sources = {"fast": fast, "slow": slow}

    def tick(self, source: str, times: int, step_s: float) -> None:
        for _ in range(times):
            self.clock.t += round(step_s * 1e9)
            self.sources[source].read(self.sink, self.clock)

    def close(self) -> None:
        for source in ("slow", "fast"):
            self.sources[source].close(self.sink, self.clock)
