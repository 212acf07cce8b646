"""CUDA events on a stand-in for torch.cuda: device times, and how far the device is behind the host."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probe.fakes import FakeCuda, Script

MS = 1e6


class Asynchronous(Script):
    """A script whose forward, backward and optimizer only launch: 1 ms of host time each."""

    def __init__(self, drift: float = 0.0) -> None:
        super().__init__()
        from _stepscope_probe.device import DeviceHook

        self.cuda = FakeCuda(self.time, drift)
        self.devices: dict[int, tuple[dict[str, int], dict[str, int]]] = {}
        self.failures: list[str] = []
        self.device = DeviceHook(self, self.cuda, self.time)
        self.device.enable()

    def device_times(self, index: int, times: dict[str, int], lags: dict[str, int]) -> None:
        assert index not in self.devices
        self.devices[index] = times, lags

    def event(self, kind: str, severity: str, text: str, data: Any) -> None:
        self.failures.append(text)

    def launch(self, forward: float, backward: float, optimizer: float) -> None:
        for enter, leave, ms in ((self.loop.forward_enter, self.loop.pop, forward),
                                 (self.loop.backward_enter, self.loop.pop, backward),
                                 (self.loop.optimizer_enter, self.loop.optimizer_exit, optimizer)):
            depth = enter()
            self.cuda.work(ms)
            self.other(1)
            leave(depth)

    def wait(self) -> None:
        """As reading the loss does: the host waits for the device."""
        self.time.now = max(self.time.now, self.cuda.free_at) + 20_000


def near(values: dict[str, int], **expected: float) -> None:
    assert {k: v / MS for k, v in values.items()} == pytest.approx(expected, abs=0.15)


def test_device_times_of_a_host_that_waits() -> None:
    script = Asynchronous()
    loader = script.loader()
    for _ in range(4):
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
        script.wait()
    times, lags = script.devices[1]
    near(times, forward=10, backward=20, optimizer=5)
    # nothing is queued when the step begins; then the device falls behind by what was launched
    near(lags, data=0, forward=0, backward=9, optimizer=28)
    assert not script.failures


def test_lag_of_a_host_that_runs_ahead() -> None:
    script = Asynchronous()
    loader = script.loader()
    script.fetch(loader, ms=2)
    script.launch(10, 20, 5)
    script.wait()
    for i in range(6):
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
        if i == 5:
            script.wait()
    script.fetch(loader, ms=2)
    script.fetch(loader, ms=2)
    script.launch(1, 1, 1)
    script.fetch(loader, ms=2)
    for i in range(1, 6):  # each step takes the host 5 ms and the device 35
        near({"data": script.devices[i][1]["data"]}, data=max(0, (i - 1) * 30 + (2 if i > 1 else 0)))


@pytest.mark.parametrize("drift", [-5e-5, 5e-5])
def test_lag_follows_clocks_that_drift_apart(drift: float) -> None:
    script = Asynchronous(drift)
    loader = script.loader()
    for _ in range(2000):  # 76 s, in which a drift of 50 ppm makes 3.8 ms
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
        script.wait()
    assert len(script.devices) > 1990
    near(script.devices[1990][1], data=0, forward=0, backward=9, optimizer=28)


def test_no_lag_until_the_device_was_idle_once() -> None:
    script = Asynchronous()
    script.cuda.work(10_000)
    loader = script.loader()
    for _ in range(3):
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
    assert not script.devices
    script.wait()
    script.fetch(loader, ms=2)
    assert script.devices[0][1] == {}
    near(script.devices[1][0], forward=10, backward=20, optimizer=5)


def test_nothing_is_recorded_while_a_stream_captures() -> None:
    script = Asynchronous()
    loader = script.loader()
    script.fetch(loader, ms=2)
    script.cuda.capturing = True
    before = script.cuda.recorded
    script.launch(0, 0, 0)
    assert script.cuda.recorded == before
    script.cuda.capturing = False
    for _ in range(3):
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
        script.wait()
    assert 0 not in script.devices
    assert 1 in script.devices
    assert not script.failures


def test_events_are_used_again() -> None:
    script = Asynchronous()
    loader = script.loader()
    made = 0
    original = script.cuda.Event

    def event(enable_timing: bool = False) -> Any:
        nonlocal made
        made += 1
        return original(enable_timing=enable_timing)

    script.cuda.Event = event  # type: ignore[method-assign]
    for _ in range(300):
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
        script.wait()
    assert made < 40


def test_a_device_that_never_answers_is_no_load() -> None:
    script = Asynchronous()
    loader = script.loader()
    script.cuda.work(1e9)
    for _ in range(500):
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
    assert len(script.device.waiting) <= 64
    assert not script.devices
    assert len(script.sent) == 499


def test_another_device_starts_anew() -> None:
    script = Asynchronous()
    loader = script.loader()
    for i in range(6):
        script.cuda.device = i // 3
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
        script.wait()
    assert not script.failures
    near(script.devices[4][0], forward=10, backward=20, optimizer=5)


def test_an_error_of_cuda_ends_the_events_only() -> None:
    script = Asynchronous()
    loader = script.loader()

    def current_device() -> int:
        raise RuntimeError("no device")

    script.cuda.current_device = current_device  # type: ignore[method-assign]
    for _ in range(3):
        script.fetch(loader, ms=2)
        script.launch(10, 20, 5)
    assert script.loop.device is None
    assert len(script.failures) == 1
    assert len(script.sent) == 2
