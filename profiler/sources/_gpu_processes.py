"""Which processes use a GPU, and how many of them are not the target's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import psutil

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import MEMORY_BOUND, Field, Implausible, Values, Way
from profiler.sources._gpu import Gpu
from profiler.sources._library import FUNCTION_NOT_FOUND, NOT_FOUND, code_of
from profiler.sources._readings import Reading
from profiler.sources.tree import TargetTree

HIGHEST_PID = 2**31 - 2
MAX_PROCESSES = 32  # of one GPU that are followed, over the run


class GpuProcesses:
    """The processes of one GPU.

    The driver tells pids of its own namespace: inside a container they may belong to
    nobody, or to somebody else. Only a pid of the target's tree is the target's.
    """

    def __init__(self, gpu: Gpu, target: TargetTree | None) -> None:
        self._gpu = gpu
        self._target = target if target is not None else TargetTree()
        self._read: dict[int, int | None] | None = None  # pid -> B, of this tick
        self._followed: dict[int, dict[str, int]] = {}  # pid -> metric -> track
        field = Field("processes", ("gpu.processes", "gpu.other_processes"), (Way(self._bind),))
        self._counts = Reading(gpu, field)

    def read(self, sink: Sink, clock: Clock) -> None:
        self._read = None
        self._counts.read(sink, clock)
        if self._read:
            t_ns = clock.now_ns()
            for pid, memory in sorted(self._read.items(), key=lambda item: -(item[1] or 0)):
                track = None if memory is None else self.track("gpu.process_mem", pid, sink)
                if memory is not None and track is not None:
                    sink.sample(track, t_ns, memory)

    @property
    def listed(self) -> Mapping[int, int | None] | None:
        """pid -> B (None where it is not told), of this tick; None where the driver gave no list."""
        return self._read

    def stuck(self, sink: Sink, clock: Clock) -> None:
        self._counts.stuck(sink, clock)

    def _bind(self, nvml: Any, handle: Any) -> Callable[[], Values]:
        compute, graphics = _lister(nvml, handle, "Compute"), _lister(nvml, handle, "Graphics")

        def read() -> Values:
            most = self._gpu.memory_total or MEMORY_BOUND
            found = _memory_by_pid(compute(), most)
            try:
                shown = _memory_by_pid(graphics(), most)
            except Exception:  # a compute card need not know of graphics
                shown = {}
            return self._counted({**shown, **found})  # one that does both counts once

        return read

    def _counted(self, found: dict[int, int | None]) -> Values:
        """Keep this tick's list; how many there are, and how many are not the target's."""
        self._read = found
        if self._target.pid is None:
            return len(found), None
        ours = {process.pid for process in self._target.processes()}
        return len(found), len(found.keys() - ours)

    def track(self, metric: str, pid: int, sink: Sink, method: str = "") -> int | None:
        """A metric's track of a process; None for one beyond those that are followed."""
        if pid not in self._followed and len(self._followed) >= MAX_PROCESSES and not (
                len(self._followed) < 2 * MAX_PROCESSES and self._target.has(pid)):
            return None  # others that come and go for a day leave room for the target
        tracks = self._followed.setdefault(pid, {})
        if metric not in tracks:
            how = {"method": method} if method else {}
            tracks[metric] = sink.track(metric, device=self._gpu.id, index=pid,
                                        properties={**self._about(pid), **how})
        return tracks[metric]

    def _about(self, pid: int) -> dict[str, Any]:
        if self._target.has(pid):
            whose = "target"
        else:
            whose = "other" if psutil.pid_exists(pid) else "outside this namespace"
        return {"whose": whose, "name": name_of(pid) if whose != "outside this namespace" else ""}


def _memory_by_pid(processes: list[Any], most: float) -> dict[int, int | None]:
    """pid -> B. Implausible as `plausible` has it."""
    return plausible({int(p.pid): None if p.usedGpuMemory is None else int(p.usedGpuMemory)
                      for p in processes if p.pid}, most)


def plausible(found: dict[int, int | None], most: float) -> dict[int, int | None]:
    """The same, pid -> B. Implausible where one has more than the device (`most` B), or cannot be a pid:
    the records are not what they should be."""
    for pid, memory in found.items():
        if not 0 < pid <= HIGHEST_PID or (memory or 0) > most:
            raise Implausible(memory or 0, f"process {pid} with {memory or 0:.6g} bytes cannot be")
    return found


def _lister(nvml: Any, handle: Any, kind: str) -> Callable[[], list[Any]]:
    """A call for the list of processes, by the newest version of the query that the driver has."""
    names = [f"nvmlDeviceGet{kind}RunningProcesses{version}" for version in ("", "_v2")]

    def read() -> list[Any]:
        while True:
            try:
                return list(getattr(nvml, names[0])(handle))
            except Exception as error:
                code = code_of(error)
                if code in (0, NOT_FOUND):  # how the binding, and the driver, say that there are none
                    return []
                if code != FUNCTION_NOT_FOUND or len(names) == 1:
                    raise
                del names[0]

    return read


def use_of(gpu: Gpu) -> dict[str, Any]:
    """{mig: whether it is split, users: [(pid, name, B or None)]} now; None where the driver does not say."""
    nvml, handle = gpu.library.nvml, gpu.handle
    try:
        mig = bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except Exception:  # cards without MIG answer NotSupported
        mig = None
    try:
        used = _memory_by_pid(_lister(nvml, handle, "Compute")(), gpu.memory_total or MEMORY_BOUND)
    except Exception:
        return {"mig": mig, "users": None}
    return {"mig": mig, "users": [(pid, name_of(pid), memory) for pid, memory in used.items()]}


def name_of(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:  # of another container, or gone
        return ""
