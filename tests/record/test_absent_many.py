"""Programs without a probe that come and go for a day: the first are told, not every one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from profiler.record import absent
from profiler.record.clock import Clock
from tests.fakes.sink import ListSink


def test_only_the_first_processes_without_a_probe_are_told(tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "_has_torch", lambda pid: True)
    monkeypatch.setattr(absent, "cause", lambda process, spool: "its PYTHONPATH was replaced")
    members: list[SimpleNamespace] = []
    probes = absent.AbsentProbes(lambda: members, tmp_path)  # type: ignore[arg-type, return-value]
    sink = ListSink()
    for pid in range(1000, 1100):
        members[:] = [SimpleNamespace(pid=pid, parents=list)]
        probes.look()
        probes._tell(sink, Clock(), 0.0)
    assert [event.data["pid"] for event in sink.events] == list(range(1000, 1000 + absent.MOST_TOLD))


def test_a_command_that_another_recording_inside_this_one_has_is_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = SimpleNamespace(pid=7, parents=list, cmdline=lambda: ["python", "train.py"],
                            environ=lambda: {"STEPSCOPE_SPOOL": str(tmp_path / "inner")})
    (tmp_path / "inner").mkdir()
    monkeypatch.setattr(absent, "_has_torch", lambda pid: True)
    probes = absent.AbsentProbes(lambda: [inner], tmp_path)  # type: ignore[list-item]
    sink = ListSink()
    probes.look()
    probes._tell(sink, Clock(), 0.0)
    assert sink.events[0].text.endswith(absent.ELSEWHERE)  # and no line of code that would not help
