"""A Diagnose panel on a desk of its own; results that a run may hold; a helper that answers as told."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.diagnose.data import DiagnoseData, FindingData
from app.document import Document
from app.panels.diagnose import DiagnosePanel
from app.selection import Selection
from tests.runs import STAGE_MS, make_run

WAIT = 30_000
STALLING = {**STAGE_MS, "other": lambda k: 400.0 if k % 20 == 19 else 0.4}  # has a second finding
NOTES = ("Testing num_workers 0 -> 2: about 30 s, 3 to 5 pairs of 6 s and 4 s, 60 steps each\n"
         "pair 1: 52.3 ms -> 28.4 ms per step, 1.84 x\n")

REMEDY = {"setting": "num_workers", "from": 0, "to": 8}
RESULT: dict[str, Any] = {
    "kind": "verify", "remedy": REMEDY, "unit": "step", "outcome": "improvement", "score": "hit",
    "reason": "",
    "prediction": {"scenario": "no_input_wait", "speedup": 1.85, "low": 1.7, "high": 2.0, "at_most": False},
    "ratio": {"median": 1.84, "low": 1.79, "high": 1.9, "pairs": 5, "coverage": 0.94},
    "pairs": [{"ratio": r, "counts": r < 2} for r in (1.79, 1.81, 1.84, 1.86, 1.9, 2.4)],
    "step_ms": {"a": 52.3, "b": 28.4}, "throughput": {"a": 1224.0, "b": 2254.0, "unit": "samples/s"},
    "loss": None, "notes": ["A note"],
}


def level(ms: float) -> dict[str, float]:
    return {"median": ms, "low": 0.9 * ms, "high": 1.1 * ms}


def ceiling(name: str, title: str, ms: float, **loader: int) -> dict[str, Any]:
    return {"name": name, "title": title, "runs": 2, "step_ms": level(ms), "throughput": level(64e3 / ms),
            "stages_ms": {}, "loader": loader}


CEILINGS: dict[str, Any] = {
    "kind": "ceilings", "unit": "samples", "repeats": 2, "absent": [], "left_out": [], "notes": [],
    "leaning": {"text": "The run leans on the loader."},
    "stages": [ceiling("real", "the run as it is", 52.3),
               ceiling("loader", "loader alone", 36.2, num_workers=0),
               ceiling("device", "no input, no copies", 16.4)],
    "loader_ms": {},
}


class Desk:
    """A panel on a run whose first finding can be tested. Nothing is started: a helper answers as told."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        (folder / "train.py").write_text("import torch\n\nfor batch in loader:\n    pass\n")
        meta = {"cwd": str(folder), "command": [sys.executable, "train.py"]}
        sites = {"loader": ["train.py:3"]}
        self.path = make_run(folder / "r.stepscope", meta=meta, data_cpu=4.0, sites=sites, stages=STALLING)
        self.qtbot, self.document, self.selection = qtbot, Document(), Selection()
        self.panel = DiagnosePanel(self.document, self.selection)
        qtbot.addWidget(self.panel)
        self.panel.resize(1536, 940)
        self.panel.show()

    def open(self) -> DiagnoseData:
        self.document.open(self.path)
        self.qtbot.waitUntil(lambda: self.panel.data is not None, timeout=WAIT)
        return self.shown

    @property
    def shown(self) -> DiagnoseData:
        assert self.panel.data is not None
        return self.panel.data

    @property
    def finding(self) -> FindingData:
        assert self.panel.finding is not None
        return self.panel.finding

    def settle(self) -> None:
        self.qtbot.waitUntil(
            lambda: not self.panel._stale and not self.document.busy("diagnose"), timeout=WAIT)

    def close(self) -> None:
        self.panel.shut_down()
        self.document.shutdown()


@pytest.fixture(autouse=True)
def no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.diagnose.runner.Score.ask", lambda self, run: None)


@pytest.fixture
def desk(qtbot: QtBot, dark: None, tmp_path: Path) -> Iterator[Desk]:
    result = Desk(qtbot, tmp_path)
    yield result
    result.close()


def texts(desk: Desk) -> str:
    """All that labels show."""
    return "\n".join(label.text() for label in desk.panel.findChildren(QLabel) if label.isVisible())


def helper(monkeypatch: pytest.MonkeyPatch, result: object, notes: str = NOTES,
           waits: bool = False) -> list[list[str]]:
    """The experiment is a script that says this; what it would have been started with is returned."""
    asked: list[list[str]] = []
    end = "signal.pause()" if waits else f"print({json.dumps(result)!r})"
    script = ("import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(130))\n"
              f"sys.stderr.write({notes!r}); sys.stderr.flush()\n{end}\n")

    def command(*args: str) -> list[str]:
        asked.append(list(args))
        return [sys.executable, "-S", "-c", script]

    monkeypatch.setattr("app.experiment.own_command", command)
    return asked
