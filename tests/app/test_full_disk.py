"""A disk that fills up while the window records: told at once, and when there is room again."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.spec import LaunchSpec
from tests.app.windows import open_window
from tests.fakes import disk

LONG = 60_000  # ms: the machine may be busy


@pytest.mark.skipif(not sys.platform.startswith("linux") or shutil.which("cc") is None,
                    reason="preloads a library that is compiled here")
def test_s09_a_full_disk_is_told_in_the_window_at_once(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    full = disk.Disk(disk.build(tmp_path / "library"), tmp_path / "disk")
    window = open_window(qtbot, monkeypatch, tmp_path / "settings.ini")
    recorder = window.recorder
    assert recorder is not None
    with qtbot.waitSignal(recorder.started, timeout=LONG):
        recorder.start(LaunchSpec(command=(sys.executable, "-c", "input()"), environment=full.environment,
                                  output=tmp_path / "disk" / "run.stepscope"))
    assert not window.notice.isVisible()

    with qtbot.waitSignal(recorder.told, timeout=LONG):
        full.plan("fail 1 1000000000 28")
    assert window.notice.text().startswith("The recording has stopped: ")
    assert "full" in window.notice.text() and recorder.active

    with qtbot.waitSignal(recorder.told, timeout=LONG):
        full.plan("")
    assert window.notice.text().startswith("The recording goes on")

    with qtbot.waitSignal(recorder.finished, timeout=LONG) as ended:
        recorder.send_input("\n")
    assert ended.args[1]["code"] == 0 and window.notice.isVisible()
