"""What NVML takes its time for: PCIe rates, activity (GPM), health, and who else uses the GPUs."""

from __future__ import annotations

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._buffers import buffers
from profiler.sources._gpm import GPM, GPM_OF_SLICE, RATES
from profiler.sources._gpu_processes import GpuProcesses
from profiler.sources._health import health
from profiler.sources._process_use import ProcessUse
from profiler.sources._readings import readings
from profiler.sources._relay import Job, Relay
from profiler.sources.nvml import NvmlSource
from profiler.sources.tree import TargetTree

PATIENCE_S = 0.1  # for one call: some measure for 20 ms before they answer


class NvmlSlowSource:
    """Reads the GPUs of another source, in its own thread, so that it holds up none of the fast fields.

    With a `target`, processes of its tree and those of others are told apart.
    """

    name = "nvml_slow"
    interval_ns: int | None = 1_000_000_000

    def __init__(self, nvml: NvmlSource, target: TargetTree | None = None) -> None:
        self._nvml = nvml
        self._target = target
        self._relay: Relay | None = None

    def open(self, sink: Sink, clock: Clock) -> None:
        pass  # the GPUs are found in the other source's thread

    def read(self, sink: Sink, clock: Clock) -> None:
        if self._relay is None:
            if not self._nvml.opened.is_set() or self._nvml.library.start() is not None:
                return
            self._relay = Relay(self._jobs(), PATIENCE_S)
        self._relay.read(sink, clock)

    def close(self, sink: Sink, clock: Clock) -> None:
        if self._relay is not None and self._relay.close():
            self._nvml.library.leave()

    def _jobs(self) -> list[Job]:
        gpus, slices = self._nvml.gpus, self._nvml.slices
        processes = [GpuProcesses(gpu, self._target) for gpu in gpus]
        return [*readings(gpus, (*RATES, GPM)), *readings(slices, (GPM_OF_SLICE,)), *health(gpus),
                *buffers(gpus), *processes, *map(ProcessUse, gpus, processes),
                *(GpuProcesses(one, self._target) for one in slices)]
