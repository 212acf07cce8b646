"""The place of Diagnose: what to do where there is no run, else its panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QStackedWidget

from app.widgets.empty_state import EmptyState, Way

if TYPE_CHECKING:
    from app.main_window import MainWindow

FRAME = (("Findings", 280), ("Prediction and measurement", 160), ("Evidence", 200), ("One step", 160),
         ("Ceilings", 200))


class DiagnoseScreen(QStackedWidget):
    """Empty until a run is open; the panel is imported then."""

    title = "Diagnose"

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
        key = {name: action.data().key for name, action in window.actions_by_name.items()}
        return EmptyState(
            "No run to diagnose",
            "What holds a run back, the evidence for and against it, and a test of what to change.",
            (
                Way("bolt", "Take the sixty-second tour", "A training loop with a slow loader; needs no GPU.",
                    "Start tour", window.start_tour, primary=True),
                Way("launch", "Run a workload", "Or your own script, unchanged.", "Choose",
                    lambda: window.show_screen("launch"), key["show:launch"]),
                Way("folder", "Open a run file", "A finished run, an imported trace, or a run that is still "
                    "being recorded.", "Open", window.open_file, key["open_file"]),
            ),
            screen="Diagnose", note="no run is open", frame=FRAME,
            command="stepscope import trace.json.gz -o run.stepscope",
        )

    def _look(self, *_: object) -> None:
        if self._document.path is None:
            self.setCurrentWidget(self._empty)
            return
        if self.panel is None:
            from app.panels.diagnose import DiagnosePanel

            window = self._window
            editor = str(window.settings.get("editor") or "")
            self.panel = DiagnosePanel(self._document, window.selection, editor)
            self.panel.screen_wanted.connect(window.show_screen)
            self.panel.report_wanted.connect(window.export_report)
            self.panel.trace_wanted.connect(lambda: window.show_screen("launch"))
            self.panel.told.connect(window.tell)
            self.addWidget(self.panel)
        self.setCurrentWidget(self.panel)

    def _pass_on(self, name: str) -> None:
        if self.panel is not None and callable(do := getattr(self.panel, name, None)):
            do()

    def verify(self) -> None:
        self._pass_on("verify")

    def verify_all(self) -> None:
        self._pass_on("verify_all")

    def ceilings(self) -> None:
        self._pass_on("ceilings")

    def show_in_timeline(self) -> None:
        self._pass_on("show_in_timeline")

    def open_code(self) -> None:
        self._pass_on("open_code")

    def reset_layout(self) -> None:
        self._pass_on("reset_layout")

    def shut_down(self) -> None:
        self._pass_on("shut_down")
