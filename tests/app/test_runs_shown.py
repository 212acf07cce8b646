"""Runs in the window's lists and bars: recent ones, the facts of the open one, and its report."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app import recents
from app.main_window import MainWindow
from app.run_facts import read_facts, texts
from profiler.run.reader import Run
from tests.app.story import baseline, without_gpu
from tests.app.windows import open_window
from tests.runs import make_run


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    return make_run(tmp_path / "one.stepscope", gpu={"gpu.util": 0.3}, meta={"name": "resnet50 baseline"})


@pytest.fixture
def window(
    qtbot: QtBot, dark: None, monkeypatch: pytest.MonkeyPatch, settings_file: Path
) -> Iterator[MainWindow]:
    window = open_window(qtbot, monkeypatch, settings_file)
    yield window
    window.shut_down()


def test_recent_runs_newest_first_and_nothing_else(tmp_path: Path, run_file: Path) -> None:
    older = make_run(tmp_path / "older.stepscope", steps=2)
    os.utime(older, (1, 1))
    (tmp_path / "wrong.stepscope").write_text("no run")
    found = recents.read(recents.newest(tmp_path))
    assert found[0].name == "resnet50 baseline"
    assert {recent.path.name for recent in found} == {"one.stepscope", "older.stepscope"}
    assert found[0].step_ms == pytest.approx(52.3)
    assert found[0].capture == "light" and found[0].size == run_file.stat().st_size
    assert found[0].whole
    stopped = recents.read_one(baseline(tmp_path / "stopped", until=6.0).finish(6.0, reason="stopped"))
    assert stopped is not None and not stopped.whole  # the next run is not expected to be as short
    assert recents.newest(tmp_path / "none") == []
    assert recents.newest(tmp_path / "none", also=[str(run_file), "/no/such/file"]) == [run_file]


@pytest.mark.parametrize("moment, words", [
    (datetime(2026, 3, 12, 14, 6), "today 14:06"), (datetime(2026, 3, 11, 23, 59), "yesterday"),
    (datetime(2026, 1, 2), "2 January"), (datetime(2025, 12, 31), "2025-12-31"),
])
def test_when(moment: datetime, words: str) -> None:
    assert recents.when(moment, datetime(2026, 3, 12, 15, 0)) == words


def test_the_facts_of_a_run(run_file: Path) -> None:
    run = Run.open(run_file)
    found = texts(read_facts(run))
    run.close()
    assert found["dropped"] == "0 records dropped"
    assert found["run_file"].startswith("run file ")
    assert found["device"]


def test_a_run_without_a_gpu_names_its_machine(tmp_path: Path) -> None:
    with Run.open(without_gpu(tmp_path / "r.stepscope", until=6.0).finish(6.0)) as run:
        assert texts(read_facts(run))["device"] == "2 cores, 7.7\u00a0GiB, no GPU"


def test_an_opened_run_is_in_the_status_bar_and_among_the_recent(
    window: MainWindow, qtbot: QtBot, run_file: Path
) -> None:
    window.open_path(str(run_file))
    qtbot.waitUntil(lambda: window.status.fact("dropped") != "")
    assert window.windowTitle() == "one - StepScope"
    assert window.settings.texts("recent")[0] == str(run_file)
    assert any(choice.group == "Runs" and choice.text == "one" for choice in window.entries())
    window.close_run()
    assert window.status.fact("dropped") == "" and window.windowTitle() == "StepScope"


@pytest.mark.parametrize("code, words", [
    ("import sys, pathlib; pathlib.Path(sys.argv[-1]).write_text('report')", "Report written"),
    ("import sys; sys.exit('stepscope: no room for it')", "no room for it"),
])
def test_a_report_is_written_by_a_process_of_its_own(
    window: MainWindow, qtbot: QtBot, run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    code: str, words: str,
) -> None:
    def command(*args: Any) -> list[str]:
        return [sys.executable, "-S", "-c", code, *args]

    monkeypatch.setattr("app.file_commands.own_command", command)
    window.write_report(run_file, tmp_path / "report.html")
    qtbot.waitUntil(lambda: words in window.notice.text())
    assert window._helper is None


def test_a_report_on_its_way_ends_with_the_window(
    window: MainWindow, tmp_path: Path, run_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = [sys.executable, "-S", "-c", "input()"]
    monkeypatch.setattr("app.file_commands.own_command", lambda *args: waits)
    window.write_report(run_file, tmp_path / "report.html")
    process = window._helper
    assert process is not None and process.waitForStarted(5000)
    window.shut_down()
    assert process.state().name == "NotRunning"
