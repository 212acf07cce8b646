"""The test of a suggestion: `stepscope verify RUN --json` as a child process, and what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QElapsedTimer, QObject, QProcess, QTimer, Signal

from app.widgets.sentence import Part
from profiler.experiments.statistics import FAILS, IMPROVEMENT, REGRESSION, UNFINISHED
from profiler.paths import own_command
from profiler.rules.words import prediction
from profiler.units import format_ratio

BADGES = {"hit": ("Hit", "ok"), "miss": ("Miss", "err"), "vague": ("Vague", "warn")}
COLOURS = {IMPROVEMENT: "ok", REGRESSION: "err"}
CANCELLED = "the test was cancelled"
END_MS = 3000


class Verify(QObject):
    """One test at a time."""

    progress = Signal(str)  # the newest line of its notes, and each second while there is no newer one
    finished = Signal(object)  # the JSON object
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: QProcess | None = None
        self._notes = ""
        self._cancelled = False
        self._since = QElapsedTimer()
        self._ticks = QTimer(self, interval=1000)
        self._ticks.timeout.connect(self._tell)

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def elapsed_ns(self) -> int:
        """Since the start of the test that runs."""
        return self._since.nsecsElapsed() if self.running else 0

    def start(self, run: Path) -> None:
        if self._process is not None:
            return
        argv = own_command("verify", str(run), "--json")
        self._notes, self._cancelled = "", False
        process = QProcess(self)
        process.readyReadStandardError.connect(self._read_notes)
        process.finished.connect(self._end)
        process.errorOccurred.connect(self._broken)
        self._process = process
        self._since.start()
        self._ticks.start()
        process.start(argv[0], argv[1:])

    def cancel(self) -> None:
        """Ask it to end, as Ctrl-C does; its own runs end with it."""
        if self._process is not None:
            self._cancelled = True
            self._process.terminate()

    def shut_down(self) -> None:
        process = self._process
        if process is None:
            return
        self.cancel()
        if not process.waitForFinished(END_MS):
            process.kill()
            process.waitForFinished(1000)

    def _read_notes(self) -> None:
        if self._process is None:
            return
        self._notes += bytes(self._process.readAllStandardError().data()).decode(errors="replace")
        self._notes = self._notes[-8000:]
        self._tell()

    def _tell(self) -> None:
        lines = [line for line in self._notes.replace("\r", "\n").split("\n") if line.strip()]
        if lines:
            self.progress.emit(lines[-1].strip())

    def _broken(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self._notes = f"verify cannot be started: {self._process.errorString()}"
            self._end(-1)

    def _end(self, code: int, *_: object) -> None:
        process = self._process
        if process is None:
            return
        self._read_notes()
        out = bytes(process.readAllStandardOutput().data())
        self._process = None
        self._ticks.stop()
        process.deleteLater()
        try:
            result = json.loads(out)
        except ValueError:
            result = None
        measured = isinstance(result, dict) and bool(result.get("ratio"))
        if self._cancelled and not measured:
            self.failed.emit(CANCELLED)
        elif isinstance(result, dict):
            self.finished.emit(result)
        else:
            lines = [line for line in self._notes.splitlines() if line.strip()]
            said = lines[-1].removeprefix("stepscope: ") if lines else ""
            self.failed.emit(said or f"verify ended with status {code}")


def outcome_parts(result: Mapping[str, Any]) -> tuple[list[Part], tuple[str, str] | None]:
    """The result beside its prediction: 1.84 x [1.79, 1.90], predicted 1.7 to 2.0 x; and its badge."""
    ratio, outcome = result.get("ratio"), result.get("outcome")
    if not isinstance(ratio, Mapping):
        fails = outcome == FAILS
        reason = str(result.get("reason") or "no result")
        return [Part(reason, "err" if fails else "t2")], ("Fails", "err") if fails else None
    measured = format_ratio(float(ratio["median"]), (float(ratio["low"]), float(ratio["high"])))
    parts = [Part("measured "), Part(measured, COLOURS.get(str(outcome), "t2"), 600)]
    if (unit := result.get("unit") or "step") != "step":
        parts.append(Part(f" for a {unit}", "t2"))
    if outcome == UNFINISHED:
        parts.append(Part(", too few pairs to tell", "t2"))
    if predicted := prediction(result.get("prediction")):
        parts.append(Part(f", predicted {predicted}", "t2"))
    return parts, BADGES.get(str(result.get("score")))
