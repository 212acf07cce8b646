"""Programs with a probe that come and go for a day: their files go with them, none is in the way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from profiler.sources import _segments
from profiler.sources import spool as module
from tests.sources.spooling import Spool

PID = 5_000_000  # and following: more than Linux gives out


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def _hello(spool: Spool, pid: int) -> list[Any]:
    return ["hello", {"version": 1, "pid": pid, "t": spool.t, "argv": [f"{pid}.py"]}]


def _lives(spool: Spool, pid: int, index: int = 1) -> None:
    spool.write(_hello(spool, pid), spool.step(index), ["bye", {"steps": 1}], pid=pid)


def test_the_file_of_a_process_that_ended_goes(spool: Spool) -> None:
    _lives(spool, PID)
    spool.write(_hello(spool, PID + 1), spool.step(1), pid=PID + 1)
    spool.read()
    assert [path.name for path in spool.directory.iterdir()] == [f"{PID + 1}.0.spool"]
    assert len(spool.sink.values("step.wall")) == 2
    assert [spool.sink.processes[number - 1].pid for number in spool.sink.ended] == [PID]


def test_a_process_that_has_said_good_bye_and_lives_keeps_its_file(spool: Spool) -> None:
    """Its file is what shows that the probe is in there."""
    _lives(spool, os.getpid())
    spool.read()
    spool.read()
    assert spool.path(os.getpid()).exists() and not spool.sink.ended


def test_a_pid_that_is_given_out_again_is_another_process(spool: Spool) -> None:
    _lives(spool, PID)
    spool.read()
    _lives(spool, PID, index=2)
    spool.read()
    assert [process.command for process in spool.sink.processes] == [f"{PID}.py", f"{PID}.py"]
    assert len(spool.sink.values("step.wall")) == 2
    assert not list(spool.directory.iterdir())


def test_processes_that_ended_do_not_count_as_many(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 3)
    for pid in range(PID, PID + 20):
        _lives(spool, pid)
        spool.read()
    assert len(spool.sink.values("step.wall")) == 20
    assert "records_dropped" not in spool.sink.kinds()


def test_more_processes_than_can_be_kept_are_told_once(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 2)
    for pid in range(PID, PID + 4):
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
    for pid in range(PID, PID + 10):
        spool.write(_hello(spool, pid), pid=pid)
    spool.read()
    opened.clear()
    spool.write(spool.step(1), pid=PID + 5)
    spool.read()
    assert [path.name for path in opened] == [f"{PID + 5}.0.spool"]
    assert len(spool.sink.values("step.wall")) == 1


def test_traces_without_end_are_kept_up_to_a_bound(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day with a window a minute would fill the disk."""
    monkeypatch.setattr(module, "MAX_TRACES_STORED", 100)
    for i in range(10):
        (spool.directory / f"{i}.json").write_bytes(b'{"traceEvents": []}')
        spool.write(["trace", spool.t + i, spool.t + i + 1, f"{i}.json", {"valid": True}], pid=PID)
        spool.read()
    kept = [told.name for told, _ in spool.sink.attachments]
    assert 1 < len(kept) < 10
    assert kept == [f"{i}.json" for i in range(len(kept))]
    assert spool.sink.kinds() == ["trace_lost"], "told once"
    assert not list(spool.directory.glob("*.json")), "they do not fill the spool instead"
