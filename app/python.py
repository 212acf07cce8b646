"""Pythons on this machine, and whether they have torch. Each is asked in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, Signal

_BIN = "Scripts" if sys.platform == "win32" else "bin"
_EXE = "python.exe" if sys.platform == "win32" else "python"
_ASK = (
    "import json, sys\n"
    "try:\n"
    "    from importlib.metadata import version\n"
    "    torch = version('torch')\n"
    "except Exception:\n"
    "    torch = ''\n"
    "print(json.dumps({'version': '%d.%d.%d' % sys.version_info[:3], 'torch': torch}))\n"
)


@dataclass(frozen=True)
class Python:
    """An interpreter: its versions, or why it is none."""

    path: str
    version: str = ""
    torch: str = ""
    error: str = ""


def candidates(cwd: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """Interpreters worth offering, the nearest to the working directory first."""
    env = os.environ if environment is None else environment
    folder = Path(cwd).expanduser() if cwd else Path.cwd()
    places: list[str | None] = [str(folder / name / _BIN / _EXE) for name in (".venv", "venv", "env")]
    places += [
        str(Path(env[name]) / _BIN / _EXE) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if env.get(name)
    ]
    places += [
        sys.executable,
        shutil.which("python3", path=env.get("PATH")),
        shutil.which("python", path=env.get("PATH")),
    ]
    found: dict[str, str] = {}
    for place in places:
        if place and Path(place).is_file():
            # links to one file inside a virtual environment are still another Python
            found.setdefault(str(Path(place).parent.resolve()), place)
    return list(found.values())


class Pythons(QObject):
    """What is known of interpreters. One is asked at a time; `known` after each answer."""

    known = Signal(object)  # Python

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.found: dict[str, Python] = {}
        self._waiting: list[str] = []
        self._process: QProcess | None = None
        self._asked = ""

    def ask(self, paths: Iterable[str]) -> None:
        """Learn about these, the first first; known ones are not asked again."""
        fresh = [path for path in paths if path and path not in self.found]
        self._waiting = fresh + [path for path in self._waiting if path not in fresh]
        self._next()

    def best(self) -> Python | None:
        """The first one with torch."""
        return next((python for python in self.found.values() if python.torch), None)

    def shut_down(self) -> None:
        """End the process that is asked, if any."""
        self._waiting.clear()
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(1000)

    def _next(self) -> None:
        if self._process is not None or not self._waiting:
            return
        path = self._waiting.pop(0)
        program = path if os.sep in path else shutil.which(path)
        if program is None or not Path(program).is_file():
            self._tell(Python(path, error=f"{path} does not exist"))
            return
        process = QProcess(self)
        process.setWorkingDirectory(tempfile.gettempdir())  # a user's json.py must not be what answers
        process.finished.connect(self._answered)
        process.errorOccurred.connect(self._failed)
        self._process, self._asked = process, path
        process.start(program, ["-c", _ASK])

    def _answered(self, code: int, _status: QProcess.ExitStatus) -> None:
        path, process, self._process = self._asked, self._process, None
        if process is None:
            return
        text = bytes(process.readAllStandardOutput().data())
        process.deleteLater()
        try:
            answer = json.loads(text)
            self._tell(Python(path, str(answer["version"]), str(answer["torch"])))
        except (ValueError, KeyError, TypeError):
            self._tell(Python(path, error=f"{Path(path).name} is no Python that answers (status {code})"))

    def _failed(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self._process.deleteLater()
            self._process = None
            self._tell(Python(self._asked, error=f"{self._asked} cannot be started"))

    def _tell(self, python: Python) -> None:
        self.found[python.path] = python
        self.known.emit(python)
        self._next()
