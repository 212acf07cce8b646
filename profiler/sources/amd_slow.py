"""What AMD SMI takes its time for: throttling, XGMI rates, the PCIe link, health, and who uses the GPUs."""

from __future__ import annotations

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._amd_fields import SLOW
from profiler.sources._amd_health import AmdProcesses, health
from profiler.sources._readings import readings
from profiler.sources._relay import Job, Relay
from profiler.sources.amd import AmdSource
from profiler.sources.tree import TargetTree

PATIENCE_S = 0.1  # for one call: a list of processes takes some ms for each of the machine's


class AmdSlowSource:
    """Reads the GPUs of another source, in its own thread, so that it holds up none of the fast fields.

    With a `target`, processes of its tree and those of others are told apart.
    """

    name = "amd_slow"
    interval_ns: int | None = 1_000_000_000

    def __init__(self, amd: AmdSource, target: TargetTree | None = None) -> None:
        self._amd = amd
        self._target = target
        self._relay: Relay | None = None

    def open(self, sink: Sink, clock: Clock) -> None:
        pass  # the GPUs are found in the other source's thread

    def read(self, sink: Sink, clock: Clock) -> None:
        if self._relay is None:
            if not self._amd.opened.is_set() or self._amd.library.start() is not None:
                return
            self._relay = Relay(self._jobs(), PATIENCE_S)
        for gpu in self._amd.gpus:
            gpu.handle.turn += 1
        self._relay.read(sink, clock)

    def close(self, sink: Sink, clock: Clock) -> None:
        if self._relay is not None and self._relay.close():
            self._amd.library.leave()

    def _jobs(self) -> list[Job]:
        gpus = self._amd.gpus
        cards = [gpu for gpu in gpus if not gpu.part]
        return [*readings(cards, SLOW), *health(gpus), *(AmdProcesses(gpu, self._target) for gpu in gpus)]
