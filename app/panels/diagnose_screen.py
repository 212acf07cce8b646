"""The place of Diagnose: what to do where there is no run, else its panel."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.panels.run_screen import RunScreen
from app.widgets.empty_state import EmptyState, Way

FRAME = (("Findings", 280), ("Prediction and measurement", 160), ("Evidence", 200), ("One step", 160),
         ("Ceilings", 200))


class DiagnoseScreen(RunScreen):
    """Findings and their tests."""

    title = "Diagnose"

    def make_panel(self) -> QWidget:
        from app.panels.diagnose import DiagnosePanel

        window = self.main
        panel = DiagnosePanel(self.document, window.selection, str(window.settings.get("editor") or ""))
        panel.screen_wanted.connect(window.show_screen)
        panel.report_wanted.connect(window.export_report)
        panel.trace_wanted.connect(lambda: window.show_screen("launch"))
        panel.told.connect(window.tell)
        return panel

    def make_empty(self, keys: dict[str, str]) -> EmptyState:
        window = self.main
        return EmptyState(
            "No run to diagnose",
            "What holds a run back, the evidence for and against it, and a test of what to change.",
            (
                Way("bolt", "Take the sixty-second tour", "A training loop with a slow loader; needs no GPU.",
                    "Start tour", window.start_tour, primary=True),
                Way("launch", "Run a workload", "Or your own script, unchanged.", "Choose",
                    lambda: window.show_screen("launch"), keys["show:launch"]),
                Way("folder", "Open a run file", "A finished run, an imported trace, or a run that is still "
                    "being recorded.", "Open", window.open_file, keys["open_file"]),
            ),
            screen="Diagnose", note="no run is open", frame=FRAME,
            command="stepscope import trace.json.gz -o run.stepscope",
        )
