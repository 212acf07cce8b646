"""The screens that this version does not have yet: what they will show, and what does the work today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from app.widgets.empty_state import EmptyState, Way

if TYPE_CHECKING:
    from app.main_window import MainWindow


def make(name: str, window: MainWindow) -> QWidget:
    """The empty state of a screen."""
    return {"compare": _compare, "reports": _reports}[name](window)


def _tour(window: MainWindow, primary: bool = False) -> Way:
    return Way(
        "bolt",
        "Take the sixty-second tour",
        "A training loop with a slow loader, which needs no GPU.",
        "Start tour",
        window.start_tour,
        primary=primary,
    )


def _open(window: MainWindow) -> Way:
    return Way(
        "folder",
        "Open a run file",
        "A finished run, or one that is still being recorded.",
        "Open",
        window.open_file,
        "Ctrl+O",
    )


def _compare(window: MainWindow) -> EmptyState:
    return EmptyState(
        "Nothing to compare yet",
        "Runs side by side, with intervals, are not drawn in this version. Verify compares a run with its "
        "suggested setting in alternating pairs: on Live, or in the terminal.",
        (_tour(window, primary=True), _open(window)),
        screen="Compare",
        note="not in this version",
        command="stepscope verify RUN.stepscope",
        frame=(("Runs", 300), ("Ratio to the reference", 320), ("Stage differences", 300)),
    )


def _reports(window: MainWindow) -> EmptyState:
    def export() -> None:
        if window.document is not None and window.document.path is not None:
            window.export_report()
        else:
            window.tell("No run is open. Open one, then export its report", "warn")

    return EmptyState(
        "No list of reports yet",
        "The list of runs and the preview are not drawn in this version. The report of the open run is: one "
        "HTML file with charts, verdict, settings and machine.",
        (
            Way(
                "export",
                "Export the report of the open run",
                "One file that opens in any browser, without a network.",
                "Export",
                export,
                "Ctrl+Shift+E",
                primary=True,
            ),
            _open(window),
            Way(
                "database",
                "Show the folder of runs",
                "Every run is one file, and can be copied like one.",
                "Show folder",
                window.open_runs_folder,
            ),
        ),
        screen="Reports",
        note="not in this version",
        command="stepscope report RUN.stepscope",
        frame=(("Runs", 420), ("Preview", 420)),
    )
