"""The helper process as the window sees it: started for a run, asked, ended. What it does is server.py."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QProcess, Signal

from profiler.paths import HOME

# By path, with -P and -E, so that nothing of the user's takes the place of ours.
_CODE = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from app.timeline.server import main; "
    "sys.exit(main(*sys.argv[1:]))"
)
END_MS = 3000


class Helper(QObject):
    """One run at a time. After `read` come `progress` and `ready` or `failed`; after it `ask` works."""

    progress = Signal(float)
    ready = Signal(object)  # Path of the lanes
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: QProcess | None = None
        self._folder: Path | None = None
        self._text = b""
        self._asked: dict[int, tuple[str, Callable[[Any], None]]] = {}
        self._number = 0

    @property
    def running(self) -> bool:
        return self._process is not None

    def read(self, run: Path) -> None:
        """Begin with a run, in place of the one before."""
        self.end()
        self._folder = Path(tempfile.mkdtemp(prefix="stepscope-lanes-"))
        process = QProcess(self)
        process.readyReadStandardOutput.connect(self._listen)
        process.finished.connect(self._ended)
        process.errorOccurred.connect(self._broken)
        self._process = process
        process.start(
            sys.executable, ["-P", "-E", "-c", _CODE, str(HOME), str(run), str(self._folder / "lanes.npz")]
        )

    def ask(self, key: str, callback: Callable[[Any], None], **question: Any) -> None:
        """`callback(answer)` later, None where nothing is known; only the newest of a key is answered."""
        if self._process is None:
            return
        for number in [n for n, (other, _) in self._asked.items() if other == key]:
            del self._asked[number]
        self._number += 1
        self._asked[self._number] = key, callback
        self._process.write((json.dumps({"id": self._number, **question}) + "\n").encode())

    def busy(self, key: str) -> bool:
        return any(other == key for other, _ in self._asked.values())

    def end(self) -> None:
        """End the process and remove what it wrote. Called twice without harm."""
        process, self._process = self._process, None
        self._asked.clear()
        self._text = b""
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(END_MS)
            process.deleteLater()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _listen(self) -> None:
        if self._process is None:
            return
        *lines, self._text = (self._text + bytes(self._process.readAllStandardOutput().data())).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    def _hear(self, told: dict[str, Any]) -> None:
        if "progress" in told:
            self.progress.emit(float(told["progress"]))
        elif "model" in told:
            self.ready.emit(Path(told["model"]))
        elif "id" in told:
            _, callback = self._asked.pop(int(told["id"]), ("", None))
            if callback is not None:
                callback(told.get("answer"))
        elif "error" in told:
            self.failed.emit(str(told["error"]))

    def _ended(self, code: int, _status: QProcess.ExitStatus) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        complaint = bytes(process.readAllStandardError().data()).decode(errors="replace").strip().splitlines()
        process.deleteLater()
        if code != 2:  # then it has told by itself
            self.failed.emit(complaint[-1] if complaint else "the reader of traces ended early")

    def _broken(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            text = self._process.errorString()
            self._process.deleteLater()
            self._process = None
            self.failed.emit(text)
