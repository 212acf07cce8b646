"""The place of Timeline: what to do where there is no run, else the panel."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.panels.run_screen import RunScreen
from app.widgets.empty_state import EmptyState, Way

FRAME = (("Steps", 60), ("CPU main", 120), ("GPU streams", 160), ("Counters", 200), ("Flame view", 220))


class TimelineScreen(RunScreen):
    """A trace, or the steps of a run, on one clock."""

    title = "Timeline"

    def has_run(self) -> bool:
        return self.document.info is not None

    def make_panel(self) -> QWidget:
        from app.panels.timeline import TimelinePanel

        panel = TimelinePanel(self.document, self.main.selection)
        panel.body.trace_wanted.connect(lambda: self.main.show_screen("launch"))
        return panel

    def make_empty(self, keys: dict[str, str]) -> EmptyState:
        window = self.main
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
                    keys["show:launch"],
                    primary=True,
                ),
                Way(
                    "folder",
                    "Open a run file",
                    "A run that holds a trace, or one that stepscope import made of torch.profiler's files.",
                    "Open",
                    window.open_file,
                    keys["open_file"],
                ),
            ),
            screen="Timeline",
            note="no run is open",
            frame=FRAME,
            command="stepscope import TRACE.json.gz -o RUN.stepscope",
        )
