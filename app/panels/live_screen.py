"""The place of Live: what to do where there is no run, else the live panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QStackedWidget

from app.widgets.button import Button
from app.widgets.empty_state import EmptyState, Way

if TYPE_CHECKING:
    from app.main_window import MainWindow

FRAME = (
    ("Step time", 184),
    ("GPU activity", 136),
    ("GPU memory", 92),
    ("Power", 80),
    ("SM clock", 72),
    ("PCIe", 76),
    ("CPU cores", 124),
)


class LiveScreen(QStackedWidget):
    """Empty until something records or a run is open; the panel is imported then."""

    title = "Live"

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self._window = window
        self.panel: Any = None
        self._empty = self._make_empty()
        self.addWidget(self._empty)
        assert window.document is not None and window.recorder is not None
        self._document, self._recorder = window.document, window.recorder
        self._document.opened.connect(self._look)
        self._document.closed.connect(self._look)
        self._recorder.state_changed.connect(self._look)
        self._look()

    def _make_empty(self) -> EmptyState:
        from profiler.catalog import workloads

        window, count = self._window, len(workloads())
        key = {name: action.data().key for name, action in window.actions_by_name.items()}
        empty = EmptyState(
            "No run yet",
            "Live shows where each step spends its time while it runs. Start something, or open a file.",
            (
                Way(
                    "bolt",
                    "Take the sixty-second tour",
                    "A training loop with a slow loader: read the verdict, press Verify, see the gain. "
                    "No GPU needed.",
                    "Start tour",
                    window.start_tour,
                    primary=True,
                ),
                Way(
                    "launch",
                    "Run a workload",
                    f"{count} workloads by task, each in a size that takes seconds.",
                    "Choose",
                    lambda: window.show_screen("launch"),
                    key["show:launch"],
                ),
                Way(
                    "terminal",
                    "Record my script",
                    "python or torchrun, unchanged. Its output and exit status stay its own.",
                    "Enter command",
                    window.show_script,
                    key["show_script"],
                ),
                Way(
                    "folder",
                    "Open a run file",
                    "A finished run, or one that is still being recorded. Or drop a file "
                    "anywhere in this window.",
                    "Open",
                    window.open_file,
                    key["open_file"],
                ),
            ),
            screen="Live",
            note="nothing is recording",
            frame=FRAME,
            command="stepscope record -- python train.py",
        )
        watch = Button("Watch this machine", icon="eye")
        watch.clicked.connect(window.watch)
        empty.bar_row.addWidget(watch)
        return empty

    def _look(self, *_: object) -> None:
        busy = self._document.path is not None or self._recorder.active
        if not busy:
            self.setCurrentWidget(self._empty)
            return
        if self.panel is None:
            from app.panels.live import LivePanel

            self.panel = LivePanel(self._document, self._recorder)
            self.addWidget(self.panel)
        self.setCurrentWidget(self.panel)

    def _pass_on(self, name: str) -> None:
        if self.panel is not None and callable(do := getattr(self.panel, name, None)):
            do()

    def toggle_pause(self) -> None:
        self._pass_on("toggle_pause")

    def toggle_output(self) -> None:
        self._pass_on("toggle_output")

    def mark(self) -> None:
        self._pass_on("mark")

    def verify(self) -> None:
        """As the button on the verdict strip, which knows whether there is something to test."""
        if self.panel is not None:
            self.panel.strip.verify.click()

    def fit(self) -> None:
        self._pass_on("fit")

    def copy_moment(self) -> None:
        self._pass_on("copy_moment")

    def reset_layout(self) -> None:
        self._pass_on("reset_layout")

    def shut_down(self) -> None:
        self._pass_on("shut_down")
