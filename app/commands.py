"""What the actions of the window do. The window itself is main_window."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.file_commands import FileCommands

if TYPE_CHECKING:
    from app.selection import Selection
    from app.widgets.palette import Palette

TOUR = "input_starved"


class Commands(FileCommands):
    """The slots behind the menus."""

    selection: Selection
    _palette: Palette | None = None

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

    def ask(self, screen: str, what: str) -> None:
        """Let a screen that shows a run do something."""
        shown: Any = self.screens.get(screen)
        if shown is not None:
            shown.perform(what)

    def mark(self) -> None:
        self.ask("timeline" if self.current == "timeline" else "live", "mark")

    def trace(self) -> None:
        if self.recorder is not None and self.recording:
            self.recorder.trace(8)

    def pause_view(self) -> None:
        self.ask("live", "toggle_pause")

    def verify(self) -> None:
        """The suggestion on Live, the chosen finding on Diagnose."""
        self.ask("diagnose" if self.current == "diagnose" else "live", "verify")

    def fit(self) -> None:
        self.ask("timeline" if self.current == "timeline" else "live", "fit")

    def copy_moment(self) -> None:
        self.ask("live", "copy_moment")

    def toggle_output(self) -> None:
        self.ask("live", "toggle_output")

    def go_back(self) -> None:
        self.selection.back()

    def go_forward(self) -> None:
        self.selection.forward()

    # Window

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
                found.append(
                    Choice(
                        "Commands",
                        entry.text.rstrip("…"),
                        entry.menu,
                        entry.icon or "right",
                        entry.key,
                        partial(self.perform, name),
                    )
                )
        for path in self.settings.texts("recent"):
            if Path(path).is_file() and not self.recording:
                found.append(
                    Choice(
                        "Runs",
                        Path(path).stem,
                        str(Path(path).parent),
                        "reports",
                        "",
                        partial(self.open_path, path),
                    )
                )
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

    def show_answers(self) -> None:
        """What the diagnosis says where the answer is known."""
        from app.widgets.answers import AnswersDialog

        AnswersDialog(self).open()

    def about(self) -> None:
        from PySide6.QtWidgets import QMessageBox

        from profiler.version import version

        box = QMessageBox(self)
        box.setWindowTitle("About StepScope")
        box.setText(f"StepScope {version()}")
        box.setInformativeText("A profiler for deep learning on GPUs. MIT licence.")
        box.open()

    def confirm_close(self) -> bool:
        """Whether to close although something records."""
        from PySide6.QtWidgets import QMessageBox

        box = QMessageBox(self)
        box.setWindowTitle("StepScope")
        box.setText("A recording is running.")
        box.setInformativeText("Closing stops it. The run file is kept.")
        stop = box.addButton("Stop and close", QMessageBox.ButtonRole.AcceptRole)
        box.addButton("Go on recording", QMessageBox.ButtonRole.RejectRole)
        box.exec()
        return box.clickedButton() is stop
