"""A run that was made from a trace, in the window: the verdict is the trace's, and nothing fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.live.state import Live
from app.live.verdict import query
from app.main_window import MainWindow
from profiler.cli import main
from profiler.run.reader import Run
from tests.app.windows import open_window
from tests.cli.test_diagnose_trace import GPU, with_trace
from tests.rules.trace.loops import loop


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    line = loop(12, wait_us=400).memory(1000, 512, allocated=2048, reserved=4096)
    trace = line.save(tmp_path / "t.json.gz")
    assert main(["import", str(trace), "-o", str(tmp_path / "t.stepscope")]) == 0
    return tmp_path / "t.stepscope"


@pytest.fixture
def window(
    qtbot: QtBot, dark: None, monkeypatch: pytest.MonkeyPatch, settings_file: Path
) -> Iterator[MainWindow]:
    window = open_window(qtbot, monkeypatch, settings_file)
    yield window
    window.shut_down()


def test_the_verdict_is_the_traces(imported: Path) -> None:
    with Run.open(imported) as run:
        told = query(run, Live())
    assert told.word == "input_bound" and told.confidence == "high"
    assert not told.testable  # a trace has no command to repeat
    assert told.remedy == "workers 0 \u2192 2" and "ms" in "".join(text for text, _ in told.sentence)


def test_a_trace_without_steps_has_a_verdict_too(tmp_path: Path) -> None:
    line = loop(kernel_us=47)
    line.events = [event for event in line.events if not event["name"].startswith("ProfilerStep")]
    trace = line.save(tmp_path / "t.json")
    assert main(["import", str(trace), "-o", str(tmp_path / "t.stepscope")]) == 0
    with Run.open(tmp_path / "t.stepscope") as run:
        told = query(run, Live())
    assert told.word == "compute_bound" and told.confidence == "low"


def test_it_opens(window: MainWindow, imported: Path, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window.document.opened):
        window.document.open(imported)
    window.show_screen("live")
    assert window.document.info is not None and window.document.info.meta["kind"] == "import"

    def told() -> bool:
        return any("Input-bound" in label.text() for label in window.findChildren(QLabel))

    qtbot.waitUntil(told)


def test_only_settings_that_verify_can_try_are_offered(tmp_path: Path) -> None:
    planned = {**GPU, "stages": {"data": 0.01, "forward": 1.0}}
    path = with_trace(tmp_path / "a.stepscope", loop(kernels=68, kernel_us=1, first_us=60), **planned)
    assert main(["diagnose", str(path)]) == 0
    with Run.open(path) as run:
        told = query(run, Live())
    assert told.word == "launch_bound" and told.remedy and not told.testable
