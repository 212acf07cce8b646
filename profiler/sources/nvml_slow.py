"""What NVML takes its time for: PCIe rates, activity (GPM), health, and who else uses the GPUs."""

from __future__ import annotations

from profiler.sources._buffers import buffers
from profiler.sources._gpm import GPM, GPM_OF_SLICE, RATES
from profiler.sources._gpu_processes import GpuProcesses
from profiler.sources._health import health
from profiler.sources._process_use import ProcessUse
from profiler.sources._readings import readings
from profiler.sources._relay import Relay
from profiler.sources._vendor import SlowSource
from profiler.sources.nvml import NvmlSource

PATIENCE_S = 0.1  # for one call: some measure for 20 ms before they answer


class NvmlSlowSource(SlowSource[NvmlSource]):
    name = "nvml_slow"

    def _begin(self) -> Relay:
        gpus, slices = self._fast.gpus, self._fast.slices
        processes = [GpuProcesses(gpu, self._target) for gpu in gpus]
        return Relay([*readings(gpus, (*RATES, GPM)), *readings(slices, (GPM_OF_SLICE,)), *health(gpus),
                      *buffers(gpus), *processes, *map(ProcessUse, gpus, processes),
                      *(GpuProcesses(one, self._target) for one in slices)], PATIENCE_S)
