"""The AMD sources on the stand-in, on a clock that moves when it is told to."""

from __future__ import annotations

from typing import Any

from profiler.sources.amd import AmdSource
from profiler.sources.amd_slow import AmdSlowSource
from profiler.sources.tree import TargetTree
from profiler.visible import also_named
from tests.fakes.sink import ListSink


class Clock:
    def __init__(self) -> None:
        self.t = 0

    def now_ns(self) -> int:
        self.t += 1000
        return self.t

    def from_monotonic(self, monotonic_ns: int) -> int:
        return monotonic_ns


class Amd:
    """Both sources with their sink. `smi` is the stand-in."""

    def __init__(self, smi: Any, tree: TargetTree | None = None) -> None:
        self.smi, self.sink, self.clock = smi, ListSink(), Clock()
        self.fast = AmdSource()
        self.slow = AmdSlowSource(self.fast, tree)

    def open(self, plan: dict[str, Any] | None = None) -> Amd:
        self.plan(**(plan or {}))
        self.fast.open(self.sink, self.clock)
        self.slow.open(self.sink, self.clock)
        return self

    def plan(self, **plan: Any) -> None:
        self.smi.use(plan)

    def read(self, times: int = 1, step_s: float = 0.1) -> None:
        self._read(self.fast, times, step_s)

    def read_slow(self, times: int = 1, step_s: float = 1.0) -> None:
        self._read(self.slow, times, step_s)

    def _read(self, source: Any, times: int, step_s: float) -> None:
        for _ in range(times):
            self.clock.t += round(step_s * 1e9)
            source.read(self.sink, self.clock)

    def values(self, metric: str, gpu: int = 0, index: int | None = None) -> list[float]:
        device = next((d.id for d in self.sink.devices if d.index == gpu), None)
        return [value for _, value in self.sink.values(metric, device=device, index=index)]

    @property
    def devices(self) -> dict[str, int]:
        """By each of its names, the id of a device in the run: as the recorder will have them."""
        return {name: d.id for d in self.sink.devices for name in (d.uuid, *also_named(d.uuid, d.properties))}

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.sink.events if event.kind == kind]

    def close(self) -> None:
        self.slow.close(self.sink, self.clock)
        self.fast.close(self.sink, self.clock)


