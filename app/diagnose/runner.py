"""What Diagnose has measured: one finding, all of them in turn, ceilings; and the running score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, Signal

from app.document import Document
from app.experiment import DOING, experiment_of
from profiler.paths import own_command, runs_dir
from profiler.units import clock


class Runner(QObject):
    """Between the screen and the experiment that all screens share."""

    changed = Signal()  # what runs, how far it is, what waits, what went wrong
    measured = Signal(str, object)  # kind, its JSON object

    def __init__(self, document: Document, parent: QObject) -> None:
        super().__init__(parent)
        self._document = document
        self.experiment = experiment_of(document)
        self.waiting: list[str] = []  # keys of findings that are tested next
        self.note, self.trouble = "", ""
        self.experiment.started.connect(self._on_started)
        self.experiment.progress.connect(self._on_progress)
        self.experiment.finished.connect(self._on_finished)
        self.experiment.failed.connect(self._on_failed)
        document.closed.connect(self.cancel)

    @property
    def running(self) -> bool:
        return self.experiment.running

    @property
    def testing(self) -> str:
        """The key of the finding that is tested; "" for none."""
        return self.experiment.finding if self.running and self.experiment.kind == "verify" else ""

    @property
    def share(self) -> float | None:
        """How much is done, in [0, 1]; None where nothing tells."""
        done, total = self.experiment.counts
        return min(1.0, done / total) if total else None

    def text(self) -> str:
        """Verifying, 00:12: pair 1: 104.3 -> 38.0 ms per step."""
        if not self.running:
            return self.trouble
        what = DOING[self.experiment.kind]
        done, total = self.experiment.counts
        of = f", {done} of at most {total}" if total else ""
        more = f", {len(self.waiting)} more to test" if self.waiting else ""
        return f"{what}, {clock(self.experiment.elapsed_ns)}{of}{more}: {self.note}"

    def verify(self, keys: Sequence[str]) -> None:
        """Test these findings, one after the other."""
        self.waiting += [key for key in keys if key not in (*self.waiting, self.testing)]
        self._next()

    def ceilings(self) -> None:
        self._start("ceilings")

    def analyse(self) -> None:
        """What the run's traces say, kept in the run."""
        self._start("diagnose")

    def cancel(self) -> None:
        self.waiting = []
        self.experiment.cancel()
        self.changed.emit()

    def shut_down(self) -> None:
        self.waiting = []
        self.experiment.shut_down()

    def _next(self) -> None:
        if self.waiting and not self.running:
            self._start("verify", self.waiting.pop(0))
        self.changed.emit()

    def _start(self, kind: str, finding: str = "") -> None:
        path = self._document.path
        if path is not None and not self._document.recording:
            self.experiment.start(path, kind, finding)

    def _on_started(self) -> None:
        self.note, self.trouble = "starting", ""
        self.changed.emit()

    def _on_progress(self, line: str) -> None:
        self.note = line
        self.changed.emit()

    def _mine(self) -> bool:
        return self.experiment.run == self._document.path

    def _on_finished(self, result: object) -> None:
        if self._mine():
            self.measured.emit(self.experiment.kind, result)
        self._next()

    def _on_failed(self, text: str) -> None:
        if self._mine():
            self.trouble = text
        self._next()


class Score(QObject):
    """How all predictions have done so far: read from the folder of runs, in a process of its own."""

    told = Signal(object)  # the JSON object of verify --scoreboard

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._process: QProcess | None = None

    def ask(self, run: Path | None) -> None:
        if self._process is not None:
            return
        folder = runs_dir()
        paths = [str(folder)] if folder.is_dir() else []
        if run is not None and folder not in run.parents:
            paths.append(str(run))
        if not paths:
            return
        argv = own_command("verify", "--scoreboard", "--json", *paths)
        self._process = process = QProcess(self)
        process.finished.connect(self._end)
        process.errorOccurred.connect(lambda _: None)
        process.start(argv[0], argv[1:])

    def shut_down(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.waitForFinished(1000)

    def _end(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        out = bytes(process.readAllStandardOutput().data())
        process.deleteLater()
        try:
            self.told.emit(json.loads(out))
        except ValueError:
            return  # the score is left out
