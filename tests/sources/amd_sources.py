"""The AMD sources on the stand-in."""

from __future__ import annotations

from typing import Any

from profiler.sources.amd import AmdSource
from profiler.sources.amd_slow import AmdSlowSource
from profiler.sources.tree import TargetTree
from profiler.visible import also_named
from tests.fakes.sources import Both


class Amd(Both):
    """Both sources with their sink. `smi` is the stand-in."""

    def __init__(self, smi: Any, tree: TargetTree | None = None) -> None:
        self.smi = smi
        self.fast = AmdSource()
        self.slow = AmdSlowSource(self.fast, tree)
        super().__init__(self.fast, self.slow)

    def open(self, plan: dict[str, Any] | None = None) -> Amd:
        self.plan(**(plan or {}))
        self.fast.open(self.sink, self.clock)
        self.slow.open(self.sink, self.clock)
        return self

    def plan(self, **plan: Any) -> None:
        self.smi.use(plan)

    def read(self, times: int = 1, step_s: float = 0.1) -> None:
        self.tick("fast", times, step_s)

    def read_slow(self, times: int = 1, step_s: float = 1.0) -> None:
        self.tick("slow", times, step_s)

    def values(self, metric: str, gpu: int = 0, index: int | None = None) -> list[float]:
        device = next((d.id for d in self.sink.devices if d.index == gpu), None)
        return [value for _, value in self.sink.values(metric, device=device, index=index)]

    @property
    def devices(self) -> dict[str, int]:
        """By each of its names, the id of a device in the run: as the recorder will have them."""
        return {name: d.id for d in self.sink.devices for name in (d.uuid, *also_named(d.uuid, d.properties))}

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.sink.events if event.kind == kind]
