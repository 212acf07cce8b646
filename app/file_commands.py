"""Opening runs and writing reports: the File menu, and what the window offers its commands.

What only a few actions need is imported there: it would cost the first paint milliseconds.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QMainWindow

from app.settings import Settings
from app.widgets.notice import Notice
from profiler.paths import own_command, runs_dir

if TYPE_CHECKING:
    from PySide6.QtCore import QProcess
    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QMenu, QWidget

    from app.document import Document
    from app.recorder import Recorder
    from app.widgets.status_bar import StatusBar


def open_outside(path: Path) -> None:
    """Open a file or folder in the program that the system has for it."""
    from PySide6.QtCore import QUrl
    from PySide6.QtGui import QDesktopServices

    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))


class FileCommands(QMainWindow):
    """The slots of the File menu. What is declared first, the window itself gives."""

    settings: Settings
    document: Document | None
    recorder: Recorder | None
    screens: dict[str, QWidget]
    current: str
    status: StatusBar
    notice: Notice
    actions_by_name: dict[str, QAction]
    menus: dict[str, QMenu]
    launch_requested: Any
    _helper: QProcess | None = None
    _report: Path = Path()

    def show_screen(self, name: str) -> None:
        raise NotImplementedError

    @property
    def recording(self) -> bool:
        raise NotImplementedError

    def perform(self, name: str) -> None:
        raise NotImplementedError

    def _update_actions(self) -> None:
        raise NotImplementedError

    def _restore_geometry(self) -> None:
        raise NotImplementedError

    def tell(self, text: str, tone: str = "err") -> None:
        """Something the user must know, in a bar over the status bar, until it is closed."""
        self.notice.show_text(text, tone)

    def open_file(self) -> None:
        """Ask for a run file and open it."""
        from PySide6.QtWidgets import QFileDialog

        start = self.settings.texts("recent")
        folder = str(Path(start[0]).parent) if start else str(runs_dir())
        name, _ = QFileDialog.getOpenFileName(
            self, "Open run file", folder, "Runs (*.stepscope);;All files (*)"
        )
        if name:
            self.open_path(name)

    def open_path(self, path: str) -> None:
        """Open a run file and show it."""
        if self.document is None:
            return
        if self.recording and self.recorder is not None and Path(path) != self.recorder.run_path:
            self.tell("A recording is running. Stop it before opening another run", "warn")
            return
        self.notice.hide()
        self.document.open(Path(path))
        self.show_screen("live")

    def open_runs_folder(self) -> None:
        runs_dir().mkdir(parents=True, exist_ok=True)
        open_outside(runs_dir())

    def show_run_folder(self) -> None:
        if self.document is not None and self.document.path is not None:
            open_outside(self.document.path.parent)

    def close_run(self) -> None:
        if self.document is not None:
            self.document.close()

    def export_report(self) -> None:
        """Write the open run's report where the user says, in a process of its own."""
        from PySide6.QtWidgets import QFileDialog

        if self.document is None or self.document.path is None or self._helper is not None:
            return
        run = self.document.path
        proposed = str(run.with_suffix(".html"))
        name, _ = QFileDialog.getSaveFileName(self, "Export report", proposed, "HTML (*.html)")
        if name:
            self.write_report(run, Path(name))

    def write_report(self, run: Path, target: Path) -> None:
        """Start `stepscope report`; the notice tells how it ended."""
        from PySide6.QtCore import QProcess

        argv = own_command("report", str(run), "--format", "html", "-o", str(target))
        process = QProcess(self)
        process.finished.connect(self._report_written)
        process.errorOccurred.connect(self._helper_failed)
        self._helper, self._report = process, target
        self.tell(f"Writing {target.name}", "info")
        process.start(argv[0], argv[1:])

    def _report_written(self, code: int, _status: QProcess.ExitStatus) -> None:
        target, process, self._helper = self._report, self._helper, None
        if process is None:
            return
        error = bytes(process.readAllStandardError().data()).decode(errors="replace").strip()
        process.deleteLater()
        if code == 0:
            self.notice.show_text(f"Report written: {target}", "ok", "Open", partial(open_outside, target))
        else:
            self.tell(error.splitlines()[-1] if error else f"The report ended with status {code}")

    def _helper_failed(self, error: QProcess.ProcessError) -> None:
        if error.name == "FailedToStart" and self._helper is not None:
            self.tell(f"Cannot start the report: {self._helper.errorString()}")
            self._helper.deleteLater()
            self._helper = None

    def end_helpers(self) -> None:
        """End the helper process, if one runs."""
        if self._helper is not None:
            self._helper.blockSignals(True)
            self._helper.kill()
            self._helper.waitForFinished(1000)
            self._helper = None
