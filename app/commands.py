"""What the actions of the window do. The window itself is main_window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QProcess, QUrl
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMainWindow, QMessageBox, QWidget

from app.settings import Settings
from app.widgets.notice import Notice
from profiler.paths import own_command, runs_dir

if TYPE_CHECKING:
    from PySide6.QtWidgets import QMenu

    from app.document import Document
    from app.recorder import Recorder
    from app.widgets.palette import Palette
    from app.widgets.status_bar import StatusBar

TOUR = "input_starved"


class Commands(QMainWindow):
    """The slots behind the menus."""

    settings: Settings
    document: Document | None
    recorder: Recorder | None
    screens: dict[str, QWidget]
    screen: str
    status: StatusBar
    notice: Notice
    actions_by_name: dict[str, QAction]
    menus: dict[str, QMenu]
    launch_requested: Any
    _helper: QProcess | None = None
    _palette: Palette | None = None

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

    # Files

    def open_file(self) -> None:
        """Ask for a run file and open it."""
        start = self.settings.texts("recent")
        folder = str(Path(start[0]).parent) if start else str(runs_dir())
        name, _ = QFileDialog.getOpenFileName(self, "Open run file", folder, "Runs (*.stepscope);;All files (*)")
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
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(runs_dir())))

    def show_run_folder(self) -> None:
        if self.document is not None and self.document.path is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.document.path.parent)))

    def close_run(self) -> None:
        if self.document is not None:
            self.document.close()

    def export_report(self) -> None:
        """Write the open run's report beside it, in a process of its own."""
        if self.document is None or self.document.path is None or self._helper is not None:
            return
        run = self.document.path
        proposed = str(run.with_suffix(".html"))
        name, _ = QFileDialog.getSaveFileName(self, "Export report", proposed, "HTML (*.html)")
        if name:
            self.write_report(run, Path(name))

    def write_report(self, run: Path, target: Path) -> None:
        """Start `stepscope report`; the notice tells how it ended."""
        argv = own_command("report", str(run), "--format", "html", "-o", str(target))
        process = QProcess(self)
        process.finished.connect(lambda code, _status: self._report_written(code, target))
        process.errorOccurred.connect(lambda error: self._helper_failed(error))
        self._helper = process
        self.tell(f"Writing {target.name}", "info")
        process.start(argv[0], argv[1:])

    def _report_written(self, code: int, target: Path) -> None:
        process, self._helper = self._helper, None
        if process is None:
            return
        error = process.readAllStandardError().data().decode(errors="replace").strip()
        process.deleteLater()
        if code == 0:
            url = QUrl.fromLocalFile(str(target))
            self.notice.show_text(f"Report written: {target}", "ok", "Open", lambda: QDesktopServices.openUrl(url))
        else:
            self.tell(error.splitlines()[-1] if error else f"The report ended with status {code}")

    def _helper_failed(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._helper is not None:
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

    # Launch

    def _panel(self, name: str) -> Any:
        """A screen, made if it is not there yet."""
        if name not in self.screens:
            self.show_screen(name)
        return self.screens.get(name)

    def _can_run(self) -> bool:
        launch: Any = self.screens.get("launch")
        return self.recorder is not None and not self.recording and launch is not None and not launch.reason()

    def run(self) -> None:
        """Start what the Launch screen says; where it cannot start, show that screen with its reason."""
        launch = self._panel("launch")
        if not self.recording and launch is not None:
            if launch.reason():
                self.show_screen("launch")
            launch.run()

    def launch_readiness(self, _reason: str) -> None:
        self._update_actions()

    def show_script(self) -> None:
        self.show_screen("launch")
        self._panel("launch").show_mode("script")

    def watch(self) -> None:
        """Record the machine without a target."""
        from app.spec import LaunchSpec

        self.launch_requested.emit(LaunchSpec(watch=True))

    def start_tour(self) -> None:
        """The sixty-second tour: the input-starved demo, on Live."""
        from app.spec import LaunchSpec

        self.launch_requested.emit(LaunchSpec(name="tour", workload=TOUR))

    def search_workloads(self) -> None:
        self._panel("launch").search()

    def reset_form(self) -> None:
        self._panel("launch").reset()

    def copy_command(self) -> None:
        self._panel("launch").copy_command()

    def check_machine(self) -> None:
        """Ask the doctor again and show what it says."""
        self.show_screen("launch")
        self._panel("launch").check_machine()

    def show_machine(self, text: str, has_gpu: bool) -> None:
        """The device in the status bar, as the doctor named it."""
        self.status.show_facts(device=text, device_icon="gpu" if has_gpu else "cpu")

    # Live

    def stop(self) -> None:
        if self.recorder is not None and self.recording:
            self.status.show_facts(state="stopping")
            self.recorder.stop()

    def _live(self, name: str) -> None:
        live = self.screens.get("live")
        if live is not None and callable(do := getattr(live, name, None)):
            do()

    def mark(self) -> None:
        self._live("mark")

    def trace(self) -> None:
        if self.recorder is not None and self.recording:
            self.recorder.trace(8)

    def pause_view(self) -> None:
        self._live("toggle_pause")

    def toggle_output(self) -> None:
        self._live("toggle_output")

    # Window

    def tell(self, text: str, tone: str = "err") -> None:
        """Something the user must know, in a bar over the status bar, until it is closed."""
        self.notice.show_text(text, tone)

    def show_palette(self) -> None:
        from app.widgets.palette import Palette

        if self._palette is None:
            self._palette = Palette(self)
        self._palette.open_over(self.entries())

    def entries(self) -> list[Any]:
        """What the palette offers: every action that can be done now, and recent runs."""
        from app.actions import Entry
        from app.widgets.palette import Choice

        found = []
        for name, action in self.actions_by_name.items():
            entry: Entry = action.data()
            if action.isEnabled() and name != "show_palette":
                found.append(Choice("Commands", action.text().rstrip("…"), entry.menu, entry.icon or "right",
                                    entry.key, lambda name=name: self.perform(name)))
        for path in self.settings.texts("recent"):
            if Path(path).is_file() and not self.recording:
                found.append(Choice("Runs", Path(path).stem, str(Path(path).parent), "reports", "",
                                    lambda path=path: self.open_path(path)))
        launch: Any = self.screens.get("launch")
        if launch is not None:
            found += launch.choices()
        return found

    def toggle_full_screen(self) -> None:
        self.showNormal() if self.isFullScreen() else self.showFullScreen()

    def reset_layout(self) -> None:
        """The sizes of a first start."""
        self.settings.forget_layout()
        self.showNormal()
        self._restore_geometry()
        for screen in self.screens.values():
            if callable(reset := getattr(screen, "reset_layout", None)):
                reset()

    def show_keys(self) -> None:
        from app.widgets.keys import KeysDialog

        KeysDialog(self.actions_by_name.values(), self).open()

    def about(self) -> None:
        from profiler.version import version

        box = QMessageBox(self)
        box.setWindowTitle("About StepScope")
        box.setText(f"StepScope {version()}")
        box.setInformativeText("A profiler for deep learning on GPUs. MIT licence.")
        box.open()

    def confirm_close(self) -> bool:
        """Whether to close although something records."""
        box = QMessageBox(self)
        box.setWindowTitle("StepScope")
        box.setText("A recording is running.")
        box.setInformativeText("Closing stops it. The run file is kept.")
        stop = box.addButton("Stop and close", QMessageBox.ButtonRole.AcceptRole)
        box.addButton("Go on recording", QMessageBox.ButtonRole.RejectRole)
        box.exec()
        return box.clickedButton() is stop
