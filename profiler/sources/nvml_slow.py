"""What NVML takes its time for: PCIe rates, counters of activity (GPM), and who else uses the GPUs."""

from __future__ import annotations

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import SLOW
from profiler.sources._gpm import GPM
from profiler.sources._gpu_processes import GpuProcesses
from profiler.sources._readings import Readings
from profiler.sources.nvml import NvmlSource
from profiler.sources.tree import TargetTree


class NvmlSlowSource:
    """Reads the GPUs of another source, in its own thread, so that it holds up none of the fast fields.

    With a `target`, processes of its tree and those of others are told apart.
    """

    name = "nvml_slow"
    interval_ns: int | None = 1_000_000_000

    def __init__(self, nvml: NvmlSource, target: TargetTree | None = None) -> None:
        self._nvml = nvml
        self._target = target
        self._rates: Readings | None = None
        self._activity = Readings((), ())
        self._processes: list[GpuProcesses] = []

    def open(self, sink: Sink, clock: Clock) -> None:
        pass  # the GPUs are found in the other source's thread

    def read(self, sink: Sink, clock: Clock) -> None:
        if self._rates is None:
            if not self._nvml.opened.is_set() or self._nvml.library.start() is not None:
                return
            self._rates = Readings(self._nvml.gpus, SLOW)
            self._activity = Readings(self._nvml.gpus, [GPM])
            self._processes = [GpuProcesses(gpu, self._target) for gpu in self._nvml.gpus]
        self._rates.read(sink, clock)
        self._activity.read(sink, clock)
        for processes in self._processes:
            processes.read(sink, clock)

    def close(self, sink: Sink, clock: Clock) -> None:
        if self._rates is not None:
            self._nvml.library.leave()
