"""How busy each process keeps a GPU, as the driver samples it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._buffers import AHEAD_NS, clock_of
from profiler.sources._fields import Field, Values, Way
from profiler.sources._gpu import Gpu
from profiler.sources._gpu_processes import GpuProcesses
from profiler.sources._library import INSUFFICIENT_SIZE, NOT_FOUND, Missing, code_of
from profiler.sources._readings import Reading

METHOD = "the driver's last sample of each process"
TRIES = 3  # a process may start between the question for the size and the one for the samples
UNKNOWN = 3  # answers in a row without one sample whose time makes sense, from which it is said


class ProcessUse:
    """Utilization of one GPU by each process on its list, as a share in [0, 1].

    The driver answers with samples newer than a stamp, of processes that did something, and that it found
    none where none did: a process on the list is then at 0. A sample that is not new says nothing, and a pid
    that is not on the list is dropped: it has ended, or never was.
    """

    def __init__(self, gpu: Gpu, processes: GpuProcesses) -> None:
        self._processes = processes
        self._last_us = 0  # the driver's stamp of the newest sample seen, over new handles too
        self._old_us: dict[str, int] = {}  # by clock: no sample up to here is new; at first the first look
        self._unknown = 0
        self._found: dict[int, float | None] | None = None  # of this tick; None: nothing new of that pid
        ways = (Way(self._binder("nvmlDeviceGetProcessesUtilizationInfo")),
                Way(self._binder("nvmlDeviceGetProcessUtilization")))
        self._reading = Reading(gpu, Field("utilization by process", ("gpu.process_util",), ways, 1.0))

    def read(self, sink: Sink, clock: Clock) -> None:
        """One tick, after the list of processes was read."""
        self._found = None
        listed = self._processes.listed
        if listed is None:
            return
        self._reading.read(sink, clock)
        found, t_ns = self._found, clock.now_ns()
        if found is None:
            return
        for pid in sorted(listed, key=lambda pid: -(found.get(pid) or 0.0)):
            share = found.get(pid, 0.0)
            track = None if share is None else self._processes.track("gpu.process_util", pid, sink, METHOD)
            if share is not None and track is not None:
                sink.sample(track, t_ns, share)

    def stuck(self, sink: Sink, clock: Clock) -> None:
        self._reading.stuck(sink, clock)

    def _binder(self, name: str) -> Callable[[Any, Any], Callable[[], Values]]:
        def bind(nvml: Any, handle: Any) -> Callable[[], Values]:
            get = getattr(nvml, name)

            def read() -> Values:
                now = {"wall": time.time_ns() // 1000, "monotonic": time.monotonic_ns() // 1000}
                if self._old_us.get("wall", now["wall"]) > now["wall"] + AHEAD_NS // 1000:
                    # The wall clock was set back: nothing would be newer for that time.
                    self._last_us, self._old_us["wall"] = 0, now["wall"]
                self._old_us = self._old_us or now
                return self._take(_samples(get, handle, self._last_us))

            return read

        return bind

    def _take(self, samples: list[tuple[int, int, int]]) -> Values:
        """Keep what is new; returned is a share that cannot be, so that it is said once."""
        listed, found, wrong = self._processes.listed or {}, dict[int, float | None](), None
        known = False
        old_us = dict(self._old_us)
        for pid, us, percent in sorted(samples, key=lambda sample: sample[1]):
            of = clock_of(us)
            share: float | None = percent / 100
            if of is None or us <= old_us[of]:
                share = None
            elif percent > 100:
                wrong, share = (share if pid in listed else wrong), None
            if of is not None:
                known, self._last_us, self._old_us[of] = True, us, max(us, old_us[of])
            if share is not None or pid not in found:
                found[pid] = share
        self._unknown = self._unknown + 1 if samples and not known else 0
        if self._unknown >= UNKNOWN:
            raise Missing("its samples are stamped by a clock that is not known")
        self._found = found
        return (wrong,)


def _samples(get: Callable[..., Any], handle: Any, since_us: int) -> list[tuple[int, int, int]]:
    """(pid, stamp in us, percent) of what the driver sampled since; empty where it has nothing."""
    for left in reversed(range(TRIES)):
        try:
            return [(int(s.pid), int(s.timeStamp), int(s.smUtil)) for s in get(handle, since_us)]
        except Exception as error:
            code = code_of(error)
            if code in (0, NOT_FOUND):  # how the binding, and the driver, say: none newer
                break
            if code != INSUFFICIENT_SIZE or not left:
                raise
    return []
