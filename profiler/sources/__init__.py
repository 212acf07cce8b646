"""Where a recording's values come from: one file a source. Stdlib, pynvml and psutil only."""

from __future__ import annotations

from typing import Protocol

from profiler.model import Sink


class Clock(Protocol):
    """The run's clock, as far as sources need it."""

    def now_ns(self) -> int:
        """The time now, in ns since the epoch on the run's clock."""
        ...

    def from_monotonic(self, monotonic_ns: int) -> int:
        """The run's time of a reading of CLOCK_MONOTONIC."""
        ...


class Source(Protocol):
    """Something read at a cadence, by one thread of its own.

    `open` may add devices, meta and events, and raises ProfilerError when there is
    nothing to read: the recorder then says so once and goes on without this source.
    `read` is one tick; each value carries its own time. A value that cannot be had is
    no sample, never zero.
    """

    name: str
    interval_ns: int | None  # None: at the recorder's rate

    def open(self, sink: Sink, clock: Clock) -> None: ...

    def read(self, sink: Sink, clock: Clock) -> None: ...

    def close(self, sink: Sink, clock: Clock) -> None: ...
