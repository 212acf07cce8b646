"""The place of a screen that shows a run: what to do where there is none, else its panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QStackedWidget, QWidget

from app.widgets.empty_state import EmptyState

if TYPE_CHECKING:
    from app.main_window import MainWindow


class RunScreen(QStackedWidget):
    """Empty until a run is open; the panel is made, and imported, then."""

    title: str

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        assert window.document is not None and window.recorder is not None
        self.main, self.document, self.recorder = window, window.document, window.recorder
        self.panel: Any = None
        self._empty = self.make_empty({name: a.data().key for name, a in window.actions_by_name.items()})
        self.addWidget(self._empty)
        for changed in (self.document.opened, self.document.closed, self.recorder.state_changed):
            changed.connect(self._look)
        self._look()

    def make_empty(self, keys: dict[str, str]) -> EmptyState:
        """What to do where there is no run. `keys`: of the actions, by name."""
        raise NotImplementedError

    def make_panel(self) -> QWidget:
        """What shows the run."""
        raise NotImplementedError

    def has_run(self) -> bool:
        return self.document.path is not None

    def perform(self, name: str) -> None:
        """Let the panel do the action of that name, if it is there and knows it."""
        if callable(do := getattr(self.panel, name, None)):
            do()

    def reset_layout(self) -> None:
        self.perform("reset_layout")

    def shut_down(self) -> None:
        self.perform("shut_down")

    def _look(self, *_: object) -> None:
        if self.has_run() and self.panel is None:
            self.panel = self.make_panel()
            self.addWidget(self.panel)
        self.setCurrentWidget(self.panel if self.has_run() else self._empty)
