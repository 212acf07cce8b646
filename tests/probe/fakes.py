"""The probe's own modules, and clocks and CUDA events that tests move by hand."""

from __future__ import annotations

import sys
from typing import Any

from tests.probe.reading import FIELDS, PROBE

sys.path.append(str(PROBE))


class Time:
    """A clock in ns that stands still until told."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Script:
    """Drives a Loop as a user's script would; every call takes the milliseconds it is given."""

    def __init__(self) -> None:
        from _stepscope_probe.loop import Loop

        self.time = Time()
        self.sent: list[dict[str, int]] = []
        self.loop = Loop(self._take, self.time, self.time)
        self._started: set[Any] = set()

    def _take(self, step: list[int]) -> None:
        self.sent.append(dict(zip(FIELDS, step, strict=True)))

    def loader(self) -> Any:
        from _stepscope_probe.phases import Loader

        return Loader()

    def other(self, ms: int) -> None:
        self.time.now += ms * 1_000_000

    def fetch(self, loader: Any, ms: int = 10, size: int = 4, stop: bool = False) -> None:
        depth = self.loop.fetch_enter(loader, loader not in self._started)
        self._started.add(loader)
        self.other(ms)
        if depth is not None:
            self.loop.fetch_exit(depth, loader, size, stop)
        elif not stop:
            loader.sizes.append(size)
        if stop:
            self._started.discard(loader)

    def stop(self, loader: Any) -> None:
        self.fetch(loader, ms=0, stop=True)

    def forward(self, ms: int = 20, training: bool = True) -> None:
        depth = self.loop.forward_enter(training)
        self.other(ms)
        if depth is not None:
            self.loop.pop(depth)

    def backward(self, ms: int = 30) -> None:
        depth = self.loop.backward_enter()
        self.other(ms)
        if depth is not None:
            self.loop.pop(depth)

    def optimize(self, ms: int = 5) -> None:
        depth = self.loop.optimizer_enter()
        self.other(ms)
        if depth is not None:
            self.loop.optimizer_exit(depth)

    def train(self) -> None:
        self.forward()
        self.backward()
        self.optimize()

    def several(self, loader: Any, n: int) -> None:
        for _ in range(n):
            self.fetch(loader)
            self.train()

    def epoch(self, loader: Any, n: int) -> None:
        self.several(loader, n)
        self.stop(loader)

    def steps(self) -> list[dict[str, int]]:
        """All steps, after the end of the process."""
        self.loop.finish()
        return self.sent


def ms(step: dict[str, int], *names: str) -> list[float]:
    """Some of a step's times in milliseconds."""
    return [step[name] / 1e6 for name in names]


class FakeCuda:
    """Stands in for torch.cuda: one stream that completes what is submitted in order, `behind` ns late.

    The device's clock starts elsewhere than the host's and may drift by `drift` (a ratio).
    """

    def __init__(self, time: Time, drift: float = 0.0) -> None:
        self.time = time
        self.drift = drift
        self.free_at = 0  # host time at which the device will be done with what it has
        self.capturing = False
        self.device = 0
        self.recorded = 0

    def work(self, ms: float) -> None:
        """Launch something that keeps the device busy for `ms`."""
        self.free_at = max(self.free_at, self.time.now) + int(ms * 1e6)

    def current_device(self) -> int:
        return self.device

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def Event(self, enable_timing: bool = False) -> FakeEvent:
        assert enable_timing
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.done_at: int | None = None

    def record(self) -> None:
        assert not self.cuda.capturing
        self.cuda.recorded += 1
        self.done_at = max(self.cuda.time.now, self.cuda.free_at)

    def query(self) -> bool:
        assert self.done_at is not None
        return self.cuda.time.now >= self.done_at

    def elapsed_time(self, other: FakeEvent) -> float:
        assert self.query() and other.query(), "asked before it was complete"
        assert self.done_at is not None and other.done_at is not None
        return (other.done_at - self.done_at) * (1 + self.cuda.drift) / 1e6
