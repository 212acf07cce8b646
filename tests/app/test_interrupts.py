"""Ctrl-C and a request to terminate reach a window whose event loop is idle."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WINDOW = """
import sys
sys.path.insert(0, sys.argv[1])
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from app.interrupts import quit_on_signals
app = QApplication([])
quit_on_signals(app)
QTimer.singleShot(0, lambda: print("ready", flush=True))
status = app.exec()
print("shut down", flush=True)
sys.exit(status)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_event_loop(number: signal.Signals) -> None:
    command = [sys.executable, "-c", WINDOW, str(ROOT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as window:
        assert window.stdout is not None and window.stdout.readline() == "ready\n"
        window.send_signal(number)
        assert window.stdout.read() == "shut down\n"
    assert window.returncode == 128 + number
