"""The driver's own buffers of samples: utilization and power at the rate at which it measures them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import Field, Implausible, Values, Way
from profiler.sources._gpu import Gpu
from profiler.sources._library import NOT_FOUND, Missing, code_of
from profiler.sources._readings import Reading
from profiler.sources._relay import Job

TOTAL_POWER, GPU_UTILIZATION = 0, 1  # NVML's kinds of samples
MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # of the union, by the type told
DOUBLE, SHORT = 0, 6
TINY = 1e-100  # what an integer's bytes look like as a double
NEAR_NS = 60_000_000_000  # of now: a stamp that far from a clock is not that clock's
FULL = 200_000  # samples of one buffer: an hour of 50 a second. A day's would fill the file.
AHEAD_NS = 1_000_000_000  # later than now by more cannot be


class Buffer:
    """One buffer of one GPU. Each sample keeps the time at which the driver took it, on the run's clock."""

    def __init__(self, gpu: Gpu, title: str, metric: str, kind: int, scale: float, highest: float,
                 lowest: float = 0.0) -> None:
        self._gpu, self._metric, self._kind = gpu, metric, kind
        self._scale, self._highest = scale, highest
        self._last_us: int | None = None  # the driver's stamp of the newest sample seen, over new handles too
        self._last_ns = -(1 << 62)  # on the run's clock
        self._found: list[tuple[int, float]] = []  # (us, value) of this tick, the oldest first
        self._track: int | None = None
        self._stored = 0
        self._thinned = False
        self._reading = Reading(gpu, Field(title, (metric,), (Way(self._bind),), highest, lowest))

    def read(self, sink: Sink, clock: Clock) -> None:
        self._found = []
        self._reading.read(sink, clock)
        good = [(t_ns, value) for t_ns, value in self._timed(clock)
                if t_ns > self._last_ns and self._fits(value)]
        for t_ns, value in self._kept(good, sink, clock):
            self._last_ns = t_ns
            self._stored += 1
            if self._track is None:
                self._track = sink.track(self._metric, device=self._gpu.id,
                                         properties={"method": "the driver's buffer"})
            sink.sample(self._track, t_ns, value)

    def _fits(self, value: float) -> bool:
        return self._reading.lowest <= value <= self._highest

    def _kept(self, good: list[tuple[int, float]], sink: Sink, clock: Clock) -> list[tuple[int, float]]:
        """All of a tick's samples; in a long run their mean, at the time of the last."""
        if self._stored < FULL or not good:
            return good
        if not self._thinned:
            self._thinned = True
            text = f"{self._reading.field.title}: from here on one mean a second is kept"
            sink.event(clock.now_ns(), "thinned", "info", f"GPU {self._gpu.index}, {text}",
                       device=self._gpu.id)
        return [(good[-1][0], sum(value for _, value in good) / len(good))]

    def stuck(self, sink: Sink, clock: Clock) -> None:
        self._reading.stuck(sink, clock)

    def _bind(self, nvml: Any, handle: Any) -> Callable[[], Values]:
        def read() -> Values:
            wall_us = time.time_ns() // 1000
            if self._last_us is not None and wall_us < self._last_us < wall_us + NEAR_NS // 1000:
                self._last_us = None  # the wall clock was set back: nothing would be newer for that time
            try:
                kind, samples = nvml.nvmlDeviceGetSamples(handle, self._kind, self._last_us or 0)
            except Exception as error:
                if code_of(error) in (0, NOT_FOUND):  # how the binding, and the driver, say: none newer
                    return (None,)
                raise
            if not 0 <= kind < len(MEMBERS):
                raise Missing(f"its samples are of a type that is not known ({kind})")
            self._take((int(s.timeStamp), _number(s.sampleValue, kind)) for s in samples)
            wrong = (value * self._scale for _, value in self._found if not self._fits(value * self._scale))
            return (next(wrong, None),)  # so that it is said

        return read

    def _take(self, samples: Iterable[tuple[int, float]]) -> None:
        """Keep what is newer than all seen. What was there at the first look is of before the run."""
        last = self._last_us
        newer = sorted(sample for sample in samples if sample[0] > (last or 0))
        if not newer:
            return
        if clock_of(newer[-1][0]) is None:
            raise Missing("its samples are stamped by a clock that is not known")
        self._last_us = newer[-1][0]
        self._found = newer if last is not None else []

    def _timed(self, clock: Clock) -> list[tuple[int, float]]:
        """The samples of this tick in our unit, at times of the run's clock."""
        if not self._found:
            return []
        on_wall = clock_of(self._found[-1][0]) == "wall"
        ahead = clock.now_ns() - time.time_ns()  # of the run's clock, as the wall clock is now
        return [(us * 1000 + ahead if on_wall else clock.from_monotonic(us * 1000), value * self._scale)
                for us, value in self._found]


def _number(union: Any, kind: int) -> float:
    """Of a sample. A type that cannot be that of the bytes beside it is not the sample's."""
    value = float(getattr(union, MEMBERS[kind]))
    if (kind == DOUBLE and 0 < abs(value) < TINY) or (kind == SHORT and value != union.uiVal):
        raise Implausible(value, "its samples are not of the type that is told")
    return value


def clock_of(stamp_us: int) -> str | None:
    """Which clock a stamp of just now is of: wall, monotonic (some drivers'), or None."""
    for name, now_ns in (("wall", time.time_ns()), ("monotonic", time.monotonic_ns())):
        if now_ns - NEAR_NS < stamp_us * 1000 < now_ns + AHEAD_NS:
            return name
    return None


def buffers(gpus: Iterable[Gpu]) -> list[Job]:
    """Utilization and power of each GPU."""
    return [job for gpu in gpus for job in (
        Buffer(gpu, "the driver's samples of utilization", "gpu.util_samples", GPU_UTILIZATION, 0.01, 1.0),
        Buffer(gpu, "the driver's samples of power", "gpu.power_samples", TOTAL_POWER, 0.001,
               gpu.power_bound, 0.001))]
