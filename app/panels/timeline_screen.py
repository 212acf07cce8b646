"""The place of Timeline: what to do where there is no run, else the panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QStackedWidget

from app.widgets.empty_state import EmptyState, Way

if TYPE_CHECKING:
    from app.main_window import MainWindow

FRAME = (("Steps", 60), ("CPU main", 120), ("GPU streams", 160), ("Counters", 200), ("Flame view", 220))


class TimelineScreen(QStackedWidget):
    """Empty until a run is open; the panel is imported then."""

    title = "Timeline"

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self._window = window
        self.panel: Any = None
        self._empty = self._make_empty()
        self.addWidget(self._empty)
        assert window.document is not None
        self._document = window.document
        self._document.opened.connect(self._look)
        self._document.closed.connect(self._look)
        self._look()

    def _make_empty(self) -> EmptyState:
        window = self._window
        return EmptyState(
            "No run yet",
            "Timeline shows every operator, kernel and copy of a step on one clock, and what a stretch of "
            "time went to.",
            (
                Way(
                    "camera",
                    "Record with a trace",
                    "Choose a workload or your script, and Light and one trace under Capture.",
                    "Choose",
                    lambda: window.show_screen("launch"),
                    "Ctrl+1",
                    primary=True,
                ),
                Way(
                    "folder",
                    "Open a run file",
                    "A run that holds a trace, or one that stepscope import made of torch.profiler's files.",
                    "Open",
                    window.open_file,
                    "Ctrl+O",
                ),
            ),
            screen="Timeline",
            note="no run is open",
            frame=FRAME,
            command="stepscope import TRACE.json.gz -o RUN.stepscope",
        )

    def _look(self, *_: object) -> None:
        if self._document.info is None:
            self.setCurrentWidget(self._empty)
            return
        if self.panel is None:
            from app.panels.timeline import TimelinePanel

            self.panel = TimelinePanel(self._document, self._window.selection)
            self.panel.body.trace_wanted.connect(lambda: self._window.show_screen("launch"))
            self.addWidget(self.panel)
        self.setCurrentWidget(self.panel)

    def perform(self, name: str) -> None:
        """An action of the menu that this screen listens to."""
        if self.panel is not None:
            getattr(self.panel, name)()

    def fit(self) -> None:
        self.perform("fit")

    def mark(self) -> None:
        self.perform("mark")

    def reset_layout(self) -> None:
        self.perform("reset_layout")

    def shut_down(self) -> None:
        self.perform("shut_down")
