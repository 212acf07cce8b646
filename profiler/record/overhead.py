"""The recorder on itself: lateness, CPU time, what it missed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from profiler.model import Sink
from profiler.record.gpus import GpuReader, RemoteTicks
from profiler.record.ticks import SourceThread
from profiler.record.used import peak_memory
from profiler.sources import Clock


class Overhead:
    """Samples the recorder's own cost once a second, and sums it up at the end.

    The process that reads the GPUs is part of the recorder.
    """

    def __init__(self, threads: Sequence[SourceThread], gpus: GpuReader) -> None:
        self._threads = threads
        self._gpus = gpus
        self._begin_ns = self._last_ns = time.monotonic_ns()
        self._begin_cpu_ns = self._last_cpu_ns = time.process_time_ns()

    def sample(self, sink: Sink, clock: Clock) -> None:
        """Write recorder.cpu (share of one core), .lateness (largest, ns), .missed (ticks so far)."""
        now, cpu = time.monotonic_ns(), time.process_time_ns()
        if now <= self._last_ns:
            return
        t_ns = clock.now_ns()
        share = (cpu - self._last_cpu_ns) / (now - self._last_ns) + self._gpus.cpu_share
        self._last_ns, self._last_cpu_ns = now, cpu
        sink.sample(sink.track("recorder.cpu"), t_ns, share)
        lateness = max((ticked.cadence.take_recent() for ticked in self._ticked()), default=0)
        sink.sample(sink.track("recorder.lateness"), t_ns, float(lateness))
        sink.sample(sink.track("recorder.missed"), t_ns, float(self._missed()))

    def _ticked(self) -> list[SourceThread | RemoteTicks]:
        return [*list(self._gpus.ticks.values()), *self._threads]

    def _missed(self) -> int:
        return sum(ticked.cadence.missed for ticked in self._ticked())

    def summary(self) -> dict[str, Any]:
        """The run's `overhead`: times in s, cpu_share of one core, peak_rss in bytes, ticks by source.

        The rate of a source is that since its first tick.
        """
        wall = (time.monotonic_ns() - self._begin_ns) / 1e9
        cpu = (time.process_time_ns() - self._begin_cpu_ns + self._gpus.cpu_ns) / 1e9
        return {
            "wall_s": wall,
            "cpu_s": cpu,
            "cpu_share": cpu / wall if wall > 0 else None,
            "peak_rss": peak_memory() + self._gpus.peak_rss,
            "missed": self._missed(),
            "sources": {ticked.name: _ticks(ticked) for ticked in self._ticked()},
        }


def _ticks(ticked: SourceThread | RemoteTicks) -> dict[str, Any]:
    cadence = ticked.cadence
    since_s = (time.monotonic_ns() - cadence.begun_ns) / 1e9 if cadence.begun_ns is not None else 0.0
    return {
        "ticks": cadence.ticks,
        "missed": cadence.missed,
        "asked_hz": 1e9 / cadence.interval_ns,
        "rate_hz": cadence.ticks / since_s if since_s > 0 else None,
        "lateness_mean_ns": cadence.lateness_sum_ns / cadence.ticks if cadence.ticks else None,
        "lateness_max_ns": cadence.lateness_max_ns if cadence.ticks else None,
        "off": ticked.off,
    }
