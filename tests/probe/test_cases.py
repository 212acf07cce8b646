"""What the probe knows of dead workers, of loops that stand still and of data that is given twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.probe.fakes import PROBE, Script
from tests.waiting import until

assert PROBE.is_dir()


# Dead workers

def worker(how: int) -> Any:
    process = multiprocessing.get_context("fork").Process(target=_end, args=(how,))
    process.start()
    return process


def _end(how: int) -> None:
    if how < 0:
        os.kill(os.getpid(), -how)
    os._exit(how)


@pytest.mark.parametrize("how", [-signal.SIGKILL, -signal.SIGTERM, 7])
def test_s06_the_status_is_read_and_left_to_torch(how: int) -> None:
    from _stepscope_probe.deaths import status

    process = worker(how)
    assert until(lambda: status(process)) == how
    assert process._popen.returncode is None  # nobody has taken it
    process.join(30)
    assert process.exitcode == how == status(process)


def test_s06_a_living_worker_and_one_of_somebody_else_have_no_status() -> None:
    from _stepscope_probe.deaths import status

    process = multiprocessing.get_context("fork").Process(target=signal.pause)
    process.start()
    assert status(process) is None
    assert status(SimpleNamespace(pid=1, _popen=None)) is None
    process.kill()
    process.join(30)


class Told:
    """A probe that keeps what it is to send aside."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str, Any]] = []

    def aside(self, *event: Any) -> None:
        self.said.append(event)


def looked(*codes: int | None, ending: bool = False) -> list[str]:
    from _stepscope_probe.deaths import Deaths
    from _stepscope_probe.phases import Loader

    probe, loader = Told(), Loader()
    deaths = Deaths(probe)
    loader.workers = [SimpleNamespace(pid=-n, _popen=SimpleNamespace(returncode=code))
                      for n, code in enumerate(codes, 1)]
    deaths.look([loader], ending)
    deaths.look([loader], ending)
    return [text for _, _, text, _ in probe.said]


def test_s06_each_death_is_told_once() -> None:
    first, second = looked(None, -signal.SIGKILL, 0, 3)
    assert first.startswith("Loader worker 2 of 4 (process -2) was killed by SIGKILL. ")
    assert second == "Loader worker 4 of 4 (process -4) ended with status 3"


def test_workers_that_the_loader_ends_itself_are_no_deaths() -> None:
    assert not looked(0, -signal.SIGTERM, -signal.SIGINT, ending=True)
    assert len(looked(0, -signal.SIGTERM, -signal.SIGINT)) == 1


@pytest.mark.parametrize("interrupted", [False, True])
def test_s06_a_worker_whose_connection_broke_has_a_moment_to_be_dead(
    monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    """Its files are closed before it can be waited for; torch's handler may speak while we wait."""
    from _stepscope_probe import deaths
    from _stepscope_probe.loader import LoaderHook
    from _stepscope_probe.phases import Loader

    probe, loader, popen = Told(), Loader(), SimpleNamespace(returncode=None)
    loader.workers = [SimpleNamespace(pid=-1, _popen=popen)]

    def sleep(_seconds: float) -> None:
        popen.returncode = 7
        if interrupted:
            raise RuntimeError("DataLoader worker (pid 1) exited unexpectedly")

    monkeypatch.setattr(deaths, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=sleep))
    hook = SimpleNamespace(deaths=deaths.Deaths(probe))
    LoaderHook.raised(hook, loader, ValueError("of the dataset"))
    assert not probe.said
    LoaderHook.raised(hook, loader, ConnectionResetError())
    assert [text for _, _, text, _ in probe.said] == ["Loader worker 1 of 1 (process -1) ended with status 7"]


def group(root: Path, **files: str) -> None:
    root.mkdir(parents=True)
    for name, text in files.items():
        (root / name.replace("_", ".", 1)).write_text(text)


def test_s06_limits_of_memory_are_those_of_the_groups_around(tmp_path: Path) -> None:
    from _stepscope_probe.deaths import memory_limit

    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    root = tmp_path / "two"
    group(root / "a", memory_max="2000000000\n", memory_current="1900000000\n", memory_events="oom_kill 9\n")
    group(root / "a" / "b", memory_max="max\n", memory_current="5\n", memory_events="low 0\noom_kill 3\n")
    assert memory_limit(str(root), str(own)) == (2_000_000_000, 1_900_000_000, 3)
    own.write_text("7:cpu:/x\n4:memory:/a\n")
    root = tmp_path / "one" / "memory"
    group(root)
    (root / "memory.limit_in_bytes").write_text(f"{(1 << 63) - 4096}\n")
    assert memory_limit(str(root.parent), str(own)) == (None, None, None)
    group(root / "a")
    for name, text in (("limit_in_bytes", "1000"), ("usage_in_bytes", "10"), ("oom_control", "oom_kill 1\n")):
        (root / "a" / f"memory.{name}").write_text(text)
    assert memory_limit(str(root.parent), str(own)) == (1000, 10, 1)
    assert memory_limit(str(tmp_path / "none"), str(tmp_path / "no")) == (None, None, None)


