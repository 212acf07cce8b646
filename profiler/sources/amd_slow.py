"""What AMD SMI takes its time for: throttling, XGMI rates, the PCIe link, health, and who uses the GPUs."""

from __future__ import annotations

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._amd_fields import SLOW
from profiler.sources._amd_health import AmdProcesses, health
from profiler.sources._readings import readings
from profiler.sources._relay import Relay
from profiler.sources._vendor import SlowSource
from profiler.sources.amd import AmdSource

PATIENCE_S = 0.1  # for one call: a list of processes takes some ms for each of the machine's


class AmdSlowSource(SlowSource[AmdSource]):
    name = "amd_slow"

    def read(self, sink: Sink, clock: Clock) -> None:
        for gpu in self._fast.gpus:
            gpu.handle.turn += 1
        super().read(sink, clock)

    def _begin(self) -> Relay:
        gpus = self._fast.gpus
        cards = [gpu for gpu in gpus if not gpu.part]
        return Relay([*readings(cards, SLOW), *health(gpus),
                      *(AmdProcesses(gpu, self._target) for gpu in gpus)], PATIENCE_S)
