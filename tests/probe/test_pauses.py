"""Pauses: collections, what torch saves, and the stack of the loop's thread in a step that takes long."""

from __future__ import annotations

import gc
import json
import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.probe.fakes import PROBE, Script
from tests.probe.reading import run

assert PROBE.is_dir()
MS = 1_000_000


class Watched(Script):
    """A loop, and a sampler that looks where it is told to."""

    def __init__(self) -> None:
        from _stepscope_probe.stacks import Sampler

        super().__init__()
        self.found: deque[Any] = deque()
        self.sampler = Sampler(self.loop, self.found, self.time)

    def steps_of(self, ms: int, n: int) -> None:
        """`n` steps that take so long."""
        known = self.loader()
        for _ in range(n):
            self.fetch(known, ms=0)
            self.forward(0)
            self.backward(ms)
            self.look()
        self.sampler.walls.extend([step["t1"] - step["t0"] for step in self.sent])
        self.known = known

    def look(self) -> None:
        """As the thread of the sampler does."""
        thread = threading.Thread(target=self.sampler.look)
        thread.start()
        thread.join()


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_nothing_is_read_while_steps_take_their_usual_time(watched: Watched) -> None:
    watched.steps_of(60, 20)
    watched.fetch(watched.known, ms=170)
    watched.look()
    watched.sampler.tell()
    assert not watched.found


def test_a_long_step_tells_the_users_line(watched: Watched) -> None:
    watched.steps_of(10, 20)
    watched.fetch(watched.known, ms=10)
    begun = watched.loop.t0
    for _ in range(3):
        watched.other(100)
        watched.look()
    assert not watched.found  # the step goes on
    watched.forward()
    watched.backward()
    watched.fetch(watched.known)
    watched.look()
    (at, cause, took, data), = watched.found
    assert cause == "stack" and at == begun + 110 * MS and took == 310 * MS
    assert data["site"].startswith("tests/probe/test_pauses.py:") and data["looks"] == 3
    assert any(line.endswith("test_a_long_step_tells_the_users_line") for line in data["lines"])
    assert not any("_stepscope_probe" in line for line in data["lines"])


def test_a_step_is_looked_at_so_often_and_no_more(watched: Watched) -> None:
    watched.steps_of(10, 20)
    watched.fetch(watched.known)
    for _ in range(50):
        watched.other(100)
        watched.look()
    watched.sampler.tell()
    assert watched.found[0][3]["looks"] == 20


def test_too_few_steps_tell_no_usual_time(watched: Watched) -> None:
    watched.steps_of(10, 5)
    watched.other(1000)
    watched.look()
    watched.sampler.tell()
    assert not watched.found


def test_the_step_that_is_on_the_tape() -> None:
    from _stepscope_probe.stacks import begun
    from _stepscope_probe.tape import FETCH, FETCHED, FORWARD, LEFT

    t = 1 << 40
    notes = [FETCH, t, 5 * MS, FETCHED, t + 1, 6 * MS, 0, FORWARD, t + 2, LEFT, t + 3]
    loop = SimpleNamespace(t0=7, tape=SimpleNamespace(thread=1, _notes=notes))
    assert begun(loop) == t  # the 0 before the forward is a number of samples
    loop.tape._notes = [LEFT, t] * 100
    assert begun(loop) is None
    loop.tape._notes = []
    assert begun(loop) == 7
    loop.tape.thread = 0
    assert begun(loop) == 7


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hook, watching, whose clock is moved by hand."""
    from _stepscope_probe import pauses

    script = Script()
    monkeypatch.setattr(pauses, "time", SimpleNamespace(monotonic_ns=script.time))
    monkeypatch.setattr(pauses.Sampler, "start", lambda self: None)
    made = pauses.PauseHook(SimpleNamespace(loop=script.loop, counted=8))
    made.on, made.moved = True, script.other
    yield made
    made.unwatch()


def told(hook: Any) -> list[dict[str, Any]]:
    return [json.loads(line)[5] for line in hook.records(0)]


def test_short_collections_are_not_kept(hook: Any) -> None:
    assert told(hook) == [] and hook.collected in gc.callbacks
    for ms in (1, 4, 5, 60):
        hook.collected("start", {"generation": 2})
        hook.moved(ms)
        hook.collected("stop", {"generation": 2, "collected": 3})
    assert [(d["cause"], d["ms"], d["generation"], d["collected"]) for d in told(hook)
            if d["ms"] in (5.0, 60.0)] == [("gc", 5.0, 2, 3), ("gc", 60.0, 2, 3)]


def test_before_the_loop_runs_nothing_is_watched(hook: Any) -> None:
    hook.probe.counted = 7
    assert told(hook) == [] and hook.collected not in gc.callbacks


def test_many_pauses_are_summed_up_and_none_is_lost(hook: Any) -> None:
    told(hook)
    every = []
    for _ in range(600):
        hook.moved(20)
        hook.found.append((hook.loop.clock(), "save", 7 * MS, {}))
        every += told(hook)
    hook.end()
    hook.found.append((hook.loop.clock(), "save", 7 * MS, {}))
    every += told(hook)
    assert len(every) < 110
    assert sum(1 + d.get("left_out", 0) for d in every) == 601
    assert sum(d["ms"] + d.get("left_out_ms", 0) for d in every) == pytest.approx(601 * 7)


def test_pauses_of_a_real_loop(tmp_path: Path) -> None:
    ran = run(tmp_path, "pausing.py")
    assert ran.returncode == 0, ran.stderr
    pauses = [event["data"] for event in ran.only.events("pause")]
    causes = {cause: [p for p in pauses if p["cause"] == cause] for cause in ("gc", "save", "stack")}
    lines = ran.said["lines"]
    for cause, line in (("gc", "collect"), ("save", "save")):
        assert any(p["site"].endswith(f"pausing.py:{lines[line]}") for p in causes[cause]), (cause, pauses)
    asleep = [p for p in causes["stack"] if p["site"].endswith(f"pausing.py:{lines['sleep']}")]
    assert asleep and "logged" in asleep[0]["lines"][0]
    assert ran.said["same"] and not ran.only.events("hook_off")
