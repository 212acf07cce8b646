"""A loop that goes by the tape makes the same steps as one that is told of each event as it comes."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.probe.fakes import Script, ms

MS = 1_000_000


class Taped(Script):
    """Drives the tape as the hooks do; it runs wherever it may, on a CPU clock of its own."""

    def __init__(self, taped: bool = True) -> None:
        super().__init__()
        self.taped = taped
        self.tape = self.loop.tape
        self.tape.thread_clock = self.loop.thread_clock = lambda: self.time.now // 3
        self.noted = 0

    def loader(self) -> Any:
        loader = super().loader()
        loader.told = True
        return loader

    def fetch(self, loader: Any, ms: int = 10, size: int = 4, stop: bool = False,
              inside: Callable[[], None] = lambda: None) -> None:
        first = loader not in self._started
        depth = self.tape.fetch(loader, first) or self.loop.fetch_enter(loader, first)
        self._started.add(loader)
        self.other(ms)
        inside()
        if stop:
            self._started.discard(loader)
        if depth is None or (depth == -1 and not stop and self.tape.fetched(size)):
            return
        depth = self.tape.depth(depth)
        if depth is not None:
            self.loop.fetch_exit(depth, loader, size, stop)
            if not stop and self.taped:
                self.tape.start(loader)
                self.noted += self.tape.thread != 0

    def stage(self, what: int, ms: int, enter: Callable[[], Any], inside: Callable[[], None]) -> None:
        depth = self.tape.enter(what) or enter()
        self.other(ms)
        inside()
        if depth is not None:
            self.tape.leave(depth, None)

    def forward(self, ms: int = 20, training: bool = True, inside: Callable[[], None] = lambda: None) -> None:
        from _stepscope_probe.tape import FORWARD, INFERENCE

        self.stage(FORWARD if training else INFERENCE, ms, lambda: self.loop.forward_enter(training), inside)

    def backward(self, ms: int = 30, inside: Callable[[], None] = lambda: None) -> None:
        from _stepscope_probe.tape import BACKWARD

        self.stage(BACKWARD, ms, self.loop.backward_enter, inside)

    def optimize(self, ms: int = 5, inside: Callable[[], None] = lambda: None, raises: bool = False) -> None:
        from _stepscope_probe.tape import STEP

        depth = self.tape.enter(STEP) or self.loop.optimizer_enter()
        self.other(ms)
        inside()
        if depth is not None and not raises:
            self.tape.stepped(depth)

    def steps(self) -> list[dict[str, int]]:
        self.tape.stop()
        assert self.tape.failed is None
        return super().steps()


def play(script: Taped, seed: int) -> list[dict[str, int]]:
    """A loop of which nothing is known but that it fetches, and mostly trains."""
    chance = random.Random(seed)
    train, other = script.loader(), script.loader()
    script.epoch(train, 3)

    def something(depth: int = 0) -> None:
        ms = chance.choice((0, 1, 1, 2, 40))
        inside = (lambda: something(depth + 1)) if depth < 2 and chance.random() < 0.2 else (lambda: None)
        kind = chance.randrange(14)
        if kind < 4:
            script.forward(ms, chance.random() < 0.9, inside)
        elif kind < 8:
            script.backward(ms, inside)
        elif kind < 11:
            script.optimize(ms, inside, chance.random() < 0.05)
        elif kind == 11:
            script.fetch(chance.choice((train, train, other)), ms, chance.randrange(9), inside=inside)
        elif kind == 12 and not depth:
            script.stop(train)
        else:
            script.other(ms)

    for _ in range(120):
        script.fetch(train, 1, chance.randrange(9))
        for _ in range(chance.choice((0, 0, 0, 1, 5))):
            something()
        script.forward(chance.randrange(3))
        script.backward(chance.randrange(3))
        script.optimize(chance.randrange(3))
    return script.steps()


@pytest.mark.parametrize("seed", range(40))
def test_same_steps_as_without_the_tape(seed: int) -> None:
    taped = Taped()
    assert play(taped, seed) == play(Taped(taped=False), seed)
    assert taped.noted > 10


def test_steps_are_sent_ten_times_a_second_and_at_every_boundary_when_long() -> None:
    script = Taped()
    loader = script.loader()
    for _ in range(100):
        script.fetch(loader, 1)
        script.forward(1)
        script.backward(1)
        script.optimize(1)
        assert script.time.now - (script.sent[-1]["t1"] if script.sent else 0) <= 110 * MS
    script.fetch(loader, 200)
    script.train()
    for _ in range(5):
        script.fetch(loader, 200)
        assert script.time.now - script.sent[-1]["t1"] == 200 * MS
        script.train()


def test_boundary_that_somebody_waits_for_is_kept() -> None:
    """As a profiler window does."""
    script = Taped()
    loader = script.loader()
    asked: list[int] = []
    script.epoch(loader, 3)

    def between(now: int) -> bool:
        asked.append(now)
        script.loop.between_at = now + 30 * MS
        return False

    script.loop.between, script.loop.between_at = between, 0
    for _ in range(100):
        script.fetch(loader, 1)
        script.forward(1)
        script.backward(1)
    assert all(30 * MS <= b - a <= 33 * MS for a, b in zip(asked, asked[1:], strict=False))
    assert len(asked) >= 9
    script.tape.stop()
    script.loop.between_at = 0
    before = len(asked)
    script.fetch(loader)
    assert len(asked) == before + 1


def test_optimizer_on_another_thread_counts_in_its_step() -> None:
    script = Taped()
    loader = script.loader()
    script.epoch(loader, 3)
    script.fetch(loader, 1)

    def elsewhere() -> None:
        thread = threading.Thread(target=script.optimize)
        thread.start()
        thread.join()

    for _ in range(4):
        script.fetch(loader, 1)
        script.forward(1)
        script.backward(1, elsewhere)
    assert [s["optimizer_calls"] for s in script.steps()[3:]] == [1] * 4


def test_tape_that_breaks_ends_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Taped()
    loader = script.loader()
    monkeypatch.setattr(type(script.tape), "_play", lambda self, notes: 1 / 0)
    for _ in range(100):
        script.fetch(loader)
        script.train()
    assert isinstance(script.tape.failed, ZeroDivisionError)
    assert len(script.sent) > 80
    assert ms(script.sent[-1], "data", "forward", "backward", "optimizer") == [10, 20, 30, 5]
