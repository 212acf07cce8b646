"""What is worked out beside the open run, in child processes: verify, ceilings, the analysis of its traces.

One at a time for all screens: two of them would slow each other down.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QElapsedTimer, QObject, QProcess, QTimer, Signal

from profiler.paths import own_command

DOING = {"verify": "Verifying", "ceilings": "Measuring ceilings", "diagnose": "Analysing the trace"}
CANCELLED = {"verify": "the test was cancelled", "ceilings": "the measurement was cancelled",
             "diagnose": "the analysis was cancelled"}
END_MS = 3000
NOTES = 8000  # letters of its notes that are kept
# What the notes of a command say of how much there is to do, and what is done.
_TOTAL = {"verify": re.compile(r"(\d+) pairs of "), "ceilings": re.compile(r"(\d+) recordings of ")}
_DONE = {"verify": re.compile(r"^pair \d+: ", re.M), "ceilings": re.compile(r"^round \d+, ", re.M)}


class Experiment(QObject):
    """`kind`, `run` and `finding` say what runs, or ran last."""

    started = Signal()
    progress = Signal(str)  # the newest line of its notes, and each second while there is no newer one
    finished = Signal(object)  # the JSON object
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.kind, self.finding = "", ""
        self.run: Path | None = None
        self._process: QProcess | None = None
        self._notes, self._told = "", ""
        self._cancelled = False
        self._since = QElapsedTimer()
        self._ticks = QTimer(self, interval=1000)
        self._ticks.timeout.connect(self._tell)

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def elapsed_ns(self) -> int:
        """Since the start of what runs."""
        return self._since.nsecsElapsed() if self.running else 0

    @property
    def counts(self) -> tuple[int, int]:
        """(done, of at most so many) pairs or recordings; (0, 0) where that is not known."""
        if self.kind not in _TOTAL or (total := _TOTAL[self.kind].search(self._told)) is None:
            return 0, 0
        return len(_DONE[self.kind].findall(self._told)), int(total[1])

    def start(self, run: Path, kind: str = "verify", finding: str = "") -> bool:
        """Start `stepscope KIND RUN [FINDING] --json`. False when something runs already."""
        if self._process is not None:
            return False
        self.kind, self.run, self.finding = kind, run, finding
        self._notes, self._told, self._cancelled = "", "", False
        argv = own_command(kind, str(run), *([finding] if finding else []), "--json")
        process = QProcess(self)
        process.readyReadStandardError.connect(self._read_notes)
        process.finished.connect(self._end)
        process.errorOccurred.connect(self._broken)
        self._process = process
        self._since.start()
        self._ticks.start()
        process.start(argv[0], argv[1:])
        self.started.emit()
        return True

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
        said = bytes(self._process.readAllStandardError().data()).decode(errors="replace")
        self._told = (self._told + said)[: 8 * NOTES]  # how much there is to do is said first
        self._notes = (self._notes + said)[-NOTES:]
        self._tell()

    def _tell(self) -> None:
        lines = [line for line in self._notes.replace("\r", "\n").split("\n") if line.strip()]
        if lines:
            self.progress.emit(lines[-1].strip())

    def _broken(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self._notes = f"{self.kind} cannot be started: {self._process.errorString()}"
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
        if self._cancelled and not _measured(result):
            self.failed.emit(CANCELLED[self.kind])
        elif isinstance(result, dict):
            self.finished.emit(result)
        else:
            lines = [line for line in self._notes.splitlines() if line.strip()]
            said = lines[-1].removeprefix("stepscope: ") if lines else ""
            self.failed.emit(said or f"{self.kind} ended with status {code}")


def _measured(result: Any) -> bool:
    """Whether there is anything in the result of what was cancelled."""
    return isinstance(result, Mapping) and bool(result.get("ratio") or result.get("stages"))


def experiment_of(owner: QObject) -> Experiment:
    """The one of a document, whichever screen asks for it first."""
    found = owner.findChild(Experiment)
    return found if isinstance(found, Experiment) else Experiment(owner)