@pytest.mark.parametrize(("limit", "word"), [
    ((2_000_000_000, 1_900_000_000, 1), "The kernel ended it for want of memory: the limit here is 2.0 GB"),
    ((2_000_000_000, 1_900_000_000, 0), "the limit of memory, which is 2.0 GB here, 1.9 GB of it in use now"),
    ((None, None, None), "memory runs out"),
])
def test_s06_a_kill_is_explained_by_memory(limit: Any, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from _stepscope_probe import deaths

    found = deaths.Deaths(Told())
    found._kills = 0
    monkeypatch.setattr(deaths, "memory_limit", lambda: limit)
    assert word in found._why(signal.SIGKILL)


# Standing still

class Still(Script):
    """A loop and what watches it, at a clock that is moved by hand."""

    def __init__(self) -> None:
        from _stepscope_probe.standstill import Standstill

        super().__init__()
        self.lines: list[Any] = []
        loader = SimpleNamespace(deaths=SimpleNamespace(look=lambda loaders: ["one died"]), all=list)
        self.walls: deque[int] = deque()
        probe = SimpleNamespace(
            loop=self.loop, loader=loader, _waiting=[], muted=False,
            pauses=SimpleNamespace(sampler=SimpleNamespace(walls=self.walls)),
            spool=SimpleNamespace(write=lambda text: self.lines.append(json.loads(text))))
        self.watch = Standstill(probe, self.time)

    def look(self) -> None:
        thread = threading.Thread(target=self.watch.look)
        thread.start()
        thread.join()

    def train(self) -> None:
        super().train()
        self.walls.append(65_000_000)


def test_s06_where_the_loop_is_comes_before_the_recorder_asks() -> None:
    still = Still()
    loader = still.loader()
    still.several(loader, 5)
    depth = still.loop.fetch_enter(loader, False)
    began = still.loop.t0
    still.other(7_000)
    still.look()
    assert not still.lines
    still.other(2_000)
    still.look()
    still.look()
    ((code, _, said),) = still.lines
    assert code == "standstill" and said["since"] == began and said["usual"] == 65_000_000
    assert (said["inside"], said["stage"], said["workers"]) == (True, "data", ["one died"])
    assert "test_cases.py" in said["site"]
    still.loop.fetch_exit(depth, loader, 4, False)
    still.train()
    still.several(loader, 1)
    still.other(9_000)
    still.look()
    assert len(still.lines) == 2 and still.lines[1][2]["stage"] == ""


def test_s06_after_the_loop_it_is_not_inside_a_step() -> None:
    still = Still()
    loader = still.loader()
    still.several(loader, 5)
    still.stop(loader)
    still.other(20_000)
    still.look()
    assert [line[2]["inside"] for line in still.lines] == [False]


def test_steps_that_are_on_the_tape_count() -> None:
    from _stepscope_probe.standstill import noted, stage_of
    from _stepscope_probe.tape import FETCH, FETCHED, FORWARD, LEFT

    t = 1 << 40

    def tape(*notes: int) -> Any:
        return SimpleNamespace(tape=SimpleNamespace(thread=1, _notes=list(notes)), stage=0)

    one = (FETCH, t, 5, FETCHED, t + 1, 6, 0, FORWARD, t + 2, LEFT, t + 3)
    loop = tape(*one, FETCH, t + 10, 9)
    assert noted(loop.tape) == [10] and stage_of(loop) == "data"
    assert stage_of(tape(*one)) == "" and noted(tape(*one).tape) == []
    assert stage_of(tape(*one[:9])) == "forward"  # the number of samples before it, 0, is no fetch
    loop.tape.thread = 0
    assert noted(loop.tape) == [] and stage_of(loop) == ""


# Data that is given twice

def batches(*values: Any) -> bool | None:
    import torch
    from _stepscope_probe.twins import Twins

    twins, found = Twins(2), None
    for value in values:
        assert found is None
        found = twins.see(torch.as_tensor(value) if isinstance(value, list) else value)
    return found


def test_s07_twins_are_told_by_two_rounds() -> None:
    assert batches([1.0, 2.0], [1.0, 2.0]) is None
    assert batches([1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [3.0, 4.0]) is True
    assert batches([1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]) is False
    assert batches([1.0], [1.0], [1.0], [1.0]) is False  # always the same: nobody gives it twice
    assert batches([1.0], [1.0], [2.0], [3.0]) is False
    assert batches({"x": "a"}, {"x": "a"}, {"x": "b"}, {"x": "b"}) is True
    assert batches(object()) is False


def test_only_iterable_data_of_several_workers_is_looked_at() -> None:
    from _stepscope_probe.twins import Twins
    from torch.utils.data import IterableDataset

    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(())

    def of(data: Any, workers: int, **more: Any) -> Any:
        return Twins.of(SimpleNamespace(_dataset=data, _num_workers=workers, **more))

    assert of(Stream(), 2) is not None
    assert of([1], 2) is None and of(Stream(), 1) is None and of(Stream(), 2, _in_order=False) is None
