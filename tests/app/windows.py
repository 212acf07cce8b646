"""A window for tests: it asks no doctor and looks for no Pythons unless told to."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.settings import Settings

DOCTOR = [
    {"name": "GPU", "state": "absent", "text": "libnvidia-ml.so.1 not found", "hint": "install the driver"},
    {"name": "torch", "state": "ok", "text": "2.14", "hint": ""},
    {"name": "Disk", "state": "warning", "text": "0.4 GB free", "hint": "make room"},
]


def doctor(rows: object = DOCTOR, gpus: object = None) -> list[str]:
    """A command that answers like `stepscope doctor --json`."""
    answer = json.dumps({"checks": rows, "gpus": gpus})
    return [sys.executable, "-S", "-c", f"print({json.dumps(answer)})"]


def open_window(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, settings_file: Path, pythons: Sequence[str] = ()
) -> MainWindow:
    """A shown window whose first screen, document and recorder are there."""
    monkeypatch.setattr("app.preflight.own_command", lambda *args: doctor())
    monkeypatch.setattr("app.panels.launch_script.candidates", lambda cwd: list(pythons))
    window = MainWindow(Settings(settings_file))
    qtbot.addWidget(window, before_close_func=lambda w: w.shut_down())
    with qtbot.waitSignal(window.filled):
        window.show()
    return window
