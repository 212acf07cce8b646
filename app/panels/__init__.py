"""The screens of the window, one file a screen; large ones have files beside theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.main_window import MainWindow


def make(name: str, window: MainWindow) -> QWidget | None:
    """The screen of that name, imported now; None when it needs the document and there is none yet."""
    if name == "launch":
        from app.panels.launch import LaunchPanel

        panel = LaunchPanel(window.settings)
        panel.launch_requested.connect(window.launch_requested)
        panel.open_requested.connect(window.open_path)
        panel.readiness_changed.connect(window.launch_readiness)
        panel.machine_known.connect(window.show_machine)
        return panel
    if name == "live":
        if window.document is None or window.recorder is None:
            return None
        from app.panels.live_screen import LiveScreen

        return LiveScreen(window)
    if name == "diagnose":
        if window.document is None:
            return None
        from app.panels.diagnose_screen import DiagnoseScreen

        return DiagnoseScreen(window)
    if name == "timeline":
        if window.document is None:
            return None
        from app.panels.timeline_screen import TimelineScreen

        return TimelineScreen(window)
    from app.panels import later

    return later.make(name, window)
