"""Loops that make no steps any more, as the recorder sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from profiler.sources._standstill import MOST_TOLD, Standstills

S = 1_000_000_000


class Sink:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, dict[str, Any]]] = []

    def event(self, t_ns: int, kind: str, severity: str, text: str, *, process: int, data: Any) -> None:
        self.events.append((kind, severity, text, data))

    @property
    def kinds(self) -> list[str]:
        return [event[0] for event in self.events]


class Watched:
    """One process, and a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100 * S
        self.living = True
        self.sink = Sink()
        self.loop = SimpleNamespace(pid=7, process=1, last_step_ns=None, walls=[], still={}, ended=False)
        self.watch = Standstills(lambda pid: self.living)

    def now_ns(self) -> int:
        return self.now

    def steps(self, n: int, seconds: float) -> None:
        for _ in range(n):
            self.now += round(seconds * S)
            self.loop.walls.append(round(seconds * S))
        self.loop.last_step_ns = self.now

    def after(self, seconds: float) -> list[str]:
        self.now += round(seconds * S)
        return self.watch.tick([self.loop], self.sink, self)  # type: ignore[list-item, arg-type]

    def at_end(self) -> list[str]:
        return self.watch.standing([self.loop], self.now)  # type: ignore[list-item]


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_steps_that_take_their_time_are_no_standstill(watched: Watched) -> None:
    watched.steps(10, 2.0)
    assert not watched.after(39) and not watched.sink.events  # 20 times the usual step are 40 s
    watched.steps(1, 1.0)
    assert not watched.after(39) and not watched.at_end()


def test_short_steps_are_given_ten_seconds(watched: Watched) -> None:
    watched.steps(10, 0.01)
    assert not watched.after(9)
    assert watched.after(2) and watched.sink.kinds == ["no_step"]


def test_s06_told_once_and_over_when_steps_come_again(watched: Watched) -> None:
    watched.steps(10, 0.1)
    (text,) = watched.after(12)
    assert text == "No step of process 7 for 12 s, where one takes 100 ms: it does not say where it is"
    assert not watched.after(60) and watched.sink.kinds == ["no_step"]
    assert watched.at_end() == [text.replace("12 s", "72 s")]
    watched.steps(1, 0.1)
    assert not watched.after(1)
    assert watched.sink.kinds == ["no_step", "steps_again"] and not watched.at_end()


def test_what_the_probe_says_goes_before(watched: Watched) -> None:
    """It knows of steps that it had not sent, and where the loop is."""
    watched.steps(1, 0.1)
    watched.loop.still = {"since_ns": watched.now + S, "usual_ns": S // 10, "inside": True, "stage": "data",
                          "site": "train.py:8", "lines": [], "workers": ["Loader worker 1 of 2 died"]}
    assert not watched.after(5)
    (text,) = watched.after(7)
    assert text.endswith("for 11 s, where one takes 100 ms: it waits for data at train.py:8. "
                         "Loader worker 1 of 2 died")


def test_after_the_loop_nobody_is_alarmed(watched: Watched) -> None:
    watched.steps(10, 0.1)
    watched.loop.still = {"since_ns": watched.now, "usual_ns": S // 10, "inside": False}
    assert not watched.after(12)
    assert [event[1] for event in watched.sink.events] == ["info"] and not watched.at_end()


def test_too_few_steps_processes_that_ended_and_that_died(watched: Watched) -> None:
    watched.steps(2, 0.1)
    assert not watched.after(100)
    watched.steps(8, 0.1)
    watched.loop.ended = True
    assert not watched.after(100)
    watched.loop.ended, watched.living = False, False
    assert not watched.after(100) and not watched.sink.events


def test_so_many_standstills_are_told_and_no_more(watched: Watched) -> None:
    for _ in range(3 * MOST_TOLD):
        watched.steps(10, 0.1)
        watched.after(12)
    watched.steps(10, 0.1)
    watched.after(0)
    assert watched.sink.kinds == ["no_step", "steps_again"] * MOST_TOLD


def test_another_time_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_STILL", "2.5")
    watched = Watched()
    watched.steps(10, 0.01)
    assert not watched.after(2) and watched.after(1)
    monkeypatch.setenv("STEPSCOPE_STILL", "soon")
    watched = Watched()
    watched.steps(10, 0.01)
    assert not watched.after(9) and watched.after(2)
