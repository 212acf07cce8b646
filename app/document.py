"""The open run: a file that grows, or a finished one. Both are read in the same way.

The run is opened, read and closed on the worker thread of `Queries` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.queries import Callback, Queries
from profiler.model import Device, Process
from profiler.run.reader import Run

REFRESH_MS = 100  # how often a growing file is looked at; the recorder commits as often


@dataclass(frozen=True)
class RunInfo:
    """What is known of the open run, as of the last look at the file."""

    path: Path
    state: str  # recording, finished, partial
    start_ns: int
    end_ns: int
    meta: Mapping[str, Any] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    processes: tuple[Process, ...] = ()

    @property
    def name(self) -> str:
        return str(self.meta.get("name") or self.path.stem)

    @property
    def seconds(self) -> float:
        """Length of the recording so far, in s."""
        return max(0.0, (self.end_ns - self.start_ns) / 1e9)


def read_info(run: Run) -> RunInfo:
    return RunInfo(
        run.path, run.state, run.start_ns, run.end_ns, dict(run.meta),
        tuple(run.devices), tuple(run.processes),
    )


class Document(QObject):
    """The run that the screens show."""

    opened = Signal(object)  # Path
    grew = Signal()  # the file changed since the last look
    ended = Signal()  # a recording run became finished or partial
    closed = Signal()
    failed = Signal(str)  # it cannot be opened, or a query failed

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.queries = Queries(self)
        self.queries.failed.connect(lambda key, text: self.failed.emit(text))
        self.info: RunInfo | None = None
        self._path: Path | None = None  # asked for, possibly not open yet
        self._run: Run | None = None  # touched on the worker only
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self._look)

    @property
    def path(self) -> Path | None:
        return self._path

    @property
    def recording(self) -> bool:
        return self.info is not None and self.info.state == "recording"

    def open(self, path: Path | str) -> None:
        """Open a run file in place of the present one; `opened` or `failed` follows."""
        if self._path is not None:
            self._timer.stop()
            self.queries.forget()
            self.info = None
            self.closed.emit()
        self._path = Path(path)
        wanted = self._path
        self.queries.submit("open", lambda: self._open(wanted), self._on_opened, self._on_failed)

    def close(self) -> None:
        """Close the run; the document can open another."""
        if self._path is None:
            return
        self._timer.stop()
        self._path = None
        self.info = None
        self.queries.forget()
        self.queries.submit("close", self._close, lambda _: None)
        self.closed.emit()

    def shutdown(self) -> None:
        """Close the run and end the worker thread."""
        self._timer.stop()
        self._path = None
        self.info = None
        self.queries.close(self._close)

    def query(
        self,
        key: str,
        function: Callable[[Run], Any],
        callback: Callback,
        failed: Callback | None = None,
    ) -> None:
        """Ask `function(run)` on the worker; `callback(result)` here. Without an open run: nothing."""
        if self.info is None:
            return

        def ask() -> Any:
            if self._run is None:
                raise RuntimeError("the run is closed")
            return function(self._run)

        self.queries.submit(key, ask, callback, failed)

    def busy(self, key: str) -> bool:
        return self.queries.busy(key)

    # On the worker.

    def _open(self, path: Path) -> RunInfo:
        self._close()
        self._run = Run.open(path)
        return read_info(self._run)

    def _close(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None

    def _refresh(self) -> RunInfo | None:
        run = self._run
        if run is None:
            return None
        grew = run.refresh()
        # A killed recorder writes nothing more: then only the state tells.
        return read_info(run) if grew or run.state != "recording" else None

    # On the GUI thread.

    def _on_opened(self, info: RunInfo) -> None:
        self.info = info
        if info.state == "recording":
            self._timer.start()
        self.opened.emit(info.path)

    def _on_failed(self, error: Exception) -> None:
        self._path = None
        self.failed.emit(str(error))

    def _look(self) -> None:
        if not self.queries.busy("refresh"):
            self.queries.submit("refresh", self._refresh, self._on_refreshed)

    def _on_refreshed(self, info: RunInfo | None) -> None:
        if info is None:
            return
        ended = self.recording and info.state != "recording"
        self.info = info
        self.grew.emit()
        if ended:
            self._timer.stop()
            self.ended.emit()
