"""Programs with a probe that come and go for a day: their files go with them, none is in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.sources import _segments
from profiler.sources import spool as module
from tests.sources.spooling import Spool


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def _hello(spool: Spool, pid: int) -> list[Any]:
    return ["hello", {"version": 1, "pid": pid, "t": spool.t, "argv": [f"{pid}.py"]}]


def _lives(spool: Spool, pid: int, index: int = 1) -> None:
    spool.write(_hello(spool, pid), spool.step(index), ["bye", {"steps": 1}], pid=pid)


def test_the_file_of_a_process_that_ended_goes(spool: Spool) -> None:
    _lives(spool, 70)
    spool.write(_hello(spool, 71), spool.step(1), pid=71)
    spool.read()
    assert [path.name for path in spool.directory.iterdir()] == ["71.0.spool"]
    assert len(spool.sink.values("step.wall")) == 2


def test_a_pid_that_is_given_out_again_is_another_process(spool: Spool) -> None:
    _lives(spool, 70)
    spool.read()
    _lives(spool, 70, index=2)
    spool.read()
    assert [process.command for process in spool.sink.processes] == ["70.py", "70.py"]
    assert len(spool.sink.values("step.wall")) == 2
    assert not list(spool.directory.iterdir())


def test_processes_that_ended_do_not_count_as_many(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 3)
    for pid in range(100, 120):
        _lives(spool, pid)
        spool.read()
    assert len(spool.sink.values("step.wall")) == 20
    assert "records_dropped" not in spool.sink.kinds()


def test_more_processes_than_can_be_kept_are_told_once(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 2)
    for pid in (100, 101, 102, 103):
        spool.write(_hello(spool, pid), spool.step(1), pid=pid)
    spool.read()
    assert len(spool.sink.values("step.wall")) == 2
    assert [kind for kind in spool.sink.kinds() if kind != "first_step"] == ["records_dropped"]
    assert spool.source.steps_seen == 1


def test_a_file_without_news_is_not_opened(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    careful = _segments.open_regular

    def counted(path: Path) -> Any:
        opened.append(path)
        return careful(path)

    monkeypatch.setattr(_segments, "open_regular", counted)
    for pid in range(100, 110):
        spool.write(_hello(spool, pid), pid=pid)
    spool.read()
    opened.clear()
    spool.write(spool.step(1), pid=105)
    spool.read()
    assert [path.name for path in opened] == ["105.0.spool"]
    assert len(spool.sink.values("step.wall")) == 1
