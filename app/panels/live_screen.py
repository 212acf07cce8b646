"""The place of Live: what to do where there is no run, else the live panel."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.panels.run_screen import RunScreen
from app.widgets.button import Button
from app.widgets.empty_state import EmptyState, Way

FRAME = (
    ("Step time", 184),
    ("GPU activity", 136),
    ("GPU memory", 92),
    ("Power", 80),
    ("SM clock", 72),
    ("PCIe", 76),
    ("CPU cores", 124),
)


class LiveScreen(RunScreen):
    """The panel is there as soon as something records."""

    title = "Live"

    def has_run(self) -> bool:
        return super().has_run() or self.recorder.active

    def make_panel(self) -> QWidget:
        from app.panels.live import LivePanel

        return LivePanel(self.document, self.recorder)

    def make_empty(self, keys: dict[str, str]) -> EmptyState:
        from profiler.catalog import workloads

        window, count = self.main, len(workloads())
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
                    keys["show:launch"],
                ),
                Way(
                    "terminal",
                    "Record my script",
                    "python or torchrun, unchanged. Its output and exit status stay its own.",
                    "Enter command",
                    window.show_script,
                    keys["show_script"],
                ),
                Way(
                    "folder",
                    "Open a run file",
                    "A finished run, or one that is still being recorded. Or drop a file "
                    "anywhere in this window.",
                    "Open",
                    window.open_file,
                    keys["open_file"],
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
