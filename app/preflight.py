"""What works on this machine: the rows of `stepscope doctor`, asked in a process of its own."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from time import monotonic

from PySide6.QtCore import QObject, QProcess, Signal

from profiler.catalog import UNKNOWN, Machine, machine_of
from profiler.machine import cpu_quota, memory_limit
from profiler.paths import own_command
from profiler.units import format_gib

STATES = ("ok", "warning", "error", "absent")


@dataclass(frozen=True)
class Check:
    """A row: state ok, warning, error or absent."""

    name: str
    state: str
    text: str
    hint: str = ""


def parse(text: bytes | str) -> tuple[list[Check], Machine]:
    """The rows in the doctor's JSON, and the GPUs it found. ValueError when there are no rows."""
    value = json.loads(text)
    told = value.get("checks") if isinstance(value, dict) else None
    if not isinstance(told, list) or not all(isinstance(entry, dict) for entry in told):
        raise ValueError("no rows")
    rows = [
        Check(
            str(row.get("name", "")),
            str(row.get("state", "error")),
            str(row.get("text", "")),
            str(row.get("hint") or ""),
        )
        for row in told
    ]
    return rows, machine_of(value.get("gpus"))


def host() -> str:
    """The machine without a GPU: cores and memory, as far as a container leaves them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = max(1, min(cores, int(cpu_quota() or cores)))
    limit = memory_limit()
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = f"{format_gib(min(total, limit[0]) if limit else total)}, "
    return f"{cores} core{'' if cores == 1 else 's'}, {memory}no GPU"


class Preflight(QObject):
    """Asks once at a time; `changed` when the answer, or the lack of one, is there."""

    changed = Signal()

    def __init__(self, command: list[str] | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.checks: list[Check] = []
        self.machine = UNKNOWN
        self.error = ""
        self.asked_at: float | None = None
        self._command = command or own_command("doctor", "--json")
        self._process: QProcess | None = None

    @property
    def busy(self) -> bool:
        return self._process is not None

    def ask(self) -> None:
        """Start a check; nothing happens while one runs."""
        if self._process is not None:
            return
        process = QProcess(self)
        process.finished.connect(self._answered)
        process.errorOccurred.connect(self._failed)
        self._process = process
        process.start(self._command[0], self._command[1:])
        self.changed.emit()

    def shut_down(self) -> None:
        """End the process, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(1000)

    def _answered(self, _code: int, _status: QProcess.ExitStatus) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        output = bytes(process.readAllStandardOutput().data())
        complaint = bytes(process.readAllStandardError().data()).decode(errors="replace").strip().splitlines()
        process.deleteLater()
        try:
            self.checks, self.machine = parse(output)
            self.error = ""
        except ValueError:
            self.error = complaint[-1] if complaint else "the check gave no answer"
        self.asked_at = monotonic()
        self.changed.emit()

    def _failed(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self.error = self._process.errorString()
            self._process.deleteLater()
            self._process = None
            self.changed.emit()
