"""Notices that the wall clock was set, or that the machine slept. Neither moves anything in a run."""

from __future__ import annotations

import time
from collections.abc import Callable

from profiler.model import Sink
from profiler.record.clock import Clock
from profiler.units import format_time

STEP_NS = 100_000_000  # a clock that is disciplined gently moves by less in a second
SLEPT_NS = 500_000_000
AFTER_SLEEP_NS = 2_000_000_000  # the clock that runs on while the machine sleeps may count whole seconds
UNSURE_NS = 10_000_000  # readings that lie further apart tell nothing

Readings = tuple[int, int, int]  # monotonic, since boot with sleep, wall: ns


def readings() -> Readings | None:
    """The three clocks, read together; None where that did not succeed on a busy machine.

    Where the system has no clock that counts sleep, a sleep looks like a step of the wall clock.
    """
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    for _ in range(5):
        before = time.monotonic_ns()
        since_boot = before if boot is None else time.clock_gettime_ns(boot)
        wall = time.time_ns()
        if time.monotonic_ns() - before < UNSURE_NS:
            return before, since_boot, wall
    return None


class ClockWatch:
    """Looks about once a second. The run's clock goes on where it was: an event tells, an anchor is taken."""

    def __init__(self, clock: Clock, read: Callable[[], Readings | None] = readings) -> None:
        self._clock = clock
        self._read = read
        self._last = read()

    def look(self, sink: Sink) -> None:
        last, now = self._last, self._read()
        if now is None:
            return
        self._last = now
        if last is None:
            return
        slept = (now[1] - now[0]) - (last[1] - last[0])
        stepped = (now[2] - now[1]) - (last[2] - last[1])
        asleep = slept >= SLEPT_NS
        step = abs(stepped) >= (AFTER_SLEEP_NS if asleep else STEP_NS)
        if asleep:
            sink.event(self._clock.now_ns(), "suspended", "warning",
                       f"The machine slept for {format_time(slept)}. The run's clock stood still meanwhile",
                       data={"ns": slept})
        if step:
            way = "forward" if stepped > 0 else "back"
            sink.event(self._clock.now_ns(), "clock_step", "info",
                       f"The wall clock was set {way} by {format_time(abs(stepped))}. "
                       "The run's clock goes on as before", data={"ns": stepped})
        if asleep or step:
            self._clock.add_anchor()
            sink.set_meta("anchors", self._clock.anchors)
